"""What a queue's filter lets through: conditions on the items of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    bindparam,
    case,
    false,
    func,
    literal,
    or_,
    select,
)

from spanlab.schema import AnnotatorKind, QueueQuery, Status
from spanlab.storage import search
from spanlab.storage.assignment import is_of_share
from spanlab.storage.campaigns import is_check
from spanlab.storage.catalog import AnnotatorRow, DatasetRow, annotators_of, settings_of
from spanlab.storage.items import read_at
from spanlab.storage.reservations import held_by_others
from spanlab.storage.search import RowRange
from spanlab.storage.tables import annotated, items, queue_items, queue_values

START = bindparam("start", type_=BigInteger)  # of the positions that a statement looks at
STOP = bindparam("stop", type_=BigInteger)

_NOTHING = Status.NOT_ANNOTATED
# What the JSON of an annotation has: no text in it can, as its quotation marks are escaped.
CALLED_HALLUCINATED = annotated.c.json.contains('"answer_hallucinated":true', autoescape=True)
CALLED_RIGHT = annotated.c.json.contains('"answer_hallucinated":false', autoescape=True)
_HAS_SPAN = annotated.c.json.contains('"spans":[{', autoescape=True)
Condition = ColumnElement[bool]
Lists = tuple[Select[int], ...]  # of positions
_position = queue_values.c.position
_list = queue_items
_twin = queue_values.alias("twin")  # of a check item in a list, see queues.py


@dataclass(frozen=True)
class QueueFilter:
    """What a query lets through of a dataset, within one snapshot.

    A ``listed`` query goes through the reviewer's own list; an ``unlisted`` filter leaves out what
    is in it. One that is ``without_checks`` leaves out check items, which no reviewer may ask for.
    """

    connection: Connection
    dataset: DatasetRow
    query: QueueQuery
    unlisted: bool = False
    without_checks: bool = False

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

    @property
    def judges(self) -> list[int]:
        """Whose verdicts on an answer a row counts: people and gold labels that may be seen."""
        seen = self.seen_authors
        return [
            annotator.id
            for annotator in self._annotators.values()
            if annotator.kind in (AnnotatorKind.PERSON, AnnotatorKind.GOLD)
            and (seen is None or annotator.id in seen)
        ]

    @property
    def _own_list(self) -> tuple[Condition, ...]:
        return _list.c.dataset_id == self.dataset.id, _list.c.reviewer == self.query.reviewer

    @cached_property
    def _annotators(self) -> dict[str, AnnotatorRow]:
        return annotators_of(self.connection, self.dataset.id)

    @cached_property
    def _conditions(self) -> list[Condition]:
        """What must hold for all items, beside what is excluded."""
        return [*self._annotator_conditions(), *self._item_conditions()]

    @cached_property
    def _excluded(self) -> Lists:
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

    def _annotator_conditions(self) -> Iterator[Condition]:
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

    def _item_conditions(self) -> Iterator[Condition]:
        query, values = self.query, queue_values.c
        if query.lang is not None:
            yield values.lang == query.lang
        if query.min_disagreement is not None:
            yield self._disagreement >= query.min_disagreement
        planned = [*self._plan_conditions(queue_values, queue_values.c.n_people)]
        if query.listed and planned:
            # A check item stays and leaves with its twin, whatever others do with it.
            by_twin = self._of_twin(literal(1), *self._plan_conditions(_twin, self._told_people))
            is_in = or_(and_(_list.c.twin.is_(None), *planned), by_twin.exists())
            if query.min_annotators is None:  # what the reviewer has begun stays theirs
                is_in = or_(is_in, self._has_own(_position))
            yield is_in
        else:
            yield from planned
        if self.without_checks and settings_of(self.connection, self.dataset.name).known:
            yield ~is_check(self.connection, self.dataset, _position)
        dialect, authors = self.connection.dialect.name, self.seen_authors
        within = search.row_number(self.dataset.id, START), search.row_number(self.dataset.id, STOP)
        if self.unlisted:
            yield _position.not_in(select(_list.c.position).where(*self._own_list))
        hides_ids = query.listed and settings_of(self.connection, self.dataset.name).known
        if query.text is not None and hides_ids:
            yield self._has_text_beside_id(query.text, dialect, within)
        elif query.text is not None:
            yield _position.in_(search.with_text(dialect, query.text, within, authors))
        if query.unplaced:
            yield from self._unplaced()
        if query.label is not None:
            yield _position.in_(search.with_label(dialect, query.label, within, authors))

    def _unplaced(self) -> Iterator[Condition]:
        """Yield what makes an item one that is called hallucinated and has no span yet.

        Marks of detectors are suggestions, and no place that is known.
        """
        seen, by_id = self.seen_authors, {one.id: one.kind for one in self._annotators.values()}
        authors = [one for one in by_id if seen is None or one in seen]
        knowing = [one for one in authors if by_id[one] is not AnnotatorKind.DETECTOR]
        here = (
            annotated.c.dataset_id == self.dataset.id,
            annotated.c.position >= START,
            annotated.c.position < STOP,
            annotated.c.status == Status.DONE.value,
        )
        positions = select(annotated.c.position)
        by_authors, by_knowing = (annotated.c.annotator_id.in_(ids) for ids in (authors, knowing))
        yield _position.in_(positions.where(*here, by_authors, CALLED_HALLUCINATED))
        yield _position.not_in(positions.where(*here, by_knowing, _HAS_SPAN))

    def _has_text_beside_id(self, searched: str, dialect: str, within: RowRange) -> Condition:
        """Return the condition that a search finds an item otherwise than by its id.

        Whoever has a list of their own must not tell check items by what they are called.
        """
        authors = self.seen_authors
        said = {a.id for a in self._annotators.values()} if authors is None else set(authors)
        in_item = search.with_text(dialect, searched, within, {search.THE_ITEM})
        in_notes = search.with_text(dialect, searched, within, said - {search.THE_ITEM})
        by_id = self._found_by_id(searched, in_item)
        in_text = and_(_position.in_(in_item), _position.not_in(by_id))
        return or_(in_text, _position.in_(in_notes))

    def _found_by_id(self, searched: str, found: Select[int]) -> list[int]:
        """Return which of the positions that a search has found lack its words but for the id."""
        here = (items.c.dataset_id == self.dataset.id, items.c.position.in_(found))
        named = select(items.c.position, items.c.item_id).where(*here)
        bounds = {START.key: 0, STOP.key: self.dataset.n_items}
        may_be_of = search.id_finder(searched)
        rows = self.connection.execute(named, bounds)
        candidates = [row.position for row in rows if may_be_of(row.item_id)]
        return [
            record.position
            for record in read_at(self.connection, self.dataset, candidates)
            if search.lacks_words(searched, record.item)
        ]

    @property
    def n_people(self) -> ColumnElement[int]:
        """How many people have finished an item, as a list tells it."""
        people: ColumnElement[int] = queue_values.c.n_people
        if not self.query.listed:
            return people
        return func.coalesce(self._of_twin(self._told_people).scalar_subquery(), people)

    def _of_twin(self, column: ColumnElement[Any], *conditions: Condition) -> Select[Any]:
        """Select something of the twin of an item in a list; no row of an item without one."""
        is_twin = _twin.c.dataset_id == self.dataset.id, _twin.c.position == _list.c.twin
        return select(column).where(*is_twin, *conditions).correlate(queue_values, _list)

    @property
    def _told_people(self) -> ColumnElement[int]:
        """The others who have finished the twin of an item in a list, and its person, if so."""
        done = annotated.c.status == Status.DONE.value
        own, of_twin = (self._has_own(at, done) for at in (_position, _twin.c.position))
        return _twin.c.n_people + case((own, 1), else_=0) - case((of_twin, 1), else_=0)

    def _has_own(self, position: ColumnElement[int], *conditions: Condition) -> Condition:
        """Return the condition that the reviewer has worked on the item at a position."""
        own = self._annotator_id(self.query.reviewer)
        mine = annotated.c.annotator_id == own, annotated.c.dataset_id == self.dataset.id
        at = (*mine, annotated.c.position == position, *conditions)
        return select(literal(1)).where(*at).correlate(queue_values, _list, _twin).exists()

    def _plan_conditions(
        self, values: FromClause, people: ColumnElement[int]
    ) -> Iterator[Condition]:
        query = self.query
        if query.reserve:
            people = people + held_by_others(self.dataset, query.reviewer, values.c.position)
        if query.min_annotators is not None:
            yield people >= query.min_annotators
        if query.max_annotators is not None:
            yield people <= query.max_annotators
        if query.share is not None:
            yield is_of_share(self.dataset, query.share, values)

    def _annotator_id(self, name: str) -> int:
        """Return the number of an annotator; one that nobody has for a stranger."""
        annotator = self._annotators.get(name)
        return -1 if annotator is None else annotator.id

    def _has_annotation(self, name: str, condition: Condition) -> Condition:
        """Return the condition that an annotator has an annotation that is so."""
        is_there = name in self._annotators
        return _position.in_(self._positions_of(name, condition)) if is_there else false()

    def _annotated_by(self, name: str) -> Lists:
        """Return what lists the positions that somebody has annotated; none by a stranger."""
        begun = annotated.c.status != _NOTHING.value
        return (self._positions_of(name, begun),) if name in self._annotators else ()

    def _outside(self, positions: Select[int]) -> Condition:
        lists_once = self.connection.dialect.name == "sqlite" and not self.query.listed
        if lists_once:  # looking for each is slower, where many are looked at
            return _position.not_in(positions)
        return ~positions.where(annotated.c.position == _position).correlate(queue_values).exists()

    def _positions_of(self, name: str, condition: Condition) -> Select[int]:
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
