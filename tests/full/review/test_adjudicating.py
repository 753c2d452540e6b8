"""Adjudication beside annotation on PostgreSQL, and what an export says of a decision."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from postgres import Cluster
from rebuilt import rebuilt

from spanlab.base.settings import Settings
from spanlab.formats import dumps
from spanlab.formats.known.jsonl import loads
from spanlab.oplog.operations import in_force
from spanlab.review.adjudication import AdjudicationQueue
from spanlab.review.span_editor import EditorMessage, ReviewQueue, exchange
from spanlab.schema import Annotation, AnnotatorKind, Item, QueueQuery, Record, Span, Status
from spanlab.schema.datasets import ADJUDICATED
from spanlab.storage import Store

SECRET = "SECRET"
ANSWER = "one two three four five"
ITEMS = [f"item-{number}" for number in range(5)]


@pytest.fixture
def store(server: Cluster, tmp_path: Path) -> Iterator[Store]:
    settings = Settings(home=tmp_path, database_url=server.url(server.new_database()))
    with Store.open(settings) as store:
        store.import_records("words", [_record(name) for name in ITEMS])
        yield store


def _record(name: str) -> Record:
    said = tuple(_person(who, start) for who, start in (("Ann", 0), ("Ben", 4)))
    return Record(item=Item(id=name, answer=ANSWER), annotations=said)


def _person(who: str, start: int) -> Annotation:
    span = Span.of(ANSWER, start, start + 3, label=SECRET)
    return Annotation(
        annotator=f"{who} {SECRET}", kind=AnnotatorKind.PERSON, spans=(span,), note=SECRET
    )


def _adjudication(author: str) -> ReviewQueue:
    return ReviewQueue("words", AdjudicationQueue().query, None, author)


def _annotation(name: str) -> ReviewQueue:
    return ReviewQueue("words", QueueQuery(reviewer=name, blind=True), None)


def _replaced(number: int) -> dict[str, Any]:
    mark = {"source": f"Ann {SECRET}", "start": 0, "end": 3, "label": SECRET}
    return {"kind": "replace", "spans": [f"s{number}"], "marks": [mark]}


def _drawn(number: int) -> dict[str, Any]:
    return {"kind": "add", "span": f"s{number}", "start": 8, "end": 13}


class Editor:
    """One person's browser: it sends what is not stored, and on top of others' if it came late."""

    def __init__(
        self, store: Store, place: ReviewQueue, operation: Callable[[int], dict[str, Any]]
    ) -> None:
        self.store = store
        self.place = place
        self.operation = operation
        self.session = f"{place.reviewer} {place.author}"
        self.seq = 0
        self.seen: list[str] = []
        self.stored = 0

    def work(self) -> None:
        for item in ITEMS:
            self._decide(item, self.operation(self.seq))
            self._decide(item, {"kind": "status", "status": "done"})

    def _decide(self, item: str, operation: dict[str, Any]) -> None:
        stored = False
        while not stored:
            opened = self._ask(item)["items"][0]
            self.seq += 1
            write = {
                "session": self.session,
                "seq": self.seq,
                "base": len(opened["operations"]),
                "dataset": "words",
                "item": item,
                "reviewer": self.place.reviewer,
                "author": self.place.author,
                "op": operation,
            }
            (result,) = self._ask(item, writes=[write])["results"]
            stored = result["stored"]
            assert stored or result["stale"], result
            self.stored += stored

    def _ask(self, item: str, **sent: Any) -> dict[str, Any]:
        message = {"place": self.place.id, "open": item, **sent}
        answer = exchange(self.store, self.place, EditorMessage.model_validate(message))
        text = json.dumps(answer.json)
        self.seen.append(text)
        return dict(json.loads(text))


def test_two_adjudicate_while_two_annotate_and_nothing_is_lost_or_seen_that_is_hidden(
    store: Store,
) -> None:
    leads = [Editor(store, _adjudication(name), _replaced) for name in ("Ada", "Grace")]
    blind = [Editor(store, _annotation(name), _drawn) for name in ("Cleo", "Dan")]
    with ThreadPoolExecutor(4) as threads:
        for work in [threads.submit(one.work) for one in (*leads, *blind)]:
            work.result()
    everybody = [*leads, *blind]
    assert [each.stored for each in everybody] == [2 * len(ITEMS)] * 4
    assert store.n_operations("words") == sum(each.stored for each in everybody)
    for item in ITEMS:
        gold = store.review("words", item, ADJUDICATED, AnnotatorKind.GOLD)
        assert len(in_force(gold.operations)) == gold.version == 4
        assert gold.state == rebuilt(store, "words", item, ADJUDICATED, AnnotatorKind.GOLD)
        decided = gold.record.by(ADJUDICATED)
        assert decided is not None
        assert decided.decided_by in {"Ada", "Grace"}
        assert [span.source for span in decided.spans] == [f"Ann {SECRET}"]
        for one in blind:
            mine = store.record("words", item).by(one.place.reviewer)
            assert mine is not None
            assert (mine.status, [span.text for span in mine.spans]) == (Status.DONE, ["three"])
        for who, start in (("Ann", 0), ("Ben", 4)):
            assert store.record("words", item).by(f"{who} {SECRET}") == _person(who, start)
    assert all(SECRET in text for text in leads[0].seen if '"items": [{' in text)
    for one in blind:
        others = {"Cleo", "Dan", "Ada", "Grace", SECRET, ADJUDICATED} - {one.place.reviewer}
        assert not [word for word in others for text in one.seen if word in text]


def test_a_write_that_claims_another_kind_of_log_is_refused(store: Store) -> None:
    forged = {
        "session": "s",
        "seq": 1,
        "base": 0,
        "dataset": "words",
        "item": ITEMS[0],
        "op": _drawn(0),
    }
    for place, author in ((_annotation("Cleo"), "Cleo"), (_adjudication("Ada"), None)):
        write = {**forged, "reviewer": place.reviewer, "author": author}
        sent = EditorMessage.model_validate({"place": place.id, "writes": [write]})
        (result,) = json.loads(json.dumps(exchange(store, place, sent).json))["results"]
        assert result["reason"] == "an adjudication, and it alone, says who decided"
    assert store.n_operations("words") == 0


def test_an_export_says_who_decided_and_from_whom_each_span_came(store: Store) -> None:
    lead = Editor(store, _adjudication("Ada"), _replaced)
    three = {"source": "majority", "start": 4, "end": 7, "voters": ["Ann", "Ben"]}
    lead._decide(ITEMS[0], {"kind": "replace", "spans": ["a"], "marks": [three]})
    lead._decide(ITEMS[0], {"kind": "accept", "span": "b", "mark": {**three, "source": "Ben"}})
    record = next(iter(store.records("words", annotators=[ADJUDICATED])))
    (written,) = json.loads(dumps(record))["annotations"]
    assert written["decided_by"] == "Ada"
    assert [(span["source"], span["voters"]) for span in written["spans"]] == [
        ("majority", ["Ann", "Ben"]),
        ("Ben", ["Ann", "Ben"]),
    ]
    assert loads(dumps(record)) == record
