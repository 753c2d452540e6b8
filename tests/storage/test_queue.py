"""Queues: every filter and order, page by page and step by step, against a plain model."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import get_args

import pytest

from spanlab.errors import NotFoundError, UsageError
from spanlab.labels import disagreement
from spanlab.oplog import SetStatus
from spanlab.schema import (
    Annotation,
    Claim,
    Cursor,
    Kind,
    Order,
    Passage,
    QueueQuery,
    Record,
    Standing,
    Status,
)
from spanlab.settings import Settings
from spanlab.storage import Store, Write

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]

_N_ITEMS = 4300  # more than one block of facets


@pytest.fixture(scope="module")
def records(record: MakeRecord, said: Say) -> list[Record]:
    """Items with every mixture of annotations, some languages in runs and some scattered."""
    chance = random.Random(11)
    made = []
    for n in range(_N_ITEMS):
        annotations = []
        for name in ("det", "other"):
            if chance.random() < 0.6:
                status = Status.FAILED if chance.random() < 0.1 else Status.DONE
                start = chance.randrange(10)
                spans = [(start, start + 5, chance.randrange(11) / 10)] * chance.randrange(2)
                annotations.append(_with_claims(chance, said(name, *spans, status=status)))
        if n < _N_ITEMS // 2 or chance.random() < 0.1:
            status = chance.choice((Status.DONE, Status.DONE, Status.SKIPPED))
            annotations.append(said("rev", (0, 5), kind=Kind.PERSON, status=status))
        if chance.random() < 0.2:
            annotations.append(said("ann", (2, 9), kind=Kind.PERSON))
        lang = "eu" if n > _N_ITEMS - 50 else chance.choice(("de", "en", "zh"))
        one = record(f"item {n}", *annotations, lang=lang)
        passages = tuple(Passage(text=f"passage {k}") for k in range(chance.randrange(3)))
        item = one.item.model_copy(update={"passages": passages})
        made.append(one.model_copy(update={"item": item}))
    return made


def _with_claims(chance: random.Random, annotation: Annotation) -> Annotation:
    """Give an annotation labels and claims, or none."""
    labelled = tuple(
        span.model_copy(update={"label": f"label {n}"}) if chance.random() < 0.2 else span
        for n, span in enumerate(annotation.spans)
    )
    claims = tuple(Claim(text=f"claim {k}") for k in range(max(0, chance.randrange(-6, 4))))
    return annotation.model_copy(update={"spans": labelled, "claims": claims})


@pytest.fixture(scope="module")
def queues(
    new_database: Callable[[Path], Settings],
    records: list[Record],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Store]:
    """A store with the records as dataset "d"; tests only read it."""
    with Store.open(new_database(tmp_path_factory.mktemp("queues"))) as store:
        store.import_records("d", records)
        yield store


_ANY = QueueQuery(reviewer="rev", limit=1000)
_TODO = replace(_ANY, status=Status.NOT_ANNOTATED)
_QUERIES = {
    "everything": _ANY,
    "to do": _TODO,
    "done": replace(_ANY, status=Status.DONE),
    "of an unknown reviewer, to do": replace(_TODO, reviewer="new"),
    "of an unknown reviewer, done": replace(_ANY, reviewer="new", status=Status.DONE),
    "language": replace(_ANY, lang="zh"),
    "language at the end": replace(_ANY, lang="eu"),
    "language that nobody speaks": replace(_ANY, lang="la"),
    "likely": replace(_ANY, detector="det", min_prob=0.7),
    "exactly": replace(_ANY, detector="det", min_prob=0.3, max_prob=0.3),
    "found nothing": replace(_ANY, detector="det", max_prob=0.0),
    "likely for any detector": replace(_ANY, min_prob=0.9),
    "likely for an unknown detector": replace(_ANY, detector="new", min_prob=0.1),
    "not annotated by a detector": replace(
        _ANY, detector="other", detector_status=Status.NOT_ANNOTATED
    ),
    "failed": replace(_ANY, detector="other", detector_status=Status.FAILED),
    "disputed": replace(_ANY, min_disagreement=0.8),
    "second annotator": replace(_TODO, reviewer="new", min_annotators=1, max_annotators=1),
    "two people each": replace(_ANY, max_annotators=1, unfinished=True),
    "two people each, new reviewer": replace(
        _ANY, reviewer="new", max_annotators=1, unfinished=True
    ),
    "many at once": replace(
        _TODO, lang="en", detector="det", min_prob=0.5, min_disagreement=0.5, max_annotators=1
    ),
    "nothing": replace(_ANY, status=Status.SKIPPED, lang="la", min_annotators=3),
}


# Filters are arithmetic on what both databases store alike.
on_sqlite = pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)


@on_sqlite
@pytest.mark.parametrize("order", ["import", "disagreement"])
@pytest.mark.parametrize("filtered", _QUERIES.values(), ids=_QUERIES)
def test_pages_and_steps_go_through_what_the_filter_lets_through(
    queues: Store, records: list[Record], filtered: QueueQuery, order: Order
) -> None:
    """Also the queue of a second annotator, and items ordered by disagreement."""
    query = replace(filtered, order=order)
    expected = _expected(records, query)
    assert queues.count("d", query) == len(expected)
    _goes_both_ways(queues, query, expected)
    for index in sorted({0, 1, len(expected) // 2, len(expected) - 1} & set(range(len(expected)))):
        before = expected[index - 1] if index else None
        after = expected[index + 1] if index + 1 < len(expected) else None
        assert queues.neighbour("d", query, expected[index], -1) == before
        assert queues.neighbour("d", query, expected[index], 1) == after


def _goes_both_ways(queues: Store, query: QueueQuery, expected: list[str]) -> None:
    page = queues.page("d", query)
    forward = [row.item_id for row in page.rows]
    assert page.previous is None
    last = page
    while last.next is not None:
        last = queues.page("d", replace(query, after=last.next))
        assert last.previous is not None
        forward += [row.item_id for row in last.rows]
    assert forward == expected
    backward = [row.item_id for row in last.rows]
    while last.previous is not None:
        last = queues.page("d", replace(query, before=last.previous))
        backward = [row.item_id for row in last.rows] + backward
    assert backward == expected


_ORDERS: tuple[Order, ...] = get_args(Order)


@pytest.mark.parametrize("reverse", [False, True], ids=["", "reversed"])
@pytest.mark.parametrize("order", _ORDERS)
def test_every_order_goes_through_the_queue_both_ways(
    queues: Store, records: list[Record], order: Order, reverse: bool
) -> None:
    for blind in (False, True):
        query = replace(_TODO, order=order, reverse=reverse, blind=blind, limit=700)
        expected = _expected(records, query)
        _goes_both_ways(queues, query, expected)
        for index in (0, 1, 999, len(expected) - 1):
            number = Standing(index + 1, len(expected))
            assert queues.standing("d", query, expected[index]) == number
        assert queues.neighbour("d", query, expected[1000]) == expected[1001]
        assert queues.neighbour("d", query, expected[1000], -1) == expected[999]
    assert queues.standing("d", query, "item 0") == Standing(None, len(expected))


def test_a_row_says_what_a_list_shows(queues: Store, records: list[Record]) -> None:
    rows = queues.page("d", replace(_ANY, detector="det", limit=200)).rows
    for row, record in zip(rows, records, strict=False):
        detector, reviewer = record.by("det"), record.by("rev")
        done = detector is not None and detector.status is Status.DONE
        assert row.item_id == record.item.id
        assert row.lang == record.item.lang
        assert (row.question, row.answer) == (record.item.question, record.item.answer)
        assert row.status is (Status.NOT_ANNOTATED if reviewer is None else reviewer.status)
        assert row.max_prob == (_highest(record, "det") if done else None)
        assert row.disagreement == disagreement(record.annotations)
        assert row.n_annotators == _people(record)
        assert row.n_passages == len(record.item.passages)
        assert row.n_claims == _most_claims(record)
        assert set(row.labels) == _labels(record)


def test_a_place_far_inside_is_reached_at_once(queues: Store) -> None:
    page = queues.page("d", replace(_ANY, after=Cursor(4200), limit=2))
    assert [row.item_id for row in page.rows] == ["item 4201", "item 4202"]
    assert (page.previous, page.next) == (page.rows[0].cursor, page.rows[1].cursor)
    beyond = queues.page("d", replace(_ANY, after=Cursor(_N_ITEMS)))
    assert (beyond.rows, beyond.previous, beyond.next) == ((), None, None)


def test_finishing_an_item_goes_on_from_where_it_was(
    store: Store, record: MakeRecord, said: Say
) -> None:
    records = [record(str(n), said("det", (0, n + 1))) for n in range(3)]
    store.import_records("d", records)
    store.save_annotations("d", [(str(n), said("two", (0, 1))) for n in range(3)])
    # Disagreement 1 - 1/(n + 1): item 2 comes first, then 1, then 0.
    query = QueueQuery(reviewer="me", order="disagreement", status=Status.NOT_ANNOTATED)
    first = store.page("d", query).rows[0]
    assert first.item_id == "2"
    done = SetStatus(status=Status.DONE)
    store.apply("d", "2", "me", [Write("s", 1, 0, done)])
    assert store.neighbour("d", replace(query, after=first.cursor), "2", 1) == "1"


def test_a_long_text_shows_its_beginning_in_one_line(store: Store, record: MakeRecord) -> None:
    store.import_records("d", [record("a", answer="  one\r\n\x00two " + "x" * 500)])
    answer = store.page("d", QueueQuery(reviewer="me")).rows[0].answer
    assert answer.startswith("one \x00two xxx")
    assert (len(answer), answer[-1]) == (160, "…")


def test_questions_that_make_no_sense_are_refused(queues: Store) -> None:
    with pytest.raises(UsageError, match="limit 0"):
        QueueQuery(reviewer="me", limit=0)
    with pytest.raises(UsageError, match="not both"):
        QueueQuery(reviewer="me", after=Cursor(1), before=Cursor(2))
    with pytest.raises(UsageError, match="needs the name of a detector"):
        QueueQuery(reviewer="me", detector_status=Status.DONE)
    with pytest.raises(UsageError, match="step 2"):
        queues.neighbour("d", _ANY, "item 1", 2)
    with pytest.raises(NotFoundError, match="'d' has no item 'item x'"):
        queues.neighbour("d", _ANY, "item x", 1)


def _expected(records: list[Record], query: QueueQuery) -> list[str]:
    passing = [record for record in records if _passes(record, query)]
    if query.order == "import":
        return [record.item.id for record in (passing[::-1] if query.reverse else passing)]
    sign = 1 if (query.order == "status") != query.reverse else -1
    values = {record.item.id: _value(record, query) for record in passing}
    passing.sort(key=lambda r: inf if (v := values[r.item.id]) is None else sign * v)
    return [record.item.id for record in passing]


def _value(record: Record, query: QueueQuery) -> float | None:
    """Return what a query orders by; nobody but detectors has labels or claims here."""
    detectors = [each for each in record.annotations if each.kind is Kind.DETECTOR]
    done = [each.annotator for each in detectors if each.status is Status.DONE]
    values: dict[str, float | None] = {
        "disagreement": disagreement(detectors if query.blind else record.annotations),
        "probability": max((_highest(record, name) for name in done), default=None),
        "status": list(Status).index(_status(record, query.reviewer)),
        "labels": len(_labels(record)),
        "claims": _most_claims(record),
        "passages": len(record.item.passages),
    }
    return values[query.order]


def _labels(record: Record) -> set[str]:
    return {s.label for each in record.annotations for s in each.spans if s.label is not None}


def _most_claims(record: Record) -> int:
    return max((len(each.claims) for each in record.annotations), default=0)


def _passes(record: Record, query: QueueQuery) -> bool:
    tests = [query.lang in {None, record.item.lang}]
    tests.append(query.status in {None, _status(record, query.reviewer)})
    tests.append(not query.unfinished or _status(record, query.reviewer) is not Status.DONE)
    if query.detector is not None:
        tests.append(query.detector_status in {None, _status(record, query.detector)})
    if query.min_prob is not None or query.max_prob is not None:
        names = ["det", "other"] if query.detector is None else [query.detector]
        done = [name for name in names if _status(record, name) is Status.DONE]
        highest = max((_highest(record, name) for name in done), default=-1.0)
        high = 1.0 if query.max_prob is None else query.max_prob
        tests.append((query.min_prob or 0.0) <= highest <= high)
    if query.min_disagreement is not None:
        score = disagreement(record.annotations)
        tests.append(score is not None and score >= query.min_disagreement)
    most = 99 if query.max_annotators is None else query.max_annotators
    tests.append((query.min_annotators or 0) <= _people(record) <= most)
    return all(tests)


def _status(record: Record, name: str) -> Status:
    found = record.by(name)
    return Status.NOT_ANNOTATED if found is None else found.status


def _highest(record: Record, name: str) -> float:
    found = record.by(name)
    assert found is not None
    return max((span.prob for span in found.spans), default=0.0)


def _people(record: Record) -> int:
    return sum(
        each.kind is Kind.PERSON and each.status is Status.DONE for each in record.annotations
    )
