"""Queues of reviewers, and one item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from spanlab.errors import NotFoundError
from spanlab.schema import (
    AnnotatorKind,
    KnownAnswers,
    QueueCursor,
    QueuePage,
    QueuePlace,
    QueueQuery,
    SpanLabel,
    Status,
)
from spanlab.storage import Review, Store
from spanlab.storage.campaigns import GivenItem, KnownItems
from spanlab.workflows.blind import without_others


@dataclass(frozen=True)
class QueueNeighbours:
    """The items before and after one in a queue; None where the queue ends."""

    previous: str | None
    next: str | None


@dataclass(frozen=True)
class QueueProgress:
    """How far a reviewer has come, in items: of their part of a plan, else of the dataset.

    ``beyond`` are those they finished that the plan gives to others.
    """

    done: int
    skipped: int
    total: int
    planned: bool = False
    beyond: int = 0


def open_item(
    store: Store,
    dataset: str,
    item_id: str,
    query: QueueQuery,
    *,
    adjudicating: bool = False,
) -> Review:
    """Return an item as the reviewer of a queue may see it, and the reviewer's log on it.

    It comes with all annotations; to who reviews blind with none of other people, unless the queue
    shows them of items that are done, and in a queue of one's own alone with none of detectors
    either. How many were left out is told where the dataset leaves it to reviewers whether to see
    them.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    kind = AnnotatorKind.GOLD if adjudicating else AnnotatorKind.PERSON
    found = store.review(dataset, item_id, query.reviewer, kind)
    if query.own_only:
        mine = found.record.by(query.reviewer)
        seen = found.record.model_copy(update={"annotations": () if mine is None else (mine,)})
    elif not query.blind or (query.shown_when_done and found.state.status is Status.DONE):
        return found
    else:
        seen = without_others(found.record, query.reviewer)
    hidden = len(found.record.annotations) - len(seen.annotations)
    always = store.settings(dataset).always_blind
    return replace(found, record=seen, hidden=None if always else hidden)


def has_item(store: Store, dataset: str, item_id: str) -> bool:
    """Return whether the dataset is there and has an item of this id."""
    try:
        store.positions_of(dataset, [item_id])
    except NotFoundError:
        return False
    return True


def first_item(
    store: Store, dataset: str, query: QueueQuery, sample: Sequence[str] = ()
) -> str | None:
    """Return the id of the item to begin a queue with, None if it is empty.

    That is the first one that the reviewer has not finished; where all are, the first of all. Of a
    queue that reserves, it is reserved. A ``sample`` gives the items in an order of its own.
    """
    if sample:
        found = next(_undecided(store, dataset, query, sample), None)
        return sample[0] if found is None else found
    unfinished = replace(query, limit=1, status=query.status or Status.NOT_ANNOTATED)
    for each in (unfinished, replace(query, limit=1)):
        rows = store.page(dataset, each).rows
        first = rows[0].item_id if rows else None
        if first is None or not holders(store, dataset, query, first):
            found = first
        else:
            found = _free(store, dataset, each, first, step=1)
        if found is not None:
            return found
    return None


def holders(store: Store, dataset: str, query: QueueQuery, item_id: str) -> tuple[str, ...]:
    """Reserve an item for the reviewer of a queue that reserves, unless enough others have it.

    Returns:
        These others, by name; empty if the item is reserved now, or of a queue that does not.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    if not query.reserve or query.max_annotators is None:
        return ()
    return store.reserve(dataset, item_id, query.reviewer, query.max_annotators + 1)


def assigned(store: Store, dataset: str, reviewer: str, item_id: str) -> tuple[str, ...]:
    """Return to whom an item is assigned; nobody if the reviewer is among them.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    settings = store.settings(dataset)
    people = settings.assigned_to
    if not people or (settings.known and _given(store, dataset, reviewer, item_id)):
        return ()
    (position,) = store.positions_of(dataset, [item_id])
    finished: set[str] = set()
    if settings.away:
        said = Store(store.database).record(dataset, item_id).annotations  # others' too
        finished = {each.annotator for each in said if each.status is Status.DONE}
    shares = {name: settings.share_of(name) for name in people}
    named = [name for name, share in shares.items() if share and share.has(position, finished)]
    return () if reviewer in named else tuple(named)


def _given(store: Store, dataset: str, reviewer: str, item_id: str) -> GivenItem | None:
    """Return the known item that a person was given by its id; None for any other item."""
    given = store.known_items(dataset, reviewer).given
    return next((each for each in given if each.item_id == item_id), None)


def items(store: Store, dataset: str, query: QueueQuery) -> QueuePage:
    """Return rows of the table of a queue's items.

    An item that the search names by its whole id comes before all others, wherever it stands.
    """
    found = store.page(dataset, query)
    named = None if query.after or query.before else query.text
    if named is None or not has_item(store, dataset, named):
        return found
    (position,) = store.positions_of(dataset, [named])
    rest = tuple(row for row in found.rows if row.item_id != named)
    at = QueueCursor(position - 1)
    only = replace(query, text=None, order="import", reverse=False, after=at, limit=1)
    first = tuple(row for row in store.page(dataset, only).rows if row.item_id == named)
    return replace(found, rows=(*first, *rest))


def _undecided(
    store: Store, dataset: str, query: QueueQuery, sample: Sequence[str]
) -> Iterator[str]:
    """Yield a sample's items that are left to a reviewer."""
    finished = store.finished(dataset)
    done = {item.item_id for item in finished if item.annotator == query.reviewer}
    for item_id in sample:
        if item_id not in done and not holders(store, dataset, query, item_id):
            mine = store.review(dataset, item_id, query.reviewer, AnnotatorKind.PERSON)
            if mine.state.status is Status.NOT_ANNOTATED:
                yield item_id


