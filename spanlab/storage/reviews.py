"""A person's review of an item: its append-only log, and the state that this leads to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby, pairwise

from pydantic_core import from_json
from sqlalchemy import ColumnElement, Connection, Table, and_, func, insert, select, update

from spanlab.base.errors import OperationError, UsageError
from spanlab.oplog.answer_operations import Respond
from spanlab.oplog.operations import (
    OPERATION,
    FinishItem,
    Operation,
    Redo,
    RefusedOperation,
    Review,
    SentOperation,
    SetStatus,
    Undo,
    WriteReply,
    replay,
    saw_suggestions,
)
from spanlab.oplog.state import ReviewState
from spanlab.schema import Annotation, AnnotatorKind, DatasetSettings, Item, Status
from spanlab.storage.annotations import AnnotationRow, labels_of, put
from spanlab.storage.catalog import AnnotatorRow, DatasetRow, annotators_of, register, settings_of
from spanlab.storage.engine import insert_or_replace
from spanlab.storage.items import lock, position_of, read_one, to_json
from spanlab.storage.sight import Sight
from spanlab.storage.tables import annotated, annotators, items, operations, reservations, reviews

LEASE = 3600.0  # seconds after which an item is offered to others if nothing is written to it


def read_review(
    connection: Connection,
    dataset: DatasetRow,
    item_id: str,
    reviewer: str,
    sight: Sight,
    kind: AnnotatorKind = AnnotatorKind.PERSON,
) -> Review:
    """Return the review of ``item_id`` by ``reviewer``; version 0 if it has not begun.

    Raises:
        NotFoundError: there is no such item.
        StoreError: the reviewer's name belongs to an annotator that is not of this ``kind``.
    """
    position = position_of(connection, dataset, item_id, sight)
    record = read_one(connection, dataset, position).record(sight)
    if reviewer not in annotators_of(connection, dataset.id):
        return Review(
            record=record, snapshot=ReviewState(), operations=(), version=0, state=ReviewState()
        )
    annotator = register(connection, dataset, reviewer, kind)
    log = ReviewLog(connection, dataset, position, annotator)
    return Review(
        record=record,
        snapshot=ReviewState.of(log.snapshot),
        operations=tuple(log.operations()),
        version=log.version,
        state=log.state,
    )


def labels_used(connection: Connection, dataset: DatasetRow, reviewer: str) -> frozenset[str]:
    """Return the labels of all spans that a person's reviews have; empty for somebody unknown."""
    annotator = annotators_of(connection, dataset.id).get(reviewer)
    theirs = select(annotated.c.json).select_from(reviews).join(annotated)
    rows = connection.execute(
        theirs.where(
            reviews.c.dataset_id == dataset.id,
            reviews.c.annotator_id == (annotator.id if annotator else None),
            annotated.c.json.contains('"label"'),
        )
    )
    annotations_read = map(Annotation.model_validate_json, rows.scalars())
    return frozenset(label for annotation in annotations_read for label in labels_of(annotation))


def suggestions_seen(
    connection: Connection, dataset: DatasetRow
) -> dict[tuple[str, str], bool | None]:
    """Return whether suggestions were shown in each review, by the item's id and the reviewer.

    None where the log does not tell, as those of earlier versions; reviews without a log are left
    out.
    """
    log = operations.c
    rows = connection.execute(
        select(items.c.item_id, annotators.c.name, log.json)
        .join(items, and_(items.c.dataset_id == log.dataset_id, items.c.position == log.position))
        .join(
            annotators,
            and_(annotators.c.dataset_id == log.dataset_id, annotators.c.id == log.annotator_id),
        )
        .where(log.dataset_id == dataset.id)
        .order_by(log.position, log.annotator_id, log.version)
    )
    return {
        (item_id, name): saw_suggestions(OPERATION.validate_json(row.json) for row in log_rows)
        for (item_id, name), log_rows in groupby(rows, key=lambda row: (row.item_id, row.name))
    }


