"""Searching items by question, answer, id, comment and label, on both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spanlab.oplog.operations import (
    AddSpan,
    CommentSpan,
    RelabelSpan,
    SentOperation,
    SetStatus,
    Undo,
)
from spanlab.schema import Annotation, AnnotatorKind, Item, QueueQuery, Record, Span, Status
from spanlab.storage import Store
from spanlab.worklists import paging

_LONG_WORD = "a" * 3_000  # more than a lexeme may have in PostgreSQL

_ITEMS = {
    "en-1": ("How tall is the tower?", "The Eiffel Tower is 330 metres tall."),
    "en-2": ("Who built it?", "Gustave Eiffel's company; it's 'quoted': & | ! ( ) <-> \\ tower."),
    "zh-1": ("塔有多高?", "东京塔高333米。"),
    "ja-1": ("どこですか", "京都は東京ではない"),
    "th-1": ("หอคอยสูงเท่าไร", "หอคอยสูง 330 เมตร"),
    "long": ("", f"{_LONG_WORD} \x00 end"),
}


def _records() -> list[Record]:
    return [
        Record(item=Item(id=name, question=question, answer=answer))
        for name, (question, answer) in _ITEMS.items()
    ]


def _ids(store: Store, searched: str | None, reviewer: str = "me", **more: object) -> list[str]:
    query = QueueQuery(reviewer=reviewer, text=searched, **more)  # type: ignore[arg-type]
    return [row.item_id for row in paging.page(store, "d", query).rows]


FOUND: dict[str, tuple[str, list[str]]] = {
    "a word": ("tower", ["en-1", "en-2"]),
    "beginnings of words": ("TOW eiff", ["en-1", "en-2"]),
    "all words": ("tower 330", ["en-1"]),
    "in the question": ("how", ["en-1"]),
    "an id": ("en-2", ["en-2"]),
    "one character": ("塔", ["zh-1"]),
    "within Chinese": ("京塔", ["zh-1"]),
    "characters in another order": ("東京都", []),
    "within Japanese": ("東京では", ["ja-1"]),
    "within Thai": ("สูง", ["th-1"]),
    "in several languages": ("330", ["en-1", "th-1"]),
    "a very long word": (_LONG_WORD, ["long"]),
    "signs are no operators": ("'quoted': & | ! ( ) <-> \\ \" * NOT", []),
    "signs count for nothing": ("'quoted': & | ! ( ) <-> \\ \" *", ["en-2"]),
    "signs alone": ("!?", []),
    "nothing": ("nowhere", []),
}


def test_a_search_finds_in_every_script(searching: Store) -> None:
    for what, (searched, expected) in FOUND.items():
        assert _ids(searching, searched) == expected, what


@pytest.fixture
def searching(store: Store) -> Store:
    store.import_records("other", _records())  # another dataset is not searched
    store.import_records("d", _records())
    return store


def test_a_search_narrows_a_queue_like_any_filter(searching: Store) -> None:
    searching.apply("d", "en-1", "me", [SentOperation("s", 1, 0, SetStatus(status=Status.DONE))])
    todo = QueueQuery(reviewer="me", text="tower", status=Status.NOT_ANNOTATED)
    assert len(paging.positions(searching, "d", todo)) == 1
    assert paging.neighbour(searching, "d", replace(todo, status=None), "en-1") == "en-2"
    assert paging.neighbour(searching, "d", replace(todo, status=None), "en-2") is None


def test_comments_and_labels_are_found_as_they_are_now(searching: Store) -> None:
    marked = [
        SentOperation("s", 1, 0, AddSpan(span="x", start=0, end=3)),
        SentOperation("s", 2, 1, RelabelSpan(span="x", label="wrong name")),
        SentOperation("s", 3, 2, CommentSpan(span="x", text="ask Grace")),
        SentOperation("s", 4, 3, CommentSpan(span=None, text="an odd answer")),
    ]
    searching.apply("d", "zh-1", "me", marked)
    assert _ids(searching, "grace") == _ids(searching, "odd") == ["zh-1"]
    assert _ids(searching, None, label="wrong name") == ["zh-1"]
    assert _ids(searching, None, label="wrong") == _ids(searching, "wrong") == []
    searching.apply("d", "zh-1", "me", [SentOperation("s", n, n - 1, Undo()) for n in (5, 6, 7)])
    assert _ids(searching, "odd") == _ids(searching, None, label="wrong name") == []


def test_a_blind_search_does_not_find_what_others_said(searching: Store) -> None:
    answer = _ITEMS["en-1"][1]
    span = Span.of(answer, 0, 3, label="bad").model_copy(update={"note": "secret"})
    for name, kind in (
        ("Ben", AnnotatorKind.PERSON),
        ("gold", AnnotatorKind.GOLD),
        ("det", AnnotatorKind.DETECTOR),
    ):
        said = Annotation(annotator=name, kind=kind, spans=(span,), note=f"by {name}")
        searching.save_annotations("d", [("en-1", said)])
    assert _ids(searching, "by ben") == _ids(searching, "by gold") == ["en-1"]
    assert _ids(searching, "by ben", blind=True) == _ids(searching, "by gold", blind=True) == []
    assert (
        _ids(searching, "by det", blind=True) == _ids(searching, "secret", blind=True) == ["en-1"]
    )
    assert _ids(searching, "by ben", reviewer="Ben", blind=True) == ["en-1"]
    searching.save_annotations(
        "d", [("en-1", Annotation(annotator="det", kind=AnnotatorKind.DETECTOR))]
    )
    assert _ids(searching, "secret", blind=True) == []
    assert _ids(searching, None, label="bad", blind=True) == []
    assert _ids(searching, None, label="bad") == ["en-1"]


def test_copies_deletions_and_later_imports_are_searched_right(searching: Store) -> None:
    note = SentOperation("s", 1, 0, CommentSpan(span=None, text="remarkable"))
    searching.apply("d", "en-1", "me", [note])
    searching.duplicate_dataset("d", "copy")
    searching.delete_dataset("d")
    searching.import_records("d", [Record(item=Item(id="x", answer="another tower"))])
    searching.import_records("d", [Record(item=Item(id="y", answer="one tower more"))])
    assert _ids(searching, "tower") == ["x", "y"]
    assert _ids(searching, "remarkable") == []
    copied = QueueQuery(reviewer="me", text="remarkable")
    assert [row.item_id for row in paging.page(searching, "copy", copied).rows] == ["en-1"]
