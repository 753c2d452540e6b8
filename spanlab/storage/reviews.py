"""A person's review of an item: reading it, adding to it, and rebuilding it from its log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlalchemy import Connection, func, select

from spanlab.errors import UsageError
from spanlab.oplog import OPERATION, Operation, ReviewState, replay
from spanlab.oplog.operations import Applied, Refusal, Review, Write
from spanlab.schema import Annotation, Kind
from spanlab.storage.annotators import labels_of, register
from spanlab.storage.catalog import Dataset, annotators_of
from spanlab.storage.items import lock, one, position_of
from spanlab.storage.log import Log
from spanlab.storage.reservations import renew
from spanlab.storage.tables import annotated, operations, reviews


def review(
    connection: Connection, dataset: Dataset, item_id: str, reviewer: str, kind: Kind = Kind.PERSON
) -> Review:
    """Return the review of ``item_id`` by ``reviewer``; version 0 if it has not begun.

    Raises:
        NotFoundError: there is no such item.
        StoreError: the reviewer's name belongs to an annotator that is not of this ``kind``.
    """
    position = position_of(connection, dataset, item_id)
    record = one(connection, dataset, position).record()
    if reviewer not in annotators_of(connection, dataset.id):
        return Review(record, ReviewState(), (), 0, ReviewState())
    who = register(connection, dataset, reviewer, kind)
    log = Log(connection, dataset, position, who)
    return Review(
        record=record,
        snapshot=ReviewState.of(log.snapshot),
        operations=tuple(log.operations()),
        version=log.version,
        state=log.state,
    )


def labels_used(connection: Connection, dataset: Dataset, reviewer: str) -> frozenset[str]:
    """Return the labels of all spans that a person's reviews have; empty for somebody unknown."""
    who = annotators_of(connection, dataset.id).get(reviewer)
    theirs = select(annotated.c.json).select_from(reviews).join(annotated)
    rows = connection.execute(
        theirs.where(
            reviews.c.dataset_id == dataset.id,
            reviews.c.annotator_id == (who.id if who else None),
            annotated.c.json.contains('"label"'),
        )
    )
    found = map(Annotation.model_validate_json, rows.scalars())
    return frozenset(label for annotation in found for label in labels_of(annotation))


def rebuild(
    connection: Connection, dataset: Dataset, item_id: str, reviewer: str, kind: Kind = Kind.PERSON
) -> ReviewState:
    """Return what the snapshot and the log alone lead to; raises as ``review`` does."""
    found = review(connection, dataset, item_id, reviewer, kind)
    return replay(found.record.item, found.snapshot, found.operations)


def apply(
    connection: Connection, dataset: Dataset, item_id: str, reviewer: str, writes: Sequence[Write]
) -> Applied:
    """Append ``writes`` of one session to the log of ``reviewer`` on ``item_id``, in their order.

    A write that is stored already is acknowledged again without effect. Once one is refused, so
    are all after it that are not stored: they were made on a state that has never been.

    Raises:
        NotFoundError: there is no such item.
        StoreError: the reviewer's name belongs to an annotator of another kind than the writes.
        UsageError: the writes are of several sessions or kinds, or do not count up.
    """
    _check_order(writes)
    position = position_of(connection, dataset, item_id)
    who = register(connection, dataset, reviewer, writes[0].kind if writes else Kind.PERSON)
    lock(connection, dataset.id, position, position + 1)
    log = Log(connection, dataset, position, who)
    stored = _stored(connection, writes)
    here = (dataset.id, position, who.id)
    refused: list[Refusal] = []
    for write in writes:
        if write.seq not in stored:
            refusal = _after_refused(write) if refused else log.append(write)
        elif stored[write.seq] != (*here, write.operation):
            refusal = Refusal(write.seq, "this number was given to another operation", stale=False)
        else:
            refusal = None
        if refusal is not None:
            refused.append(refusal)
    log.save()
    renew(connection, dataset, position, reviewer)
    return Applied(_acknowledged(connection, writes), log.version, tuple(refused))


def _stored(
    connection: Connection, writes: Sequence[Write]
) -> dict[int, tuple[int, int, int, Operation]]:
    if not writes:
        return {}
    columns = ("seq", "dataset_id", "position", "annotator_id", "json")
    rows = connection.execute(
        select(*(operations.c[name] for name in columns)).where(
            operations.c.session == writes[0].session,
            operations.c.seq.between(writes[0].seq, writes[-1].seq),
        )
    )
    return {seq: (*here, OPERATION.validate_json(text)) for seq, *here, text in rows}


def _after_refused(write: Write) -> Refusal:
    return Refusal(write.seq, "an operation before it was refused", stale=True)


def _acknowledged(connection: Connection, writes: Sequence[Write]) -> int:
    if not writes:
        return 0
    highest = select(func.max(operations.c.seq))
    return (
        connection.execute(highest.where(operations.c.session == writes[0].session)).scalar() or 0
    )


def _check_order(writes: Sequence[Write]) -> None:
    for one_write, following in pairwise(writes):
        if following.kind is not one_write.kind:
            raise UsageError("writes to a person's log and to gold labels at once")
        if following.session != one_write.session:
            raise UsageError(
                f"writes of two sessions at once: {one_write.session!r}, {following.session!r}"
            )
        if following.seq <= one_write.seq:
            raise UsageError(f"write {following.seq} comes after write {one_write.seq}")
