"""The inserts that SQLite and PostgreSQL write in dialects of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, Insert, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

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


def insert_rows(connection: Connection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert many rows as fast as the database takes them: SQLite's own loop, PostgreSQL's COPY.

    Args:
        connection: in a transaction that may write.
        table: the table's name.
        rows: plain values by column; all rows have the same columns in the same order.

    Raises:
        sqlalchemy.exc.DBAPIError: the database refuses.
    """
    if not rows:
        return
    names = ", ".join(rows[0])
    if connection.dialect.name == "sqlite":
        values = ", ".join("?" * len(rows[0]))
        sql = f"INSERT INTO {table} ({names}) VALUES ({values})"  # noqa: S608 - our own names
        connection.exec_driver_sql(sql, [tuple(row.values()) for row in rows])
        return
    driver: Any = connection.connection.driver_connection
    sql = f"COPY {table} ({names}) FROM STDIN"
    try:
        with driver.cursor() as cursor, cursor.copy(sql) as copy:
            for row in rows:
                copy.write_row(tuple(row.values()))
    except connection.dialect.loaded_dbapi.Error as error:
        raise DBAPIError(sql, None, error) from error
