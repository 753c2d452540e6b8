"""What models reply with that judge a claim: the reason, and a verdict of two or of four classes.

A missing verdict is not enough evidence, so with two classes it is none, and the model is asked
again; so it is for words that are no verdict.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from spanlab.lm.lenient import ReplyModel, Text, verdict
from spanlab.schema import Verdict


def four_classes(value: object) -> Verdict:
    """Read a verdict of four classes.

    Raises:
        ValueError: it is none of them.
    """
    text = str(value if value is not None else "").casefold()
    return "conflicting" if "conflict" in text or "cherry" in text else verdict(value)


def two_classes(value: object) -> Verdict:
    """Read a verdict of two classes.

    Raises:
        ValueError: it is neither supported nor refuted.
    """
    found = four_classes(value)
    if found not in {"supported", "refuted"}:
        raise ValueError(f"{str(value)[:50]!r} is neither supported nor refuted")
    return found


class TwoClasses(ReplyModel):
    """Why, and the verdict: "supported" or "refuted"."""

    reason: Text
    verdict: Annotated[Verdict, BeforeValidator(two_classes)]


class FourClasses(ReplyModel):
    """Why, and the verdict."""

    reason: Text
    verdict: Annotated[Verdict, BeforeValidator(four_classes)]
