"""Reviews: an append-only log per person and item, and the state that it leads to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from rebuilt import rebuilt
from sqlalchemy import text

from spanlab.base.errors import NotFoundError, StoreError, UsageError
from spanlab.base.settings import Settings
from spanlab.oplog.answer_operations import (
    AcceptClaim,
    AddClaim,
    ClaimMark,
    EditClaim,
    RejectClaim,
    Respond,
)
from spanlab.oplog.operations import (
    AddSpan,
    CommentSpan,
    FinishItem,
    Operation,
    Redo,
    RelabelSpan,
    RemoveSpan,
    SentOperation,
    SetStatus,
    Undo,
    WriteReply,
)
from spanlab.oplog.state import ReviewState
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Interval,
    Question,
    Record,
    Span,
    Status,
)
from spanlab.storage import Store
from spanlab.storage.engine import Database
from spanlab.worklists import plans

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]

_ADD = AddSpan(span="x", start=0, end=3)
_DONE = SetStatus(status=Status.DONE)


@pytest.fixture
def reviewed(store: Store, record: MakeRecord, said: Say) -> Store:
    """A store with the dataset "d" and the items "a" and "b"."""
    store.import_records("d", [record("a", said("det", (4, 9, 0.8))), record("b")])
    return store


def _apply(store: Store, *operations: Operation, session: str = "s", item: str = "a") -> WriteReply:
    base = store.review("d", item, "me").version
    writes = [
        SentOperation(session, base + n + 1, base + n, operation)
        for n, operation in enumerate(operations)
    ]
    return store.apply("d", item, "me", writes)


def test_nothing_reviewed_is_version_0(reviewed: Store) -> None:
    review = reviewed.review("d", "b", "me")
    assert (review.version, review.operations, review.state) == (0, (), ReviewState())
    assert rebuilt(reviewed, "d", "b", "me") == ReviewState()
    assert reviewed.apply("d", "b", "me", []) == WriteReply(0, 0)
    assert reviewed.record("d", "b").annotations == ()


def test_items_are_finished_when_done_was_pressed_last_and_times_add_up(
    settings: Settings, reviewed: Store
) -> None:
    """What is skipped or not done any more is not finished, nor does a comment make it so."""
    assert plans.finished(reviewed, "d") == ()
    note = CommentSpan(text='{"kind":"finish"')
    _apply(reviewed, _DONE, note)
    _apply(reviewed, SetStatus(status=Status.NOT_ANNOTATED), _DONE)
    reviewed.apply("d", "b", "me", [SentOperation("b", 1, 0, FinishItem(), seconds=12.5)])
    skipped = SentOperation("t", 1, 0, SetStatus(status=Status.SKIPPED))
    reviewed.apply("d", "a", "you", [skipped])
    gold = SentOperation("g", 1, 0, _DONE, author="me")
    reviewed.apply("d", "a", "adjudicated", [gold])
    days = ("2999-01-02", "1999-01-02")  # of two more Done of "b": the log takes what is added
    database = Database(settings.database_url)
    with database.writing() as connection:
        for version, day in enumerate(days, start=2):
            columns = "dataset_id, position, annotator_id"
            connection.execute(
                text(
                    f"INSERT INTO operations ({columns}, version, session, seq, json, at, seconds) "
                    f"SELECT {columns}, {version}, 'more', {version}, json, "
                    f"'{day}T23:59:59+00:00', {version - 2} * 2.5 "
                    "FROM operations WHERE session = 'b'"
                )
            )
    database.close()
    today, later = plans.finished(reviewed, "d")
    assert abs(today.at - datetime.now(UTC)) <= timedelta(days=1)
    assert today == ("me", "a", today.at, None)
    assert later == ("me", "b", datetime(2999, 1, 2, 23, 59, 59, tzinfo=UTC), 12.5 + 2.5)


def test_operations_become_log_state_and_annotation(reviewed: Store) -> None:
    assert _apply(reviewed, _ADD, _DONE) == WriteReply(acknowledged=2, version=2)
    review = reviewed.review("d", "a", "me")
    assert review.operations == (_ADD, _DONE)
    assert review.snapshot == ReviewState()
    assert list(review.state.spans) == ["x"]
    assert review.record.by("me") == review.state.annotation("me")
    assert reviewed.counts("d", "me")[Status.DONE] == 1
    assert rebuilt(reviewed, "d", "a", "me") == review.state


def test_a_write_that_comes_twice_counts_once(reviewed: Store) -> None:
    writes = [SentOperation("s", 1, 0, _ADD), SentOperation("s", 2, 1, _DONE)]
    assert reviewed.apply("d", "a", "me", writes[:1]) == WriteReply(1, 1)
    assert reviewed.apply("d", "a", "me", writes) == WriteReply(2, 2)
    assert reviewed.apply("d", "a", "me", writes) == WriteReply(2, 2)
    assert reviewed.review("d", "a", "me").operations == (_ADD, _DONE)


def test_one_session_counts_over_all_its_items(reviewed: Store) -> None:
    assert reviewed.apply("d", "a", "me", [SentOperation("s", 1, 0, _DONE)]).acknowledged == 1
    assert reviewed.apply("d", "b", "me", [SentOperation("s", 2, 0, _DONE)]) == WriteReply(2, 1)
    # The same number for something else is no repetition.
    (refusal,) = reviewed.apply("d", "b", "me", [SentOperation("s", 1, 1, _DONE)]).refused
    assert (refusal.seq, refusal.stale) == (1, False)
    assert refusal.reason == "this number was given to another operation"


def test_a_stale_write_is_refused_and_changes_nothing(reviewed: Store) -> None:
    _apply(reviewed, _ADD, session="first")
    stale = SentOperation("second", 1, 0, AddSpan(span="y", start=4, end=9))
    # Written on top of the stale one: its base is the log's length by chance only.
    after = SentOperation("second", 2, 1, _DONE)
    applied = reviewed.apply("d", "a", "me", [stale, after])
    assert (applied.acknowledged, applied.version) == (0, 1)
    assert [(each.seq, each.stale) for each in applied.refused] == [(1, True), (2, True)]
    assert "made on version 0 of this annotation, which is at 1 now" in applied.refused[0].reason
    assert reviewed.review("d", "a", "me").operations == (_ADD,)


def test_an_operation_that_does_not_fit_is_refused_with_its_reason(reviewed: Store) -> None:
    applied = _apply(reviewed, _ADD, RemoveSpan(span="nobody"), _DONE)
    assert (applied.acknowledged, applied.version) == (1, 1)
    assert [(each.seq, each.reason, each.stale) for each in applied.refused] == [
        (2, "there is no span with the id 'nobody'", False),
        (3, "an operation before it was refused", True),
    ]
    assert reviewed.review("d", "a", "me").state.status is Status.NOT_ANNOTATED


def test_undo_and_redo_work_across_openings(settings: Settings, record: MakeRecord) -> None:
    with Store.open(settings) as store:
        store.import_records("d", [record("a")])
        _apply(store, _ADD, RelabelSpan(span="x", label="number"), _DONE)
    with Store.open(settings) as store:
        _apply(store, Undo(), Undo())
        assert store.review("d", "a", "me").state.spans["x"].label is None
    with Store.open(settings) as store:
        _apply(store, Redo(), Undo(), Redo())
        review = store.review("d", "a", "me")
        assert review.state.spans["x"].label == "number"
        assert review.state.status is Status.NOT_ANNOTATED
        assert review.version == 8
        assert rebuilt(store, "d", "a", "me") == review.state


def test_an_imported_annotation_is_what_the_log_starts_from(
    store: Store, record: MakeRecord, said: Say
) -> None:
    mine = said("me", (0, 3), (4, 9), kind=AnnotatorKind.PERSON)
    store.import_records("d", [record("a", mine)])
    begun = store.review("d", "a", "me")
    assert (begun.version, list(begun.state.spans)) == (0, ["i0", "i1"])
    _apply(store, RemoveSpan(span="i0"), Undo(), RemoveSpan(span="i1"))
    review = store.review("d", "a", "me")
    assert review.snapshot == begun.state
    assert list(review.state.spans) == ["i0"]
    assert rebuilt(store, "d", "a", "me") == review.state
    assert store.record("d", "a").by("me") == said("me", (0, 3), kind=AnnotatorKind.PERSON)


def test_what_a_review_cannot_say_is_kept(store: Store, record: MakeRecord) -> None:
    answer = "one two"
    span = Span.of(answer, 0, 3, prob=0.4)
    mine = Annotation(
        annotator="me",
        kind=AnnotatorKind.PERSON,
        spans=(span,),
        hard=(Interval(start=0, end=3),),
        claims=(Claim(text="one comes first"),),
    )
    store.import_records("d", [record("a", mine, answer=answer)])
    _apply(store, CommentSpan(text="sure"))
    assert store.record("d", "a").by("me") == mine.model_copy(update={"note": "sure"})
    # The hard decision was made on other spans than these.
    _apply(store, AddSpan(span="y", start=4, end=7))
    changed = store.record("d", "a").by("me")
    assert changed is not None
    assert (changed.hard, changed.claims) == (None, mine.claims)


def test_verdicts_on_claims_are_stored_undone_and_kept(store: Store, record: MakeRecord) -> None:
    found = Claim(text="It has one.", source=Span.of("one two", 0, 3), verdict="supported")
    mine = Annotation(annotator="me", kind=AnnotatorKind.PERSON, claims=(Claim(text="Mine."),))
    store.import_records("d", [record("a", mine, answer="one two")])
    mark = ClaimMark(
        suggested_by="det", text=found.text, source=Interval(start=0, end=3), verdict="supported"
    )
    _apply(
        store,
        AcceptClaim(claim="c", mark=mark, verdict="refuted"),
        AddClaim(claim="d", text="It has two.", verdict="supported"),
        EditClaim(claim="i0", text="Mine.", verdict="inconclusive", note="who knows"),
        RejectClaim(mark=mark),
        Undo(),
    )
    reviewed = store.record("d", "a").by("me")
    assert reviewed is not None
    taken = found.model_copy(update={"suggested_by": "det", "verdict": "refuted"})
    assert reviewed.claims == (
        Claim(text="Mine.", verdict="inconclusive", note="who knows"),
        taken,
        Claim(text="It has two.", verdict="supported"),
    )
    assert rebuilt(store, "d", "a", "me") == store.review("d", "a", "me").state
    _apply(store, Redo())
    reviewed = store.record("d", "a").by("me")
    assert reviewed is not None
    refused = found.model_copy(update={"suggested_by": "det"})
    assert ([each.text for each in reviewed.claims], reviewed.rejected_claims) == (
        ["Mine.", "It has two."],
        (refused,),
    )


def test_an_imported_failure_stays_one_without_its_note(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """A failure is a state, also where a person took away the reason."""
    store.import_records(
        "d", [record("a", said("me", kind=AnnotatorKind.PERSON, status=Status.FAILED))]
    )
    _apply(store, CommentSpan(text=""))
    mine = store.record("d", "a").by("me")
    assert mine is not None
    assert (mine.status, mine.note) == (Status.FAILED, "no reason was given")


def test_two_people_review_one_item_side_by_side(reviewed: Store) -> None:
    """Each annotator has a log of their own."""
    for name in ("one", "two"):
        assert reviewed.apply("d", "a", name, [SentOperation(name, 1, 0, _ADD)]) == WriteReply(1, 1)
    assert reviewed.apply("d", "a", "one", [SentOperation("one", 2, 1, _DONE)]) == WriteReply(2, 2)
    assert [each.annotator for each in reviewed.record("d", "a").annotations] == [
        "det",
        "one",
        "two",
    ]
    assert reviewed.review("d", "a", "two").state.status is Status.NOT_ANNOTATED


def test_the_log_refuses_to_be_changed(reviewed: Store, settings: Settings) -> None:
    _apply(reviewed, _ADD)
    database = Database(settings.database_url)
    for statement in ("UPDATE operations SET version = 7", "DELETE FROM operations"):
        with (
            pytest.raises(StoreError, match="the log of operations is append-only"),
            database.writing() as connection,
        ):
            connection.execute(text(statement))
    database.close()
    assert reviewed.review("d", "a", "me").operations == (_ADD,)


def test_writes_that_make_no_sense_are_refused(reviewed: Store) -> None:
    two_sessions = [SentOperation("s", 1, 0, _ADD), SentOperation("t", 2, 1, _DONE)]
    with pytest.raises(UsageError, match="writes of two sessions at once: 's', 't'"):
        reviewed.apply("d", "a", "me", two_sessions)
    backwards = [SentOperation("s", 2, 0, _ADD), SentOperation("s", 1, 1, _DONE)]
    with pytest.raises(UsageError, match="write 1 comes after write 2"):
        reviewed.apply("d", "a", "me", backwards)
    with pytest.raises(NotFoundError, match="'d' has no item 'z'"):
        reviewed.apply("d", "z", "me", [SentOperation("s", 1, 0, _ADD)])
    with pytest.raises(NotFoundError, match="no dataset named 'e'"):
        reviewed.review("e", "a", "me")


def test_an_annotation_keeps_the_version_of_the_guidelines_that_its_author_had(
    reviewed: Store,
) -> None:
    add, done = AddSpan(span="s", start=4, end=9), SetStatus(status=Status.DONE)
    reviewed.apply("d", "a", "me", [SentOperation("tab", 1, 0, add, guidelines=1)])
    assert reviewed.record("d", "a").annotations[-1].guidelines == 1
    reviewed.apply("d", "a", "me", [SentOperation("tab", 2, 1, done, guidelines=2)])
    assert reviewed.record("d", "a").annotations[-1].guidelines == 2
    reviewed.apply("d", "a", "me", [SentOperation("tab", 3, 2, Undo())])
    assert reviewed.record("d", "a").annotations[-1].guidelines is None


def test_responses_are_what_the_dataset_asks_for_and_done_needs_those_required(
    reviewed: Store,
) -> None:
    severity = Question(name="severity", options=("minor", "major"), required=True)
    fluency = Question(name="fluency", kind="scale", required=True)
    asked = {"attributes": (severity,), "questions": (fluency,)}
    reviewed.change_settings("d", lambda now: now.model_copy(update=asked))

    def why(*operations: Operation) -> str:
        return _apply(reviewed, *operations).refused[0].reason

    assert _apply(reviewed, _ADD, Respond(question="fluency", response=4)).version == 2
    assert why(Respond(question="fluency", response=6)).endswith("not a whole number from 1 to 5")
    assert why(Respond(question="severity", response="minor")) == (
        "this dataset does not ask 'severity' (any more)"
    )
    wrong = Respond(span="x", question="severity", response="huge")
    assert why(wrong) == "severity: 'huge' is none of minor, major"
    assert why(_DONE).startswith("not done: severity of “")
    right = Respond(span="x", question="severity", response="major")
    assert _apply(reviewed, right, _DONE, Undo(), Redo()).refused == ()
    reviewed.change_settings("d", lambda now: now.model_copy(update={"unanswered": "told"}))
    assert _apply(reviewed, Respond(question="fluency"), _DONE).refused == ()
    mine = reviewed.record("d", "a").by("me")
    assert mine is not None
    assert (mine.status, mine.responses) == (Status.DONE, {})
    assert mine.spans[0].attributes == {"severity": "major"}
    assert rebuilt(reviewed, "d", "a", "me") == reviewed.review("d", "a", "me").state


def test_done_is_refused_without_labels_where_they_are_required(reviewed: Store) -> None:
    reviewed.change_settings("d", lambda now: now.model_copy(update={"label_required": True}))
    reply = _apply(reviewed, _ADD, _DONE)
    assert [refusal.reason for refusal in reply.refused] == ["not done: every span needs a label"]
    assert reviewed.review("d", "a", "me").state.status is Status.NOT_ANNOTATED
    assert _apply(reviewed, RelabelSpan(span="x", label="wrong"), _DONE).refused == ()
