"""Renaming, merging and removing annotators, and marking one as gold, on both databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rebuilt import rebuilt

from spanlab.base.errors import NotFoundError, StoreError, UsageError
from spanlab.oplog.answer_operations import AcceptClaim, ClaimMark
from spanlab.oplog.operations import (
    AcceptSpan,
    AddSpan,
    CommentSpan,
    Operation,
    SentOperation,
    SetStatus,
)
from spanlab.oplog.state import SuggestionMark
from spanlab.schema import Annotation, AnnotatorKind, QueueQuery, Record, Status
from spanlab.storage import Store
from spanlab.storage.datasets import copy_as_gold, undo_gold
from spanlab.text.labels import disagreement
from spanlab.worklists import paging

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]


@pytest.fixture
def reviewed(store: Store, record: MakeRecord, said: Say) -> Store:
    """Ada has reviewed items a and b, Ben c by review and b in the import; a vote of both at b."""
    ben = said("Ben", (4, 9), kind=AnnotatorKind.PERSON)
    vote = said("vote", (4, 9), kind=AnnotatorKind.VOTE).model_copy(
        update={"voters": ("Ada", "Ben")}
    )
    store.import_records(
        "d", [record("a", said("det", (0, 3))), record("b", ben, vote), record("c")]
    )
    for n, (item, who) in enumerate((("a", "Ada"), ("b", "Ada"), ("c", "Ben"))):
        writes = [
            SentOperation(f"s{n}", 1, 0, AddSpan(span="x", start=0, end=3)),
            SentOperation(f"s{n}", 2, 1, CommentSpan(text=f"odd {item}")),
            SentOperation(f"s{n}", 3, 2, SetStatus(status=Status.DONE)),
        ]
        store.apply("d", item, who, writes)
    return store


def _who(store: Store) -> dict[str, tuple[AnnotatorKind, int]]:
    (summary,) = store.datasets()
    return {a.name: (a.kind, a.counts[Status.DONE]) for a in summary.annotators}


def _found(store: Store, searched: str) -> list[str]:
    return [
        row.item_id for row in paging.page(store, "d", QueueQuery(reviewer="x", text=searched)).rows
    ]


def _is_consistent(store: Store) -> None:
    """Check that what queues go by is what the annotations say."""
    rows = {row.item_id: row for row in paging.page(store, "d", QueueQuery(reviewer="x")).rows}
    for record in store.records("d"):
        row = rows[record.item.id]
        assert row.disagreement == disagreement(record.annotations)
        people = [a for a in record.finished if a.kind is AnnotatorKind.PERSON]
        counts = QueueQuery(
            reviewer="x", min_annotators=len(people), max_annotators=len(people), limit=1000
        )
        assert record.item.id in {row.item_id for row in paging.page(store, "d", counts).rows}


def test_a_renamed_annotator_keeps_everything_under_the_new_name(reviewed: Store) -> None:
    before = reviewed.review("d", "a", "Ada")
    reviewed.rename_annotator("d", "Ada", "Ada L.")
    assert _who(reviewed)["Ada L."] == (AnnotatorKind.PERSON, 2)
    assert "Ada" not in _who(reviewed)
    after = reviewed.review("d", "a", "Ada L.")
    assert (after.version, after.state) == (before.version, before.state)
    record = reviewed.record("d", "b")
    assert {annotation.annotator for annotation in record.annotations} == {"Ada L.", "Ben", "vote"}
    vote = record.by("vote")
    assert vote is not None and vote.voters == ("Ada L.", "Ben")
    reviewed.apply("d", "a", "Ada L.", [SentOperation("t", 1, 3, CommentSpan(text="more"))])
    assert reviewed.review("d", "a", "Ada L.").state == rebuilt(reviewed, "d", "a", "Ada L.")


def test_a_merged_annotator_brings_its_annotations_and_their_history(reviewed: Store) -> None:
    kept = reviewed.record("d", "b").by("Ben")
    assert reviewed.merge_annotators("d", "Ada", "Ben") == 1
    assert _who(reviewed) == {
        "det": (AnnotatorKind.DETECTOR, 1),
        "Ben": (AnnotatorKind.PERSON, 3),
        "vote": (AnnotatorKind.VOTE, 1),
    }
    assert reviewed.record("d", "b").by("Ben") == kept
    moved = reviewed.review("d", "a", "Ben")
    assert (moved.version, moved.state.note) == (3, "odd a")
    assert moved.state == rebuilt(reviewed, "d", "a", "Ben")
    assert (_found(reviewed, "odd a"), _found(reviewed, "odd b")) == (["a"], [])
    done = QueueQuery(reviewer="Ben", status=Status.DONE)
    assert [row.item_id for row in paging.page(reviewed, "d", done).rows] == ["a", "b", "c"]
    vote = reviewed.record("d", "b").by("vote")
    assert vote is not None and vote.voters == ("Ben",)
    _is_consistent(reviewed)


def test_a_removed_annotator_leaves_nothing_behind(reviewed: Store) -> None:
    reviewed.remove_annotator("d", "Ada")
    assert set(_who(reviewed)) == {"det", "Ben", "vote"}
    assert reviewed.record("d", "a").by("Ada") is None
    assert _found(reviewed, "odd") == ["c"]
    assert reviewed.n_operations("d") == 3
    _is_consistent(reviewed)
    # The number of the last annotator may be given out again, with nothing of the one before.
    reviewed.apply("d", "a", "Cleo", [SentOperation("c", 1, 0, CommentSpan(text="new"))])
    todo = QueueQuery(reviewer="Cleo", status=Status.DONE)
    assert len(paging.positions(reviewed, "d", todo)) == 0


def test_gold_labels_are_a_copy_of_what_a_person_finished(reviewed: Store) -> None:
    assert copy_as_gold(reviewed, "d", "Ada") == 2
    copied = reviewed.record("d", "a").by("gold of Ada")
    original = reviewed.record("d", "a").by("Ada")
    assert copied is not None
    assert original is not None
    assert copied.kind is AnnotatorKind.GOLD
    assert copied.spans == original.spans
    _is_consistent(reviewed)
    with pytest.raises(StoreError, match="is a gold"):
        reviewed.review("d", "a", "gold of Ada")
    assert reviewed.review("d", "a", "Ada").version == 3  # who goes on under her own name
    assert copy_as_gold(reviewed, "d", "Ada", "known") == 2
    reviewed.rename_annotator("d", "known", "right")
    for name in ("gold of Ada", "right"):  # nobody agrees with herself afterwards
        assert "a copy of what Ada finished" in undo_gold(reviewed, "d", name)
        assert name not in _who(reviewed)
    assert _who(reviewed)["Ada"][0] is AnnotatorKind.PERSON
    _is_consistent(reviewed)


def test_gold_labels_that_came_with_the_data_are_never_a_copy(reviewed: Store, said: Say) -> None:
    """To undo a copy deletes it: neither what was there before it nor what came after it."""
    gold = said("gold", (0, 3), kind=AnnotatorKind.GOLD)
    reviewed.save_annotations("d", [("c", gold)])
    with pytest.raises(UsageError, match="'gold' are gold labels of 'd' already, and no copy"):
        copy_as_gold(reviewed, "d", "Ada", "gold")
    copy_as_gold(reviewed, "d", "Ada", "mine")
    with pytest.raises(UsageError, match="use another name, such as 'gold of Ben'"):
        copy_as_gold(reviewed, "d", "Ben", "mine")
    for undo in (undo_gold, Store.remove_annotator):
        undo(reviewed, "d", "mine")
        reviewed.save_annotations("d", [("c", gold.model_copy(update={"annotator": "mine"}))])
        assert undo_gold(reviewed, "d", "mine") == "mine counts as a person in d."
        reviewed.remove_annotator("d", "mine")
        copy_as_gold(reviewed, "d", "Ada", "mine")


def test_gold_labels_that_are_no_copy_become_a_person(reviewed: Store) -> None:
    gold = Annotation(annotator="Zoe", kind=AnnotatorKind.GOLD)
    reviewed.save_annotations("d", [("a", gold)])
    assert undo_gold(reviewed, "d", "Zoe") == "Zoe counts as a person in d."
    assert _who(reviewed)["Zoe"] == (AnnotatorKind.PERSON, 1)
    _is_consistent(reviewed)


@pytest.mark.system("offline")
def test_what_cannot_be_is_refused_and_changes_nothing(reviewed: Store) -> None:
    before = _who(reviewed), list(reviewed.records("d"))
    with pytest.raises(StoreError, match="has an annotator 'Ben' already: merge"):
        reviewed.rename_annotator("d", "Ada", "Ben")
    with pytest.raises(UsageError, match="is not a valid name for an annotator"):
        reviewed.rename_annotator("d", "Ada", "")
    with pytest.raises(NotFoundError, match="no annotator 'Eve'; available: 'det', 'Ben'"):
        reviewed.remove_annotator("d", "Eve")
    with pytest.raises(UsageError, match="into itself"):
        reviewed.merge_annotators("d", "Ada", "Ada")
    with pytest.raises(StoreError, match="'Ada' is a person, 'det' is a detector"):
        reviewed.merge_annotators("d", "Ada", "det")
    with pytest.raises(StoreError, match="'det' is a detector, and no gold labels"):
        reviewed.set_person("d", "det")
    with pytest.raises(UsageError, match="'det' is a detector: what people said"):
        copy_as_gold(reviewed, "d", "det")
    with pytest.raises(UsageError, match="the copy of 'Ada' needs a name of its own"):
        copy_as_gold(reviewed, "d", "Ada", "Ada")
    with pytest.raises(UsageError, match="is the name of a detector"):
        copy_as_gold(reviewed, "d", "Ada", "Offline")
    with pytest.raises(StoreError, match="Ben"):
        copy_as_gold(reviewed, "d", "Ada", "Ben")
    assert (_who(reviewed), list(reviewed.records("d"))) == before


def test_what_mentions_an_annotator_follows_its_new_name(reviewed: Store) -> None:
    def decide(session: str, source: str, who: str, author: str | None = None) -> None:
        mark = SuggestionMark(source=source, start=0, end=3)
        claim = ClaimMark(suggested_by="majority", voters=("Ada", "Ben"), text="It stands.")
        operations: tuple[Operation, ...] = (
            AcceptSpan(span="s", mark=mark),
            AcceptClaim(claim="c", mark=claim),
            CommentSpan(text='"Ada" and "det" are names in a comment'),
        )
        writes = [
            SentOperation(session, n, n - 1, each, author) for n, each in enumerate(operations, 1)
        ]
        assert reviewed.apply("d", "a", who, writes).refused == ()

    decide("c", "det", "Cleo")
    decide("g", "Ada", "adjudicated", author="Ada")
    reviewed.change_settings(
        "d", lambda now: now.model_copy(update={"overlap": 1, "assigned_to": ("Ada", "Ben")})
    )
    reviewed.rename_annotator("d", "det", "det 100%")
    reviewed.rename_annotator("d", "Ada", "Ada_L.")
    assert reviewed.merge_annotators("d", "Ada_L.", "Ben") == 1
    assert reviewed.settings("d").assigned_to == ("Ben",)
    for who, kind, source in (
        ("Cleo", AnnotatorKind.PERSON, "det 100%"),
        ("adjudicated", AnnotatorKind.GOLD, "Ben"),
    ):
        state = reviewed.review("d", "a", who, kind).state
        assert state == rebuilt(reviewed, "d", "a", who, kind)
        assert state.spans["s"].source == source
        assert (state.claims["c"].suggested_by, state.claims["c"].voters) == ("majority", ("Ben",))
        assert state.note == '"Ada" and "det" are names in a comment'
        said = reviewed.record("d", "a").by(who)
        assert said == state.annotation(who, kind).model_copy(
            update={"decided_by": "Ben" if kind is AnnotatorKind.GOLD else None}
        )
    kinds = {name: kind.value for name, (kind, _) in _who(reviewed).items()}
    assert kinds == {
        "det 100%": "detector",
        "Ben": "person",
        "vote": "vote",
        "Cleo": "person",
        "adjudicated": "gold",
    }
