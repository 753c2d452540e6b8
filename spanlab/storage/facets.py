"""The values that queues filter by, stored as columns: one array per facet and block of positions.

A filter over a million items is then a few array comparisons instead of a million row lookups,
whichever facets it combines and however few items match. Facets are derived from the
annotations of their items, and every change of an annotation changes them in its transaction.

    lang               code of the item's language (table ``languages``)
    people             how many persons have finished the item
    disagreement       see labels.disagreement; NaN where there is none
    disagreement/detectors  the same of detectors alone, for those who review blind
    status/<annotator> number of the annotator's status, in the order of schema.Status
    prob/<annotator>   highest span probability, 0 without spans; NaN where it has not finished
    labels/<annotator> how many different labels its spans have
    claims/<annotator> how many claims it has
    passages           how many passages the item has
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, delete, select, tuple_, update

from spanlab.labels import disagreement
from spanlab.schema import Annotation, Kind, Status
from spanlab.storage.sql import insert_new
from spanlab.storage.tables import facets

BLOCK = 4096  # positions per stored array: small enough to rewrite for one change

LANG = "lang"
PEOPLE = "people"
DISAGREEMENT = "disagreement"
OF_DETECTORS = "disagreement/detectors"
PASSAGES = "passages"
LABELS = "labels"
CLAIMS = "claims"

Array = NDArray[Any]

STATUSES = tuple(Status)  # a status is stored as its index here; 0 is not annotated
_MOST = 2**16 - 1  # labels or claims that are told apart
_KINDS: dict[str, tuple[np.dtype[Any], float]] = {  # stored type, and what absence means
    LANG: (np.dtype("<u2"), 0),
    PEOPLE: (np.dtype("<u2"), 0),
    DISAGREEMENT: (np.dtype("<f8"), math.nan),
    "status": (np.dtype("<u1"), 0),
    "prob": (np.dtype("<f8"), math.nan),
    LABELS: (np.dtype("<u2"), 0),
    CLAIMS: (np.dtype("<u2"), 0),
    PASSAGES: (np.dtype("<u4"), 0),
}


def status_of(annotator: int) -> str:
    """Return the name of the facet that holds the statuses of ``annotator``."""
    return f"status/{annotator}"


def prob_of(annotator: int) -> str:
    """Return the name of the facet that holds the probabilities of ``annotator``."""
    return f"prob/{annotator}"


def of_annotators(connection: Connection, dataset: int, what: str) -> dict[int, str]:
    """Return the stored facets "``what``/<annotator>" by the annotator's number."""
    query = select(facets.c.name).where(facets.c.dataset_id == dataset)
    bounds = facets.c.name.between(f"{what}/", f"{what}/9999999999")
    names = connection.execute(query.where(bounds).distinct()).scalars()
    return {int(name.partition("/")[2]): name for name in names}


def forget(connection: Connection, dataset: int, annotator: int) -> None:
    """Delete all facets of an annotator."""
    names = [f"{what}/{annotator}" for what in ("status", "prob", LABELS, CLAIMS)]
    here = (facets.c.dataset_id == dataset, facets.c.name.in_(names))
    connection.execute(delete(facets).where(*here))


def decides(kind: Kind, status: Status) -> bool:
    """Return whether such an annotation can agree or disagree with others."""
    return status is Status.DONE and kind in {Kind.PERSON, Kind.DETECTOR}


def blank(name: str, size: int) -> Array:
    """Return ``size`` values of the facet ``name`` that stand for "not set"."""
    kind, fill = _KINDS[name.partition("/")[0]]
    return np.full(size, fill, dtype=kind)


