"""Writing what detectors found: their annotations, and the passages that they found it in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from sqlalchemy import Connection, bindparam, select, update

from spanlab.errors import InputError, NotFoundError
from spanlab.passages import merged, renumbered
from spanlab.schema import Annotation, Item
from spanlab.storage import catalog
from spanlab.storage.annotating import batches, entries, put
from spanlab.storage.annotators import register
from spanlab.storage.catalog import Dataset
from spanlab.storage.engine import Database
from spanlab.storage.items import to_json
from spanlab.storage.tables import items


class Finding(Protocol):
    """Annotations of an item, with the passages that their evidence points to."""

    @property
    def item(self) -> Item:
        """The item with all passages that the detector saw."""
        ...

    @property
    def annotations(self) -> Sequence[Annotation]:
        """What is said of it."""
        ...


def save(database: Database, name: str, findings: Iterable[Finding]) -> int:
    """Write findings, batch after batch as they come; each batch is all or nothing, and durable.

    Passages and retrievals that the stored item lacks are appended to it. Those that stand there
    stay where they are, so that what others have said of them still holds; the evidence of the new
    annotations is renumbered where the stored item has other passages than the detector saw.

    Args:
        database: where.
        name: the dataset.
        findings: in any order; several of one item may come in one batch.

    Returns:
        The number of findings written, 0 for none.

    Raises:
        NotFoundError: no such dataset or item.
        InputError: an annotation quotes what its item does not have there.
        StoreError: it would overwrite a person's reviewed annotation, or its annotator is of
            another kind here. Earlier batches stay written.
    """
    with database.reading() as connection:
        catalog.find(connection, name)
    written = 0
    for batch in batches(findings):
        with database.writing() as connection:
            dataset = catalog.find(connection, name)
            pairs = _grow(connection, dataset, batch)
            put(connection, dataset, entries(connection, dataset, pairs))
        written += len(batch)
    return written


def _grow(
    connection: Connection, dataset: Dataset, batch: Sequence[Finding]
) -> list[tuple[str, Annotation]]:
    """Append to the stored items what is new, and return the annotations as they fit there."""
    # Annotators before items: all writers lock in this order, so that none wait for each other.
    for who, kind in {(each.annotator, each.kind) for one in batch for each in one.annotations}:
        register(connection, dataset, who, kind)
    stored = _locked(connection, dataset, {finding.item.id for finding in batch})
    grown: dict[str, Item] = {}
    pairs: list[tuple[str, Annotation]] = []
    for finding in batch:
        item_id = finding.item.id
        if item_id not in stored:
            raise NotFoundError(f"the dataset {dataset.name!r} has no item {item_id!r}")
        position, before = stored[item_id]
        now, moved = merged(before, finding.item)
        if now is not before:
            stored[item_id], grown[item_id] = (position, now), now
        pairs += ((item_id, _fitted(each, moved, item_id)) for each in finding.annotations)
    if grown:
        connection.execute(
            update(items).where(
                items.c.dataset_id == dataset.id, items.c.position == bindparam("at")
            ),
            [{"at": stored[item_id][0], "json": to_json(item)} for item_id, item in grown.items()],
        )
    return pairs


def _locked(connection: Connection, dataset: Dataset, ids: set[str]) -> dict[str, tuple[int, Item]]:
    rows = connection.execute(
        select(items.c.item_id, items.c.position, items.c.json)
        .where(
            items.c.dataset_id == dataset.id,
            items.c.item_id.in_(ids),
            items.c.position < dataset.n_items,
        )
        .order_by(items.c.position)
        .with_for_update(key_share=True)
    )
    return {row.item_id: (row.position, Item.model_validate_json(row.json)) for row in rows}


def _fitted(annotation: Annotation, moved: dict[int, int], item_id: str) -> Annotation:
    try:
        return renumbered(annotation, moved)
    except ValueError as error:
        raise InputError(
            f"the annotation of item {item_id!r} by {annotation.annotator!r} does not fit: {error}"
        ) from error