def apply(
    connection: Connection,
    dataset: DatasetRow,
    position: int,
    reviewer: str,
    writes: Sequence[SentOperation],
    subject: str | None,
) -> WriteReply:
    """Append ``writes`` of one session to the log of ``reviewer`` on an item, in their order.

    A write that is stored already is acknowledged again without effect. Once one is refused, so
    are all after it that are not stored: they were made on a state that has never been. ``subject``
    is who writes, for certain; None for the owner of the database.

    Raises:
        StoreError: the reviewer's name belongs to an annotator of another kind than the writes.
        UsageError: the writes are of several sessions or kinds, or do not count up.
    """
    _check_order(writes)
    annotator = register(
        connection, dataset, reviewer, writes[0].kind if writes else AnnotatorKind.PERSON
    )
    lock(connection, dataset.id, position, position + 1)
    log = ReviewLog(connection, dataset, position, annotator)
    stored = _read_stored(connection, writes)
    key = (dataset.id, position, annotator.id)
    refused: list[RefusedOperation] = []
    for write in writes:
        if write.seq not in stored:
            refusal = _refuse_after(write) if refused else log.append(write)
        elif stored[write.seq] != (*key, write.operation):
            refusal = RefusedOperation(
                write.seq, "this number was given to another operation", stale=False
            )
        else:
            refusal = None
        if refusal is not None:
            refused.append(refusal)
    log.save(subject)
    _renew(connection, dataset, position, reviewer)
    return WriteReply(_highest_seq(connection, writes), log.version, tuple(refused))


