"""The items of a queue as one SELECT: which ones a query lets through, in which order, how many.

Every query goes through a stored list: the reviewer's own where there is a plan or check items, or
the dataset's, which is everybody's. A row has the place of an item in the list (or in a sample) and
what the query filters and orders by. Nothing that others do takes an item out of a list with check
items, as none of these would leave it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Float,
    FromClause,
    Join,
    Row,
    Select,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    null,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.visitors import iterate

from spanlab.base.errors import UsageError
from spanlab.schema import (
    AnnotatorKind,
    AssignedShare,
    DatasetSettings,
    QueueCursor,
    QueuePlace,
    QueueQuery,
    Status,
)
from spanlab.storage import Store, search
from spanlab.storage.assignment import is_check, rows_of
from spanlab.storage.catalog import AnnotatorRow, DatasetRow, annotators_of, settings_of
from spanlab.storage.items import read_at
from spanlab.storage.search import RowRange
from spanlab.storage.tables import annotated, annotators, items, queue_items, queue_values
from spanlab.worklists.reservations import held_by_others, n_finished, people_with

# What the JSON of an annotation has: no text in it can, as its quotation marks are escaped.
CALLED_HALLUCINATED = annotated.c.json.contains('"answer_hallucinated":true', autoescape=True)
CALLED_RIGHT = annotated.c.json.contains('"answer_hallucinated":false', autoescape=True)
_HAS_SPAN = annotated.c.json.contains('"spans":[{', autoescape=True)
_WINDOW = 4096  # positions that are looked at first for texts and statuses: matches are near
_ABOVE_ALL = 1e9  # no number that a queue is ordered by is as high, and all are above -1
_RANKS = {status.value: rank for rank, status in enumerate(Status)}
_NO_NUMBER = cast(null(), Float)

Condition = ColumnElement[bool]
_own, _detector = map(annotated.alias, ("own", "detector"))


class _InOrder(Join):
    """A join of which SQLite reads the left side first: it takes any dataset for ten rows."""

    inherit_cache = True


@compiles(_InOrder, "sqlite")
def _cross_join(join: _InOrder, compiler: Any, **options: Any) -> str:
    sides = (
        compiler.process(side, **{**options, "asfrom": True}) for side in (join.left, join.right)
    )
    return f"{' CROSS JOIN '.join(sides)} ON {compiler.process(join.onclause, **options)}"


class _List(NamedTuple):
    """A stored list with an item at each place: a person's own, or the dataset's order."""

    rows: FromClause
    is_its: tuple[Condition, ...]  # which of the rows are those of the list
    place: ColumnElement[int]
    position: ColumnElement[int]


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
        found = self._select(self._list.position, where=self._conditions()).order_by(
            self._list.place
        )
        return list(self.connection.execute(found).scalars())

    def rows(self, positions: Sequence[int]) -> list[Row[Any]]:
        """Return the rows of items in the order given; none of one that is not in the list."""
        texts = items.c.item_id, items.c.json
        found = self._select(*self._columns, *texts, where=[self._list.position.in_(positions)])
        by_position = {row.position: row for row in self.connection.execute(found)}
        return [by_position[position] for position in positions if position in by_position]

    def search(self, place: QueueCursor | None, limit: int, *, forward: bool) -> list[int]:
        """Return up to ``limit`` positions next to ``place`` in the order asked for.

        Without a place it begins at the start (backward: at the end).
        """
        positions, keys = list[int](), self._keys(forward=forward)
        order = [key.asc() if rises else key.desc() for key, rises in keys]
        for where in self._parts(place, forward=forward):
            if len(positions) < limit:
                found = self._select(self._list.position, where=where).order_by(*order)
                some = found.limit(limit - len(positions))
                positions += self.connection.execute(some).scalars()
        return positions

    def standing(self, place: QueueCursor) -> QueuePlace:
        """Return which of the selected items the one at ``place`` is, and of how many."""
        query = self.query
        is_ordered = query.listed or query.sample or query.reverse or query.order != "import"
        if not is_ordered and next(self._filters(0, self.dataset.n_items), None) is None:
            return self._standing_beside(place.position)
        here, before = self._list.place == place.position, self._is_beyond(place, forward=False)
        counts = (func.count(), *(func.count(case((where, 1))) for where in (here, before)))
        counted = self._select(*counts, where=self._conditions())
        n_all, is_in, n_before = self.connection.execute(counted).one()
        return QueuePlace(n_before + 1 if is_in else None, n_all)

    @property
    def _left_out(self) -> list[str]:
        """The reviewer's statuses of which the query leaves items out."""
        if self.query.status is Status.NOT_ANNOTATED:
            return [status.value for status in Status if status is not Status.NOT_ANNOTATED]
        return [Status.DONE.value] if self.query.unfinished else []

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
        return select(annotated.c.position).where(
            annotated.c.dataset_id == self.dataset.id,
            annotated.c.annotator_id == self._number(self.query.reviewer),
            annotated.c.status.in_(self._left_out),
        )

    def count(self, *conditions: Condition) -> int:
        """Return how many of the selected items fulfil conditions."""
        counted = self._select(func.count(), where=[*self._conditions(), *conditions])
        return int(self.connection.execute(counted).scalar_one())

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
        query, stored, where = self.query, self._list, [*where]
        parts = chain.from_iterable(map(iterate, (*columns, *where, self._value)))
        asked = {getattr(part, "table", None) for part in parts} - {*iterate(stored.rows)}
        joined, in_sqlite = stored.rows, self.connection.dialect.name == "sqlite"
        for table, at, name in (
            (queue_values, stored.position, None),
            (items, stored.position, None),
            (_own, stored.position, query.reviewer),
            (_detector, stored.position, query.detector or ""),
        ):
            if table in asked:
                here = [table.c.dataset_id == self.dataset.id, table.c.position == at]
                if name is not None:
                    # By a range SQLite reads the index that has all the values, no rows of texts.
                    here[1:] = [table.c.position.between(at, at)] if in_sqlite else here[1:]
                    here.append(table.c.annotator_id == self._number(name))
                joined = joined.join(table, and_(*here), isouter=name is not None)
        return select(*columns).select_from(joined).where(*where, *stored.is_its)

    @cached_property
    def _list(self) -> _List:
        values, own, query = queue_values.c, queue_items.c, self.query
        at = values.position
        stored = _List(queue_values, (values.dataset_id == self.dataset.id,), at, at)
        if query.listed:
            is_its = own.dataset_id == self.dataset.id, own.reviewer == query.reviewer
            stored = _List(queue_items, is_its, own.place, own.position)
        if not query.sample:
            return stored
        is_item = items.c.dataset_id == self.dataset.id, items.c.item_id == self._sampled.c.value
        is_listed = (*stored.is_its, stored.position == items.c.position)
        rows = _InOrder(self._sampled, items, and_(*is_item))
        rows = _InOrder(rows, stored.rows, and_(*is_listed))
        return stored._replace(rows=rows, is_its=(), place=self._sampled.c.place)

    def _number(self, annotator: str) -> int:
        """Return the number of an annotator; of one of whom it may not know one that nobody has."""
        row, query = self._annotators.get(annotator), self.query
        is_seen = annotator == query.reviewer or (row and row.kind is AnnotatorKind.DETECTOR)
        return row.id if row and (is_seen or not query.blind) else -1

    @property
    def _columns(self) -> tuple[ColumnElement[Any], ...]:
        values = queue_values.c
        return (
            *(self._list.position, self._list.place.label("place"), self._value.label("value")),
            *(values.lang, values.n_passages, self._max_prob.label("max_prob")),
            *(_own.c.status, self._disagreement.label("disagreement")),
            self._counted("claims").label("n_claims"),
        )

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

    def _keys(self, *, forward: bool) -> list[tuple[ColumnElement[Any], bool]]:
        """Return what items are ordered by, and whether it rises: a number or none, then places."""
        in_order = self.query.order == "import"
        by_place = self._list.place, forward != (in_order and self.query.reverse)
        by_value = func.coalesce(self._value, self._last), forward == (self._last > 0)
        return [by_place] if in_order else [by_value, by_place]

    def _is_beyond(self, place: QueueCursor, *, forward: bool) -> Condition:
        """Return the condition that an item comes after a place (or before it)."""
        *values, (at, rises) = self._keys(forward=forward)
        beyond: Condition = at > place.position if rises else at < place.position
        for key, key_rises in values:
            value = self._last if place.value is None else place.value
            beyond = or_(key > value if key_rises else key < value, and_(key == value, beyond))
        return beyond

    @property
    def _last(self) -> float:
        """The number in place of none, which comes after all others."""
        rises = (self.query.order == "status") != self.query.reverse
        return _ABOVE_ALL if rises else -1.0

    def _parts(self, place: QueueCursor | None, *, forward: bool) -> Iterator[list[Condition]]:
        """Yield the conditions of each part to look at, one after the other.

        There is one part, but where a text is looked for in import order.
        """
        query, (_, rises) = self.query, self._keys(forward=forward)[-1]
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
        query = self.query
        start, stop = window or (0, self.dataset.n_items)
        within = and_(self._list.position >= start, self._list.position < stop)
        # SQLite reads the list first where it has a range, and need not sort.
        yield queue_items.c.place >= 0 if query.listed else within
        if self._left_out and (query.listed or query.sample):
            yield func.coalesce(_own.c.status, "").not_in(self._left_out)
        elif self._left_out:  # an index has them all
            at = annotated.c.position
            yield self._list.position.not_in(self._own_left_out().where(at >= start, at < stop))
        yield from self._filters(start, stop)

    def _filters(self, start: int, stop: int) -> Iterator[Condition]:
        """Yield the other conditions, for an item at one of these positions."""
        query, settings = self.query, settings_of(self.connection, self.dataset.name)
        yield from self._value_filters()
        if planned := [*self._plan_conditions(settings)]:
            stays = query.listed and query.min_annotators is None  # what the reviewer has decided
            decided = _own.c.status.in_([Status.DONE.value, Status.SKIPPED.value])
            yield or_(and_(*planned), decided) if stays else and_(*planned)
        if self.without_checks and settings.known:
            yield ~is_check(self.connection, self.dataset, self._list.position)
        if self.unlisted:
            own = rows_of(queue_items, self.dataset, query.reviewer)
            yield self._list.position.not_in(select(queue_items.c.position).where(*own))
        if self.among is not None:
            yield self._list.position.in_(self.among)
        if query.unplaced:
            yield from self._unplaced()
        is_for_list = query.listed or self.unlisted or self.among is not None
        hides_ids = is_for_list and settings.known is not None
        first, last = (
            search.row_number(self.dataset.id, literal(at, BigInteger)) for at in (start, stop)
        )
        yield from self._searched((first, last), hides_ids=hides_ids)

    def _value_filters(self) -> Iterator[Condition]:
        """Yield the conditions on what is kept of an item: its states, figures and language."""
        query = self.query
        if query.status not in {None, Status.NOT_ANNOTATED}:
            yield _own.c.status == query.status
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

    def _plan_conditions(self, settings: DatasetSettings) -> Iterator[Condition]:
        query, people = self.query, n_finished(self.connection, self.dataset, queue_values)
        if query.min_annotators is not None:
            yield people >= query.min_annotators
        if query.max_annotators is not None:
            yield people <= query.max_annotators
        if query.reserve and settings.overlap and not (query.listed and settings.known):
            position = queue_values.c.position
            held = held_by_others(self.dataset, query.reviewer, position)
            yield people + held < settings.overlap
        if query.share is not None and not query.listed:  # a list has no others' items
            yield is_of_share(self.dataset, query.share)

    def _unplaced(self) -> Iterator[Condition]:
        """Yield what makes an item one that is called hallucinated and has no span yet.

        Marks of detectors are suggestions, and no place that is known.
        """
        knowing = [kind for kind in AnnotatorKind if kind is not AnnotatorKind.DETECTOR]
        finished = select(literal(1)).where(
            annotated.c.dataset_id == self.dataset.id,
            annotated.c.position == self._list.position,
            annotated.c.status == Status.DONE.value,
        )
        finished = finished.correlate(queue_values, queue_items)
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
            yield self._list.position.in_(search.with_label(dialect, query.label, within, authors))
        if query.text is None:
            return
        if not hides_ids:
            yield self._list.position.in_(search.with_text(dialect, query.text, within, authors))
            return
        said = {one.id for one in self._annotators.values()} if authors is None else authors
        in_item, in_notes = (
            search.with_text(dialect, query.text, within, of)
            for of in ({search.THE_ITEM}, said - {search.THE_ITEM})
        )
        # Written out: of a word in all ids there are more than a statement takes values.
        by_id: BindParameter[list[int]] = bindparam(
            None, self._found_by_id(query.text, in_item), expanding=True, literal_execute=True
        )
        in_text = and_(self._list.position.in_(in_item), self._list.position.not_in(by_id))
        yield or_(in_text, self._list.position.in_(in_notes))

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


