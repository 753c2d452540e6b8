"""How verdicts are read that models give in their own words."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from spanlab.detection.claims import FourClasses, TwoClasses


@pytest.mark.parametrize(
    ("written", "two", "four"),
    [
        ("Supported.", "supported", "supported"),
        ("This is false", "refuted", "refuted"),
        ("Conflicting Evidence/Cherrypicking", None, "conflicting"),
        ("not enough evidence", None, "not-enough-evidence"),
        ("", None, "not-enough-evidence"),
        (None, None, "not-enough-evidence"),
        ("blue", None, None),
    ],
)
def test_a_missing_verdict_is_not_enough_evidence_and_other_words_are_none(
    written: object, two: str | None, four: str | None
) -> None:
    reply = {"reason": "so", "verdict": written}
    for kind, expected in ((TwoClasses, two), (FourClasses, four)):
        if expected is None:
            with pytest.raises(ValidationError):
                kind.model_validate(reply)
        else:
            assert kind.model_validate(reply).verdict == expected
