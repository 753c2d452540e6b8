"""What people marked, how fast, and how well they agree as time goes on."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from spanlab.people.progress import AnnotatorPace, agreement_over_time, campaign, pace
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span, Status
from spanlab.schema.progress import FinishedItem
from spanlab.scoring.agreement import ItemMarks
from spanlab.storage import Store
from spanlab.text.extents import Extent

ANSWER = "0123456789"
FIRST = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)  # a Monday


def says(
    who: str, *spans: tuple[int, int, str | None], kind: AnnotatorKind = AnnotatorKind.PERSON
) -> Annotation:
    marked = (Span.of(ANSWER, start, end) for start, end, _ in spans)
    labelled = (
        span.model_copy(update={"label": label})
        for span, (_, _, label) in zip(marked, spans, strict=True)
    )
    return Annotation(annotator=who, kind=kind, spans=tuple(labelled))


def marked(item_id: str, **people: tuple[int, int]) -> ItemMarks:
    marks = {who: [Extent(*pair)] for who, pair in people.items()}
    return ItemMarks(id=item_id, lang="en", length=len(ANSWER), marks=marks)


def done(who: str, item_id: str, days: int = 0, seconds: float | None = None) -> FinishedItem:
    return FinishedItem(who, item_id, FIRST + timedelta(days=days), seconds)


def test_labels_are_counted_per_person_and_of_nobody_else(store: Store) -> None:
    skipped = says("Ben").model_copy(update={"status": Status.SKIPPED})
    one = (
        says("Ann", (0, 3, "number"), (2, 4, None)),
        skipped,
        says("d", kind=AnnotatorKind.DETECTOR),
    )
    two = (says("Ann"), says("Ben", (5, 6, "number")))
    store.import_records(
        "d",
        [
            Record(item=Item(id=name, answer=ANSWER), annotations=said)
            for name, said in {"1": one, "2": two}.items()
        ],
    )
    found = campaign(store, "d")
    assert found.looked_at == 2
    assert set(found.labels) == {"Ann", "Ben"}
    ann, ben = found.labels["Ann"], found.labels["Ben"]
    assert (ann.items, ann.marked, ann.characters, ann.length) == (2, 1, 4, 20)
    assert ann.spans == {"number": 1, "(no label)": 1}
    assert (ben.items, ben.marked, ben.spans) == (1, 1, {"number": 1})


def test_an_item_counts_on_the_day_on_which_the_last_of_those_chosen_finished_it() -> None:
    marks = {
        "same": marked("same", a=(0, 4), b=(0, 4), c=(0, 4)),
        "apart": marked("apart", a=(0, 4), b=(4, 8)),
        "alone": marked("alone", a=(0, 4)),
    }
    finished = [
        done("a", "same"),
        done("c", "same", days=5),
        done("a", "apart", days=1),
        done("a", "alone"),
        done("a", "deleted"),
    ]
    both = agreement_over_time(marks, finished, {"a", "b"})
    assert [(each.start, each.alpha.n) for each in both] == [
        (date(2026, 3, 2), 1),
        (date(2026, 3, 3), 1),
    ]
    # Disjoint: 8 of 10 characters differ, 8 marks and 12 others: 1 - 19 · 8 / 96.
    assert [each.alpha.alpha for each in both] == pytest.approx([1.0, 1 - 19 * 8 / 96])
    (first, last) = agreement_over_time(marks, finished, {"a", "b", "c"})
    assert (first.start, last.start) == (date(2026, 3, 3), date(2026, 3, 7))
    assert agreement_over_time(marks, [], {"a", "b"}) == ()


@pytest.mark.parametrize(
    ("days", "starts"),
    [
        pytest.param(60, (date(2026, 3, 2), date(2026, 3, 3)), id="days"),
        pytest.param(61, (date(2026, 3, 2), date(2026, 3, 9)), id="weeks"),
        pytest.param(430, (date(2026, 3, 1), date(2026, 4, 1)), id="months"),
    ],
)
def test_long_campaigns_are_told_by_week_or_month(days: int, starts: tuple[date, date]) -> None:
    marks = {str(day): marked(str(day), a=(0, 4), b=(0, 4)) for day in range(days)}
    finished = [done("a", str(day), days=day) for day in range(days)]
    found = agreement_over_time(marks, finished, {"a", "b"})
    assert (found[0].start, found[1].start) == starts
    assert sum(each.alpha.n for each in found) == days


def test_the_pace_is_of_items_whose_time_was_measured() -> None:
    times = [done("a", str(seconds), seconds=seconds) for seconds in (10.0, 20.0, 30.0, 40.0, 50.0)]
    found = pace([*times, done("a", "imported"), done("b", "x", seconds=3.0), done("c", "y")])
    assert found == (
        AnnotatorPace("b", 1, 3.0, 3.0, 3.0, 3.0),
        AnnotatorPace("a", 5, 20.0, 30.0, 40.0, 150.0),
    )
