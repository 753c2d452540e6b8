"""What a blind reviewer sees of a record, a query and a summary: the rule itself, without a page.

The rule is in ``storage/sight.py``; ``test_blind.py`` looks at what reaches a browser.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest

from spanlab.oplog.operations import FinishItem, SentOperation, SetStatus
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    AnnotatorSummary,
    AssignedShare,
    DatasetSettings,
    DatasetSummary,
    Item,
    QueueQuery,
    Record,
    Status,
)
from spanlab.storage import Store
from spanlab.storage.sight import EVERYTHING, Sight
from spanlab.worklists import drawing
from spanlab.worklists.sight import n_undecided, sight_of

ADA: Final = Sight("Ada", blind=True)
ADA_AFTERWARDS: Final = Sight("Ada", blind=True, shown_when_done=True, names_shown=True)
PERSON, DETECTOR, GOLD, VOTE = (
    AnnotatorKind.PERSON,
    AnnotatorKind.DETECTOR,
    AnnotatorKind.GOLD,
    AnnotatorKind.VOTE,
)


def _record(status: Status = Status.DONE, *, of_ada: bool = True) -> Record:
    """An item that everybody has annotated: Ada, Ben, gold labels, two detectors, four votes."""
    others = (
        Annotation(annotator="Ben", kind=PERSON),
        Annotation(annotator="gold", kind=GOLD),
        Annotation(annotator="d1", kind=DETECTOR),
        Annotation(annotator="d2", kind=DETECTOR),
        Annotation(annotator="of detectors", kind=VOTE, voters=("d1", "d2")),
        Annotation(annotator="of a person", kind=VOTE, voters=("d1", "Ben")),
        Annotation(annotator="of gold", kind=VOTE, voters=("d1", "gold")),
        Annotation(annotator="of nobody known", kind=VOTE),
        Annotation(annotator="of somebody gone", kind=VOTE, voters=("d1", "Zoe")),
    )
    note = "why" if status is Status.FAILED else None
    ada = (Annotation(annotator="Ada", kind=PERSON, status=status, note=note),) if of_ada else ()
    return Record(item=Item(id="a", answer="one two"), annotations=(*ada, *others))


def _names(record: Record) -> set[str]:
    return {annotation.annotator for annotation in record.annotations}


def test_a_blind_reviewer_sees_detectors_votes_of_them_and_oneself() -> None:
    assert _names(ADA.record(_record())) == {"Ada", "d1", "d2", "of detectors"}


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.DONE])
def test_others_marks_are_hidden_until_the_reviewer_has_finished_the_item(status: Status) -> None:
    hidden = {"Ada", "d1", "d2", "of detectors"}
    assert _names(ADA_AFTERWARDS.record(_record(status))) == hidden
    assert _names(ADA_AFTERWARDS.record(_record(of_ada=False))) == hidden - {"Ada"}
    assert ADA_AFTERWARDS.record(_record()) == _record()


def test_what_another_annotator_of_the_same_name_finished_shows_nothing() -> None:
    gold = Annotation(annotator="Ada", kind=GOLD)
    record = _record(of_ada=False)
    record = record.model_copy(update={"annotations": (gold, *record.annotations)})
    assert _names(ADA_AFTERWARDS.record(record)) == {"d1", "d2", "of detectors"}


def test_who_could_be_anybody_sees_no_person() -> None:
    assert _names(Sight("", blind=True).record(_record())) == {"d1", "d2", "of detectors"}


def test_naming_annotators_shows_no_more_of_them() -> None:
    assert _names(ADA.record(_record(), ["Ben", "d1", "of a person"])) == {"d1"}


def test_a_query_selects_and_orders_by_what_the_reviewer_sees() -> None:
    asked = QueueQuery(reviewer="Ben", order="disagreement", text="one")
    seen = ADA.query(asked)
    assert (seen.blind, seen.reviewer, seen.order, seen.text) == (
        True,
        "Ada",
        "disagreement",
        "one",
    )
    assert EVERYTHING.query(asked) == asked
    of_a_share = replace(asked, share=AssignedShare(0, 2, 1))
    listed = replace(ADA, listed=True).query(of_a_share)
    assert (listed.listed, listed.share) == (True, None)  # of a list everything is theirs
    assert ADA.query(of_a_share).share == of_a_share.share


@pytest.mark.parametrize("names_shown", [False, True])
def test_a_summary_tells_of_others_only_where_their_names_are_shown(*, names_shown: bool) -> None:
    kinds = {"Ada": PERSON, "Ben": PERSON, "gold": GOLD, "d1": DETECTOR, "of detectors": VOTE}
    annotators = tuple(AnnotatorSummary(name, kind, {}) for name, kind in kinds.items())
    summary = DatasetSummary("d", datetime.now(UTC), 1, {}, annotators, DatasetSettings())
    seen = Sight("Ada", blind=True, names_shown=names_shown).summary(summary)
    shown = set(kinds) if names_shown else {"Ada", "d1", "of detectors"}
    assert {annotator.name for annotator in seen.annotators} == shown


def test_a_reviewer_knows_of_nobody_else_how_far_they_are() -> None:
    assert [ADA.concerns(name) for name in ("Ada", "Ben")] == [True, False]
    assert EVERYTHING.concerns("Ben")


def _reviewed(store: Store, **settings: object) -> None:
    """Store three items, of which Ada has finished, skipped and not begun one each."""
    statuses = {"a": Status.DONE, "b": Status.SKIPPED, "c": Status.NOT_ANNOTATED}
    records = [
        Record(
            item=Item(id=name, answer="one two"),
            annotations=(
                Annotation(annotator="Ada", kind=PERSON, status=status),
                Annotation(annotator="Ben", kind=PERSON),
                Annotation(annotator="d1", kind=DETECTOR),
            ),
        )
        for name, status in statuses.items()
    ]
    store.import_records("d", records)
    store.change_settings("d", lambda now: now.model_copy(update=settings))


def _finish(store: Store, *items: str, name: str = "Ada") -> None:
    for item in items:
        store.apply("d", item, name, [SentOperation(f"{name} {item}", 1, 0, FinishItem())])


@pytest.mark.parametrize("shown", [False, True])
def test_who_reviews_a_blind_dataset_sees_others_when_all_of_theirs_are_finished(
    store: Store, *, shown: bool
) -> None:
    _reviewed(store, always_blind=True, shown_when_done=shown)
    own = Sight("Ada", blind=True, shown_when_done=shown, names_shown=shown)
    assert sight_of(store, "d", "Ada") == own
    assert sight_of(store, "d", "Ben") == EVERYTHING
    assert sight_of(store, "d", "Cleo") == EVERYTHING  # who leads it, and reviews nothing
    for nobody in ("", "d1"):
        assert sight_of(store, "d", nobody) == replace(own, name="")
    _finish(store, "c")
    assert sight_of(store, "d", "Ada") == own  # what is skipped can be taken up again
    _finish(store, "b")
    assert sight_of(store, "d", "Ada") == EVERYTHING


def test_where_reviewers_have_the_choice_they_see_everything_elsewhere(store: Store) -> None:
    _reviewed(store)
    assert sight_of(store, "d", "Ada") == EVERYTHING
    assert n_undecided(store, "d", "Ada") == 2
    assert n_undecided(store, "d", "Ben") == 0
    assert n_undecided(store, "d", "Cleo") == 3


def test_who_has_a_part_of_a_plan_is_blind_before_they_begin(store: Store) -> None:
    _reviewed(store, overlap=2, assigned_to=("Ben", "Dan"))
    assert sight_of(store, "d", "Dan") == Sight("Dan", blind=True)
    assert n_undecided(store, "d", "Dan") == 3
    assert n_undecided(store, "d", "Zoe") == 0  # who is given nothing
    drawing.draw(store, "d", "Dan")
    skipped = SentOperation("Dan b", 1, 0, SetStatus(status=Status.SKIPPED))
    store.apply("d", "b", "Dan", [skipped])
    _finish(store, "a", name="Dan")
    assert n_undecided(store, "d", "Dan") == 2
