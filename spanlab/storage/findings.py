"""Writing detectors' findings: their annotations, and the passages that these quote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from sqlalchemy import Connection, bindparam, update

from spanlab.errors import InputError
from spanlab.schema import Annotation, Item, merged, renumbered
from spanlab.storage.annotations import AnnotationRow, checked_rows, fitting, save_batches
from spanlab.storage.catalog import DatasetRow, register
from spanlab.storage.engine import Database
from spanlab.storage.items import locked, to_json
from spanlab.storage.tables import items, queue_values


class FoundAnnotations(Protocol):
    """Annotations of an item, with the passages that their evidence points to."""

    @property
    def item(self) -> Item:
        """The item with all passages that the detector saw."""
        ...

    @property
    def annotations(self) -> Sequence[Annotation]:
        """Annotations of this item."""
        ...


def save_findings(database: Database, name: str, findings: Iterable[FoundAnnotations]) -> int:
    """Write findings in any order, batch after batch, and return how many.

    Passages and retrievals that the stored item lacks are appended to it. Its own passages keep
    their numbers, so that the evidence of others stays right; the evidence of the new annotations
    is renumbered where the stored item has other passages than the detector saw.

    Raises:
        NotFoundError: no such dataset or item.
        InputError: an annotation quotes what its item does not have there, or the item was replaced
            by one with another answer.
        StoreError: it would overwrite a person's reviewed annotation, or its annotator is of
            another kind here. Earlier batches stay written.
    """
    return save_batches(database, name, findings, _grow)


def _grow(
    connection: Connection, dataset: DatasetRow, batch: Sequence[FoundAnnotations]
) -> list[AnnotationRow]:
    """Append to the stored items what is new, and return the annotations as they fit there."""
    # Annotators before items: all writers lock in this order, so that none wait for each other.
    kinds = {
        annotation.annotator: annotation.kind
        for finding in batch
        for annotation in finding.annotations
    }
    who = {name: register(connection, dataset, name, kind) for name, kind in kinds.items()}
    stored = locked(connection, dataset, dict.fromkeys(finding.item.id for finding in batch))
    grown: dict[str, Item] = {}
    pairs: list[tuple[str, Annotation]] = []
    for finding in batch:
        item_id = finding.item.id
        position, before = stored[item_id]
        if before.answer != finding.item.answer:
            raise InputError(
                f"item {item_id!r} has another answer now than the one that was judged"
            )
        now, moved = merged(before, finding.item)
        if now is not before:
            stored[item_id], grown[item_id] = (position, now), now
        for annotation in finding.annotations:
            with fitting(annotation, item_id):
                pairs.append((item_id, renumbered(annotation, moved)))
    if grown:
        rows = [
            {"at": stored[item_id][0], "text": to_json(item), "n": len(item.passages)}
            for item_id, item in grown.items()
        ]
        for table, column, value in ((items, "json", "text"), (queue_values, "n_passages", "n")):
            here = (table.c.dataset_id == dataset.id, table.c.position == bindparam("at"))
            connection.execute(update(table).where(*here).values({column: bindparam(value)}), rows)
    return checked_rows(connection, dataset, pairs, stored, who)
