"""The editor's side of Python: the key table, one round of the conversation, what is sent."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import pytest

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.review.span_editor import EditorMessage, EditorReply, ReviewQueue, exchange
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Evidence,
    Item,
    Passage,
    QueueQuery,
    Record,
    Span,
)
from spanlab.schema.progress import QueueProgress
from spanlab.storage import Store
from spanlab.ui.editor_keys import KEYS

ANSWER = "one two 🎉 three"
QUOTE = Evidence(start=0, end=4, text="four", passage=0, stance="refutes")
SPAN = Span.of(ANSWER, 8, 9, prob=0.5, evidence=(QUOTE,))
PLACE = ReviewQueue("words", QueueQuery(reviewer="Ada"), None)


@pytest.fixture
def store(store: Store) -> Store:
    records = [
        Record(
            item=Item(id=name, answer=ANSWER, passages=(Passage(text="four five"),)),
            annotations=(Annotation(annotator="d", kind=AnnotatorKind.DETECTOR, spans=(SPAN,)),),
        )
        for name in ("a", "b", "c")
    ]
    store.import_records("words", records)
    return store


def _json(answer: EditorReply) -> Any:
    return json.loads(json.dumps(answer.json))


def _here(**more: object) -> EditorMessage:
    return EditorMessage.model_validate({"place": PLACE.id, "attempt": 7, **more})


def test_no_key_means_two_things_but_enter() -> None:
    uses = Counter((key.where, spec) for key in KEYS for spec in key.keys)
    assert [use for use, count in uses.items() if count > 1] == [("answer", "Enter")]


def test_an_editor_that_knows_nothing_gets_the_first_item_whole(store: Store) -> None:
    answer = exchange(store, PLACE, EditorMessage())
    assert answer.open == "a"
    (item,) = _json(answer)["items"]
    assert item["answer"] == ANSWER
    assert answer.json["near"] == {"a": {"previous": None, "next": "b"}}
    assert answer.json["progress"] == asdict(QueueProgress(done=0, skipped=0, total=3))


def test_a_key_press_costs_a_few_hundred_bytes_once_the_item_is_there(store: Store) -> None:
    operation = {"kind": "add", "span": "s", "start": 0, "end": 3}
    write = {"session": "tab", "seq": 1, "base": 0, "op": operation}
    write |= {"dataset": "words", "item": "a", "reviewer": "Ada"}
    answer = exchange(store, PLACE, _here(writes=[write], open="a", have=["a"], near=False))
    assert answer.json["items"] == []
    assert answer.json["attempt"] == 7
    assert answer.json["results"] == [
        {"session": "tab", "seq": 1, "stored": True, "reason": None, "stale": False}
    ]
    assert len(json.dumps(answer.json)) < 1000


def test_the_item_ahead_comes_with_its_neighbours(store: Store) -> None:
    answer = exchange(store, PLACE, _here(open="a", have=["a"], near=False, ahead="b"))
    assert answer.json["near"] == {"b": {"previous": "a", "next": "c"}}
    assert [item["id"] for item in _json(answer)["items"]] == ["b"]


def test_an_editor_at_another_place_is_moved(store: Store) -> None:
    answer = exchange(
        store, PLACE, EditorMessage(place="elsewhere", open="c", have=("a", "c"), attempt=1)
    )
    assert answer.open == "a"


def test_a_sample_has_its_own_order_and_shows_nothing_that_others_said(store: Store) -> None:
    query = QueueQuery(reviewer="Ada", blind=True, own_only=True)
    place = ReviewQueue("words", replace(query, sample=("c", "a", "b")), None)
    answer = exchange(store, place, EditorMessage())
    assert answer.open == "c"
    (item,) = _json(answer)["items"]
    assert (item["annotators"], item["hidden"]) == ([], 1)
    assert answer.json["near"] == {"c": {"previous": None, "next": "a"}}
    assert answer.json["standing"] == {"item": "c", "number": 1, "total": 3}

    wanted = {"number": 1, "order": "probability"}
    trace = {"item": "c", "annotator": "d"}
    sent = {"place": place.id, "open": "c", "have": ["c"], "items": wanted, "trace": trace}
    answer = exchange(store, place, EditorMessage.model_validate(sent))
    found = _json(answer)["items_found"]
    assert found["order"] == "import"
    told = [
        (row["prob"], row["disagreement"], row["labels"], row["claims"]) for row in found["rows"]
    ]
    assert told == [(None, None, [], 0)] * 3
    assert _json(answer)["trace"]["about"] is None

    for at, status in enumerate(("done", "skipped")):
        write = {"session": "tab", "seq": at + 1, "base": 0, "dataset": "words", "reviewer": "Ada"}
        write |= {"item": "ca"[at], "op": {"kind": "status", "status": status}}
        exchange(store, place, EditorMessage.model_validate({"place": place.id, "writes": [write]}))
    assert exchange(store, place, EditorMessage()).open == "b"


def test_a_link_opens_its_item_and_a_dead_one_the_first(store: Store) -> None:
    assert exchange(store, ReviewQueue("words", PLACE.query, "c"), EditorMessage()).open == "c"
    assert exchange(store, ReviewQueue("words", PLACE.query, "gone"), EditorMessage()).open == "a"


def test_an_item_that_is_gone_meanwhile_ends_nothing(store: Store) -> None:
    answer = exchange(store, PLACE, _here(open="gone", have=[]))
    assert answer.open == "a"


def test_a_dataset_that_is_gone_is_noticed_by_a_write_alone(store: Store) -> None:
    store.delete_dataset("words")
    operation = {"kind": "add", "span": "s", "start": 0, "end": 3}
    write = {"session": "tab", "seq": 1, "base": 0, "op": operation}
    write |= {"dataset": "words", "item": "a", "reviewer": "Ada"}
    with pytest.raises(NotFoundError, match="no dataset named 'words'"):
        exchange(store, PLACE, _here(writes=[write], open="a", have=["a"], near=False))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seq": 2**63}, "seq"),
        ({"base": 2**63}, "base"),
        ({"session": "tab\ud83d"}, "session"),
        ({"item": "a\ud83d"}, "item"),
        ({"op": {"kind": "note", "text": "\ud83d"}}, "text"),
        ({"op": {"kind": "\ud83d"}}, "kind"),
    ],
    ids=str,
)
def test_a_write_that_no_store_takes_is_refused_with_the_reason(
    store: Store, change: dict[str, object], said: str
) -> None:
    write = {"session": "tab", "seq": 1, "base": 0, "op": {"kind": "undo"}}
    write |= {"dataset": "words", "item": "a", "reviewer": "Ada"} | change
    answer = exchange(store, PLACE, _here(writes=[write]))
    (result,) = _json(answer)["results"]
    assert not result["stored"]
    assert said in result["reason"]
    assert json.dumps(answer.json, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "message",
    [
        {"open": "a\ud83d"},
        {"have": ["\ud83d"], "open": "a"},
        {"trace": {"item": "\ud83d", "annotator": "d"}},
        {"attempt": "many"},
        {"writes": "none"},
        [],
    ],
    ids=str,
)
def test_a_message_that_cannot_be_read_is_said(message: object) -> None:
    with pytest.raises(UsageError, match="a message of the editor is wrong"):
        EditorMessage.read(message)


def test_an_empty_queue_says_why_and_what_to_do(store: Store) -> None:
    nothing = ReviewQueue("words", QueueQuery(reviewer="Ada", lang="de"), None)
    answer = exchange(store, nothing, EditorMessage())
    assert answer.open is None
    assert "Widen" in str(answer.json["empty"])


def test_spans_are_sent_as_offsets_without_their_text(store: Store) -> None:
    answer = exchange(store, PLACE, EditorMessage())
    (item,) = _json(answer)["items"]
    (span,) = item["annotators"][0]["spans"]
    assert span == {
        "start": 8,
        "end": 9,
        "prob": 0.5,
        "likely": False,
        "joins": None,
        "evidence": [{"passage": 0, "start": 0, "end": 4, "stance": "refutes", "note": None}],
    }
