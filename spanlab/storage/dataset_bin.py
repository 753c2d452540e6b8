"""The bin: deleted datasets, which come back for 30 days and then go for good.

A dataset in it keeps all its rows and gives its name free: in the bin it is called by its number
and its name, with a control character between that no user's dataset can have.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import Connection, and_, func, select, update

from spanlab.base.errors import NotFoundError
from spanlab.storage import catalog, staging
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.engine import Database
from spanlab.storage.tables import BINNED, READY, datasets, loads, operations

KEPT = timedelta(days=30)
_MARK = "\x1f"


@dataclass(frozen=True)
class BinnedDataset:
    """A dataset in the bin, by the name that it had; ``until`` is when it goes for good."""

    id: int
    name: str
    n_items: int
    deleted: datetime

    @property
    def until(self) -> datetime:
        """When it goes for good."""
        return self.deleted + KEPT


def put(connection: Connection, name: str) -> None:
    """Put the dataset ``name`` into the bin, with its versions.

    Raises:
        NotFoundError: there is none.
        StoreError: an import into it is under way.
    """
    dataset = catalog.find(connection, name, delete=True)
    row_lock = select(datasets.c.id).where(datasets.c.id == dataset.id)
    connection.execute(row_lock.with_for_update(key_share=True))  # no import begins now
    if connection.execute(select(loads).where(loads.c.dataset_id == dataset.id)).first():
        raise staging.busy(name)
    now = datetime.now(UTC).isoformat()
    for row in (dataset, *catalog.versions_of(connection, dataset.id, READY)):
        statement = update(datasets).where(datasets.c.id == row.id)
        hidden = f"{_MARK}{row.id}{_MARK}{row.name}"
        connection.execute(statement.values(state=BINNED, deleted_at=now, name=hidden))


def list_binned(connection: Connection) -> list[BinnedDataset]:
    """Return what is in the bin, the last deleted first; empty for nothing."""
    columns = (datasets.c.id, datasets.c.name, datasets.c.n_items, datasets.c.deleted_at)
    query = select(*columns).where(datasets.c.state == BINNED)
    rows = connection.execute(query.order_by(datasets.c.deleted_at.desc(), datasets.c.id))
    return [
        BinnedDataset(
            row.id, _original_name(row.name), row.n_items, datetime.fromisoformat(row.deleted_at)
        )
        for row in rows
    ]


def restore(connection: Connection, name: str, new: str | None = None) -> None:
    """Bring back the dataset that was deleted last under ``name``, with its versions.

    Args:
        connection: writes.
        name: what it was called.
        new: what it is to be called; None for what it was.

    Raises:
        NotFoundError: the bin has none of this name; names those that it has.
        StoreError: the name is taken by now.
        UsageError: ``new`` is not a name.
    """
    dataset = find(connection, name)
    is_binned_version = and_(datasets.c.version_of == dataset.id, datasets.c.state == BINNED)
    with_it = is_binned_version & (datasets.c.deleted_at == dataset.deleted.isoformat())
    names_by_id = {dataset.id: new or name}
    for row in connection.execute(select(datasets.c.id, datasets.c.name).where(with_it)):
        names_by_id[row.id] = f"{new or name}@{_original_name(row.name).rpartition('@')[2]}"
    for number, new_name in names_by_id.items():
        catalog.rename_row(connection, number, new_name, state=READY, deleted_at=None)


def find(connection: Connection, name: str) -> BinnedDataset:
    """Return the dataset that was deleted last under ``name``; raises as ``restore`` does."""
    binned = list_binned(connection)
    for dataset in binned:
        if dataset.name == name:
            return dataset
    in_bin = ", ".join(repr(dataset.name) for dataset in binned[:20]) or "nothing"
    raise NotFoundError(f"the bin has no dataset {name!r}; available: {in_bin}")


def remove(database: Database, name: str) -> None:
    """Delete for good what was deleted last under ``name``, and its versions with it.

    Raises:
        NotFoundError: the bin has none of this name.
    """
    with database.reading() as connection:
        dataset = find(connection, name)
        versions = catalog.versions_of(connection, dataset.id, BINNED)
    for number in (*(row.id for row in versions), dataset.id):
        staging.remove(database, partial(_find_binned, number))


def sweep(database: Database) -> None:
    """Delete for good what has been in the bin for 30 days; cheap if there is nothing.

    Where nothing at all was written for so long, it waits until something is: the clock may have
    been put forward.
    """
    with database.reading() as connection:
        now = datetime.now(UTC)
        old = [dataset.id for dataset in list_binned(connection) if dataset.until < now]
        if old and _last_written(connection) < (now - KEPT).isoformat():
            return
    for number in old:
        staging.remove(database, partial(_find_binned, number))


def _last_written(connection: Connection) -> str:
    """Return when a dataset was made, or somebody reviewed, for the last time (UTC, ISO 8601)."""
    times = (datasets.c.created, operations.c.at)
    found = [connection.execute(select(func.max(time))).scalar() for time in times]
    return max(filter(None, found), default="")


def _find_binned(number: int, connection: Connection) -> DatasetRow | None:
    """Return a dataset that is still in the bin; None if it came back or went meanwhile."""
    query = select(datasets.c.id, datasets.c.name, datasets.c.n_items)
    conditions = (datasets.c.id == number, datasets.c.state == BINNED)
    row = connection.execute(query.where(*conditions).with_for_update()).one_or_none()
    return None if row is None else DatasetRow(*row)


def _original_name(stored: str) -> str:
    return stored.split(_MARK, 2)[2]
