"""Copies of whole datasets."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, insert, select, update

from spanlab.storage import catalog
from spanlab.storage.engine import Database
from spanlab.storage.staging import publish, stage
from spanlab.storage.tables import annotated, annotators, datasets, facets, items, labels, languages

_ROWS = 1000  # per transaction, of any table
_COPIED = (annotators, languages, labels, items, annotated, facets)  # parents first


def duplicate(database: Database, name: str, new: str) -> int:
    """Copy the dataset ``name`` as it stands at one moment to the new dataset ``new``.

    Review logs stay behind: what a person said so far is where a log in the copy starts.

    Returns:
        The number of items.

    Raises:
        NotFoundError: there is no dataset ``name``.
        StoreError: ``new`` is taken.
        UsageError: ``new`` cannot name a dataset.
    """
    with stage(database, new, create=True) as copy, database.reading() as snapshot:
        source = catalog.find(snapshot, name)
        for table in _COPIED:
            query: Select[Any] = select(table).where(table.c.dataset_id == source.id)
            if "position" in table.c:  # an import may be under way above
                query = query.where(table.c.position < source.n_items)
            query = query.execution_options(yield_per=_ROWS)
            for rows in snapshot.execute(query).mappings().partitions():
                copies: list[dict[str, Any]] = [{**row, "dataset_id": copy.id} for row in rows]
                with database.writing() as connection:
                    connection.execute(insert(table), copies)
        with database.writing() as connection:
            publish(connection, copy.id, source.n_items)
            setting = select(datasets.c.undecided).where(datasets.c.id == source.id)
            connection.execute(
                update(datasets)
                .where(datasets.c.id == copy.id)
                .values(undecided=setting.scalar_subquery())
            )
        return source.n_items
