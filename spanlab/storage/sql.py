"""The two kinds of insert that SQLite and PostgreSQL write in dialects of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from sqlalchemy import Connection, Insert, Table
from sqlalchemy.dialects import postgresql, sqlite

_INSERT: dict[str, Callable[[Table], Any]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


def insert_new(connection: Connection, table: Table) -> Insert:
    """Return an insert into ``table`` that leaves rows alone whose key is there already."""
    return cast("Insert", _INSERT[connection.dialect.name](table).on_conflict_do_nothing())


def insert_or_replace(connection: Connection, table: Table) -> Insert:
    """Return an insert into ``table`` that overwrites the row that has the same primary key."""
    statement = _INSERT[connection.dialect.name](table)
    others = {c.name: statement.excluded[c.name] for c in table.columns if not c.primary_key}
    keys = list(table.primary_key.columns)
    return cast("Insert", statement.on_conflict_do_update(index_elements=keys, set_=others))
