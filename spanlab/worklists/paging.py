"""Pages of a queue and the steps from one item of it to the next."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from sqlalchemy import or_, select

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    QueueCursor,
    QueuePage,
    QueuePlace,
    QueueQuery,
    QueueRow,
    Status,
)
from spanlab.storage import Store
from spanlab.storage.items import id_at, position_of
from spanlab.storage.tables import annotated, queue_values
from spanlab.worklists.selection import (
    CALLED_HALLUCINATED,
    CALLED_RIGHT,
    Selection,
    selecting,
)

_EXCERPT = 160  # characters of question and answer in a row


def page(store: Store, dataset: str, query: QueueQuery) -> QueuePage:
    """Return the rows at the place that ``query`` names; no rows if there is nothing there."""
    with selecting(store, dataset, query) as selection:
        return _page(selection)


def neighbour(
    store: Store, dataset: str, query: QueueQuery, item_id: str | None, step: int = 1
) -> str | None:
    """Return the id of the item after (``step`` 1) or before (-1) ``item_id`` under ``query``.

    The item itself need not pass the filter any more. Its place is ``query.after`` if that is its
    cursor, else that of its values now: finishing an item changes its disagreement, and the queue
    should go on from where it was. Without an item it is the first, or the last.

    Returns:
        None if the queue ends there.

    Raises:
        NotFoundError: there is no such item.
    """
    if step not in {1, -1}:
        raise UsageError(f"step {step} is neither 1 nor -1")
    with selecting(store, dataset, query) as selection:
        here, place = item_id and _place(selection, item_id), selection.query.after
        if not here or place is None or place.position != here.position:
            place = here or None
        found = selection.search(place, 1, forward=step == 1)
        return id_at(selection.connection, selection.dataset, found[0]) if found else None


def standing(store: Store, dataset: str, query: QueueQuery, item_id: str) -> QueuePlace:
    """Return which item of the whole queue ``item_id`` is, and of how many.

    Raises:
        NotFoundError: there is no such item.
    """
    with selecting(store, dataset, query) as selection:
        return selection.standing(_place(selection, item_id))


def positions(store: Store, dataset: str, query: QueueQuery) -> list[int]:
    """Return the places in import order of all items that pass the filter of ``query``.

    The query's own place and limit are ignored.
    """
    with selecting(store, dataset, query) as selection:
        return selection.positions()


def n_unanimous(store: Store, dataset: str, query: QueueQuery) -> int:
    """Return on how many items of a queue all people agree, who are at least two; blind 0."""
    with selecting(store, dataset, query) as selection:
        blind = selection.query.blind
        return 0 if blind else selection.count(queue_values.c.unanimous == 1)


def _page(selection: Selection) -> QueuePage:
    query = selection.query
    forward = query.before is None
    place = query.after or query.before
    found = selection.search(place, query.limit + 1, forward=forward)
    rows = _rows(selection, found[: query.limit] if forward else found[query.limit - 1 :: -1])
    if not rows:
        return QueuePage((), None, None)
    first, last = rows[0].cursor, rows[-1].cursor
    more_ahead = len(found) > query.limit
    behind = first if forward else last
    more_behind = place is not None and bool(selection.search(behind, 1, forward=not forward))
    has_before, has_after = (more_behind, more_ahead) if forward else (more_ahead, more_behind)
    return QueuePage(tuple(rows), first if has_before else None, last if has_after else None)


def _place(selection: Selection, item_id: str) -> QueueCursor:
    """Return where an item stands in the order now."""
    position = position_of(selection.connection, selection.dataset, item_id)
    query = selection.query
    if query.order == "import" and not (query.listed or query.sample):
        return QueueCursor(position)
    for row in selection.rows([position]):
        return QueueCursor(row.place, row.value)
    raise NotFoundError(f"the dataset {selection.dataset.name!r} has no item {item_id!r}")


def _rows(selection: Selection, positions: Sequence[int]) -> list[QueueRow]:
    labels, judged = _labels(selection, positions), _judged(selection, positions)
    rows = []
    for row in selection.rows(positions):
        item, (n_judges, n_hallucinated) = json.loads(row.json), judged[row.position]
        rows.append(
            QueueRow(
                item_id=row.item_id,
                position=row.place,
                lang=row.lang,
                question=_excerpt(item.get("question", "")),
                answer=_excerpt(item["answer"]),
                status=Status(row.status or Status.NOT_ANNOTATED),
                max_prob=row.max_prob,
                disagreement=row.disagreement,
                n_passages=row.n_passages,
                n_claims=row.n_claims,
                labels=labels[row.position],
                n_judges=n_judges,
                n_hallucinated=n_hallucinated,
                value=None if row.value is None else float(row.value),
            )
        )
    return rows


def _judged(selection: Selection, positions: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return how many people and gold labels judge each answer, and call it hallucinated.

    Both are 0 where none of them judges it as a whole: the other columns tell of spans.
    """
    judges = selection.authors(AnnotatorKind.PERSON, AnnotatorKind.GOLD)
    here = (
        annotated.c.dataset_id == selection.dataset.id,
        annotated.c.position.in_(positions),
        annotated.c.status == Status.DONE.value,
        annotated.c.annotator_id.in_(judges),
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
            annotated.c.annotator_id.in_(selection.authors(*AnnotatorKind)),
        )
        .order_by(annotated.c.position, annotated.c.place)
    )
    by_position: dict[int, dict[str, None]] = {position: {} for position in positions}
    for position, text in selection.connection.execute(query):
        spans = json.loads(text).get("spans", ())
        by_position[position] |= dict.fromkeys(span["label"] for span in spans if "label" in span)
    return {position: tuple(labels) for position, labels in by_position.items()}


def _excerpt(text: str) -> str:
    line = " ".join(text[: 2 * _EXCERPT].split())
    is_whole = len(line) <= _EXCERPT and len(text) <= 2 * _EXCERPT
    return line if is_whole else f"{line[: _EXCERPT - 1]}…"
