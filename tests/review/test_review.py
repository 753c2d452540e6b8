"""Reviewing without a browser: queues, outboxes, refusals."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from pydantic import JsonValue

from spanlab.base.errors import NotFoundError
from spanlab.people.entrance import prepare_queue
from spanlab.review.queue import (
    QueueNeighbours,
    first_item,
    labels,
    neighbours,
    open_item,
    progress,
)
from spanlab.review.reviewer_panel import completion_words
from spanlab.review.span_editor.exchange import ReviewQueue, exchange
from spanlab.review.span_editor.payload import EditorMessage, ItemsWanted
from spanlab.review.writes import AddedEvidence, WriteOutcome, add_evidence, apply_writes
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Evidence,
    Interval,
    Item,
    QueueQuery,
    Record,
    Role,
    Span,
    SpanLabel,
    Status,
)
from spanlab.schema.progress import QueueProgress
from spanlab.storage import Store
from spanlab.text.suggestions import count_weaker, suggestions

EVERYTHING = QueueQuery(reviewer="Ada")


@pytest.fixture
def store(store: Store) -> Store:
    items = [Item(id=name, lang="en", answer="one two 🎉 three") for name in ("a", "b", "c")]
    store.import_records("words", [Record(item=item) for item in items])
    return store


def _write(seq: int, base: int, item: str = "a", **op: JsonValue) -> dict[str, JsonValue]:
    return {
        "session": "tab",
        "seq": seq,
        "base": base,
        "dataset": "words",
        "item": item,
        "reviewer": "Ada",
        "op": op or {"kind": "add", "span": f"s{seq}", "start": 0, "end": 3},
    }


def _texts(store: Store, item: str = "a") -> list[str]:
    return [span.text for span in open_item(store, "words", item, EVERYTHING).state.spans.values()]


def test_what_a_detector_decided_as_one_piece_is_one_suggestion() -> None:
    answer = "off the coast of New South Wales, maybe"
    quote = Evidence(passage=0, start=0, end=10, text="Queensland")
    annotation = Annotation(
        annotator="d",
        kind=AnnotatorKind.DETECTOR,
        spans=(
            Span.of(answer, 4, 7, prob=0.2),
            Span.of(answer, 17, 20, prob=0.4, evidence=(quote,)),
            Span.of(answer, 21, 32, prob=0.9, evidence=(quote,)),
        ),
        hard=(Interval(start=17, end=32),),
    )
    faint, whole = suggestions(annotation, answer)
    assert (faint.span.text, faint.likely) == ("the", False)
    assert (whole.span.text, whole.span.prob, whole.likely) == ("New South Wales", 0.9, True)
    assert whole.span.evidence == (quote,)
    assert [span.prob for span in whole.graded] == [span.prob for span in annotation.spans[1:]]
    assert faint.graded == ()


def test_a_piece_that_is_refuted_does_not_say_that_nothing_was_found() -> None:
    answer = "in 2019 in Hochdorf"
    refuting = Evidence(passage=0, start=0, end=4, text="2009", stance="refutes")
    closest = Evidence(passage=0, start=0, end=9, text="2009, the")
    spans = (
        Span.of(answer, 3, 7, prob=0.9, evidence=(refuting,)),
        Span(start=8, end=19, text=answer[8:], prob=0.8, note="nothing found", evidence=(closest,)),
    )
    for kept, quotes, note in (
        (spans, (refuting,), None),
        (spans[1:], (closest,), "nothing found"),
    ):
        annotation = Annotation(
            annotator="d",
            kind=AnnotatorKind.DETECTOR,
            spans=kept,
            hard=(Interval(start=kept[0].start, end=19),),
        )
        (whole,) = suggestions(annotation, answer)
        assert (whole.span.evidence, whole.span.note) == (quotes, note)


def test_weaker_marks_side_by_side_are_counted_as_one_unless_their_labels_differ() -> None:
    answer = "one two three four five six"
    words = [Span.of(answer, *at, prob=0.2) for at in ((0, 3), (4, 7), (14, 18), (19, 23))]
    sure = Span.of(answer, 8, 13, prob=0.9)
    spans = (words[0].model_copy(update={"label": "name"}), words[1], sure, *words[2:])
    said = Annotation(annotator="d", kind=AnnotatorKind.DETECTOR, spans=spans)
    for decided in (None, (Interval(start=8, end=13),)):
        told = suggestions(said.model_copy(update={"hard": decided}), answer)
        likely_joins = 7 if decided is None else None
        assert [one.joins for one in told][:3] == [None, None, likely_joins]
        assert told[4].joins == 18
        assert count_weaker(told) == 3


def test_without_a_decision_likely_means_more_than_one_half() -> None:
    spans = (Span.of("one two", 0, 3, prob=0.5), Span.of("one two", 4, 7, prob=0.51))
    graded = Annotation(annotator="d", kind=AnnotatorKind.DETECTOR, spans=spans)
    assert [one.likely for one in suggestions(graded, "one two")] == [False, True]


@pytest.mark.parametrize(
    ("start", "end", "kept"),
    [
        pytest.param(0, 4, "one", id="space behind"),
        pytest.param(3, 9, "two\u3000🎉", id="space before"),
        pytest.param(9, 16, "three", id="line break and no-break space"),
        pytest.param(3, 4, " ", id="nothing but space stays to be decided"),
    ],
)
def test_a_suggestion_has_no_white_space_at_its_edges(start: int, end: int, kept: str) -> None:
    answer = "one two\u3000🎉\nthree\xa0."
    span = Span.of(answer, start, end, prob=0.4)
    hard = (Interval(start=start, end=end),)
    for decided in (None, hard):
        said = Annotation(annotator="d", kind=AnnotatorKind.DETECTOR, spans=(span,), hard=decided)
        (one,) = suggestions(said, answer)
        assert one.span.text == kept
        assert one.span.fits(answer)
        assert one.span.prob == 0.4


def test_an_outbox_that_arrives_twice_has_its_effect_once(store: Store) -> None:
    outbox = [_write(1, 0), _write(2, 1, kind="add", span="party", start=8, end=9)]
    stored = [WriteOutcome("tab", 1, stored=True), WriteOutcome("tab", 2, stored=True)]
    assert apply_writes(store, outbox, "Ada") == stored
    assert apply_writes(store, outbox, "Ada") == stored
    assert _texts(store) == ["one", "🎉"]


def test_writes_to_several_items_go_each_to_its_own(store: Store) -> None:
    outbox = [_write(1, 0), _write(2, 1, kind="status", status="done"), _write(3, 0, item="b")]
    assert all(outcome.stored for outcome in apply_writes(store, outbox, "Ada"))
    assert (_texts(store, "a"), _texts(store, "b")) == (["one"], ["one"])
    assert open_item(store, "words", "a", EVERYTHING).state.status is Status.DONE


def test_a_write_made_on_an_older_state_is_refused_as_stale(store: Store) -> None:
    apply_writes(store, [_write(1, 0)], "Ada")
    late = _write(1, 0) | {"session": "other tab"}
    (outcome,) = apply_writes(store, [late], "Ada")
    assert (outcome.stored, outcome.stale) == (False, True)
    assert _texts(store) == ["one"]


def test_a_write_under_another_name_than_the_editor_shows_is_refused(store: Store) -> None:
    (mine, grace) = apply_writes(
        store, [_write(1, 0), _write(2, 0, item="b") | {"reviewer": "Grace"}], "Ada"
    )
    assert sorted([(mine.seq, mine.stored), (grace.seq, grace.stored)]) == [(1, True), (2, False)]
    assert _texts(store) == ["one"]
    for name in ("Ada", "Grace"):
        assert open_item(store, "words", "b", QueueQuery(reviewer=name)).version == 0
    (stored,) = apply_writes(store, [_write(2, 0, item="b") | {"reviewer": "Grace"}], "Grace")
    assert stored.stored
    assert open_item(store, "words", "b", QueueQuery(reviewer="Grace")).version == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"item": "gone"}, "gone", id="item that is not there"),
        pytest.param({"dataset": "gone"}, "gone", id="dataset that is not there"),
        pytest.param({"op": {"kind": "explode"}}, "op", id="unknown operation"),
        pytest.param({"base": -1}, "base", id="impossible base"),
        pytest.param(
            {"op": {"kind": "add", "span": "s", "start": 0, "end": 99}}, "99", id="outside the text"
        ),
    ],
)
def test_a_write_that_fits_nowhere_is_refused_with_the_reason(
    store: Store, change: dict[str, JsonValue], reason: str
) -> None:
    (outcome,) = apply_writes(store, [_write(1, 0) | change], "Ada")
    assert not outcome.stored
    assert reason in (outcome.reason or "")
    assert not outcome.stale


def test_what_does_not_even_name_its_session_is_passed_over(store: Store) -> None:
    assert apply_writes(store, [{"op": {"kind": "undo"}}], "Ada") == []


def test_a_queue_begins_ends_and_goes_on_behind_what_left_it(store: Store) -> None:
    assert first_item(store, "words", EVERYTHING) == "a"
    assert neighbours(store, "words", EVERYTHING, "a") == QueueNeighbours(None, "b")
    assert neighbours(store, "words", EVERYTHING, "c") == QueueNeighbours("b", None)
    left = QueueQuery(reviewer="Ada", status=Status.NOT_ANNOTATED)
    apply_writes(store, [_write(1, 0, item="b", kind="status", status="done")], "Ada")
    assert neighbours(store, "words", left, "b") == QueueNeighbours("a", "c")
    assert first_item(store, "words", QueueQuery(reviewer="Ada", lang="de")) is None


def test_who_returns_begins_with_the_first_item_not_finished_yet(store: Store) -> None:
    apply_writes(store, [_write(1, 0, item="a", kind="status", status="done")], "Ada")
    assert first_item(store, "words", EVERYTHING) == "b"
    assert first_item(store, "words", QueueQuery(reviewer="Grace")) == "a"
    apply_writes(store, [_write(2, 0, item="b", kind="status", status="skipped")], "Ada")
    apply_writes(store, [_write(3, 0, item="c", kind="status", status="done")], "Ada")
    assert first_item(store, "words", EVERYTHING) == "a"


def test_progress_counts_what_one_reviewer_has_finished(store: Store) -> None:
    """Not annotated is not the same as checked without spans."""
    assert progress(store, "words", "Ada") == QueueProgress(done=0, skipped=0, total=3)
    apply_writes(
        store,
        [
            _write(1, 0, item="a", kind="status", status="done"),
            _write(2, 0, item="b", kind="status", status="skipped"),
            _write(3, 0, item="c"),
        ],
        "Ada",
    )
    assert progress(store, "words", "Ada") == QueueProgress(done=1, skipped=1, total=3)
    assert progress(store, "words", "Grace") == QueueProgress(done=0, skipped=0, total=3)
    plan = {"overlap": 1, "assigned_to": ("Ada", "Grace", "Hopper")}
    store.change_settings("words", lambda now: now.model_copy(update=plan))
    for person in ("Ada", "Grace", "Zoe"):
        prepare_queue(store, "words", person)
    mine = QueueProgress(done=1, skipped=1, total=3, planned=True)
    assert progress(store, "words", "Ada") == mine  # what she has written to stays in her list
    hers = QueueProgress(done=0, skipped=0, total=1, planned=True)
    assert progress(store, "words", "Grace") == hers
    assert progress(store, "words", "Zoe").total == 0  # nothing is assigned to her
    gold = progress(store, "words", "Ada", adjudicating=True)
    assert (gold.total, gold.planned) == (3, False)


def test_a_code_is_shown_once_others_hold_all_that_is_left(store: Store) -> None:
    register = store.access
    soon = datetime.now(UTC) + timedelta(hours=1)
    link = register.make_token(
        "invitation", Role.ANNOTATOR, "words", label="Ada", expires=soon, code="thanks"
    )
    ada = register.bearer(str(register.accept(link)), "invitation")
    assert ada is not None
    left = QueueProgress(done=9, skipped=0, total=10, planned=True)
    for progress_now, is_shown in ((left, False), (replace(left, waiting=True), True)):
        words = completion_words(store.acting_as(ada), "words", asdict(progress_now))
        assert ("Your code: thanks" in words) is is_shown


@pytest.mark.parametrize(
    ("assigned_to", "mine"),
    [
        pytest.param(("Grace", "Ada", "Hopper"), "item 1", id="assigned"),
        pytest.param((), "item 2", id="first come: Grace has the first two, one to come after one"),
    ],
)
def test_with_a_plan_an_item_of_others_is_like_one_that_does_not_exist(
    store: Store, assigned_to: tuple[str, ...], mine: str
) -> None:
    items = [Item(id=f"item {number}", answer="one two") for number in range(3)]
    store.import_records("planned", [Record(item=item) for item in items])
    plan = {"overlap": 1, "assigned_to": assigned_to}
    store.change_settings("planned", lambda now: now.model_copy(update=plan))

    def place(reviewer: str, entry: str | None = None) -> ReviewQueue:
        rules = {"unfinished": True, "reserve": True}
        share = store.settings("planned").share_of(reviewer)
        query = QueueQuery(reviewer=reviewer, listed=True, share=share, **rules)  # type: ignore[arg-type]
        return ReviewQueue("planned", query, entry)

    def write(item: str) -> WriteOutcome:
        (outcome,) = apply_writes(store, [_write(1, 0, item=item) | {"dataset": "planned"}], "Ada")
        return outcome

    assert exchange(store, place("Grace"), EditorMessage()).open == "item 0"
    for name in ("item 0", "nothing"):
        linked = exchange(store, place("Ada", name), EditorMessage())
        assert linked.open == mine
        assert name not in str(linked.json)
        assert write(name).reason == f"the dataset 'planned' has no item '{name}'"
        with pytest.raises(NotFoundError, match="has no item"):
            add_evidence(store, "planned", name, AddedEvidence(text="one"), reviewer="Ada")
    table = EditorMessage(place=place("Ada").id, open=mine, items=ItemsWanted(number=1))
    found = cast("Any", exchange(store, place("Ada"), table).json["items_found"])
    assert [row["id"] for row in found["rows"]] == [mine]
    assert write(mine).stored


def test_an_item_that_is_not_there_is_said_so(store: Store) -> None:
    with pytest.raises(NotFoundError, match="gone"):
        open_item(store, "words", "gone", EVERYTHING)


def test_labels_in_use_are_added_and_never_replace_the_set(store: Store) -> None:
    ada, bob = QueueQuery(reviewer="Ada"), QueueQuery(reviewer="Bob")
    usual = labels(store, "words", ada)
    assert [label.key for label in usual] == ["1", "2", "3", "4", "5", "6"]
    apply_writes(store, [_write(1, 0, kind="add", span="s", start=0, end=3, label="my own")], "Ada")
    added = (*usual, SpanLabel(name="my own", key="7"))
    assert labels(store, "words", ada) == labels(store, "words", bob) == added
    assert labels(store, "words", replace(ada, blind=True)) == added
    assert labels(store, "words", replace(bob, blind=True)) == usual


def test_a_label_keeps_its_key_when_it_is_used_for_the_first_time(store: Store) -> None:
    usual = labels(store, "words", QueueQuery(reviewer="Ada"))
    fifth = usual[4].name
    apply_writes(store, [_write(1, 0, kind="add", span="s", start=0, end=3, label=fifth)], "Ada")
    assert labels(store, "words", QueueQuery(reviewer="Ada")) == usual


def test_labels_without_a_key_of_their_own_get_the_digits_that_are_left(store: Store) -> None:
    chosen = (
        SpanLabel(name="a"),
        SpanLabel(name="b", key="1"),
        *(SpanLabel(name=f"n{n}") for n in range(9)),
    )
    store.change_settings("words", lambda now: now.model_copy(update={"labels": chosen}))
    keys = [label.key for label in labels(store, "words", QueueQuery(reviewer="Ada"))]
    assert keys == ["2", "1", "3", "4", "5", "6", "7", "8", "9", None, None]
