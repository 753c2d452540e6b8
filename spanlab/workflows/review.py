"""Reviewing: what a queue offers next, one item with everything said of it, writes to its log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from spanlab.errors import NotFoundError, StoreError
from spanlab.fields import storable
from spanlab.labels import trim_space
from spanlab.oplog import Operation
from spanlab.schema import Annotation, Interval, Kind, Name, Span, Status
from spanlab.storage import (
    Cursor,
    Label,
    Order,
    Page,
    QueueQuery,
    QueueRow,
    Review,
    Share,
    Standing,
    Store,
    Write,
)
from spanlab.workflows.blind import without_others

__all__ = [
    "Cursor",
    "Label",
    "Neighbours",
    "Order",
    "Outcome",
    "Page",
    "QueueProgress",
    "QueueQuery",
    "QueueRow",
    "Review",
    "SentWrite",
    "Share",
    "Store",
    "Suggestion",
    "apply_writes",
    "first_item",
    "has_item",
    "hold",
    "items",
    "labels",
    "neighbours",
    "open_item",
    "progress",
    "standing",
    "suggestions",
]

_LARGEST = 2**53 - 1  # of the numbers that JavaScript counts without gaps


class SentWrite(BaseModel):
    """One operation as a browser sends it: which log it is for, and what that log was then.

    ``reviewer`` is the annotator whose log it is; of gold labels, ``author`` is who adjudicates.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    session: Name
    seq: int = Field(ge=1, le=_LARGEST)
    base: int = Field(ge=0, le=_LARGEST)
    dataset: Name
    item: Name
    reviewer: Name
    author: Name | None = None
    op: Operation
    guidelines: int = Field(default=0, ge=0, le=2**31 - 1)
    seconds: float | None = Field(default=None, ge=0, le=_LARGEST)


@dataclass(frozen=True)
class Outcome:
    """What became of one write: stored, or refused with the reason.

    ``stale`` says that the log had grown meanwhile: somebody else, or the same person in another
    tab, has changed the annotation.
    """

    session: str
    seq: int
    stored: bool
    reason: str | None = None
    stale: bool = False


@dataclass(frozen=True)
class Suggestion:
    """A span to decide on; ``likely`` if its annotator takes all of it for hallucinated."""

    span: Span
    likely: bool


@dataclass(frozen=True)
class Neighbours:
    """The items before and after one in a queue; None where the queue ends."""

    previous: str | None
    next: str | None


@dataclass(frozen=True)
class QueueProgress:
    """How far a reviewer has come with a dataset, in items."""

    done: int
    skipped: int
    total: int


def apply_writes(
    store: Store,
    sent: Iterable[Mapping[str, JsonValue]],
    reviewer: str,
    *,
    adjudicating: bool = False,
) -> list[Outcome]:
    """Store what a browser has not had acknowledged yet; sending a write again does no harm.

    Args:
        store: the annotation database.
        sent: the outbox as it arrived, in the order of typing. Nothing in it is trusted.
        reviewer: under whose name the editor is open; writes under another name are refused.
        adjudicating: whether that names gold labels, and each write must say who makes it.

    Returns:
        One outcome for every write that names its session and number; empty for none.
    """
    writes: list[SentWrite] = []
    outcomes: list[Outcome] = []
    for raw in sent:
        try:
            write = SentWrite.model_validate(raw)
        except ValidationError as error:
            outcomes.extend(_unreadable(raw, error))
            continue
        if (write.author is not None) is not adjudicating:
            reason = "an adjudication, and it alone, says who decided"
            outcomes.append(Outcome(write.session, write.seq, stored=False, reason=reason))
        elif write.reviewer == reviewer:
            writes.append(write)
        else:
            reason = f"made as {write.reviewer!r}, but {reviewer!r} is reviewing here now"
            outcomes.append(Outcome(write.session, write.seq, stored=False, reason=reason))
    for (_, dataset, item), group in groupby(writes, key=_log_of):
        outcomes += _apply(store, (dataset, item, reviewer), list(group))
    return outcomes


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
    shows them of items that are done.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    kind = Kind.GOLD if adjudicating else Kind.PERSON
    found = store.review(dataset, item_id, query.reviewer, kind)
    if not query.blind or (query.shown_when_done and found.state.status is Status.DONE):
        return found
    return replace(found, record=without_others(found.record, query.reviewer))


