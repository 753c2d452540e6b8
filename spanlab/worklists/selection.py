"""The items of a queue as one SELECT: which ones a query lets through, in which order, how many.

A row has the place of an item (in import order, in the stored list of the reviewer or in a sample)
and what the query filters and orders by. Of a check item in a list, what the plan says of it is
read from its twin: the item ``told`` in its stead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Float,
    FromClause,
    Row,
    Select,
    and_,
    case,
    cast,
    func,
    literal,
    null,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql.visitors import iterate

from spanlab.schema import AnnotatorKind, AssignedShare, QueueCursor, QueuePlace, QueueQuery, Status
from spanlab.storage import search
from spanlab.storage.assignment import is_check
from spanlab.storage.catalog import AnnotatorRow, DatasetRow, annotators_of, settings_of
from spanlab.storage.items import read_at
from spanlab.storage.search import RowRange
from spanlab.storage.tables import annotated, annotators, items, queue_items, queue_values
from spanlab.worklists.reservations import held_by_others, people_with

# What the JSON of an annotation has: no text in it can, as its quotation marks are escaped.
CALLED_HALLUCINATED = annotated.c.json.contains('"answer_hallucinated":true', autoescape=True)
CALLED_RIGHT = annotated.c.json.contains('"answer_hallucinated":false', autoescape=True)
_HAS_SPAN = annotated.c.json.contains('"spans":[{', autoescape=True)
_WINDOW = 4096  # positions that are looked at first for texts and statuses: matches are near
_ABOVE_ALL = 1e9  # no number that a queue is ordered by is as high, and all are above -1
_RANKS = {status.value: rank for rank, status in enumerate(Status)}
_NO_NUMBER = cast(null(), Float)

_ANY = QueueQuery(reviewer="anybody")
Condition = ColumnElement[bool]
_list = queue_items
_twin = queue_values.alias("twin")
_own, _own_of_twin, _detector = map(annotated.alias, ("own", "own_of_twin", "detector"))


@dataclass(frozen=True)
class Selection:
    """The items that a query lets through, within one snapshot.

    A ``listed`` query goes through the reviewer's own list; an ``unlisted`` selection leaves out
    what is in it. One that is ``without_checks`` leaves out check items, which no reviewer may ask
    for. One ``among`` positions leaves out all others.
    """

    connection: Connection
    dataset: DatasetRow
    query: QueueQuery
    unlisted: bool = False
    without_checks: bool = False
    among: tuple[int, ...] | None = None

    def positions(self) -> list[int]:
        """Return the positions of all items, in import order, or in that of the list."""
        found = self._select(self._position, where=self._conditions()).order_by(self._place)
        return list(self.connection.execute(found).scalars())

    def rows(self, positions: Sequence[int]) -> list[Row[Any]]:
        """Return the rows of items in the order given; none of one that is not in the list."""
        texts = items.c.item_id, items.c.json
        found = self._select(*self._columns, *texts, where=[self._position.in_(positions)])
        by_position = {row.position: row for row in self.connection.execute(found)}
        return [by_position[position] for position in positions if position in by_position]

    def search(self, place: QueueCursor | None, limit: int, *, forward: bool) -> list[int]:
        """Return up to ``limit`` positions next to ``place`` in the order asked for.

        Without a place it begins at the start (backward: at the end).
        """
        positions: list[int] = []
        for where in self._parts(place, forward=forward):
            if len(positions) < limit:
                found = self._select(self._position, where=where).order_by(
                    *self._order(forward=forward)
                )
                some = found.limit(limit - len(positions))
                positions += self.connection.execute(some).scalars()
        return positions

    def standing(self, place: QueueCursor) -> QueuePlace:
        """Return which of the selected items the one at ``place`` is, and of how many."""
        if self._is_plain:
            return self._standing_beside(place.position)
        is_in = self.count(self._place == place.position)
        n_before = self.count(self._is_beyond(place, forward=False)) if is_in else 0
        return QueuePlace(n_before + 1 if is_in else None, self.count())

    @property
    def _left_out(self) -> list[str]:
        """The reviewer's statuses of which the query leaves items out."""
        if self.query.status is Status.NOT_ANNOTATED:
            return [status.value for status in Status if status is not Status.NOT_ANNOTATED]
        return [Status.DONE.value] if self.query.unfinished else []

    @property
    def _is_plain(self) -> bool:
        """Whether nothing else leaves items out, and they are in import order."""
        query = self.query
        plain = replace(
            query, unfinished=False, detector=None, detector_status=None, blind=False,
            own_only=False, shown_when_done=False, limit=_ANY.limit,
        )  # fmt: skip
        is_whole = plain == replace(_ANY, reviewer=query.reviewer, status=plain.status)
        is_whole = is_whole and query.status in {None, Status.NOT_ANNOTATED}
        among_all = self.among is None and not self.unlisted and not self.without_checks
        return is_whole and among_all and query.detector_status is None

    def _standing_beside(self, position: int) -> QueuePlace:
        """Count what is left out, of which there is mostly little, or nothing."""
        if not self._left_out:
            return QueuePlace(position + 1, self.dataset.n_items)
        counted, at = self._own_left_out().with_only_columns(func.count()), annotated.c.position
        n_out, n_before, n_here = (
            int(self.connection.execute(counted.where(*where)).scalar_one())
            for where in ((), (at < position,), (at == position,))
        )
        number = None if n_here else position - n_before + 1
        return QueuePlace(number, self.dataset.n_items - n_out)

    def _own_left_out(self) -> Select[int]:
        """Select the positions of what the query leaves out for the reviewer's own status."""
        own = self._annotators.get(self.query.reviewer)
        return select(annotated.c.position).where(
            annotated.c.dataset_id == self.dataset.id,
            annotated.c.annotator_id == (-1 if own is None else own.id),
            annotated.c.status.in_(self._left_out),
        )

    def count(self, *conditions: Condition) -> int:
        """Return how many of the selected items fulfil conditions."""
        counted = self._select(func.count(), where=[*self._conditions(), *conditions])
        return int(self.connection.execute(counted).scalar_one())

    def n_unanimous(self) -> int:
        """Return on how many of the selected items people are unanimous, as far as it may know."""
        return 0 if self.query.blind else self.count(queue_values.c.unanimous == 1)

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

    def authors(self, *kinds: AnnotatorKind) -> list[int]:
        """Return the numbers of the annotators of these kinds of whose words it may know."""
        seen, annotators = self.seen_authors, self._annotators.values()
        return [one.id for one in annotators if one.kind in kinds and (not seen or one.id in seen)]

    @cached_property
    def _annotators(self) -> dict[str, AnnotatorRow]:
        return annotators_of(self.connection, self.dataset.id)

    def _select(self, *columns: ColumnElement[Any], where: Iterable[Condition] = ()) -> Select[Any]:
        """Select of all places, with what is said of them as far as this is asked for."""
        query, dataset = self.query, self.dataset.id
        where = [*where]
        parts = chain.from_iterable(map(iterate, (*columns, *where, self._value)))
        asked = {getattr(part, "table", None) for part in parts}
        joined: FromClause = _list if query.listed else queue_values
        is_valued = queue_values.c.dataset_id == dataset
        where += self._own_list if query.listed else [is_valued]
        if query.listed and queue_values in asked:
            joined = joined.join(
                queue_values, and_(is_valued, queue_values.c.position == self._position)
            )
        told = func.coalesce(_list.c.twin, _list.c.position)
        if query.sample or items in asked:
            is_item = items.c.dataset_id == dataset, items.c.position == self._position
            joined = joined.join(items, and_(*is_item))
        if query.sample:
            joined = joined.join(self._sampled, self._sampled.c.value == items.c.item_id)
        if _twin in asked:
            is_told = and_(_twin.c.dataset_id == dataset, _twin.c.position == told)
            joined = joined.outerjoin(_twin, is_told)
        authors = (
            (_own, query.reviewer, self._position),
            (_detector, query.detector, self._position),
            (_own_of_twin, query.reviewer, told),
        )
        for table, name, at in authors:
            if table in asked:
                annotator = self._annotators.get(name or "")
                number = -1 if annotator is None else annotator.id  # nobody's: of a stranger
                by = table.c.dataset_id == dataset, table.c.annotator_id == number
                # By a range SQLite reads the index that has all the values, and no rows of texts.
                in_sqlite = self.connection.dialect.name == "sqlite"
                is_at = table.c.position.between(at, at) if in_sqlite else table.c.position == at
                joined = joined.outerjoin(table, and_(*by, is_at))
        return select(*columns).select_from(joined).where(*where)

    @property
    def _own_list(self) -> tuple[Condition, ...]:
        return _list.c.dataset_id == self.dataset.id, _list.c.reviewer == self.query.reviewer

    @property
    def _columns(self) -> tuple[ColumnElement[Any], ...]:
        values = queue_values.c
        return (
            *(self._position, self._place.label("place"), self._value.label("value")),
            *(values.lang, values.n_passages, self._max_prob.label("max_prob")),
            *(_own.c.status, self._people.label("n_people")),
            *(self._disagreement.label("disagreement"), self._counted("claims").label("n_claims")),
        )

    @property
    def _position(self) -> ColumnElement[int]:
        return _list.c.position if self.query.listed else queue_values.c.position

    @property
    def _place(self) -> ColumnElement[int]:
        if self.query.sample:
            return self._sampled.c.place
        return _list.c.place if self.query.listed else self._position

    @cached_property
    def _sampled(self) -> FromClause:
        """The ids of the sample with their places: one parameter, however many they are."""
        ids = self.query.sample
        if self.connection.dialect.name == "sqlite":
            rows = func.json_each(json.dumps(ids)).table_valued("value", "key", name="sampled")
            return select(rows.c.value, rows.c.key.label("place")).subquery("sample")
        listed = func.jsonb_array_elements_text(cast(ids, JSONB))
        return listed.table_valued("value", with_ordinality="place", name="sample").render_derived()

    @property
    def _told(self) -> FromClause:
        """What a plan's conditions are about: of a check item in a list, its twin."""
        return _twin if self.query.listed else queue_values

    @property
    def _people(self) -> ColumnElement[int]:
        """How many have finished the item that is told: its reviewer counts by the item itself."""
        people: ColumnElement[int] = self._told.c.n_people
        if not self.query.listed:
            return people
        own, of_twin = (
            case((table.c.status == Status.DONE.value, 1), else_=0)
            for table in (_own, _own_of_twin)
        )
        return people + own - of_twin

    @property
    def _max_prob(self) -> ColumnElement[Any]:
        return queue_values.c.max_prob if self.query.detector is None else _detector.c.prob

    @property
    def _disagreement(self) -> ColumnElement[Any]:
        values = queue_values.c
        return values.detector_disagreement if self.query.blind else values.disagreement

    @property
    def _disputed(self) -> ColumnElement[Any]:
        """The disagreement, below all where people are unanimous: a blind query knows of none."""
        if self.query.blind:
            return self._disagreement
        unanimous = queue_values.c.unanimous == 1
        return case((unanimous, -0.5), else_=func.coalesce(self._disagreement, 0.0))

    def _counted(self, kind: str) -> ColumnElement[Any]:
        """Return the highest number of labels or claims of one annotator that may be known of."""
        if not self.query.blind:
            return queue_values.c[f"n_{kind}"]
        of_detectors, own = (
            queue_values.c[f"detector_{kind}"],
            func.coalesce(_own.c[f"n_{kind}"], 0),
        )
        return case((of_detectors < own, own), else_=of_detectors)

    @property
    def _value(self) -> ColumnElement[Any]:
        """What the query orders by."""
        order, prob = self.query.order, self._max_prob
        if order == "import":
            return _NO_NUMBER
        if order == "status":
            return case(_RANKS, value=func.coalesce(_own.c.status, Status.NOT_ANNOTATED.value))
        if order in {"labels", "claims"}:
            return self._counted(order)
        return {
            "disagreement": self._disagreement,
            "disputed": self._disputed,
            "probability": prob,
            "uncertainty": 0.5 - func.abs(prob - 0.5),
            "passages": queue_values.c.n_passages,
        }[order]

    def _order(self, *, forward: bool) -> tuple[ColumnElement[Any], ...]:
        (key, rises), (place, place_rises) = self._key(forward=forward), self._step(forward=forward)
        by_place = place.asc() if place_rises else place.desc()
        if self.query.order == "import":
            return (by_place,)
        return key.asc() if rises else key.desc(), by_place

    def _is_beyond(self, place: QueueCursor, *, forward: bool) -> Condition:
        """Return the condition that an item comes after a place (or before it)."""
        (key, rises), (at, at_rises) = self._key(forward=forward), self._step(forward=forward)
        further = at > place.position if at_rises else at < place.position
        if self.query.order == "import":
            return further
        value = self._last if place.value is None else place.value
        return or_(key > value if rises else key < value, and_(key == value, further))

    def _step(self, *, forward: bool) -> tuple[ColumnElement[int], bool]:
        """Return the places, and whether they rise where nothing else decides."""
        return self._place, forward != (self.query.order == "import" and self.query.reverse)

    def _key(self, *, forward: bool) -> tuple[ColumnElement[Any], bool]:
        """Return the number to order by, and whether it rises."""
        return func.coalesce(self._value, self._last), forward == (self._last > 0)

    @property
    def _last(self) -> float:
        """The number in place of none, which comes after all others."""
        rises = (self.query.order == "status") != self.query.reverse
        return _ABOVE_ALL if rises else -1.0

    def _parts(self, place: QueueCursor | None, *, forward: bool) -> Iterator[list[Condition]]:
        """Yield the conditions of each part to look at, one after the other.

        There is one part, but where a text is looked for in import order.
        """
        query, rises = self.query, self._step(forward=forward)[1]
        start, stop, size = 0, self.dataset.n_items, _WINDOW
        if query.listed or query.sample or query.order != "import":
            beyond = () if place is None else (self._is_beyond(place, forward=forward),)
            yield [*beyond, *self._conditions()]
            return
        if place is not None:
            start, stop = (place.position + 1, stop) if rises else (0, min(place.position, stop))
        if query.text is None and query.label is None and not self._left_out:
            size = max(stop - start, 1)
        while start < stop:
            middle = min(start + size, stop) if rises else max(stop - size, start)
            here = (start, middle) if rises else (middle, stop)
            yield [*self._conditions(here)]
            start, stop = (middle, stop) if rises else (start, middle)
            size *= 4

    def _conditions(self, window: tuple[int, int] | None = None) -> Iterator[Condition]:
        """Yield what must hold for an item; ``window`` are the positions to look at (None: all)."""
        query, settings = self.query, settings_of(self.connection, self.dataset.name)
        start, stop = window or (0, self.dataset.n_items)
        within = and_(self._position >= start, self._position < stop)
        # SQLite reads the list first where it has a range, and need not sort.
        yield _list.c.place >= 0 if query.listed else within
        if query.status not in {None, Status.NOT_ANNOTATED}:
            yield _own.c.status == query.status
        if self._left_out and (query.listed or query.sample):
            yield func.coalesce(_own.c.status, "").not_in(self._left_out)
        elif self._left_out:  # an index has them all
            at = annotated.c.position
            yield self._position.not_in(self._own_left_out().where(at >= start, at < stop))
        if query.detector_status is not None:
            none = Status.NOT_ANNOTATED.value
            yield func.coalesce(_detector.c.status, none) == query.detector_status.value
        if query.min_prob is not None or query.max_prob is not None:
            high = 1.0 if query.max_prob is None else query.max_prob
            yield self._max_prob.between(query.min_prob or 0.0, high)
        if query.lang is not None:
            yield queue_values.c.lang == query.lang
        if query.min_disagreement is not None:
            yield self._disagreement >= query.min_disagreement
        if planned := [*self._plan_conditions()]:
            stays = query.listed and query.min_annotators is None  # what the reviewer has decided
            decided = _own.c.status.in_([Status.DONE.value, Status.SKIPPED.value])
            yield or_(and_(*planned), decided) if stays else and_(*planned)
        if self.without_checks and settings.known:
            yield ~is_check(self.connection, self.dataset, self._position)
        if self.unlisted:
            yield self._position.not_in(select(_list.c.position).where(*self._own_list))
        if self.among is not None:
            yield self._position.in_(self.among)
        if query.unplaced:
            yield from self._unplaced()
        is_for_list = query.listed or self.unlisted or self.among is not None
        hides_ids = is_for_list and settings.known is not None
        first, last = (
            search.row_number(self.dataset.id, literal(at, BigInteger)) for at in (start, stop)
        )
        yield from self._searched((first, last), hides_ids=hides_ids)

    def _plan_conditions(self) -> Iterator[Condition]:
        query, people = self.query, self._people
        if query.reserve:
            people = people + held_by_others(self.dataset, query.reviewer, self._told.c.position)
        if query.min_annotators is not None:
            yield people >= query.min_annotators
        if query.max_annotators is not None:
            yield people <= query.max_annotators
        if query.share is not None and not query.listed:  # a list has no others' items
            yield is_of_share(self.dataset, query.share)

    def _unplaced(self) -> Iterator[Condition]:
        """Yield what makes an item one that is called hallucinated and has no span yet.

        Marks of detectors are suggestions, and no place that is known.
        """
        knowing = [kind for kind in AnnotatorKind if kind is not AnnotatorKind.DETECTOR]
        finished = select(literal(1)).where(
            annotated.c.dataset_id == self.dataset.id,
            annotated.c.position == self._position,
            annotated.c.status == Status.DONE.value,
        )
        finished = finished.correlate(queue_values, _list)
        by_anybody = annotated.c.annotator_id.in_(self.authors(*AnnotatorKind))
        by_knowing = annotated.c.annotator_id.in_(self.authors(*knowing))
        yield finished.where(by_anybody, CALLED_HALLUCINATED).exists()
        yield ~finished.where(by_knowing, _HAS_SPAN).exists()

    def _searched(self, within: RowRange, *, hides_ids: bool) -> Iterator[Condition]:
        """Yield that a text and a label are found in an item.

        Whoever has a list of their own must not tell check items by their ids: where there are any,
        a text is found otherwise than in an id.
        """
        query, authors, dialect = self.query, self.seen_authors, self.connection.dialect.name
        if query.label is not None:
            yield self._position.in_(search.with_label(dialect, query.label, within, authors))
        if query.text is None:
            return
        if not hides_ids:
            yield self._position.in_(search.with_text(dialect, query.text, within, authors))
            return
        said = {one.id for one in self._annotators.values()} if authors is None else authors
        in_item, in_notes = (
            search.with_text(dialect, query.text, within, of)
            for of in ({search.THE_ITEM}, said - {search.THE_ITEM})
        )
        by_id = self._found_by_id(query.text, in_item)
        in_text = and_(self._position.in_(in_item), self._position.not_in(by_id))
        yield or_(in_text, self._position.in_(in_notes))

    def _found_by_id(self, searched: str, found: Select[int]) -> list[int]:
        """Return which of the positions that a search has found lack its words but for the id."""
        named = select(items.c.position, items.c.item_id).where(
            items.c.dataset_id == self.dataset.id, items.c.position.in_(found)
        )
        may_be_of = search.id_finder(searched)
        rows = self.connection.execute(named)
        candidates = [row.position for row in rows if may_be_of(row.item_id)]
        return [
            record.position
            for record in read_at(self.connection, self.dataset, candidates)
            if search.lacks_words(searched, record.item)
        ]


def is_of_share(
    dataset: DatasetRow, share: AssignedShare, values: FromClause = queue_values
) -> ColumnElement[bool]:
    """Return the condition that an item is of this share.

    ``values`` is the table ``queue_values``, or an alias of it.
    """
    back, position = share.steps_back, values.c.position
    turn: ColumnElement[int] = func.coalesce(values.c.turn, position)
    step = case(dict(enumerate(back)), value=(turn // share.people) % len(back))

    def rank(number: int) -> ColumnElement[int]:
        return (number - turn % share.people + share.people) * step % share.people

    reached: ColumnElement[int] = rank(share.number)
    for number, name in share.away:
        finished = people_with(dataset, Status.DONE).where(
            annotated.c.position == position, annotators.c.name == name
        )
        is_free = and_(rank(number) < rank(share.number), ~finished.correlate(values).exists())
        reached = reached - case((is_free, 1), else_=0)
    return reached < share.each
