"""Whoever reviews blind is not shown what others said, wherever Review could tell it.

The places: spans, claims, statuses, comments and labels of other people and gold labels; votes with
a person among the voters, or with voters unknown; the traces of all these; the order by
disagreement, and the filter by it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from spanlab.oplog.operations import FinishItem, SentOperation, SetStatus
from spanlab.review.queue import first_item, progress
from spanlab.review.span_editor import EditorMessage, EditorReply, ReviewQueue, exchange
from spanlab.review.writes import WriteOutcome
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, QueueQuery, Record, Span, Status
from spanlab.schema.progress import QueueProgress
from spanlab.scoring.annotators import compare_dataset
from spanlab.scoring.votes import vote_dataset
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of
from spanlab.worklists import drawing, looks, paging, plans
from spanlab.worklists.looks import looks_in_words
from spanlab.worklists.sight import seen_by

SECRET = "SECRET"
ANSWER = "one two three"


def _says(
    name: str,
    kind: AnnotatorKind,
    start: int,
    voters: tuple[str, ...] = (),
    note: str | None = None,
) -> Annotation:
    marked = Span.of(ANSWER, start, start + 3, label=note).model_copy(update={"note": note})
    claims = (Claim(text=note, verdict="refuted", note=note),) if note else ()
    return Annotation(
        annotator=name, kind=kind, spans=(marked,), claims=claims, voters=voters, note=note
    )


def _record(name: str, *, apart: bool) -> Record:
    """Two detectors that agree unless they are ``apart``, and people who say what is secret."""
    ben = _says(f"Ben {SECRET}", AnnotatorKind.PERSON, 8, note=SECRET)
    skipped = ben.model_copy(update={"annotator": f"Eve {SECRET}", "status": Status.SKIPPED})
    return Record(
        item=Item(id=name, answer=ANSWER),
        annotations=(
            _says("d1", AnnotatorKind.DETECTOR, 0),
            _says("d2", AnnotatorKind.DETECTOR, 4 if apart else 0),
            ben,
            skipped,
            _says(f"gold {SECRET}", AnnotatorKind.GOLD, 8, note=SECRET),
            _says("of detectors", AnnotatorKind.VOTE, 0, ("d1", "d2")),
            _says(f"of people {SECRET}", AnnotatorKind.VOTE, 8, (ben.annotator, "d1"), note=SECRET),
            _says(f"of whom {SECRET}", AnnotatorKind.VOTE, 8, note=SECRET),
        ),
    )


@pytest.fixture
def store(store: Store) -> Store:
    people = Record(
        item=Item(id="people", answer=ANSWER),
        annotations=(
            _says(f"Ben {SECRET}", AnnotatorKind.PERSON, 0),
            _says(f"Ivo {SECRET}", AnnotatorKind.PERSON, 4),
        ),
    )
    agreed, apart = _record("agreed", apart=False), _record("apart", apart=True)
    store.import_records("words", [agreed, people, apart])
    return store


def _ask(store: Store, query: QueueQuery, **sent: object) -> EditorReply:
    place = ReviewQueue("words", query, None)
    return exchange(store, place, EditorMessage.model_validate({"place": place.id, **sent}))


BLIND = QueueQuery(reviewer="Ada", blind=True)
OPEN = QueueQuery(reviewer="Ada")


def test_nothing_that_reaches_a_blind_reviewers_browser_says_what_others_said(
    store: Store,
) -> None:
    for item in ("agreed", "people", "apart"):
        assert SECRET not in json.dumps(_ask(store, BLIND, open=item).json)
        assert SECRET in json.dumps(_ask(store, OPEN, open=item).json)
    answer = json.loads(json.dumps(_ask(store, BLIND, open="agreed").json))
    seen = [each["name"] for each in answer["items"][0]["annotators"]]
    assert seen == ["d1", "d2", "of detectors"]


@pytest.mark.parametrize(
    "annotator", ["Ben SECRET", "Eve SECRET", "gold SECRET", "of people SECRET", "of whom SECRET"]
)
def test_a_trace_of_others_is_not_given_to_a_blind_reviewer(store: Store, annotator: str) -> None:
    wanted = {"item": "agreed", "annotator": annotator}
    blind = json.loads(json.dumps(_ask(store, BLIND, open="agreed", trace=wanted).json))
    assert blind["trace"]["about"] is None
    shown = json.loads(json.dumps(_ask(store, OPEN, open="agreed", trace=wanted).json))
    assert shown["trace"]["about"] is not None


def test_a_lead_may_show_what_others_said_once_a_reviewer_has_finished_the_item(
    store: Store,
) -> None:
    """Then, and as long as it is done; the table and the order of the queue stay blind."""
    query = replace(BLIND, shown_when_done=True)

    def has_trace() -> bool:
        wanted = {"item": "agreed", "annotator": "Ben SECRET"}
        answer = json.loads(json.dumps(_ask(store, query, open="agreed", trace=wanted).json))
        return answer["trace"]["about"] is not None

    def say(seq: int, status: Status, **sent: object) -> str:
        operation = {"kind": "status", "status": status.value}
        write = {"session": "s", "seq": seq, "base": seq - 1, "op": operation, **where}
        answer = _ask(store, query, writes=[write], **sent).json
        assert answer["results"] == [asdict(WriteOutcome("s", seq, stored=True))]
        return json.dumps(answer)

    where = {"dataset": "words", "item": "agreed", "reviewer": "Ada"}
    assert SECRET not in json.dumps(_ask(store, query, open="agreed").json)
    assert not has_trace()
    gone_on = say(1, Status.DONE, open="apart", have=["agreed", "apart"])
    assert SECRET in gone_on
    assert [item["id"] for item in json.loads(gone_on)["items"]] == ["agreed"]
    assert has_trace()
    assert SECRET not in json.dumps(_ask(store, query, open="apart", items={"number": 1}).json)
    reopened = say(2, Status.NOT_ANNOTATED, open="agreed", have=["agreed"])
    assert SECRET not in reopened
    assert not has_trace()
    assert [item["id"] for item in json.loads(reopened)["items"]] == ["agreed"]


def test_a_blind_queue_is_ordered_and_filtered_by_the_disagreement_of_detectors_alone(
    store: Store,
) -> None:
    def ids(**more: object) -> list[str]:
        query = QueueQuery(reviewer="Ada", **more)  # type: ignore[arg-type]
        return [row.item_id for row in paging.page(store, "words", query).rows]

    assert ids(order="disagreement") == ["people", "apart", "agreed"]
    assert ids(order="disagreement", blind=True) == ["apart", "agreed", "people"]
    assert ids(min_disagreement=0.1) == ["agreed", "people", "apart"]
    assert ids(min_disagreement=0.1, blind=True) == ["apart"]
    ranked = QueueQuery(reviewer="Ada", order="disagreement", blind=True)
    assert first_item(store, "words", ranked) == "apart"
    row = paging.page(store, "words", ranked).rows[-1]
    assert (row.item_id, row.disagreement) == ("people", None)


def test_what_a_person_says_later_moves_nothing_in_a_blind_queue(store: Store) -> None:
    ranked = QueueQuery(reviewer="Ada", order="disagreement", blind=True)
    before = [(row.item_id, row.disagreement) for row in paging.page(store, "words", ranked).rows]
    store.save_annotations("words", [("agreed", _says("Zoe", AnnotatorKind.PERSON, 8))])
    assert [
        (row.item_id, row.disagreement) for row in paging.page(store, "words", ranked).rows
    ] == before


def test_reviews_made_after_looking_at_others_marks_are_counted(store: Store) -> None:
    done = {"kind": "status", "status": "done"}

    def finish(query: QueueQuery, item: str) -> None:
        where = {"dataset": "words", "item": item, "reviewer": query.reviewer}
        write = {"session": f"{item} {query.reviewer}", "seq": 1, "base": 0, "op": done, **where}
        _ask(store, query, open=item)
        assert _ask(store, query, open=item, writes=[write]).json["results"]

    finish(BLIND, "agreed")
    finish(OPEN, "people")
    _ask(store, OPEN, open="agreed")  # what is done was not made after looking
    finish(replace(OPEN, reviewer="Eva"), "people")
    assert looks.looked_at(store, "words") == {("people", "Ada"), ("people", "Eva")}
    said = "Of 3 reviews by people, 2 were made after looking at other people's marks"
    summary = summary_of(store, "words")
    assert looks_in_words(store, summary, ["Ada", "Eva", "d1"])[0].startswith(said)
    assert any("after looking" in remark for remark in compare_dataset(store, "words").remarks)
    told: list[str] = []
    vote_dataset(store, "words", ["Ada", "Eva"], name="two", on_remark=told.append)
    assert told[0].startswith(said)
    store.rename_annotator("words", "Eva", "Zoe")
    assert looks.looked_at(store, "words") == {("people", "Ada"), ("people", "Zoe")}


@pytest.mark.parametrize("query", [OPEN, replace(BLIND, shown_when_done=True)])
def test_what_is_changed_after_it_was_done_and_looked_at_is_a_review_after_looking(
    store: Store, query: QueueQuery
) -> None:
    where = {"dataset": "words", "item": "agreed", "reviewer": "Ada"}
    for seq, (status, looked) in enumerate(
        [("done", set()), ("not-annotated", set()), ("done", {("agreed", "Ada")})], start=1
    ):
        operation = {"kind": "status", "status": status}
        write = {"session": "s", "seq": seq, "base": seq - 1, "op": operation, **where}
        before = query if seq > 1 else BLIND
        assert _ask(store, before, open="agreed", writes=[write]).json["results"]
        _ask(store, query, open="agreed", have=["apart"])
        assert looks.looked_at(store, "words") == looked


def test_who_may_still_get_an_item_that_others_hold_is_blind_and_no_total_rises(
    store: Store,
) -> None:
    """Else they would have seen what others marked when it becomes theirs."""
    ben = _says(f"Ben {SECRET}", AnnotatorKind.PERSON, 8)
    held = Record(item=Item(id="held", answer=ANSWER), annotations=(ben,))
    store.import_records("words", [held])
    store.change_settings("words", lambda now: now.model_copy(update={"overlap": 2}))
    drawing.draw(store, "words", "Ada")
    for item in ("agreed", "apart"):
        store.apply("words", item, "Ada", [SentOperation(item, 1, 0, FinishItem())])
    assert not plans.reserve(store, "words", "held", "Cleo")

    def may_see() -> bool:
        seen = seen_by(store, "words", "Ada").record("words", "held")
        return seen.by(ben.annotator) is not None

    assert not may_see()
    waits = QueueProgress(2, 0, 4, planned=True, waiting=True, by_others=1)
    assert progress(store, "words", "Ada") == waits
    skipped = SetStatus(status=Status.SKIPPED)
    store.apply("words", "held", "Cleo", [SentOperation("held", 1, 0, skipped)])
    assert progress(store, "words", "Ada") == replace(waits, waiting=False)
    assert not may_see()
    store.apply("words", "held", "Ada", [SentOperation("Ada", 1, 0, FinishItem())])
    assert may_see()


def test_who_is_to_get_items_that_came_later_is_blind_before_their_list_has_them(
    store: Store,
) -> None:
    ben = _says(f"Ben {SECRET}", AnnotatorKind.PERSON, 8)
    plan = {"overlap": 2, "assigned_to": ("Ada", ben.annotator)}
    store.change_settings("words", lambda now: now.model_copy(update=plan))
    drawing.draw(store, "words", "Ada")
    for item in ("agreed", "people", "apart"):
        store.apply("words", item, "Ada", [SentOperation(item, 1, 0, FinishItem())])
    assert seen_by(store, "words", "Ada").record("words", "agreed").by(ben.annotator)
    new = Record(item=Item(id="new", answer=ANSWER), annotations=(ben,))
    store.import_records("words", [new])
    assert not seen_by(store, "words", "Ada").record("words", "new").by(ben.annotator)


def test_that_others_are_hidden_is_said_and_how_many_where_reviewers_may_see_them(
    store: Store,
) -> None:
    def hidden(query: QueueQuery) -> object:
        answer = json.loads(json.dumps(_ask(store, query, open="people").json))
        return answer["items"][0]["hidden"]

    assert (hidden(OPEN), hidden(BLIND)) == (0, 2)
    store.change_settings("words", lambda now: now.model_copy(update={"always_blind": True}))
    assert hidden(BLIND) is None


def test_a_blind_queue_counts_no_verdict_of_others_on_an_answer(store: Store) -> None:
    judges = {"Ben": AnnotatorKind.PERSON, "gold": AnnotatorKind.GOLD, "Ann": AnnotatorKind.PERSON}
    said = tuple(
        Annotation(annotator=name, kind=kind, answer_hallucinated=True)
        for name, kind in judges.items()
    )
    store.import_records("judged", [Record(item=Item(id="a", answer=ANSWER), annotations=said)])
    (all_told,) = paging.page(store, "judged", QueueQuery(reviewer="Ann")).rows
    (told,) = paging.page(store, "judged", QueueQuery(reviewer="Ann", blind=True)).rows
    assert (all_told.n_judges, all_told.n_hallucinated) == (3, 3)
    assert (told.n_judges, told.n_hallucinated) == (1, 1)