def has_item(store: Store, dataset: str, item_id: str) -> bool:
    """Return whether the dataset is there and has an item of this id."""
    try:
        store.positions_of(dataset, [item_id])
    except NotFoundError:
        return False
    return True


def first_item(store: Store, dataset: str, query: QueueQuery) -> str | None:
    """Return the id of the item to begin a queue with, None if it is empty.

    That is the first one that the reviewer has not finished; where all are, the first of all. Of a
    queue that reserves, it is reserved.
    """
    unfinished = replace(query, limit=1, status=query.status or Status.NOT_ANNOTATED)
    for each in (unfinished, replace(query, limit=1)):
        rows = store.page(dataset, each).rows
        first = rows[0].item_id if rows else None
        if first is None or hold(store, dataset, query, first):
            found = first
        else:
            found = _free(store, dataset, each, first, step=1)
        if found is not None:
            return found
    return None


def hold(store: Store, dataset: str, query: QueueQuery, item_id: str) -> bool:
    """Reserve an item for the reviewer of a queue that reserves; say whether nothing is against.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    if not query.reserve or query.max_annotators is None:
        return True
    return store.reserve(dataset, item_id, query.reviewer, query.max_annotators + 1)


def items(store: Store, dataset: str, query: QueueQuery) -> Page:
    """Return rows of the table of a queue's items.

    An item that the search names by its whole id comes before all others, wherever it stands.
    """
    found = store.page(dataset, query)
    named = None if query.after or query.before else query.text
    if named is None or not has_item(store, dataset, named):
        return found
    (position,) = store.positions_of(dataset, [named])
    rest = tuple(row for row in found.rows if row.item_id != named)
    at = Cursor(position - 1)
    only = replace(query, text=None, order="import", reverse=False, after=at, limit=1)
    first = tuple(row for row in store.page(dataset, only).rows if row.item_id == named)
    return replace(found, rows=(*first, *rest))


def standing(store: Store, dataset: str, query: QueueQuery, item_id: str) -> Standing:
    """Return which item of the whole queue one is, and of how many; it looks at all items.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    return store.standing(dataset, query, item_id)


def neighbours(store: Store, dataset: str, query: QueueQuery, item_id: str) -> Neighbours:
    """Return the items next to ``item_id``, which need not pass the filter itself any more.

    Of a queue that reserves, they are reserved: the browser goes on to them without asking again.
    """
    return Neighbours(
        previous=_free(store, dataset, query, item_id, step=-1),
        next=_free(store, dataset, query, item_id, step=1),
    )


def progress(store: Store, dataset: str, reviewer: str) -> QueueProgress:
    """Return how many items ``reviewer`` has finished, skipped, and could finish at all."""
    counts = store.counts(dataset, reviewer)
    return QueueProgress(
        done=counts.get(Status.DONE, 0),
        skipped=counts.get(Status.SKIPPED, 0),
        total=sum(counts.values()),
    )


def labels(store: Store, dataset: str, query: QueueQuery) -> tuple[Label, ...]:
    """Return the labels to choose from: the dataset's set, then others that spans of it have.

    The first nine without a key of their own get the digits that are left, in order, so that each
    keeps its key when somebody uses another label. To whoever reviews blind, the others are those
    that this person has used.
    """
    chosen = store.settings(dataset).labels
    names = {label.name for label in chosen}
    used = store.labels(dataset, query.reviewer if query.blind else None)
    found = [Label(name=name) for name in used if name not in names]
    taken = {label.key for label in chosen}
    free = (digit for digit in "123456789" if digit not in taken)
    return tuple(
        label if label.key else label.model_copy(update={"key": next(free, None)})
        for label in (*chosen, *found)
    )


