"""Which items a queue's filter lets through, and in which order: conditions and SELECTs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import inf
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Float,
    FromClause,
    Select,
    and_,
    bindparam,
    case,
    cast,
    false,
    func,
    null,
    or_,
    select,
)

from spanlab.schema import AnnotatorKind, QueueCursor, QueuePlace, QueueQuery, Status
from spanlab.storage import search
from spanlab.storage.assignment import is_of_share
from spanlab.storage.campaigns import is_given, is_known
from spanlab.storage.catalog import AnnotatorRow, DatasetRow, annotators_of
from spanlab.storage.reservations import held_by_others
from spanlab.storage.tables import annotated, queue_values

STATUSES = tuple(Status)  # in the order of a queue by status

START = bindparam("start", type_=BigInteger)  # of the positions that a statement looks at
STOP = bindparam("stop", type_=BigInteger)
_WINDOW = 4096  # positions looked at first
_LARGEST = 65_536  # positions looked at in one go where some may all be left out

_NOTHING = Status.NOT_ANNOTATED
_Condition = ColumnElement[bool]
_Lists = tuple[Select[int], ...]  # of positions
_position = queue_values.c.position


@dataclass(frozen=True)
class QueueSegment:
    """A part of a queue, ordered by ``value``, or by import order where that is None.

    ``excluded`` lists positions that are left out, as for what an annotator has not annotated.
    """

    rank: float  # among the segments of a queue, in its order
    items: tuple[_Condition, ...] = ()
    value: ColumnElement[Any] | None = None
    excluded: _Lists = ()


@dataclass(frozen=True)
class Selection:
    """The items of a dataset that a query lets through, within one snapshot."""

    connection: Connection
    dataset: DatasetRow
    query: QueueQuery

    def positions(self) -> list[int]:
        """Return the positions of all items, in import order."""
        return self._run(self._select().order_by(_position), 0, self.dataset.n_items)

    def search(self, place: QueueCursor | None, limit: int, *, forward: bool) -> list[int]:
        """Return up to ``limit`` positions next to ``place`` in the order asked for.

        Without a place it begins at the start (backward: at the end).
        """
        positions: list[int] = []
        ahead = self._positions_rise(forward=forward)
        for segment in self._segments if forward else reversed(self._segments):
            start, stop, beyond = self._reach(segment, place, forward=forward)
            rows = self._select(*segment.items, *beyond, excluded=segment.excluded)
            order = [_position.asc() if ahead else _position.desc()]
            excluded = (*self._excluded, *segment.excluded)
            windows = _windows(start, stop, ahead=ahead, largest=_LARGEST if excluded else stop)
            if segment.value is not None:
                rising = forward == self.query.reverse
                order.insert(0, segment.value.asc() if rising else segment.value.desc())
                windows, excluded = iter([(start, stop)]), ()
            for window in windows:
                if len(positions) < limit and not self._has_all(excluded, *window):
                    n_left = limit - len(positions)
                    positions += self._run(rows.order_by(*order).limit(n_left), *window)
        return positions

    def standing(self, place: QueueCursor) -> QueuePlace:
        """Return which of the selected items the one at ``place`` is, and of how many."""
        n_before = 0
        for segment in self._segments:
            start, stop, beyond = self._reach(segment, place, forward=False)
            n_before += self._count(start, stop, *segment.items, *beyond, excluded=segment.excluded)
        is_in = self._count(place.position, place.position + 1)
        return QueuePlace(n_before + 1 if is_in else None, self._count(0, self.dataset.n_items))

    def annotator(self, name: str | None) -> AnnotatorRow | None:
        """Return an annotator by name; None for one who has annotated nothing."""
        return None if name is None else self._annotators.get(name)

    @cached_property
    def seen_authors(self) -> set[int] | None:
        """Whose words the query may know of, by number; None for everybody's."""
        query = self.query
        if not query.blind and not query.own_only:
            return None
        author_ids = (
            annotator.id
            for annotator in self._annotators.values()
            if annotator.name == query.reviewer
            or (annotator.kind is AnnotatorKind.DETECTOR and not query.own_only)
        )
        return {search.THE_ITEM, *author_ids}

    @cached_property
    def _annotators(self) -> dict[str, AnnotatorRow]:
        return annotators_of(self.connection, self.dataset.id)

    @cached_property
    def _conditions(self) -> list[_Condition]:
        """What must hold for all items, beside what is excluded."""
        return [*self._annotator_conditions(), *self._item_conditions()]

    @cached_property
    def _excluded(self) -> _Lists:
        """What is left out for what the reviewer, or a detector, has done."""
        reviewer = self.query.reviewer
        lists = [self._annotated_by(name) for name, status in self._statuses if status is _NOTHING]
        if self.query.unfinished and reviewer in self._annotators:
            lists.append((self._positions_of(reviewer, annotated.c.status == Status.DONE.value),))
        return tuple(chain.from_iterable(lists))

    @cached_property
    def _statuses(self) -> list[tuple[str, Status]]:
        """Which status whose annotations must have."""
        query = self.query
        pairs = (query.reviewer, query.status), (query.detector, query.detector_status)
        return [(name, status) for name, status in pairs if name and status]

    def _annotator_conditions(self) -> Iterator[_Condition]:
        query = self.query
        for name, status in self._statuses:
            if status is not _NOTHING:
                yield self._has_annotation(name, annotated.c.status == status.value)
        if query.min_prob is not None or query.max_prob is not None:
            low = 0.0 if query.min_prob is None else query.min_prob
            high = 1.0 if query.max_prob is None else query.max_prob
            if query.detector is None:
                yield queue_values.c.max_prob.between(low, high)
            else:
                yield self._has_annotation(query.detector, annotated.c.prob.between(low, high))

    def _item_conditions(self) -> Iterator[_Condition]:
        query, values = self.query, queue_values.c
        if query.lang is not None:
            yield values.lang == query.lang
        if query.min_disagreement is not None:
            yield self._disagreement >= query.min_disagreement
        planned = [*self._plan_conditions()]
        if query.known == "given":  # what is given to somebody to see how they mark has no plan
            yield or_(and_(*planned), is_given(self.dataset, query.reviewer, _position))
        else:
            yield from planned
        dialect, authors = self.connection.dialect.name, self.seen_authors
        within = search.row_number(self.dataset.id, START), search.row_number(self.dataset.id, STOP)
        if query.text is not None:
            yield _position.in_(search.with_text(dialect, query.text, within, authors))
        if query.label is not None:
            yield _position.in_(search.with_label(dialect, query.label, within, authors))

    def _plan_conditions(self) -> Iterator[_Condition]:
        query = self.query
        people: ColumnElement[int] = queue_values.c.n_people
        if query.reserve:
            people = people + held_by_others(self.dataset, query.reviewer, _position)
        if query.min_annotators is not None:
            yield people >= query.min_annotators
        if query.max_annotators is not None:
            yield people <= query.max_annotators
        if query.share is not None:
            yield is_of_share(self.dataset, query.share)
        if query.known != "all":
            yield ~is_known(self.connection, self.dataset, _position)

    def _has_annotation(self, name: str, condition: _Condition) -> _Condition:
        """Return the condition that an annotator has an annotation that is so."""
        is_there = name in self._annotators
        return _position.in_(self._positions_of(name, condition)) if is_there else false()

    def _annotated_by(self, name: str) -> _Lists:
        """Return what lists the positions that somebody has annotated; none by a stranger."""
        begun = annotated.c.status != _NOTHING.value
        return (self._positions_of(name, begun),) if name in self._annotators else ()

    def _outside(self, positions: Select[int]) -> _Condition:
        if self.connection.dialect.name == "sqlite":  # lists them once: looking for each is slower
            return _position.not_in(positions)
        return ~positions.where(annotated.c.position == _position).correlate(queue_values).exists()

    def _positions_of(self, name: str, condition: _Condition) -> Select[int]:
        return select(annotated.c.position).where(
            annotated.c.dataset_id == self.dataset.id,
            annotated.c.annotator_id == self._annotators[name].id,
            annotated.c.position >= START,
            annotated.c.position < STOP,
            condition,
        )

    @property
    def _disagreement(self) -> ColumnElement[float]:
        values = queue_values.c
        return values.detector_disagreement if self.query.blind else values.disagreement

    @cached_property
    def _own(self) -> FromClause | None:
        """The annotations whose numbers the query orders by, beside those of the items."""
        query = self.query
        name = {"probability": query.detector, "labels": query.reviewer, "claims": query.reviewer}
        annotator = self.annotator(name.get(query.order))
        if annotator is None or (query.order != "probability" and not query.blind):
            return None
        own = select(annotated).where(annotated.c.annotator_id == annotator.id)
        return own.where(annotated.c.dataset_id == self.dataset.id).subquery("own")

    @cached_property
    def _segments(self) -> list[QueueSegment]:
        query = self.query
        if query.order == "import":
            return [QueueSegment(0)]
        if query.order == "status":
            reviewer, stored = query.reviewer, annotated.c.status
            ranked = [
                QueueSegment(self._rank(float(n)), excluded=self._annotated_by(reviewer))
                if status is _NOTHING
                else QueueSegment(
                    self._rank(float(n)), (self._has_annotation(reviewer, stored == status.value),)
                )
                for n, status in enumerate(STATUSES)
            ]
            return ranked[::-1] if query.reverse else ranked
        value = self._value()
        return [QueueSegment(0, (value.is_not(None),), value), QueueSegment(1, (value.is_(None),))]

    def _value(self) -> ColumnElement[Any]:
        """Return the number that the query orders by, other than a status."""
        query = self.query
        plain: dict[str, ColumnElement[Any]] = {
            "disagreement": self._disagreement,
            "passages": queue_values.c.n_passages,
            "probability": queue_values.c.max_prob,
        }
        if query.order == "probability" and query.detector is not None:
            return cast(null(), Float) if self._own is None else self._own.c.prob
        if query.order in plain:
            return plain[query.order]
        count, from_detectors = f"n_{query.order}", queue_values.c[f"detector_{query.order}"]
        if not query.blind:
            return queue_values.c[count]
        own_count = 0 if self._own is None else func.coalesce(self._own.c[count], 0)
        return case((from_detectors < own_count, own_count), else_=from_detectors)

    def _rank(self, value: float | None) -> float:
        """Return the rank of the segment that items of this value are in."""
        if self.query.order == "import":
            return 0
        if self.query.order != "status":
            return int(value is None)
        if value is None:
            return inf
        return -value if self.query.reverse else value

    def _reach(
        self, segment: QueueSegment, place: QueueCursor | None, *, forward: bool
    ) -> tuple[int, int, tuple[_Condition, ...]]:
        """Return where items of a segment stand that come after ``place`` (or before it).

        Returns:
            The positions from which and up to which, and what else holds for them.
        """
        n_items = self.dataset.n_items
        rank = None if place is None else self._rank(place.value)
        if place is None or rank is None or rank != segment.rank:
            is_beyond = rank is None or (segment.rank > rank) == forward
            return 0, n_items if is_beyond else 0, ()
        if segment.value is None:
            ahead = self._positions_rise(forward=forward)
            start, stop = (place.position + 1, n_items) if ahead else (0, place.position)
            return max(start, 0), min(stop, n_items), ()
        rising = forward == self.query.reverse
        beyond = segment.value > place.value if rising else segment.value < place.value
        further = _position > place.position if forward else _position < place.position
        return 0, n_items, (or_(beyond, and_(segment.value == place.value, further)),)

    def _positions_rise(self, *, forward: bool) -> bool:
        """Say whether positions rise where nothing else decides."""
        return forward != (self.query.order == "import" and self.query.reverse)

    def _count(self, start: int, stop: int, *conditions: _Condition, excluded: _Lists = ()) -> int:
        """Return how many of the selected items from ``start`` up to ``stop`` are so."""
        if start >= stop:
            return 0
        lists = (*self._excluded, *excluded)
        if not self._conditions and not conditions and len(lists) <= 1:
            # Every position has an item, so what is left is what is not in the list.
            return stop - start - sum(self._length(positions, start, stop) for positions in lists)
        count = self._select(*conditions, excluded=excluded).with_only_columns(func.count())
        return self._run(count, start, stop)[0]

    def _has_all(self, lists: _Lists, start: int, stop: int) -> bool:
        """Say whether one of the lists has all positions from ``start`` up to ``stop``.

        To count them takes a quarter of the time in which the database finds that none is left.
        """
        return any(self._length(positions, start, stop) == stop - start for positions in lists)

    def _length(self, positions: Select[int], start: int, stop: int) -> int:
        return self._run(positions.with_only_columns(func.count()), start, stop)[0]

    def _select(self, *conditions: _Condition, excluded: _Lists = ()) -> Select[int]:
        values: FromClause = queue_values
        if self._own is not None:
            values = values.outerjoin(self._own, self._own.c.position == _position)
        near = (queue_values.c.dataset_id == self.dataset.id, _position >= START, _position < STOP)
        outside = map(self._outside, (*self._excluded, *excluded))
        where = (*near, *outside, *self._conditions, *conditions)
        return select(_position).select_from(values).where(*where)

    def _run(self, statement: Select[Any], start: int, stop: int) -> list[int]:
        rows = self.connection.execute(statement, {START.key: start, STOP.key: stop})
        return list(rows.scalars())


def _windows(start: int, stop: int, *, ahead: bool, largest: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range of positions, the first ones short: mostly matches are near."""
    size = _WINDOW
    while start < stop:
        middle = min(start + size, stop) if ahead else max(stop - size, start)
        yield (start, middle) if ahead else (middle, stop)
        start, stop = (middle, stop) if ahead else (start, middle)
        size = min(size * 4, max(largest, _WINDOW))
