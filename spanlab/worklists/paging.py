"""Pages of a queue and the steps from one item of it to the next."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sqlalchemy import ColumnElement, RowMapping, and_, or_, select

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.schema import (
    UNDETERMINED,
    Annotation,
    Order,
    QueueCursor,
    QueuePage,
    QueuePlace,
    QueueQuery,
    QueueRow,
    Status,
)
from spanlab.storage import Store
from spanlab.storage.items import position_of
from spanlab.storage.tables import annotated, items, queue_items, queue_values
from spanlab.worklists.queue_filter import CALLED_HALLUCINATED, CALLED_RIGHT
from spanlab.worklists.selection import STATUSES, Selection

_COUNTED: tuple[Order, ...] = ("labels", "claims")
_EXCERPT = 160  # characters of question and answer in a row


def page(store: Store, dataset: str, query: QueueQuery) -> QueuePage:
    """Return the rows at the place that ``query`` names; no rows if there is nothing there."""
    with _selecting(store, dataset, query) as selection:
        return _page(selection)


def neighbour(
    store: Store, dataset: str, query: QueueQuery, item_id: str, step: int = 1
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
    with _selecting(store, dataset, query) as selection:
        here, place = _place(selection, item_id), selection.query.after
        if place is None or place.position != here.position:
            place = here
        positions = selection.search(place, 1, forward=step == 1)
        if not positions:
            return None
        named = select(items.c.item_id).where(
            items.c.dataset_id == selection.dataset.id, items.c.position == positions[0]
        )
        return str(selection.connection.execute(named).scalar_one())


def standing(store: Store, dataset: str, query: QueueQuery, item_id: str) -> QueuePlace:
    """Return which item of the whole queue ``item_id`` is, and of how many.

    Raises:
        NotFoundError: there is no such item.
    """
    with _selecting(store, dataset, query) as selection:
        return selection.standing(_place(selection, item_id))


def positions(store: Store, dataset: str, query: QueueQuery) -> list[int]:
    """Return the places in import order of all items that pass the filter of ``query``.

    The query's own place and limit are ignored.
    """
    with _selecting(store, dataset, query) as selection:
        return selection.positions()


@contextmanager
def _selecting(store: Store, dataset: str, query: QueueQuery) -> Iterator[Selection]:
    """Give the items of a queue as the store's actor sees it."""
    with store.reading(dataset, query.reviewer) as (connection, row, sight):
        yield Selection(connection, row, sight.query(query))


def _page(selection: Selection) -> QueuePage:
    query = selection.query
    forward = query.before is None
    place = query.after or query.before
    positions = selection.search(place, query.limit + 1, forward=forward)
    shown = positions[: query.limit] if forward else positions[query.limit - 1 :: -1]
    rows = _rows(selection, shown)
    if not rows:
        return QueuePage((), None, None)
    first, last = rows[0].cursor, rows[-1].cursor
    more_ahead = len(positions) > query.limit
    behind = first if forward else last
    more_behind = place is not None and bool(selection.search(behind, 1, forward=not forward))
    has_before, has_after = (more_behind, more_ahead) if forward else (more_ahead, more_behind)
    return QueuePage(tuple(rows), first if has_before else None, last if has_after else None)


def _place(selection: Selection, item_id: str) -> QueueCursor:
    """Return where an item stands in the order now."""
    position = position_of(selection.connection, selection.dataset, item_id)
    place = selection.place_of(position)
    if place is None:
        raise NotFoundError(f"the dataset {selection.dataset.name!r} has no item {item_id!r}")
    if selection.query.order == "import":
        return QueueCursor(place)
    return _rows(selection, [position])[0].cursor


def _rows(selection: Selection, positions: list[int]) -> list[QueueRow]:
    labels, judged = _labels(selection, positions), _judged(selection, positions)
    stored = {row["position"]: row for row in _read_stored(selection, positions)}
    rows = []
    for position in positions:
        row = _row(selection.query, stored[position], labels[position])
        n_judges, n_hallucinated = judged[position]
        rows.append(replace(row, n_judges=n_judges, n_hallucinated=n_hallucinated))
    return rows


