"""Items and annotations as they are stored: JSON, rows read and locked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError
from sqlalchemy import Column, ColumnElement, Connection, and_, literal, select, true

from spanlab.base.errors import InputError, NotFoundError
from spanlab.schema import Annotation, AnnotatorKind, Item, Record
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.engine import look_up_once
from spanlab.storage.sight import EVERYTHING, Sight
from spanlab.storage.tables import annotated, annotators, items, queue_items

_WINDOW = 200  # positions read at once: few enough for long texts, enough for short ones
_AT_ONCE = 1000  # ids in a condition
_Among = Callable[[Column[int]], ColumnElement[bool]]  # a condition on a column of positions


def to_json(model: BaseModel) -> str:
    """Return the JSON in which ``model`` is stored; what has its default value is left out.

    Raises:
        InputError: something in it, such as an item's ``meta``, is no JSON.
    """
    try:
        return model.model_dump_json(exclude_defaults=True)
    except PydanticSerializationError as error:
        raise InputError(
            f"cannot be stored: {error}", expected="Unicode text without lone surrogates"
        ) from error


@dataclass(frozen=True)
class StoredRecord:
    """An item and its annotations as they are stored."""

    position: int
    item: str
    annotations: tuple[str, ...]

    def record(self, sight: Sight, names: Collection[str] | None = None) -> Record:
        """Return what ``sight`` shows of the record, or of what these annotators said of it.

        That its quotes are right was checked when it came in.
        """
        record = Record.model_construct(
            item=Item.model_validate_json(self.item),
            annotations=tuple(
                Annotation.model_validate_json(annotation) for annotation in self.annotations
            ),
        )
        return sight.record(record, names)


def _is_shown(dataset: DatasetRow, sight: Sight, position: Column[int]) -> ColumnElement[bool]:
    """Return the condition that there is the item at ``position`` for somebody."""
    own = select(literal(1)).where(
        queue_items.c.dataset_id == dataset.id,
        queue_items.c.reviewer == sight.name,
        queue_items.c.position == position,  # an index has it: a list of all would be read whole
    )
    return own.exists() if sight.listed else true()


def position_of(
    connection: Connection, dataset: DatasetRow, item_id: str, sight: Sight = EVERYTHING
) -> int:
    """Return where in the dataset the item is.

    Raises:
        NotFoundError: it is not there, or not for those whose ``sight`` it is.
    """

    def read() -> int | None:
        found = select(items.c.position).where(
            items.c.dataset_id == dataset.id,
            items.c.item_id == item_id,
            _is_shown(dataset, sight, items.c.position),
        )
        return connection.execute(found).scalar_one_or_none()

    position = look_up_once(connection, ("position", dataset.id, item_id, sight), read)
    if position is None or position >= dataset.n_items:
        raise NotFoundError(f"the dataset {dataset.name!r} has no item {item_id!r}")
    return position


def positions_of(
    connection: Connection, dataset: DatasetRow, ids: Sequence[str], sight: Sight
) -> list[int]:
    """Return where in the dataset items are, in the order of their ids.

    Raises:
        NotFoundError: one of them is not there, or not for those whose ``sight`` it is.
    """
    found: dict[str, int] = {}
    for start in range(0, len(ids), _AT_ONCE):
        some = select(items.c.item_id, items.c.position).where(
            items.c.dataset_id == dataset.id,
            items.c.item_id.in_(ids[start : start + _AT_ONCE]),
            items.c.position < dataset.n_items,
            _is_shown(dataset, sight, items.c.position),
        )
        found |= {row.item_id: row.position for row in connection.execute(some)}
    for item_id in ids:
        if item_id not in found:
            raise NotFoundError(f"the dataset {dataset.name!r} has no item {item_id!r}")
    return [found[item_id] for item_id in ids]


def id_at(connection: Connection, dataset: DatasetRow, position: int) -> str:
    """Return the id of the item at ``position``."""
    at = items.c.dataset_id == dataset.id, items.c.position == position
    return str(connection.execute(select(items.c.item_id).where(*at)).scalar_one())


def read_one(connection: Connection, dataset: DatasetRow, position: int) -> StoredRecord:
    """Return the item at ``position`` with its annotations."""
    (stored,) = _read(connection, dataset, lambda column: column == position, None)
    return stored


def lock_items(
    connection: Connection, dataset: DatasetRow, ids: Collection[str]
) -> dict[str, tuple[int, Item]]:
    """Lock items for writing annotations, and return each one's position and content by id.

    Raises:
        NotFoundError: one of them is not there.
    """
    rows = connection.execute(
        select(items.c.item_id, items.c.position, items.c.json)
        .where(
            items.c.dataset_id == dataset.id,
            items.c.item_id.in_(list(ids)),
            items.c.position < dataset.n_items,
        )
        .order_by(items.c.position)
        .with_for_update(key_share=True)
    )
    by_id = {row.item_id: (row.position, Item.model_validate_json(row.json)) for row in rows}
    for item_id in ids:
        if item_id not in by_id:
            raise NotFoundError(f"the dataset {dataset.name!r} has no item {item_id!r}")
    return by_id


def lock(connection: Connection, dataset: int, start: int, stop: int) -> None:
    """Keep other transactions from changing annotations of the items at ``[start, stop)``.

    SQLite needs no row locks: only one transaction writes at a time.
    """
    connection.execute(
        select(items.c.position)
        .where(items.c.dataset_id == dataset, items.c.position >= start, items.c.position < stop)
        .order_by(items.c.position)
        .with_for_update(key_share=True)
    ).all()


def read_all(
    connection: Connection, dataset: DatasetRow, names: Sequence[str] | None, sight: Sight
) -> Iterator[StoredRecord]:
    """Yield all items in import order with the annotations of ``names`` (None: of everybody).

    To those who are blind they come with all: whether a vote is shown depends on its voters.

    Raises:
        NotFoundError: a name that has annotated nothing here, as far as ``sight`` goes.
    """
    annotator_ids = None if names is None else _annotator_ids(connection, dataset, names, sight)
    if sight.blind:
        annotator_ids = None
    for start in range(0, dataset.n_items, _WINDOW):
        among = _between(start, min(start + _WINDOW, dataset.n_items))
        yield from _read(connection, dataset, among, annotator_ids, sight)


def read_at(
    connection: Connection,
    dataset: DatasetRow,
    positions: Sequence[int],
    sight: Sight = EVERYTHING,
) -> Iterator[StoredRecord]:
    """Yield the items at ``positions`` with all annotations, in import order."""
    valid = sorted({position for position in positions if 0 <= position < dataset.n_items})
    for start in range(0, len(valid), _WINDOW):
        yield from _read(connection, dataset, _in(valid[start : start + _WINDOW]), None, sight)


def _between(start: int, stop: int) -> _Among:
    return lambda column: and_(column >= start, column < stop)


def _in(positions: Sequence[int]) -> _Among:
    return lambda column: column.in_(positions)


def _read(
    connection: Connection,
    dataset: DatasetRow,
    among: _Among,
    annotator_ids: Collection[int] | None,
    sight: Sight = EVERYTHING,
) -> Iterator[StoredRecord]:
    by_position: dict[int, list[str]] = defaultdict(list)
    query = (
        select(annotated.c.position, annotated.c.json)
        .where(annotated.c.dataset_id == dataset.id, among(annotated.c.position))
        .order_by(annotated.c.position, annotated.c.place)
    )
    if annotator_ids is not None:
        query = query.where(annotated.c.annotator_id.in_(annotator_ids))
    for position, text in connection.execute(query).all():
        by_position[position].append(text)
    is_shown = _is_shown(dataset, sight, items.c.position)
    rows = connection.execute(
        select(items.c.position, items.c.json)
        .where(items.c.dataset_id == dataset.id, among(items.c.position), is_shown)
        .order_by(items.c.position)
    )
    for position, text in rows.all():
        yield StoredRecord(position, text, tuple(by_position[position]))


def _annotator_ids(
    connection: Connection, dataset: DatasetRow, names: Sequence[str], sight: Sight
) -> set[int]:
    rows = connection.execute(
        select(annotators.c.name, annotators.c.kind, annotators.c.id).where(
            annotators.c.dataset_id == dataset.id, annotators.c.n_annotations > 0
        )
    )
    ids = {row.name: row.id for row in rows if sight.sees(row.name, AnnotatorKind(row.kind))}
    for name in names:
        if name not in ids:
            known_names = ", ".join(repr(name) for name in ids) or "nobody"
            raise NotFoundError(
                f"{name!r} has annotated nothing in {dataset.name!r}; who has: {known_names}"
            )
    return {ids[name] for name in names}
