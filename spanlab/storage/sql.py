"""The two places where the databases' own words for an insert are needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Insert, Table
from sqlalchemy.dialects import postgresql, sqlite

_INSERT: dict[str, Callable[[Table], Any]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


def insert_new(connection: Connection, table: Table) -> Insert:
    """Return an insert into ``table`` that leaves rows alone whose key is there already."""
    statement: Insert = _INSERT[connection.dialect.name](table).on_conflict_do_nothing()
    return statement


def insert_or_replace(connection: Connection, table: Table) -> Insert:
    """Return an insert into ``table`` that overwrites the row that has the same primary key."""
    statement = _INSERT[connection.dialect.name](table)
    others = {
        column.name: statement.excluded[column.name]
        for column in table.columns
        if not column.primary_key
    }
    replacing: Insert = statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns), set_=others
    )
    return replacing