def _read_stored(selection: Selection, positions: Sequence[int]) -> Sequence[RowMapping]:
    """Return items with their values, and what the reviewer and the named detector have."""
    own, detector = annotated.alias("own"), annotated.alias("detector")
    query, dataset = selection.query, selection.dataset.id
    place: ColumnElement[int] = queue_values.c.position
    joined = queue_values.join(
        items,
        and_(items.c.dataset_id == dataset, items.c.position == queue_values.c.position),
    )
    for table, name in ((own, query.reviewer), (detector, query.detector)):
        annotator = selection.annotator(name)
        joined = joined.outerjoin(
            table,
            and_(
                table.c.dataset_id == dataset,
                table.c.position == queue_values.c.position,
                table.c.annotator_id == (-1 if annotator is None else annotator.id),
            ),
        )
    if query.listed:
        place = queue_items.c.place
        joined = joined.join(
            queue_items,
            and_(
                queue_items.c.dataset_id == dataset,
                queue_items.c.reviewer == query.reviewer,
                queue_items.c.position == queue_values.c.position,
            ),
        )
    columns = (
        *(items.c.item_id, items.c.json, place.label("place")),
        selection.n_people.label("told_people"),
        own.c.status.label("own_status"),
        own.c.n_labels.label("own_labels"),
        own.c.n_claims.label("own_claims"),
        detector.c.prob.label("detector_prob"),
    )
    rows = (
        select(queue_values, *columns)
        .select_from(joined)
        .where(queue_values.c.dataset_id == dataset, queue_values.c.position.in_(positions))
    )
    return selection.connection.execute(rows).mappings().all()


def _row(query: QueueQuery, stored: RowMapping, labels: tuple[str, ...]) -> QueueRow:
    item = json.loads(stored["json"])
    counts: dict[Order, int] = {
        kind: max(stored[f"detector_{kind}"], stored[f"own_{kind}"] or 0)
        if query.blind
        else stored[f"n_{kind}"]
        for kind in _COUNTED
    }
    status = Status(stored["own_status"] or Status.NOT_ANNOTATED)
    disagreement = stored["detector_disagreement" if query.blind else "disagreement"]
    max_prob = stored["max_prob" if query.detector is None else "detector_prob"]
    values: dict[Order, float | None] = {
        "import": None,
        "disagreement": disagreement,
        "probability": max_prob,
        "uncertainty": None if max_prob is None else 0.5 - abs(max_prob - 0.5),
        "status": STATUSES.index(status),
        **counts,
        "passages": stored["n_passages"],
    }
    value = values[query.order]
    return QueueRow(
        item_id=stored["item_id"],
        position=stored["place"],
        lang=item.get("lang", UNDETERMINED),
        question=_excerpt(item.get("question", "")),
        answer=_excerpt(item["answer"]),
        status=status,
        max_prob=max_prob,
        disagreement=disagreement,
        n_annotators=stored["told_people"],
        n_passages=stored["n_passages"],
        n_claims=counts["claims"],
        labels=labels,
        value=None if value is None else float(value),
    )


def _judged(selection: Selection, positions: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return how many people and gold labels judge each answer, and call it hallucinated.

    Both are 0 where none of them judges it as a whole: the other columns tell of spans.
    """
    here = (
        annotated.c.dataset_id == selection.dataset.id,
        annotated.c.position.in_(positions),
        annotated.c.status == Status.DONE.value,
        annotated.c.annotator_id.in_(selection.judges),
    )
    judged = select(annotated.c.position).where(*here, or_(CALLED_HALLUCINATED, CALLED_RIGHT))
    query = select(annotated.c.position, annotated.c.json).where(
        *here, annotated.c.position.in_(judged)
    )
    counts = dict.fromkeys(positions, (0, 0))
    for position, text in selection.connection.execute(query):
        n_judges, n_hallucinated = counts[position]
        said = Annotation.model_validate_json(text).hallucinated
        counts[position] = n_judges + 1, n_hallucinated + bool(said)
    return counts


def _labels(selection: Selection, positions: Collection[int]) -> dict[int, tuple[str, ...]]:
    """Return the labels that spans have, by position, as far as the query may know of them."""
    query = (
        select(annotated.c.position, annotated.c.json)
        .where(
            annotated.c.dataset_id == selection.dataset.id,
            annotated.c.position.in_(positions),
            annotated.c.n_labels > 0,
        )
        .order_by(annotated.c.position, annotated.c.place)
    )
    authors = selection.seen_authors
    if authors is not None:
        query = query.where(annotated.c.annotator_id.in_(authors))
    by_position: dict[int, dict[str, None]] = {position: {} for position in positions}
    for position, text in selection.connection.execute(query):
        spans = json.loads(text).get("spans", ())
        by_position[position] |= dict.fromkeys(span["label"] for span in spans if "label" in span)
    return {position: tuple(labels) for position, labels in by_position.items()}


def _excerpt(text: str) -> str:
    line = " ".join(text[: 2 * _EXCERPT].split())
    is_whole = len(line) <= _EXCERPT and len(text) <= 2 * _EXCERPT
    return line if is_whole else f"{line[: _EXCERPT - 1]}…"