def standing(
    store: Store, dataset: str, query: QueueQuery, item_id: str, sample: Sequence[str] = ()
) -> QueuePlace:
    """Return which item of the whole queue one is, and of how many; it looks at all items.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    if sample:
        number = sample.index(item_id) + 1 if item_id in sample else None
        return QueuePlace(number, len(sample))
    if query.known == "given":
        query = replace(query, known="none")
        known = _given(store, dataset, query.reviewer, item_id)
        if known is not None and known.after is not None:  # it stands where the next one would
            after = store.neighbour(dataset, query, known.after)
            place = store.standing(dataset, query, known.after if after is None else after)
            return replace(place, number=place.number or place.total)
    return store.standing(dataset, query, item_id)


def neighbours(
    store: Store, dataset: str, query: QueueQuery, item_id: str, sample: Sequence[str] = ()
) -> QueueNeighbours:
    """Return the items next to ``item_id``, which need not pass the filter itself any more.

    Of a queue that reserves, they are reserved: the browser goes on to them without asking again.
    """
    if query.known == "given" and not sample:
        return _among_known(store, dataset, query, item_id)
    return QueueNeighbours(
        previous=_free(store, dataset, query, item_id, step=-1, sample=sample),
        next=_free(store, dataset, query, item_id, step=1, sample=sample),
    )


def _among_known(store: Store, dataset: str, query: QueueQuery, item_id: str) -> QueueNeighbours:
    """Return the neighbours of an item where items with known answers come between others.

    Such an item stays after the one that it once came after; a new one is given where it is due.
    """
    others = replace(query, known="none")
    share = (store.settings(dataset).known or KnownAnswers(share=0)).share
    here = _given(store, dataset, query.reviewer, item_id)
    if here is not None and here.after is not None:
        following = _free(store, dataset, others, here.after, step=1)
        before = following and _free(store, dataset, others, following, step=-1)
        return QueueNeighbours(previous=before if following else here.after, next=following)
    if share:
        store.give_known(dataset, query.reviewer, item_id, share)
    given = store.known_items(dataset, query.reviewer).hidden
    after = {each.after: each.item_id for each in given}
    previous = _free(store, dataset, others, item_id, step=-1)
    following = after.get(item_id) or _free(store, dataset, others, item_id, step=1)
    return QueueNeighbours(after.get(previous, previous), following)


def progress(
    store: Store, dataset: str, reviewer: str, *, adjudicating: bool = False
) -> QueueProgress:
    """Return how many items ``reviewer`` has finished, skipped, and is to finish.

    With a plan that is their part of it; who has none may finish every item, as may who
    adjudicates.
    """
    mine = None if adjudicating else store.part(dataset, reviewer)
    counts = store.counts(dataset, reviewer)
    whole = QueueProgress(
        done=counts.get(Status.DONE, 0),
        skipped=counts.get(Status.SKIPPED, 0),
        total=sum(counts.values()),
    )
    known = None if adjudicating else store.settings(dataset).known
    if mine is not None and mine.assigned is not None:
        planned = QueueProgress(mine.done, mine.skipped, mine.assigned, True, mine.beyond)
        return planned if known is None else _with_known(store, dataset, reviewer, planned)
    if known is None:
        return whole
    given = store.known_items(dataset, reviewer)
    done, skipped = (_in(given, status) for status in (Status.DONE, Status.SKIPPED))
    others = QueueProgress(whole.done - done, whole.skipped - skipped, whole.total - given.total)
    return _with_known(store, dataset, reviewer, others)


def _in(given: KnownItems, status: Status) -> int:
    return sum(each.status is status for each in given.given)


def _with_known(store: Store, dataset: str, reviewer: str, others: QueueProgress) -> QueueProgress:
    """Count the known items among the others, as if they were such; also those yet to be given."""
    known, given = store.settings(dataset).known, store.known_items(dataset, reviewer)
    share = known.share if known else 0
    total = len(given.given)
    if others.done + others.skipped < others.total:
        expected = int(others.total * share / (1 - share)) + len(given.given) - len(given.hidden)
        total = max(total, min(expected, given.total))
    return replace(
        others,
        done=others.done + _in(given, Status.DONE),
        skipped=others.skipped + _in(given, Status.SKIPPED),
        total=others.total + total,
    )


def labels(store: Store, dataset: str, query: QueueQuery) -> tuple[SpanLabel, ...]:
    """Return the labels to choose from: the dataset's set, then others that spans of it have.

    The first nine without a key of their own get the digits that are left, in order, so that each
    keeps its key when somebody uses another label. To whoever reviews blind, the others are those
    that this person has used.
    """
    chosen = store.settings(dataset).labels
    names = {label.name for label in chosen}
    used = store.labels(dataset, query.reviewer if query.blind else None)
    found = [SpanLabel(name=name) for name in used if name not in names]
    taken = {label.key for label in chosen}
    free = (digit for digit in "123456789" if digit not in taken)
    return tuple(
        label if label.key else label.model_copy(update={"key": next(free, None)})
        for label in (*chosen, *found)
    )


def _free(
    store: Store,
    dataset: str,
    query: QueueQuery,
    item_id: str,
    *,
    step: int,
    sample: Sequence[str] = (),
) -> str | None:
    """Return the item after or before one, past those that somebody else has just taken."""
    while True:
        if sample:
            at = sample.index(item_id) + step if item_id in sample else (0 if step > 0 else -1)
            found = sample[at] if 0 <= at < len(sample) else None
        else:
            found = store.neighbour(dataset, query, item_id, step)
        if found is None or not holders(store, dataset, query, found):
            return found
        item_id = found
