"""An annotator's name wherever a dataset mentions it: in what others said, in logs, in the plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    bindparam,
    delete,
    insert,
    or_,
    select,
    update,
)

from spanlab.schema import DatasetSettings
from spanlab.storage.catalog import Dataset, change_settings
from spanlab.storage.tables import annotated, annotators, operations, reservations, reviews

LEAVING = "leaving"  # in place of a kind, in a transaction: its log of operations may be deleted

_PIECE = 500  # positions at once
_NAMES = frozenset({"annotator", "decided_by", "source", "suggested_by"})
_HOW_MADE = frozenset({"source", "suggested_by"})  # "union" or "majority" where there are voters
_TEXTS = {annotated: ("json",), reviews: ("snapshot", "state"), operations: ("json",)}

_Row = dict[str, Any]


def rename_mentions(connection: Connection, dataset: Dataset, name: str, new: str) -> None:
    """Call an annotator ``new`` in annotations, logs and the plan of a dataset.

    Where something names both already, as a vote of the two does, it names ``new`` once.
    """
    for table in (annotated, reviews):
        change = update(table).where(*_is_row(table))
        change = change.values({column: bindparam(f"new_{column}") for column in _TEXTS[table]})
        for rows in _mentions(connection, dataset, table, (name, new)):
            texts = [{f"new_{column}": row[column] for column in _TEXTS[table]} for row in rows]
            keys = _keys(table, rows)
            connection.execute(change, [at | to for at, to in zip(keys, texts, strict=True)])
    _rename_in_logs(connection, dataset, (name, new))
    # What this person looks at is reserved again with the next edit, under the new name.
    held = (reservations.c.dataset_id == dataset.id, reservations.c.reviewer == name)
    connection.execute(delete(reservations).where(*held))

    def assign(settings: DatasetSettings) -> DatasetSettings:
        people = dict.fromkeys(new if who == name else who for who in settings.assigned_to)
        return settings.model_copy(update={"assigned_to": tuple(people)})

    change_settings(connection, dataset.name, assign)


def _rename_in_logs(connection: Connection, dataset: Dataset, names: tuple[str, str]) -> None:
    """Write operations anew that mention the first of two names: they cannot be updated."""
    here = annotators.c.dataset_id == dataset.id
    kinds = connection.execute(select(annotators.c.id.label("who"), annotators.c.kind).where(here))
    before = [{"who": row.who, "was": row.kind} for row in kinds]
    connection.execute(update(annotators).where(here).values(kind=LEAVING))
    for rows in _mentions(connection, dataset, operations, names):
        connection.execute(delete(operations).where(*_is_row(operations)), _keys(operations, rows))
        connection.execute(insert(operations), rows)
    again = update(annotators).where(here, annotators.c.id == bindparam("who"))
    connection.execute(again.values(kind=bindparam("was")), before)


def _is_row(table: Table) -> list[ColumnElement[bool]]:
    return [column == bindparam(f"at_{column.name}") for column in table.primary_key]


def _keys(table: Table, rows: Sequence[_Row]) -> list[_Row]:
    """Return the values of ``_is_row`` for each row."""
    names = [column.name for column in table.primary_key]
    return [{f"at_{name}": row[name] for name in names} for row in rows]


def _mentions(
    connection: Connection, dataset: Dataset, table: Table, names: tuple[str, str]
) -> Iterator[list[_Row]]:
    """Yield the rows of a table that mention the first of two names, some at a time.

    They have the second name in its place.
    """
    name, new = names
    quoted = json.dumps(name, ensure_ascii=False)
    texts = _TEXTS[table]
    wanted = [table.c[column].contains(quoted, autoescape=True) for column in texts]
    if "author" in table.c:
        wanted.append(table.c.author == name)
    for first in range(0, dataset.n_items, _PIECE):
        piece = table.c.position.between(first, first + _PIECE - 1)
        query = select(table).where(table.c.dataset_id == dataset.id, piece, or_(*wanted))
        rows = [dict(row) for row in connection.execute(query).mappings()]
        for row in rows:
            row |= {column: _renamed(row[column], name, new) for column in texts}
            if row.get("author") == name:
                row["author"] = new
        if rows:
            yield rows


def _renamed(text: str | None, name: str, new: str) -> str | None:
    if text is None:
        return None
    changed = _walked(json.loads(text), name, new)
    return json.dumps(changed, ensure_ascii=False, separators=(",", ":"))


def _walked(value: Any, name: str, new: str) -> Any:
    if isinstance(value, list):
        return [_walked(each, name, new) for each in value]
    if not isinstance(value, dict):
        return value
    kept = _HOW_MADE | {"trace"} if value.get("voters") else {"trace"}
    return {
        key: each
        if key in kept
        else list(dict.fromkeys(new if who == name else who for who in each))
        if key == "voters" and isinstance(each, list)
        else new
        if key in _NAMES and each == name
        else _walked(each, name, new)
        for key, each in value.items()
    }
