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
from spanlab.schema import UNDETERMINED
from spanlab.storage import facets
from spanlab.storage.catalog import Dataset, annotators_of
from spanlab.storage.facets import BLOCK
from spanlab.storage.items import position_of
from spanlab.storage.queue import Cursor, Page, QueueQuery, QueueRow
from spanlab.storage.selection import Selection, disagreement_of, prob_facets
from spanlab.storage.tables import items

_EXCERPT = 160  # characters of question and answer in a row


def page(connection: Connection, dataset: Dataset, query: QueueQuery) -> Page:
    """Return the rows at the place that ``query`` names; no rows if there is nothing there."""
    selection = Selection.of(connection, dataset, query)
    forward = query.before is None
    found = _search(selection, query, query.after or query.before, query.limit + 1, forward=forward)
    shown = found[: query.limit] if forward else found[query.limit - 1 :: -1]
    rows = _rows(connection, dataset, query, shown)
    if not rows:
        return Page((), None, None)
    first, last = rows[0].cursor, rows[-1].cursor
    more_ahead = len(found) > query.limit
    behind = first if forward else last
    more_behind = (query.after or query.before) is not None and bool(
        _search(selection, query, behind, 1, forward=not forward)
    )
    before, after = (more_behind, more_ahead) if forward else (more_ahead, more_behind)
    return Page(tuple(rows), first if before else None, last if after else None)


def neighbour(
    connection: Connection, dataset: Dataset, query: QueueQuery, item_id: str, step: int
) -> str | None:
    """Return the id of the item after (``step`` 1) or before (-1) ``item_id`` under ``query``.

    The item itself need not pass the filter any more. By disagreement its place is
    ``query.after`` if that is its cursor, else that of its disagreement now: finishing an item
    changes its disagreement, and the queue should go on from where it was.

    Returns:
        None if the queue ends there.

    Raises:
        NotFoundError: there is no such item.
    """
    if step not in {1, -1}:
        raise UsageError(f"step {step} is neither 1 nor -1")
    position = position_of(connection, dataset, item_id)
    place = query.after
    if place is None or place.position != position:
        scores = _values(connection, dataset, (disagreement_of(query),), [position])
        place = Cursor(position, _known(scores[position][0]))
    selection = Selection.of(connection, dataset, query)
    found = _search(selection, query, place, 1, forward=step == 1)
    if not found:
        return None
    ((neighbour_id, _),) = _texts(connection, dataset, found).values()
    return neighbour_id


def _search(
    selection: Selection, query: QueueQuery, place: Cursor | None, limit: int, *, forward: bool
) -> list[int]:
    if query.order == "disagreement":
        return selection.ranked(place, limit, forward=forward)
    if forward:
        return selection.following(0 if place is None else place.position + 1, limit)
    return selection.preceding(place.position if place else selection.dataset.n_items, limit)


def _rows(
    connection: Connection, dataset: Dataset, query: QueueQuery, positions: list[int]
) -> list[QueueRow]:
    known = annotators_of(connection, dataset.id)
    reviewer = known.get(query.reviewer)
    status = facets.status_of(-1 if reviewer is None else reviewer.id)
    probs = prob_facets(known, query.detector)
    names = (status, disagreement_of(query), facets.PEOPLE, *probs)
    values = _values(connection, dataset, names, positions)
    texts = _texts(connection, dataset, positions)
    rows = []
    for position in positions:
        code, disagreement, people, *said = values[position]
        item_id, item = texts[position]
        rows.append(
            QueueRow(
                item_id=item_id,
                position=position,
                lang=item.get("lang", UNDETERMINED),
                question=_excerpt(item.get("question", "")),
                answer=_excerpt(item["answer"]),
                status=facets.STATUSES[int(code)],
                max_prob=_known(float(np.fmax.reduce(said))),
                disagreement=_known(disagreement),
                n_annotators=int(people),
            )
        )
    return rows


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