def _free(store: Store, dataset: str, query: QueueQuery, item_id: str, *, step: int) -> str | None:
    """Return the item after or before one, past those that somebody else has just taken."""
    while True:
        found = store.neighbour(dataset, query, item_id, step)
        if found is None or hold(store, dataset, query, found):
            return found
        item_id = found


def _log_of(write: SentWrite) -> tuple[str, str, str]:
    return (write.session, write.dataset, write.item)


def _apply(store: Store, log: tuple[str, str, str], writes: list[SentWrite]) -> list[Outcome]:
    dataset, item, reviewer = log
    batch = [
        Write(w.session, w.seq, w.base, w.op, w.author, w.guidelines, w.seconds) for w in writes
    ]
    try:
        refused = {each.seq: each for each in store.apply(dataset, item, reviewer, batch).refused}
    except StoreError as error:
        return [Outcome(w.session, w.seq, stored=False, reason=str(error)) for w in writes]
    return [
        Outcome(w.session, w.seq, stored=True)
        if w.seq not in refused
        else Outcome(
            w.session,
            w.seq,
            stored=False,
            reason=refused[w.seq].reason,
            stale=refused[w.seq].stale,
        )
        for w in writes
    ]


def _unreadable(raw: Mapping[str, JsonValue], error: ValidationError) -> Iterable[Outcome]:
    session, seq = raw.get("session"), raw.get("seq")
    if isinstance(session, str) and isinstance(seq, int):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = storable(f"{where}: {first['msg']}")
        yield Outcome(storable(session), seq, stored=False, reason=reason)


def suggestions(annotation: Annotation, answer: str) -> list[Suggestion]:
    """Return an annotation's spans as a reviewer decides on them, in text order.

    What an annotator decided as one piece (``hard``) is one suggestion, with the highest of its
    probabilities and all of its evidence, however finely the probabilities are graded within.
    White space at the edges of a span is no part of its suggestion: nobody means to mark it.
    """
    found = _decisions(annotation, answer)
    trimmed = [replace(one, span=_trimmed(one.span, answer)) for one in found]
    return sorted(trimmed, key=lambda one: (one.span.start, one.span.end))


def _trimmed(span: Span, answer: str) -> Span:
    start, end = trim_space(answer, span)
    if (start, end) == (span.start, span.end):
        return span
    return span.model_copy(update={"start": start, "end": end, "text": answer[start:end]})


def _decisions(annotation: Annotation, answer: str) -> list[Suggestion]:
    if annotation.hard is None:
        return [Suggestion(span, span.prob > 0.5) for span in annotation.spans]
    pieces = sorted(annotation.hard, key=lambda piece: piece.start)
    inside: list[list[Span]] = [[] for _ in pieces]
    found: list[Suggestion] = []
    for span in annotation.spans:
        at = bisect_right(pieces, span.start, key=lambda piece: piece.start) - 1
        if at >= 0 and span.end <= pieces[at].end:
            inside[at].append(span)
        else:
            found.append(Suggestion(span, likely=False))
    for piece, spans in zip(pieces, inside, strict=True):
        found.append(Suggestion(_joined(spans, piece, answer), likely=True))
    return found


def _joined(spans: Sequence[Span], piece: Interval, answer: str) -> Span:
    whole = Span.of(
        answer, piece.start, piece.end, prob=max((span.prob for span in spans), default=1.0)
    )
    return whole.model_copy(
        update={
            "label": next((span.label for span in spans if span.label), None),
            "note": "; ".join(dict.fromkeys(span.note for span in spans if span.note)) or None,
            "evidence": tuple(dict.fromkeys(quote for span in spans for quote in span.evidence)),
        }
    )
