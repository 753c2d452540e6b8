"""Which items a queue's filter lets through: array comparisons on facets, block after block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from spanlab.schema import Cursor, QueueQuery, Share, Standing, Status
from spanlab.storage import facets, reservations, search
from spanlab.storage.catalog import Annotator, Dataset, annotators_of, language_codes
from spanlab.storage.facets import BLOCK, Array
from spanlab.storage.ranking import (
    Ranking,
    disagreement_of,
    prob_facets,
    ranking,
    status_facet,
    visible_authors,
)

Mask = NDArray[np.bool_]

_GROWTH = 4  # each window is this many times the one before: short when matches are near


@dataclass(frozen=True)
class Condition:
    """Something that the values of some facets must fulfil."""

    names: tuple[str, ...]
    holds: Callable[[list[Array]], Mask]


@dataclass(frozen=True)
class Selection:
    """The items of a dataset that fulfil all ``conditions``, within one snapshot."""

    connection: Connection
    dataset: Dataset
    conditions: tuple[Condition, ...]
    found: tuple[Array, ...]  # positions in order, of each search
    ranking: Ranking | None  # None for import order
    reverse: bool  # of import order
    share: Share | None
    taken: dict[int, int]  # for how many others, by position, items are reserved

    @classmethod
    def of(cls, connection: Connection, dataset: Dataset, query: QueueQuery) -> Selection:
        """Return what ``query`` selects from ``dataset``."""
        annotators = annotators_of(connection, dataset.id)
        conditions = [*_of_annotators(query, annotators), *_of_items(query)]
        if query.lang is not None:
            code = language_codes(connection, dataset).get(query.lang, -1)
            conditions.append(_equal(facets.LANG, code))
        found = tuple(_searched(connection, dataset, query, annotators))
        order = ranking(connection, dataset, query, annotators)
        taken = reservations.taken(connection, dataset, query.reviewer) if query.reserve else {}
        return cls(
            connection,
            dataset,
            tuple(conditions),
            found,
            order,
            query.reverse,
            query.share,
            taken,
        )

    def count(self) -> int:
        """Return how many items are selected."""
        return int(self._mask(0, self.dataset.n_items).sum())

    def following(self, position: int, limit: int) -> list[int]:
        """Return the first up to ``limit`` selected positions from ``position`` on."""
        found: list[int] = []
        for start, stop in _windows(position, self.dataset.n_items):
            places = np.flatnonzero(self._mask(start, stop)) + start
            found += places[places >= position][: limit - len(found)].tolist()
            if len(found) == limit:
                break
        return found

    def preceding(self, position: int, limit: int) -> list[int]:
        """Return the last up to ``limit`` selected positions before ``position``, nearest first."""
        found: list[int] = []
        for start, stop in _windows_back(min(position, self.dataset.n_items)):
            places = np.flatnonzero(self._mask(start, stop)) + start
            found += places[::-1][: limit - len(found)].tolist()
            if len(found) == limit:
                break
        return found

    def search(self, place: Cursor | None, limit: int, *, forward: bool) -> list[int]:
        """Return up to ``limit`` selected positions next to ``place`` in the order asked for.

        Without a place it begins at the start (backward: at the end).
        """
        if self.ranking is not None:
            return self._ranked(self.ranking, place, limit, forward=forward)
        if forward != self.reverse:
            return self.following(0 if place is None else place.position + 1, limit)
        return self.preceding(place.position if place else self.dataset.n_items, limit)

    def standing(self, position: int) -> Standing:
        """Return which of the selected items the one at ``position`` is, and of how many."""
        places, scores = self._scored
        (here,) = np.flatnonzero(places == position)[:1].tolist() or (None,)
        if here is None:
            return Standing(None, len(places))
        before = here if not self.reverse else len(places) - 1 - here
        if self.ranking is not None:
            before = int((scores > scores[here]).sum() + (scores[:here] == scores[here]).sum())
        return Standing(before + 1, len(places))

    def _ranked(
        self, ranking: Ranking, place: Cursor | None, limit: int, *, forward: bool
    ) -> list[int]:
        places, scores = self._scored
        if not forward:  # the reversed order is the same search on mirrored numbers
            places, scores = -places[::-1], -scores[::-1]
        if place is not None:
            sign = 1 if forward else -1
            score = sign * ranking.score(place.value)
            beyond = (scores < score) | ((scores == score) & (places > sign * place.position))
            places, scores = places[beyond], scores[beyond]
        chosen = _highest(scores, limit)
        return cast("list[int]", np.abs(places[chosen]).tolist())

    @cached_property
    def _scored(self) -> tuple[Array, Array]:
        """All selected positions, with their scores where the order is not that of the import."""
        n_items = self.dataset.n_items
        places = np.flatnonzero(self._mask(0, n_items))
        if self.ranking is None:
            return places, places
        read = facets.read(self.connection, self.dataset.id, self.ranking.facets, 0, n_items)
        values = self.ranking.values([read[name][places] for name in self.ranking.facets])
        return places, self.ranking.scores(values)

    def _mask(self, start: int, stop: int) -> Mask:
        mask = np.ones(stop - start, dtype=np.bool_)
        if self.share is not None:
            mask &= self.share.has(np.arange(start, stop))
        for positions in self.found:
            first, last = np.searchsorted(positions, [start, stop])
            there = np.zeros(stop - start, dtype=np.bool_)
            there[positions[first:last] - start] = True
            mask &= there
        names = sorted({name for condition in self.conditions for name in condition.names})
        if names and stop > start:
            arrays = facets.read(self.connection, self.dataset.id, names, start, stop)
            if facets.PEOPLE in arrays and self.taken:
                arrays[facets.PEOPLE] = self._with_taken(arrays[facets.PEOPLE], start)
            for condition in self.conditions:
                mask &= condition.holds([arrays[name] for name in condition.names])
        return mask

    def _with_taken(self, people: Array, start: int) -> Array:
        counted = people.copy()
        for position, count in self.taken.items():
            if 0 <= position - start < len(counted):
                counted[position - start] += count
        return counted


def _of_annotators(query: QueueQuery, annotators: dict[str, Annotator]) -> Iterator[Condition]:
    asked = ((query.reviewer, query.status), (query.detector, query.detector_status))
    for name, status in asked:
        if status is not None and name is not None:
            annotator = annotators.get(name)
            # An unknown annotator has annotated nothing: a facet that does not exist is blank.
            facet = facets.status_of(-1 if annotator is None else annotator.id)
            yield _equal(facet, facets.STATUSES.index(status))
    if query.unfinished:
        done = facets.STATUSES.index(Status.DONE)
        yield Condition(
            (status_facet(annotators, query.reviewer),), lambda arrays: arrays[0] != done
        )
    if query.min_prob is not None or query.max_prob is not None:
        low = 0.0 if query.min_prob is None else query.min_prob
        high = 1.0 if query.max_prob is None else query.max_prob
        names = prob_facets(annotators, query.detector)
        yield Condition(names, lambda arrays: _within(np.fmax.reduce(arrays), low, high))


def _of_items(query: QueueQuery) -> Iterator[Condition]:
    if query.min_disagreement is not None:
        least = query.min_disagreement
        yield Condition((disagreement_of(query),), lambda arrays: arrays[0] >= least)
    if query.min_annotators is not None or query.max_annotators is not None:
        fewest = query.min_annotators or 0
        most = np.inf if query.max_annotators is None else query.max_annotators
        yield Condition((facets.PEOPLE,), lambda arrays: _within(arrays[0], fewest, most))


def _searched(
    connection: Connection, dataset: Dataset, query: QueueQuery, annotators: dict[str, Annotator]
) -> Iterator[Array]:
    authors = visible_authors(query, annotators)
    if query.text is not None:
        yield search.with_text(connection, dataset.id, query.text, authors)
    if query.label is not None:
        yield search.with_label(connection, dataset.id, query.label, authors)


def _equal(name: str, value: int) -> Condition:
    return Condition((name,), lambda arrays: arrays[0] == value)


def _within(values: Array, low: float, high: float) -> Mask:
    mask: Mask = (values >= low) & (values <= high)
    return mask


def _windows(position: int, n_items: int) -> Iterator[tuple[int, int]]:
    start, blocks = position - position % BLOCK, 1
    while start < n_items:
        stop = min(start + blocks * BLOCK, n_items)
        yield start, stop
        start, blocks = stop, blocks * _GROWTH


def _windows_back(position: int) -> Iterator[tuple[int, int]]:
    stop, blocks = position, 1
    while stop > 0:
        start = max(0, (stop - 1) // BLOCK + 1 - blocks) * BLOCK
        yield start, stop
        stop, blocks = start, blocks * _GROWTH


def _highest(scores: Array, limit: int) -> Array:
    """Return the indices of the ``limit`` highest scores, highest first, ties by index."""
    if len(scores) <= 4 * limit:
        return np.lexsort((np.arange(len(scores)), -scores))[:limit]
    # Of the maxima of some pieces, at least ``limit`` reach the one of that rank; so do at least
    # as many scores, and few pieces have higher ones. Selecting on all scores is slow with ties.
    maxima = np.maximum.reduceat(scores, np.arange(0, len(scores), len(scores) // (4 * limit)))
    least = np.partition(maxima, len(maxima) - limit)[len(maxima) - limit]
    above = np.flatnonzero(scores > least)
    if len(above) >= limit:
        chosen: Array = above[_highest(scores[above], limit)]
        return chosen
    level = np.flatnonzero(scores == least)[: limit - len(above)]
    return np.concatenate([above[_highest(scores[above], limit)], level])
