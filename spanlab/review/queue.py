"""Queues of reviewers: which items come next, what a reviewer sees of one, and progress."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spanlab.oplog.operations import Review
from spanlab.schema import (
    AnnotatorKind,
    QueueCursor,
    QueuePage,
    QueuePlace,
    QueueQuery,
    SpanLabel,
    Status,
)
from spanlab.schema.progress import QueueProgress
from spanlab.storage import Store
from spanlab.storage.datasets import has_item
from spanlab.storage.sight import without_others
from spanlab.worklists import drawing, looks, paging, plans


@dataclass(frozen=True)
class QueueNeighbours:
    """The items before and after one in a queue; None where the queue ends."""

    previous: str | None
    next: str | None


def open_item(
    store: Store,
    dataset: str,
    item_id: str,
    query: QueueQuery,
    *,
    adjudicating: bool = False,
) -> Review:
    """Return an item as the reviewer of a queue may see it, and the reviewer's log on it.

    A blind reviewer gets no other person's annotations, except on finished items if the queue
    allows it, and no detector's in a queue of their own annotations alone. How many were left out
    is told where the dataset lets reviewers decide whether to see them.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    kind = AnnotatorKind.GOLD if adjudicating else AnnotatorKind.PERSON
    review = store.review(dataset, item_id, query.reviewer, kind)
    if query.own_only:
        own_annotation = review.record.by(query.reviewer)
        own_annotations = () if own_annotation is None else (own_annotation,)
        record = review.record.model_copy(update={"annotations": own_annotations})
    elif not query.blind or (query.shown_when_done and review.state.status is Status.DONE):
        if not adjudicating and without_others(review.record, query.reviewer) != review.record:
            looks.note_look(store, dataset, item_id, query.reviewer)
        return review
    else:
        record = without_others(review.record, query.reviewer)
    hidden = len(review.record.annotations) - len(record.annotations)
    always = store.settings(dataset).is_blind
    return replace(review, record=record, hidden=None if always else hidden)


def first_item(store: Store, dataset: str, query: QueueQuery) -> str | None:
    """Return the id of the item to begin a queue with, None if it is empty.

    That is the first one that the reviewer has not finished; where all are, the first of all. Of a
    queue that reserves, it is reserved.
    """
    unfinished = replace(query, status=query.status or Status.NOT_ANNOTATED)
    found = (_find_free(store, dataset, queue, None, step=1) for queue in (unfinished, query))
    return next(filter(None, found), None)


def reserve_item(store: Store, dataset: str, query: QueueQuery, item_id: str) -> tuple[str, ...]:
    """Reserve an item for the reviewer of a queue that reserves, unless enough others have it.

    Returns:
        These others, by name; empty if the item is reserved now, or of a queue that does not.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    return plans.reserve(store, dataset, item_id, query.reviewer) if query.reserve else ()


def items(store: Store, dataset: str, query: QueueQuery) -> QueuePage:
    """Return rows of the table of a queue's items.

    An item that the search names by its whole id comes before all others, wherever it is.
    """
    page = paging.page(store, dataset, query)
    named_id = None if query.after or query.before or query.listed else query.text
    if named_id is None or not has_item(store, dataset, named_id):
        return page
    (position,) = store.positions_of(dataset, [named_id])
    other_rows = tuple(row for row in page.rows if row.item_id != named_id)
    at = QueueCursor(position - 1)
    only = replace(query, text=None, order="import", reverse=False, after=at, limit=1)
    first = tuple(row for row in paging.page(store, dataset, only).rows if row.item_id == named_id)
    return replace(page, rows=(*first, *other_rows))


def standing(store: Store, dataset: str, query: QueueQuery, item_id: str) -> QueuePlace:
    """Return an item's number in the whole queue, and the number of all, with those to come.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    place = paging.standing(store, dataset, query, item_id)
    return replace(place, total=place.total + drawing.n_to_come(store, dataset, query))


def neighbours(store: Store, dataset: str, query: QueueQuery, item_id: str) -> QueueNeighbours:
    """Return the items next to ``item_id``, which need not pass the filter itself any more.

    Of a queue that reserves, they are reserved: the browser goes on to them without asking again.
    """
    return QueueNeighbours(
        previous=_find_free(store, dataset, query, item_id, step=-1),
        next=_find_free(store, dataset, query, item_id, step=1),
    )


def progress(
    store: Store, dataset: str, reviewer: str, *, adjudicating: bool = False
) -> QueueProgress:
    """Return how many items ``reviewer`` has finished, skipped, and is to finish.

    Where people have lists that is their list; elsewhere all may finish every item, as may who
    adjudicates.
    """
    if store.settings(dataset).has_lists and not adjudicating:
        return drawing.progress(store, dataset, reviewer)
    counts = store.counts(dataset, reviewer)
    done, skipped = counts.get(Status.DONE, 0), counts.get(Status.SKIPPED, 0)
    return QueueProgress(done=done, skipped=skipped, total=sum(counts.values()))


def labels(store: Store, dataset: str, query: QueueQuery) -> tuple[SpanLabel, ...]:
    """Return the labels to choose from: the dataset's set, then others that spans of it have.

    The first nine without a key of their own get the digits that are left, in order, so that each
    keeps its key when somebody uses another label. For a blind reviewer, the others are those
    that this person has used.
    """
    chosen = store.settings(dataset).labels
    names = {label.name for label in chosen}
    used = store.labels(dataset, query.reviewer if query.blind else None)
    used_labels = [SpanLabel(name=name) for name in used if name not in names]
    taken_keys = {label.key for label in chosen}
    free = (digit for digit in "123456789" if digit not in taken_keys)
    return tuple(
        label if label.key else label.model_copy(update={"key": next(free, None)})
        for label in (*chosen, *used_labels)
    )


def _find_free(
    store: Store, dataset: str, query: QueueQuery, item_id: str | None, *, step: int
) -> str | None:
    """Return the item after or before one (None: the first), but none that others have reserved."""
    while True:
        neighbour = paging.neighbour(store, dataset, query, item_id, step)
        if neighbour is None and step > 0 and query.listed:
            return drawing.draw_next(store, dataset, query)
        if neighbour is None or not reserve_item(store, dataset, query, neighbour):
            return neighbour
        item_id = neighbour