def _check_asked(settings: DatasetSettings, query: QueueQuery) -> None:
    """Check that a query asks for nothing that tells of others' work whom it is hidden from.

    Raises:
        UsageError: it does.
    """
    is_hidden = (query.blind and settings.is_blind) or (query.listed and settings.known)
    if is_hidden and (query.min_annotators, query.max_annotators) != (None, None):
        raise UsageError(
            "this dataset is reviewed blind: no queue of it goes by how many people have finished "
            "an item"
        )


@contextmanager
def selecting(store: Store, dataset: str, query: QueueQuery) -> Iterator[Selection]:
    """Give the items that a query lets through as the store's actor sees them.

    Raises:
        UsageError: it asks for what is hidden from them.
    """
    with store.reading(dataset, query.reviewer) as (connection, row, sight):
        query = sight.query(query)
        _check_asked(settings_of(connection, dataset), query)
        yield Selection(connection, row, query)


def is_of_share(dataset: DatasetRow, share: AssignedShare) -> ColumnElement[bool]:
    """Return the condition that the item of a row of ``queue_values`` is of this share."""
    back, position = share.steps_back, queue_values.c.position
    turn: ColumnElement[int] = func.coalesce(queue_values.c.turn, position)
    step = case(dict(enumerate(back)), value=(turn // share.people) % len(back))

    def rank(number: int) -> ColumnElement[int]:
        return (number - turn % share.people + share.people) * step % share.people

    reached: ColumnElement[int] = rank(share.number)
    for number, name in share.away:
        finished = people_with(dataset, Status.DONE).where(
            annotated.c.position == position, annotators.c.name == name
        )
        is_free = and_(
            rank(number) < rank(share.number), ~finished.correlate(queue_values).exists()
        )
        reached = reached - case((is_free, 1), else_=0)
    return reached < share.each
