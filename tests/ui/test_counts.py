"""The bars of the annotators: what stands beside a name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from spanlab.schema import AnnotatorKind, AnnotatorSummary, DatasetSummary, Status
from spanlab.ui.counts import counts_html, kind_beside


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        pytest.param("gold", AnnotatorKind.GOLD, "", id="gold"),
        pytest.param("vote", AnnotatorKind.VOTE, "", id="vote"),
        pytest.param("majority", AnnotatorKind.VOTE, "vote", id="another-vote"),
        pytest.param("reference", AnnotatorKind.GOLD, "gold labels", id="other-gold-labels"),
        pytest.param("vote", AnnotatorKind.PERSON, "person", id="a-person-called-so"),
    ],
)
def test_a_kind_is_not_said_twice(name: str, kind: AnnotatorKind, expected: str) -> None:
    assert kind_beside(name, kind) == expected


def test_the_bars_do_not_say_gold_gold_labels() -> None:
    gold = AnnotatorSummary(name="gold", kind=AnnotatorKind.GOLD, counts={Status.DONE: 2})
    summary = DatasetSummary(
        name="d", created=datetime.now(UTC), n_items=2, languages={"en": 2}, annotators=(gold,)
    )
    html = counts_html(summary, summary.annotators)
    assert "<span class='who'>gold <span class='kind'></span></span>" in html
    assert "2 of 2 done" in html
