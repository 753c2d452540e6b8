"""Which items of a dataset a query selects, in which order, and how many: SELECTs of positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Float,
    FromClause,
    Select,
    and_,
    bindparam,
    case,
    cast,
    func,
    null,
    or_,
    select,
)

from spanlab.schema import QueueCursor, QueuePlace, Status
from spanlab.storage.tables import annotated, queue_items, queue_values
from spanlab.worklists.queue_filter import START, STOP, Condition, Lists, QueueFilter

STATUSES = tuple(Status)  # in the order of a queue by status

FIRST = bindparam("first", type_=BigInteger)  # of the places in somebody's own list
LAST = bindparam("last", type_=BigInteger)
_WINDOW = 4096  # positions looked at first
_LARGEST = 65_536  # positions looked at in one go where some may all be left out

_NOTHING = Status.NOT_ANNOTATED
_position = queue_values.c.position
_list = queue_items


@dataclass(frozen=True)
class QueueSegment:
    """A part of a queue, ordered by ``value``, or by import order where that is None.

    ``excluded`` lists positions that are left out, as for what an annotator has not annotated.
    """

    rank: float  # among the segments of a queue, in its order
    items: tuple[Condition, ...] = ()
    value: ColumnElement[Any] | None = None
    excluded: Lists = ()


@dataclass(frozen=True)
class Selection(QueueFilter):
    """The items that a filter lets through, in the order of its query.

    A place is that of an item in import order, or in the reviewer's own list where the query goes
    through that.
    """

    def positions(self) -> list[int]:
        """Return the positions of all items, in import order, or in that of the list."""
        return self._run(self._select().order_by(self._place), 0, self._size)

    def place_of(self, position: int) -> int | None:
        """Return an item's place in the order that is there before any other; None without one."""
        if not self.query.listed:
            return position
        own = select(_list.c.place).where(*self._own_list, _list.c.position == position)
        return self.connection.execute(own).scalar_one_or_none()

    def search(self, place: QueueCursor | None, limit: int, *, forward: bool) -> list[int]:
        """Return up to ``limit`` positions next to ``place`` in the order asked for.

        Without a place it begins at the start (backward: at the end).
        """
        positions: list[int] = []
        ahead = self._positions_rise(forward=forward)
        for segment in self._segments if forward else reversed(self._segments):
            start, stop, beyond = self._reach(segment, place, forward=forward)
            rows = self._select(*segment.items, *beyond, excluded=segment.excluded)
            order = [self._place.asc() if ahead else self._place.desc()]
            excluded = (*self._excluded, *segment.excluded)
            windows = _windows(start, stop, ahead=ahead, largest=_LARGEST if excluded else stop)
            if self.query.listed:
                windows, excluded = iter([(start, stop)]), ()
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
        return QueuePlace(n_before + 1 if is_in else None, self._count(0, self._size))

    @cached_property
    def _place(self) -> ColumnElement[int]:
        return _list.c.place if self.query.listed else _position

    @cached_property
    def _size(self) -> int:
        """The number of places."""
        if not self.query.listed:
            return self.dataset.n_items
        last = select(func.max(_list.c.place)).where(*self._own_list)
        place = self.connection.execute(last).scalar_one()
        return 0 if place is None else place + 1

    @cached_property
    def _own(self) -> FromClause | None:
        """The annotations whose numbers the query orders by, beside those of the items."""
        query = self.query
        by_detector = query.order in {"probability", "uncertainty"}
        name = dict.fromkeys(("labels", "claims"), query.reviewer).get(query.order)
        annotator = self.annotator(query.detector if by_detector else name)
        if annotator is None or not (by_detector or query.blind):
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
        prob: ColumnElement[Any] = queue_values.c.max_prob
        if query.detector is not None:
            prob = cast(null(), Float) if self._own is None else self._own.c.prob
        plain: dict[str, ColumnElement[Any]] = {
            "disagreement": self._disagreement,
            "passages": queue_values.c.n_passages,
            "probability": prob,
            "uncertainty": 0.5 - func.abs(prob - 0.5),
        }
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
    ) -> tuple[int, int, tuple[Condition, ...]]:
        """Return where items of a segment stand that come after ``place`` (or before it).

        Returns:
            The positions from which and up to which, and what else holds for them.
        """
        n_items = self._size
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
        further = self._place > place.position if forward else self._place < place.position
        return 0, n_items, (or_(beyond, and_(segment.value == place.value, further)),)

    def _positions_rise(self, *, forward: bool) -> bool:
        """Say whether positions rise where nothing else decides."""
        return forward != (self.query.order == "import" and self.query.reverse)

    def _count(self, start: int, stop: int, *conditions: Condition, excluded: Lists = ()) -> int:
        """Return how many of the selected items from ``start`` up to ``stop`` are so."""
        if start >= stop:
            return 0
        lists = (*self._excluded, *excluded)
        if not (self._conditions or conditions or self.query.listed) and len(lists) <= 1:
            # Every position has an item, so what is left is what is not in the list.
            return stop - start - sum(self._length(positions, start, stop) for positions in lists)
        count = self._select(*conditions, excluded=excluded).with_only_columns(func.count())
        return self._run(count, start, stop)[0]

    def _has_all(self, lists: Lists, start: int, stop: int) -> bool:
        """Say whether one of the lists has all positions from ``start`` up to ``stop``.

        To count them takes a quarter of the time in which the database finds that none is left.
        """
        return any(self._length(positions, start, stop) == stop - start for positions in lists)

    def _length(self, positions: Select[int], start: int, stop: int) -> int:
        return self._run(positions.with_only_columns(func.count()), start, stop)[0]

    def _select(self, *conditions: Condition, excluded: Lists = ()) -> Select[int]:
        values: FromClause = queue_values
        if self._own is not None:
            values = values.outerjoin(self._own, self._own.c.position == _position)
        near: tuple[Condition, ...] = (queue_values.c.dataset_id == self.dataset.id,)
        if self.query.listed:
            values = values.join(_list, _list.c.position == _position)
            near += (*self._own_list, self._place >= FIRST, self._place < LAST)
        else:
            near += (_position >= START, _position < STOP)
        outside = map(self._outside, (*self._excluded, *excluded))
        where = (*near, *outside, *self._conditions, *conditions)
        return select(_position).select_from(values).where(*where)

    def _run(self, statement: Select[Any], start: int, stop: int) -> list[int]:
        bounds = {START.key: start, STOP.key: stop}
        if self.query.listed:  # the list alone is bounded: what it is compared with stands anywhere
            bounds = {START.key: 0, STOP.key: self.dataset.n_items}
            bounds |= {FIRST.key: start, LAST.key: stop}
        return list(self.connection.execute(statement, bounds).scalars())


def _windows(start: int, stop: int, *, ahead: bool, largest: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range of positions, the first ones short: mostly matches are near."""
    size = _WINDOW
    while start < stop:
        middle = min(start + size, stop) if ahead else max(stop - size, start)
        yield (start, middle) if ahead else (middle, stop)
        start, stop = (middle, stop) if ahead else (start, middle)
        size = min(size * 4, max(largest, _WINDOW))
