"""Pages of a queue and the steps from one item of it to the next."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from spanlab.errors import UsageError
from spanlab.schema import UNDETERMINED, Cursor, Page, QueueQuery, QueueRow, Standing
from spanlab.storage import facets
from spanlab.storage.catalog import Dataset, annotators_of
from spanlab.storage.facets import BLOCK
from spanlab.storage.items import position_of
from spanlab.storage.ranking import (
    Facets,
    counted,
    disagreement_of,
    prob_facets,
    status_facet,
    visible_authors,
)
from spanlab.storage.selection import Selection
from spanlab.storage.tables import annotated, items

_EXCERPT = 160  # characters of question and answer in a row


def page(connection: Connection, dataset: Dataset, query: QueueQuery) -> Page:
    """Return the rows at the place that ``query`` names; no rows if there is nothing there."""
    selection = Selection.of(connection, dataset, query)
    forward = query.before is None
    place = query.after or query.before
    found = selection.search(place, query.limit + 1, forward=forward)
    shown = found[: query.limit] if forward else found[query.limit - 1 :: -1]
    rows = _rows(selection, query, shown)
    if not rows:
        return Page((), None, None)
    first, last = rows[0].cursor, rows[-1].cursor
    more_ahead = len(found) > query.limit
    behind = first if forward else last
    more_behind = place is not None and bool(selection.search(behind, 1, forward=not forward))
    before, after = (more_behind, more_ahead) if forward else (more_ahead, more_behind)
    return Page(tuple(rows), first if before else None, last if after else None)


def neighbour(
    connection: Connection, dataset: Dataset, query: QueueQuery, item_id: str, step: int
) -> str | None:
    """Return the id of the item after (``step`` 1) or before (-1) ``item_id`` under ``query``.

    The item itself need not pass the filter any more. Its place is ``query.after`` if that is its
    cursor, else that of its values now: finishing an item changes its disagreement, and the queue
    should go on from where it was.

    Returns:
        None if the queue ends there.

    Raises:
        NotFoundError: there is no such item.
    """
    if step not in {1, -1}:
        raise UsageError(f"step {step} is neither 1 nor -1")
    position = position_of(connection, dataset, item_id)
    selection = Selection.of(connection, dataset, query)
    place = query.after
    if place is None or place.position != position:
        place = Cursor(position, _ordered_by(selection, position))
    found = selection.search(place, 1, forward=step == 1)
    if not found:
        return None
    ((neighbour_id, _),) = _texts(connection, dataset, found).values()
    return neighbour_id


def standing(connection: Connection, dataset: Dataset, query: QueueQuery, item_id: str) -> Standing:
    """Return which item of the whole queue ``item_id`` is, and of how many.

    Raises:
        NotFoundError: there is no such item.
    """
    position = position_of(connection, dataset, item_id)
    return Selection.of(connection, dataset, query).standing(position)


def _ordered_by(selection: Selection, position: int) -> float | None:
    """Return the value by which the item at ``position`` is ordered now."""
    if selection.ranking is None:
        return None
    names = selection.ranking.facets
    values = _values(selection.connection, selection.dataset, names, [position])[position]
    return _known(float(np.fmax.reduce(values)))


def _rows(selection: Selection, query: QueueQuery, positions: list[int]) -> list[QueueRow]:
    connection, dataset = selection.connection, selection.dataset
    known = annotators_of(connection, dataset.id)
    facets_of: dict[str, Facets] = {
        "status": (status_facet(known, query.reviewer),),
        "max_prob": prob_facets(known, query.detector),
        "disagreement": (disagreement_of(query),),
        "n_annotators": (facets.PEOPLE,),
        "n_passages": (facets.PASSAGES,),
        "n_claims": counted(connection, dataset, query, known, facets.CLAIMS),
        "value": () if selection.ranking is None else selection.ranking.facets,
    }
    names = sorted({name for group in facets_of.values() for name in group})
    values = _values(connection, dataset, names, positions)
    texts = _texts(connection, dataset, positions)
    labels = _labels(connection, dataset, positions, visible_authors(query, known))
    rows = []
    for position in positions:
        at = dict(zip(names, values[position], strict=True))
        highest = {
            what: _known(max((at[n] for n in group if not math.isnan(at[n])), default=math.nan))
            for what, group in facets_of.items()
        }
        item_id, item = texts[position]
        rows.append(
            QueueRow(
                item_id=item_id,
                position=position,
                lang=item.get("lang", UNDETERMINED),
                question=_excerpt(item.get("question", "")),
                answer=_excerpt(item["answer"]),
                status=facets.STATUSES[int(highest["status"] or 0)],
                max_prob=highest["max_prob"],
                disagreement=highest["disagreement"],
                n_annotators=int(highest["n_annotators"] or 0),
                n_passages=int(highest["n_passages"] or 0),
                n_claims=int(highest["n_claims"] or 0),
                labels=labels[position],
                value=highest["value"],
            )
        )
    return rows


def _labels(
    connection: Connection, dataset: Dataset, positions: list[int], authors: set[int] | None
) -> dict[int, tuple[str, ...]]:
    """Return the labels that ``authors`` (None: anybody) gave spans, by position."""
    query = (
        select(annotated.c.position, annotated.c.json)
        .where(
            annotated.c.dataset_id == dataset.id,
            annotated.c.position.in_(positions),
            annotated.c.json.contains('"label"'),
        )
        .order_by(annotated.c.position, annotated.c.place)
    )
    if authors is not None:
        query = query.where(annotated.c.annotator_id.in_(authors))
    found: dict[int, dict[str, None]] = {position: {} for position in positions}
    for position, text in connection.execute(query):
        spans = json.loads(text).get("spans", ())
        found[position] |= dict.fromkeys(s["label"] for s in spans if "label" in s)
    return {position: tuple(labels) for position, labels in found.items()}


def _values(
    connection: Connection, dataset: Dataset, names: Sequence[str], positions: list[int]
) -> dict[int, list[float]]:
    blocks: dict[int, list[int]] = defaultdict(list)
    for position in positions:
        blocks[position // BLOCK].append(position)
    values = {}
    for block, places in blocks.items():
        start = block * BLOCK
        arrays = facets.read(connection, dataset.id, names, start, max(places) + 1)
        for position in places:
            values[position] = [float(arrays[name][position - start]) for name in names]
    return values


def _texts(
    connection: Connection, dataset: Dataset, positions: list[int]
) -> dict[int, tuple[str, dict[str, Any]]]:
    rows = connection.execute(
        select(items.c.position, items.c.item_id, items.c.json).where(
            items.c.dataset_id == dataset.id, items.c.position.in_(positions)
        )
    )
    return {position: (item_id, json.loads(text)) for position, item_id, text in rows}


def _excerpt(text: str) -> str:
    line = " ".join(text[: 2 * _EXCERPT].split())
    whole = len(line) <= _EXCERPT and len(text) <= 2 * _EXCERPT
    return line if whole else f"{line[: _EXCERPT - 1]}…"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
