"""What a lead is told to do next."""

from datetime import UTC, datetime

import pytest

from spanlab.campaigns.steps import next_step
from spanlab.schema import AnnotatorKind, AnnotatorSummary, DatasetSettings, DatasetSummary
from spanlab.schema.progress import PlanProgress

ADA = AnnotatorSummary("Ada", AnnotatorKind.PERSON, {})
BEN = AnnotatorSummary("Ben", AnnotatorKind.PERSON, {})


@pytest.mark.parametrize(
    ("needed", "done", "title"),
    [
        pytest.param(0, 0, "choose other check items", id="all-items-have-known-answers"),
        pytest.param(4, 3, "review", id="something-is-left"),
        pytest.param(4, 4, "adjudicate", id="the-plan-is-done"),
    ],
)
def test_a_plan_that_asks_for_nothing_is_not_done(needed: int, done: int, title: str) -> None:
    summary = DatasetSummary(
        "mine", datetime.now(UTC), 4, {"en": 4}, (ADA, BEN), DatasetSettings(overlap=1)
    )
    assert next_step(summary, PlanProgress(needed, done, ()), versions=0).title == title


def test_who_is_missing_is_invited_before_the_others_are_sent_to_review() -> None:
    """The page said "review" where the only one who had come was through."""
    settings = DatasetSettings(overlap=2)
    for people, links, title in (
        ((ADA,), [], "invite people"),
        ((ADA, BEN), [], "review"),
        ((ADA,), None, "review"),  # they do not come by links
    ):
        summary = DatasetSummary("mine", datetime.now(UTC), 4, {"en": 4}, people, settings)
        assert next_step(summary, PlanProgress(8, 4, ()), 0, links).title == title