def _read_stored(
    connection: Connection, writes: Sequence[SentOperation]
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
    return {seq: (*key, OPERATION.validate_json(text)) for seq, *key, text in rows}


def _refuse_after(write: SentOperation) -> RefusedOperation:
    return RefusedOperation(write.seq, "an operation before it was refused", stale=True)


def _highest_seq(connection: Connection, writes: Sequence[SentOperation]) -> int:
    if not writes:
        return 0
    highest = select(func.max(operations.c.seq))
    return (
        connection.execute(highest.where(operations.c.session == writes[0].session)).scalar() or 0
    )


def _check_order(writes: Sequence[SentOperation]) -> None:
    for write, following in pairwise(writes):
        if following.kind is not write.kind:
            raise UsageError("writes to a person's log and to gold labels at once")
        if following.session != write.session:
            raise UsageError(
                f"writes of two sessions at once: {write.session!r}, {following.session!r}"
            )
        if following.seq <= write.seq:
            raise UsageError(f"write {following.seq} comes after write {write.seq}")


class ReviewLog:
    """A log with its snapshot, version and state, and the operations added to it.

    The state is stored with the log, so that an edit need not replay it; undo and redo do. For
    appending, the ``connection`` must hold the lock on the item's row.
    """

    def __init__(
        self, connection: Connection, dataset: DatasetRow, position: int, annotator: AnnotatorRow
    ) -> None:
        self._connection = connection
        self._dataset = dataset
        self._position = position
        self._annotator = annotator
        self._added: list[SentOperation] = []
        row = connection.execute(select(reviews).where(*self._rows_of(reviews))).one_or_none()
        if row is None:
            query = select(annotated.c.json).where(*self._rows_of(annotated))
            self._snapshot: str | None = connection.execute(query).scalar_one_or_none()
            self.version: int = 0
            self.state = ReviewState.of(self.snapshot)
        else:
            self._snapshot, self.version = row.snapshot, row.version
            self.state = ReviewState.model_validate_json(row.state)

    @cached_property
    def snapshot(self) -> Annotation | None:
        """The annotation that the log starts from, None if there was none."""
        if self._snapshot is None:
            return None
        return Annotation.model_validate_json(self._snapshot)

    def operations(self) -> list[Operation]:
        """Return all operations, also those just added, oldest first."""
        rows = self._connection.execute(
            select(operations.c.json)
            .where(*self._rows_of(operations))
            .order_by(operations.c.version)
        ).scalars()
        stored = [OPERATION.validate_json(text) for text in rows]
        return stored + [write.operation for write in self._added]

    def append(self, write: SentOperation) -> RefusedOperation | None:
        """Add ``write`` if it fits the state; return why not."""
        if write.base != self.version:
            return RefusedOperation(
                write.seq,
                f"made on version {write.base} of this annotation, which is at {self.version} "
                "now: somebody else changed it meanwhile",
                stale=True,
            )
        try:
            state = self._apply(write.operation)
            self._check(write.operation, state)
        except OperationError as error:
            return RefusedOperation(write.seq, str(error), stale=False)
        self.state = state
        self._added.append(write)
        self.version += 1
        return None

    def save(self, subject: str | None = None) -> None:
        """Store the added operations, the state, and the annotation with counts and values."""
        if not self._added:
            return
        put(
            self._connection,
            self._dataset,
            [AnnotationRow(self._position, self._annotator, self._result())],
        )
        key = {
            "dataset_id": self._dataset.id,
            "position": self._position,
            "annotator_id": self._annotator.id,
        }
        row = {"version": self.version, "snapshot": self._snapshot, "state": to_json(self.state)}
        self._connection.execute(insert_or_replace(self._connection, reviews), key | row)
        first_version = self.version - len(self._added) + 1
        now = datetime.now(UTC).isoformat()
        self._connection.execute(
            insert(operations),
            [
                {
                    **key,
                    "version": first_version + index,
                    "session": write.session,
                    "seq": write.seq,
                    "json": operation_json(write.operation),
                    "at": now,
                    "guidelines": write.guidelines,
                    "seconds": write.seconds,
                    "subject": subject,
                }
                | ({} if write.author is None else {"author": write.author})
                for index, write in enumerate(self._added)
            ],
        )

    def _check(self, operation: Operation, state: ReviewState) -> None:
        """Check a response, and whether Done may be, against the settings of the dataset."""
        if isinstance(operation, Respond) and (problem := operation.problem(self._settings)):
            raise OperationError(problem)
        if state.status is Status.DONE and isinstance(operation, SetStatus | FinishItem):
            settings = self._settings
            annotation = state.annotation(self._annotator.name, self._annotator.kind)
            if settings.label_required and any(span.label is None for span in annotation.spans):
                raise OperationError("not done: every span needs a label")
            missing = settings.missing(annotation)
            if missing and settings.unanswered == "refused":
                raise OperationError(f"not done: {', '.join(missing)} is required")

    @cached_property
    def _settings(self) -> DatasetSettings:
        return settings_of(self._connection, self._dataset.name)

    def _apply(self, operation: Operation) -> ReviewState:
        if isinstance(operation, Undo | Redo):
            log = [*self.operations(), operation]
            return replay(self._item, ReviewState.of(self.snapshot), log)
        return operation.apply(self._item, self.state)

    def _result(self) -> Annotation:
        """Return the state as an annotation, with the snapshot's hard decision if it still holds.

        It holds as long as the spans it was made on.
        """
        result = self.state.annotation(self._annotator.name, self._annotator.kind)
        author = self._added[-1].author
        if author is not None:
            result = result.model_copy(update={"decided_by": author})
        if version := self._added[-1].guidelines:
            result = result.model_copy(update={"guidelines": version})
        # Looked at before it is parsed: with thousands of spans that takes longer than an edit.
        fields = from_json(self._snapshot).keys() if self._snapshot else set()
        snapshot = self.snapshot if "hard" in fields else None
        if snapshot is None:
            return result
        start = ReviewState.of(snapshot).annotation(self._annotator.name, self._annotator.kind)
        hard = snapshot.hard if result.spans == start.spans else None
        return result.model_copy(update={"hard": hard})

    @cached_property
    def _item(self) -> Item:
        query = select(items.c.json).where(
            items.c.dataset_id == self._dataset.id, items.c.position == self._position
        )
        return Item.model_validate_json(self._connection.execute(query).scalar_one())

    def _rows_of(self, table: Table) -> list[ColumnElement[bool]]:
        return [
            table.c.dataset_id == self._dataset.id,
            table.c.position == self._position,
            table.c.annotator_id == self._annotator.id,
        ]


def operation_json(operation: Operation) -> str:
    """Return the JSON in which ``operation`` is stored."""
    return operation.model_dump_json()


def _renew(connection: Connection, dataset: DatasetRow, position: int, reviewer: str) -> None:
    """Extend a reservation to a full lease, if there is one: the reviewer is at work."""
    connection.execute(
        update(reservations)
        .where(
            reservations.c.dataset_id == dataset.id,
            reservations.c.position == position,
            reservations.c.reviewer == reviewer,
        )
        .values(until=time.time() + LEASE)
    )