def read(
    connection: Connection, dataset: int, names: Sequence[str], start: int, stop: int
) -> dict[str, Array]:
    """Return the values of the facets ``names`` at the positions ``[start, stop)``.

    ``start`` must be the start of a block. What was never written is ``blank``.
    """
    arrays = {name: blank(name, stop - start) for name in names}
    rows = connection.execute(
        select(facets.c.name, facets.c.block, facets.c.data).where(
            facets.c.dataset_id == dataset,
            facets.c.name.in_(arrays),
            facets.c.block.between(start // BLOCK, max(stop - 1, start) // BLOCK),
        )
    )
    for name, block, data in rows:
        at = block * BLOCK - start
        values = np.frombuffer(data, dtype=arrays[name].dtype)[: stop - start - at]
        arrays[name][at : at + len(values)] = values
    return arrays


class Changes:
    """Values to set, by facet and position, gathered for one write per block."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)

    def set(self, name: str, position: int, value: float) -> None:
        """Let the facet ``name`` be ``value`` at ``position``."""
        self._blocks[name, position // BLOCK][position % BLOCK] = value

    def say(self, position: int, annotator: int, annotation: Annotation) -> None:
        """Set what depends on one ``annotation``; its probability is NaN if it is unfinished."""
        highest = math.nan
        if annotation.status is Status.DONE:
            highest = max((span.prob for span in annotation.spans), default=0.0)
        self.set(status_of(annotator), position, STATUSES.index(annotation.status))
        self.set(prob_of(annotator), position, highest)
        labels = {span.label for span in annotation.spans if span.label is not None}
        self.set(f"{LABELS}/{annotator}", position, min(len(labels), _MOST))
        self.set(f"{CLAIMS}/{annotator}", position, min(len(annotation.claims), _MOST))

    def judge(self, position: int, annotations: Sequence[Annotation]) -> None:
        """Set what depends on all ``annotations`` of the item: persons and disagreement."""
        finished = [each for each in annotations if decides(each.kind, each.status)]
        detectors = [each for each in finished if each.kind is Kind.DETECTOR]
        score = _disagreement(finished)
        self.set(PEOPLE, position, len(finished) - len(detectors))
        self.set(DISAGREEMENT, position, score)
        alone = score if len(detectors) == len(finished) else _disagreement(detectors)
        self.set(OF_DETECTORS, position, alone)

    def write(self, connection: Connection, dataset: int) -> None:
        """Write all values; blocks that stay the same are left alone."""
        if not self._blocks:
            return
        blank = {key for key, cells in self._blocks.items() if _is_blank(key[0], cells)}
        stored = _lock(connection, dataset, sorted(self._blocks), blank)
        rows = []
        for (name, block), cells in self._blocks.items():
            if (name, block) not in stored:
                continue
            data = _merged(name, stored[name, block], cells)
            if data != stored[name, block]:
                rows.append({"of": dataset, "called": name, "at": block, "data": data})
        if rows:
            connection.execute(
                update(facets).where(
                    facets.c.dataset_id == bindparam("of"),
                    facets.c.name == bindparam("called"),
                    facets.c.block == bindparam("at"),
                ),
                rows,
            )


def _disagreement(finished: Sequence[Annotation]) -> float:
    score = disagreement(finished) if len(finished) > 1 else None
    return math.nan if score is None else score


def _lock(
    connection: Connection,
    dataset: int,
    keys: Sequence[tuple[str, int]],
    blank: Set[tuple[str, int]],
) -> dict[tuple[str, int], bytes]:
    """Lock and return blocks; those that are missing are made, unless they would be ``blank``."""
    # Blocks are locked in one order everywhere, so that no two writers wait for each other.
    query = (
        select(facets.c.name, facets.c.block, facets.c.data)
        .where(facets.c.dataset_id == dataset, tuple_(facets.c.name, facets.c.block).in_(keys))
        .order_by(facets.c.name, facets.c.block)
        .with_for_update()
    )
    found = {(name, block): bytes(data) for name, block, data in connection.execute(query)}
    missing = [key for key in keys if key not in found and key not in blank]
    if not missing:
        return found
    rows = [{"dataset_id": dataset, "name": n, "block": b, "data": b""} for n, b in missing]
    connection.execute(insert_new(connection, facets), rows)
    return {(name, block): bytes(data) for name, block, data in connection.execute(query)}


def _is_blank(name: str, cells: Mapping[int, float]) -> bool:
    # Most annotators have no labels and no claims: nothing is stored for them.
    return name.partition("/")[0] in {LABELS, CLAIMS} and not any(cells.values())


def _merged(name: str, data: bytes, cells: Mapping[int, float]) -> bytes:
    dtype = blank(name, 0).dtype
    before = np.frombuffer(data, dtype=dtype)
    array = blank(name, max(len(before), 1 + max(cells)))
    array[: len(before)] = before
    array[list(cells)] = list(cells.values())
    return array.tobytes()
