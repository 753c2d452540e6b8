"""Random queries on random datasets while people work on them, and a plain reference for them.

The reference knows the stored records alone, and filters and sorts all of them in memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import gcd
from random import Random
from typing import get_args

from spanlab.oplog.operations import (
    AddSpan,
    CommentSpan,
    Operation,
    RelabelSpan,
    SentOperation,
    SetStatus,
    Undo,
)
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    AssignedShare,
    Claim,
    Item,
    Order,
    Passage,
    QueueCursor,
    QueuePage,
    QueuePlace,
    QueueQuery,
    QueueRow,
    Record,
    Span,
    Status,
)
from spanlab.storage import Store
from spanlab.storage.annotators import gold_name
from spanlab.storage.datasets import copy_as_gold
from spanlab.text.labels import disagreement
from spanlab.worklists import paging, plans

_WORDS = ("tower", "bridge", "harbour", "built", "metres", "keeper", "storm", "light", "red")
_LABELS = ("number", "name", "date")
_LANGUAGES = ("de", "en", "zh")
_PEOPLE, _DETECTORS = ("Ann", "Ben", "Cem"), ("d1", "d2", "d3")
_KINDS = {"gold": AnnotatorKind.GOLD, "all": AnnotatorKind.VOTE} | dict.fromkeys(
    _DETECTORS, AnnotatorKind.DETECTOR
)
_ORDERS: tuple[Order, ...] = get_args(Order)
_STATUSES = tuple(Status)


def ask(
    store: Store, seed: int, *, n_changes: int, n_queries: int
) -> Iterator[tuple[str, object, object]]:
    """Yield questions on a dataset that changes, the reference's answers, and the store's."""
    chance = Random(seed)
    work = RandomWork(store, chance)
    for _ in range(n_changes):
        work.change()
        plain = PlainQueue(tuple(store.records("d")), work.reserved)
        for _ in range(n_queries):
            yield from compare(store, plain, chance)


def compare(
    store: Store, plain: PlainQueue, chance: Random
) -> Iterator[tuple[str, object, object]]:
    """Yield questions of one random query on the dataset "d", and both answers to each."""
    query, item = plain.random_query(chance), chance.choice(plain.records).item.id
    yield f"positions {query}", plain.positions(query), paging.positions(store, "d", query)
    yield f"page {query}", plain.page(query), paging.page(store, "d", query)
    for step in (-1, 1):
        following = paging.neighbour(store, "d", query, item, step)
        yield f"{step} from {item} {query}", plain.neighbour(query, item, step), following
    yield (
        f"{item} in {query}",
        plain.standing(query, item),
        paging.standing(store, "d", query, item),
    )


class RandomWork:
    """A dataset "d" on which people and detectors work at random."""

    def __init__(self, store: Store, chance: Random) -> None:
        self.store, self.chance = store, chance
        self.reserved: dict[int, set[str]] = defaultdict(set)
        self._n_items, self._n_names, self._seq = 0, 0, 0
        self._ahead: list[Callable[[], None]] = []
        self._append()

    def change(self) -> None:
        """Do one thing that changes the dataset; each kind once before any comes again."""
        if not self._ahead:
            everyday = [self._append, self._detect, self._edit, self._grow, self._reserve]
            rare = [self._rename, self._merge, self._remove, self._set_gold, self._copy]
            self._ahead = [*everyday, *rare]
            self.chance.shuffle(self._ahead)
        self._ahead.pop()()

    def _append(self) -> None:
        """Import some items with annotations, some of whose annotators are new."""
        records = []
        for _ in range(self.chance.randrange(5, 30)):
            item = Item(
                id=f"item {self._n_items}",
                lang=self.chance.choice(_LANGUAGES),
                question=self._text(2),
                answer=self._text(12),
                passages=tuple(Passage(text=f"p{n}") for n in range(self.chance.randrange(3))),
            )
            self._n_items += 1
            kinds = {**dict.fromkeys(_PEOPLE, AnnotatorKind.PERSON), **_KINDS, **self._kinds()}
            said = [
                self._annotation(item, name, kind)
                for name, kind in kinds.items()
                if self.chance.random() < 0.3
            ]
            records.append(Record(item=item, annotations=tuple(said)))
        self.store.import_records("d", records)
        rules = {"overlap": 3, "always_blind": False}
        self.store.change_settings("d", lambda now: now.model_copy(update=rules))

    def _detect(self) -> None:
        """Write anew what a detector says of some items, and of others for the first time."""
        kinds = self._kinds()
        name = self.chance.choice(
            [n for n in (*kinds, "d1") if kinds.get(n) is not AnnotatorKind.PERSON]
        )
        if kinds.get(name, AnnotatorKind.DETECTOR) is not AnnotatorKind.DETECTOR:
            return
        some = self.chance.sample(list(self.store.records("d")), 4)
        pairs = [(r.item.id, self._annotation(r.item, name, AnnotatorKind.DETECTOR)) for r in some]
        self.store.save_annotations("d", pairs)

    def _edit(self) -> None:
        """Let a person review some items."""
        kinds = self._kinds()
        people = [name for name, kind in kinds.items() if kind is AnnotatorKind.PERSON]
        person = self.chance.choice([*people, f"new {self._n_names}"])
        for record in self.chance.sample(list(self.store.records("d")), 3):
            for _ in range(3):
                review = self.store.review("d", record.item.id, person)
                self._seq += 1
                operation = self._operation(record.item, list(review.state.spans))
                write = SentOperation("s", self._seq, review.version, operation)
                self.store.apply("d", record.item.id, person, [write])

    def _operation(self, item: Item, spans: list[str]) -> Operation:
        start = self.chance.randrange(len(item.answer) - 10)
        choices: list[Operation] = [
            AddSpan(span=f"n{self._seq}", start=start, end=start + 9, label=self._label()),
            CommentSpan(text=self._text(1)),
            SetStatus(status=self.chance.choice((Status.DONE, Status.SKIPPED))),
            SetStatus(status=Status.DONE, hallucinated=True),
            SetStatus(status=self.chance.choice((Status.DONE, Status.NOT_ANNOTATED))),
            Undo(),
        ]
        if spans:
            choices.append(RelabelSpan(span=self.chance.choice(spans), label=self._label()))
        return self.chance.choice(choices)

    def _grow(self) -> None:
        """Let a detector find passages for an item."""
        if self._kinds().get("d2", AnnotatorKind.DETECTOR) is AnnotatorKind.DETECTOR:
            item = self.chance.choice(list(self.store.records("d"))).item
            more = Passage(text=self._text(5), url="https://a.example")
            grown = item.model_copy(update={"passages": (*item.passages, more)})
            said = self._annotation(item, "d2", AnnotatorKind.DETECTOR)
            self.store.save_findings("d", [FoundPassages(grown, (said,))])

    def _reserve(self) -> None:
        for position, record in enumerate(self.store.records("d")):
            if self.chance.random() < 0.5:
                name = self.chance.choice(_PEOPLE)
                if not plans.reserve(self.store, "d", record.item.id, name):
                    self.reserved[position].add(name)

    def _rename(self) -> None:
        self._n_names += 1
        name = self.chance.choice(list(self._kinds()))
        self.store.rename_annotator("d", name, f"name {self._n_names}")
        self._let_go(name)

    def _merge(self) -> None:
        kinds = self._kinds()
        name = self.chance.choice(list(kinds))
        others = [who for who in kinds if kinds[who] is kinds[name] and who != name]
        if others:
            self.store.merge_annotators("d", name, self.chance.choice(others))
            self._let_go(name)

    def _remove(self) -> None:
        self.store.remove_annotator("d", self.chance.choice(list(self._kinds())))

    def _set_gold(self) -> None:
        kinds = self._kinds()
        people = [
            name
            for name, kind in kinds.items()
            if kind in {AnnotatorKind.PERSON, AnnotatorKind.GOLD}
        ]
        name = self.chance.choice(people)
        if kinds[name] is AnnotatorKind.GOLD:
            self.store.set_person("d", name)
        elif kinds.get(gold_name(name), AnnotatorKind.GOLD) is AnnotatorKind.GOLD:
            copy_as_gold(self.store, "d", name)

    def _copy(self) -> None:
        """Go on with a copy; what is reserved in the dataset is not in the copy."""
        self.store.duplicate_dataset("d", "copy")
        self.store.delete_dataset("d")
        self.store.rename_dataset("copy", "d")
        self.reserved.clear()

    def _let_go(self, name: str) -> None:
        for names in self.reserved.values():
            names.discard(name)

    def _kinds(self) -> dict[str, AnnotatorKind]:
        annotators = [s.annotators for s in self.store.datasets() if s.name == "d"]
        return {who.name: who.kind for who in chain(*annotators)}

    def _annotation(self, item: Item, name: str, kind: AnnotatorKind) -> Annotation:
        chance = self.chance
        spans = []
        for _ in range(chance.randrange(3)):
            start = chance.randrange(len(item.answer) - 8)
            prob = chance.randrange(11) / 10
            span = Span.of(item.answer, start, start + 8, prob=prob, label=self._label())
            note = self._text(2) if chance.random() < 0.1 else None
            spans.append(span.model_copy(update={"note": note}))
        status = chance.choice((Status.DONE, Status.DONE, Status.DONE, *_STATUSES))
        claims = tuple(Claim(text=f"claim {n}") for n in range(max(0, chance.randrange(-4, 4))))
        note = self._text(2) if status is Status.FAILED or chance.random() < 0.1 else None
        return Annotation(
            annotator=name,
            kind=kind,
            status=status,
            answer_hallucinated=chance.choice((True, False, None, None)),
            spans=spans,
            claims=claims,
            note=note,
        )

    def _text(self, n_words: int) -> str:
        return " ".join(self.chance.choice(_WORDS) for _ in range(n_words))

    def _label(self) -> str | None:
        return self.chance.choice((*_LABELS, None, None))


@dataclass(frozen=True)
class FoundPassages:
    """An item with passages that a detector found."""

    item: Item
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True)
class PlainQueue:
    """All records of a dataset, and for whom items are reserved by position."""

    records: tuple[Record, ...]
    reserved: dict[int, set[str]]

    @cached_property
    def kinds(self) -> dict[str, AnnotatorKind]:
        """Who has annotated."""
        return {said.annotator: said.kind for each in self.records for said in each.annotations}

    def random_query(self, chance: Random) -> QueueQuery:
        """Return a query of few conditions, at the start or at a place."""
        names = [*self.kinds, "nobody"]
        choices: dict[str, object] = {
            "lang": chance.choice((*_LANGUAGES, "la")),
            "status": chance.choice(_STATUSES),
            "detector": chance.choice(names),
            "min_prob": chance.randrange(11) / 10,
            "max_prob": chance.randrange(11) / 10,
            "min_disagreement": chance.random(),
            "min_annotators": chance.randrange(3),
            "max_annotators": chance.randrange(3),
            "unfinished": True,
            "reserve": True,
            "share": AssignedShare(
                chance.randrange(3), chance.choice((3, 5, 7)), chance.choice((1, 2))
            ),
            "text": chance.choice((*_WORDS, "to li", "item 1", "2", "?!")),
            "label": chance.choice((*_LABELS, "nothing")),
            "unplaced": True,
        }
        fields = {name: value for name, value in choices.items() if chance.random() < 0.12}
        if "detector" in fields and chance.random() < 0.5:
            fields["detector_status"] = chance.choice(_STATUSES)
        query = QueueQuery(
            reviewer=chance.choice(names),
            order=chance.choice(_ORDERS),
            reverse=chance.random() < 0.4,
            blind=chance.random() < 0.4,
            limit=chance.choice((1, 3, 10, 1000)),
            **fields,  # type: ignore[arg-type]  # each field has its own type
        )
        if chance.random() < 0.3:
            return query
        position = chance.randrange(-1, len(self.records) + 1)
        value = chance.choice((None, 0.0, 0.35, 1.0, 2.0))
        if 0 <= position < len(self.records) and chance.random() < 0.7:
            value = self.value(position, query)
        place = QueueCursor(position, value)
        ahead = chance.random() < 0.5
        return replace(query, after=place) if ahead else replace(query, before=place)

    def positions(self, query: QueueQuery) -> list[int]:
        return [n for n in range(len(self.records)) if self._passes(n, query)]

    def page(self, query: QueueQuery) -> QueuePage:
        ordered = self._ordered(query)
        if query.before is not None:
            place = self._key(query.before.position, query.before.value, query)
            behind = [n for n in ordered if self._key_of(n, query) < place]
            shown = behind[-query.limit :]
        elif query.after is not None:
            place = self._key(query.after.position, query.after.value, query)
            shown = [n for n in ordered if self._key_of(n, query) > place][: query.limit]
        else:
            shown = ordered[: query.limit]
        rows = tuple(self._row(n, query) for n in shown)
        if not rows:
            return QueuePage((), None, None)
        first, last = ordered.index(shown[0]), ordered.index(shown[-1])
        return QueuePage(
            rows,
            rows[0].cursor if first > 0 else None,
            rows[-1].cursor if last < len(ordered) - 1 else None,
        )

    def neighbour(self, query: QueueQuery, item: str, step: int) -> str | None:
        position = self._position(item)
        here = self._key_of(position, query)
        if query.after is not None and query.after.position == position:
            here = self._key(position, query.after.value, query)
        ordered = self._ordered(query)
        beyond = [n for n in ordered[::step] if step * _sign(self._key_of(n, query), here) > 0]
        return self.records[beyond[0]].item.id if beyond else None

    def standing(self, query: QueueQuery, item: str) -> QueuePlace:
        ordered, position = self._ordered(query), self._position(item)
        number = ordered.index(position) + 1 if position in ordered else None
        return QueuePlace(number, len(ordered))

    def value(self, position: int, query: QueueQuery) -> float | None:
        """Return the number that an item is ordered by, None for none."""
        record = self.records[position]
        seen = [said for said in record.annotations if self._sees(said, query)]
        numbers: dict[Order, float | None] = {
            "import": None,
            "disagreement": _disagreement(record, query),
            "disputed": _disputed(record, query),
            "probability": (highest := _highest(record, query)),
            "uncertainty": None if highest is None else 0.5 - abs(highest - 0.5),
            "status": _STATUSES.index(_status(record, query.reviewer)),
            "labels": max((len(_labels(said)) for said in seen), default=0),
            "claims": max((len(said.claims) for said in seen), default=0),
            "passages": len(record.item.passages),
        }
        return numbers[query.order]

    def _row(self, position: int, query: QueueQuery) -> QueueRow:
        record = self.records[position]
        seen = [said for said in record.annotations if self._sees(said, query)]
        kinds = (AnnotatorKind.PERSON, AnnotatorKind.GOLD)
        judges = [a for a in seen if a.kind in kinds and a.status is Status.DONE]
        if all(said.answer_hallucinated is None for said in judges):
            judges = []
        return QueueRow(
            item_id=record.item.id,
            position=position,
            lang=record.item.lang,
            question=record.item.question,
            answer=record.item.answer,
            status=_status(record, query.reviewer),
            max_prob=_highest(record, query),
            disagreement=_disagreement(record, query),
            n_passages=len(record.item.passages),
            n_claims=max((len(said.claims) for said in seen), default=0),
            n_judges=len(judges),
            n_hallucinated=sum(bool(said.hallucinated) for said in judges),
            labels=tuple(dict.fromkeys(label for said in seen for label in _labels(said))),
            value=self.value(position, query),
        )

    def _ordered(self, query: QueueQuery) -> list[int]:
        return sorted(self.positions(query), key=lambda n: self._key_of(n, query))

    def _key_of(self, position: int, query: QueueQuery) -> tuple[float, ...]:
        return self._key(position, self.value(position, query), query)

    def _key(self, position: int, value: float | None, query: QueueQuery) -> tuple[float, ...]:
        if query.order == "import":
            return (-position if query.reverse else position,)
        if value is None:
            return (1, 0, position)
        ascending = (query.order == "status") != query.reverse
        return (0, value if ascending else -value, position)

    def _passes(self, position: int, query: QueueQuery) -> bool:
        record = self.records[position]
        own = _status(record, query.reviewer)
        people = _people(record)
        holders = self.reserved.get(position, set()) - {query.reviewer}
        held = sum(not _has_decided(record, name) for name in holders)
        most = 99 if query.max_annotators is None else query.max_annotators
        tests = [
            query.lang in {None, record.item.lang},
            query.status in {None, own},
            own is not Status.DONE or not query.unfinished,
            (query.min_annotators or 0) <= people <= most,
            people + held < 3 or not query.reserve,
            query.share is None or is_of_share(query.share, position),
            self._is_found(record, query),
            self._is_unplaced(record, query) or not query.unplaced,
        ]
        if query.detector_status is not None and query.detector is not None:
            tests.append(_status(record, query.detector) is query.detector_status)
        if query.min_prob is not None or query.max_prob is not None:
            low, high = query.min_prob or 0.0, 1.0 if query.max_prob is None else query.max_prob
            highest = _highest(record, query)
            tests.append(highest is not None and low <= highest <= high)
        if query.min_disagreement is not None:
            score = _disagreement(record, query)
            tests.append(score is not None and score >= query.min_disagreement)
        return all(tests)

    def _is_unplaced(self, record: Record, query: QueueQuery) -> bool:
        seen = [said for said in record.finished if self._sees(said, query)]
        knowing = [said for said in seen if said.kind is not AnnotatorKind.DETECTOR]
        called = any(said.answer_hallucinated for said in seen)
        return called and not any(said.spans for said in knowing)

    def _is_found(self, record: Record, query: QueueQuery) -> bool:
        seen = [said for said in record.annotations if self._sees(said, query)]
        if query.label is not None and all(query.label not in _labels(said) for said in seen):
            return False
        if query.text is None:
            return True
        item = record.item
        texts = [f"{item.id} {item.question} {item.answer}"]
        for said in seen:
            notes = [said.note, *(span.note for span in said.spans)]
            texts.append(" ".join(note for note in notes if note))
        sought = re.findall(r"\w+", query.text)
        found = (
            all(
                any(word.startswith(start) for word in re.findall(r"\w+", text)) for start in sought
            )
            for text in texts
        )
        return bool(sought) and any(found)

    def _sees(self, said: Annotation, query: QueueQuery) -> bool:
        mine = said.annotator == query.reviewer
        return mine or not query.blind or said.kind is AnnotatorKind.DETECTOR

    def _position(self, item: str) -> int:
        return next(n for n, record in enumerate(self.records) if record.item.id == item)


def _sign(left: tuple[float, ...], right: tuple[float, ...]) -> int:
    return (left > right) - (left < right)


def _status(record: Record, name: str) -> Status:
    said = record.by(name)
    return Status.NOT_ANNOTATED if said is None else said.status


def _labels(said: Annotation) -> dict[str, None]:
    return dict.fromkeys(span.label for span in said.spans if span.label is not None)


def _people(record: Record) -> int:
    done = [said for said in record.annotations if said.status is Status.DONE]
    return sum(said.kind is AnnotatorKind.PERSON for said in done)


def _has_decided(record: Record, name: str) -> bool:
    said = record.by(name)
    decided = {Status.DONE, Status.SKIPPED}
    return said is not None and said.kind is AnnotatorKind.PERSON and said.status in decided


def _disagreement(record: Record, query: QueueQuery) -> float | None:
    blind = query.blind
    said = [each for each in record.annotations if not blind or each.kind is AnnotatorKind.DETECTOR]
    return disagreement(said)


def _disputed(record: Record, query: QueueQuery) -> float | None:
    if query.blind:
        return _disagreement(record, query)
    done = [said for said in record.finished if said.kind is AnnotatorKind.PERSON]
    marked = [
        {
            (place, span.label)
            for span in said.spans
            if span.prob > 0.5
            for place in range(span.start, span.end)
        }
        for said in done
    ]
    verdicts = [said.hallucinated for said in done]
    if len(done) > 1 and all(m == marked[0] for m in marked) and len(set(verdicts)) == 1:
        return -0.5
    return _disagreement(record, query) or 0.0


def _highest(record: Record, query: QueueQuery) -> float | None:
    probs = [
        max((span.prob for span in said.spans), default=said.hallucination_prob or 0.0)
        for said in record.annotations
        if said.status is Status.DONE
        and (
            said.kind is AnnotatorKind.DETECTOR
            if query.detector is None
            else said.annotator == query.detector
        )
    ]
    return max(probs, default=None)


def is_of_share(share: AssignedShare, position: int) -> bool:
    """Say whether one stands among the next ``each`` of the ring, by this round's step."""
    steps = [n for n in range(1, share.people + 1) if gcd(n, share.people) == 1]
    step = steps[position // share.people % len(steps)]
    return share.number in {(position + step * n) % share.people for n in range(share.each)}
