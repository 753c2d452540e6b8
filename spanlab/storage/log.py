"""The log of one person's operations on one item, open for appending in one transaction."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property

from pydantic_core import from_json
from sqlalchemy import ColumnElement, Connection, Table, insert, select

from spanlab.errors import OperationError
from spanlab.oplog import OPERATION, Operation, Redo, ReviewState, Undo, replay
from spanlab.oplog.operations import Refusal, Write
from spanlab.schema import Annotation, Item
from spanlab.storage.annotating import AnnotationRow, put
from spanlab.storage.catalog import Annotator, Dataset
from spanlab.storage.engine import insert_or_replace
from spanlab.storage.items import to_json
from spanlab.storage.tables import annotated, items, operations, reviews


class Log:
    """A log with its snapshot, version and state, and the operations added to it.

    The state is stored with the log, so that an edit need not replay it; undo and redo do. For
    appending, the ``connection`` must hold the lock on the item's row.
    """

    def __init__(
        self, connection: Connection, dataset: Dataset, position: int, who: Annotator
    ) -> None:
        self._connection = connection
        self._dataset = dataset
        self._position = position
        self._who = who
        self._added: list[Write] = []
        row = connection.execute(select(reviews).where(*self._here(reviews))).one_or_none()
        if row is None:
            query = select(annotated.c.json).where(*self._here(annotated))
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
            select(operations.c.json).where(*self._here(operations)).order_by(operations.c.version)
        ).scalars()
        stored = [OPERATION.validate_json(text) for text in rows]
        return stored + [write.operation for write in self._added]

    def append(self, write: Write) -> Refusal | None:
        """Add ``write`` if it fits the state; return why not."""
        if write.base != self.version:
            return Refusal(
                write.seq,
                f"made on version {write.base} of this annotation, which is at {self.version} "
                "now: somebody else changed it meanwhile",
                stale=True,
            )
        try:
            self.state = self._after(write.operation)
        except OperationError as error:
            return Refusal(write.seq, str(error), stale=False)
        self._added.append(write)
        self.version += 1
        return None

    def save(self) -> None:
        """Store the added operations, the state, and the annotation with counts and values."""
        if not self._added:
            return
        put(
            self._connection,
            self._dataset,
            [AnnotationRow(self._position, self._who, self._result())],
        )
        key = {
            "dataset_id": self._dataset.id,
            "position": self._position,
            "annotator_id": self._who.id,
        }
        row = {"version": self.version, "snapshot": self._snapshot, "state": to_json(self.state)}
        self._connection.execute(insert_or_replace(self._connection, reviews), key | row)
        first = self.version - len(self._added) + 1
        now = datetime.now(UTC).isoformat()
        self._connection.execute(
            insert(operations),
            [
                {
                    **key,
                    "version": first + index,
                    "session": write.session,
                    "seq": write.seq,
                    "json": operation_json(write.operation),
                    "at": now,
                    "guidelines": write.guidelines,
                    "seconds": write.seconds,
                }
                | ({} if write.author is None else {"author": write.author})
                for index, write in enumerate(self._added)
            ],
        )

    def _after(self, operation: Operation) -> ReviewState:
        if isinstance(operation, Undo | Redo):
            log = [*self.operations(), operation]
            return replay(self._item, ReviewState.of(self.snapshot), log)
        return operation.apply(self._item, self.state)

    def _result(self) -> Annotation:
        """Return the state as an annotation, with the snapshot's hard decision if it still holds.

        It holds as long as the spans it was made on.
        """
        result = self.state.annotation(self._who.name, self._who.kind)
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
        start = ReviewState.of(snapshot).annotation(self._who.name, self._who.kind)
        hard = snapshot.hard if result.spans == start.spans else None
        return result.model_copy(update={"hard": hard})

    @cached_property
    def _item(self) -> Item:
        query = select(items.c.json).where(
            items.c.dataset_id == self._dataset.id, items.c.position == self._position
        )
        return Item.model_validate_json(self._connection.execute(query).scalar_one())

    def _here(self, table: Table) -> list[ColumnElement[bool]]:
        return [
            table.c.dataset_id == self._dataset.id,
            table.c.position == self._position,
            table.c.annotator_id == self._who.id,
        ]


def operation_json(operation: Operation) -> str:
    """Return the JSON in which ``operation`` is stored."""
    return operation.model_dump_json()
