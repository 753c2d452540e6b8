"""How datasets come and go: imports, copies and versions, the bin, deletions.

    loading ──▶ ready ◀──▶ binned          all but ``ready`` nobody sees
       └───────────┴─────────┴──▶ deleting ──▶ gone

One transaction over a long import would keep every reviewer's write waiting on SQLite. So what
comes is written in batches above ``datasets.n_items``, where no reader looks, and that number is
raised at the end; what goes is hidden at once and deleted in batches. Whoever does either has a row
in ``loads`` and holds the dataset's lock; a row without the lock belongs to a process that died,
and what it left is swept up.

A dataset in the bin keeps all its rows and gives its name free, comes back for 30 days, and then
goes for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from spanlab.base.errors import NotFoundError, StoreError, UnderImportError
from spanlab.storage import catalog, search, tables
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.engine import Database, learn_sizes
from spanlab.storage.items import lock
from spanlab.storage.locks import claim
from spanlab.storage.processes import remove_processes
from spanlab.storage.tables import (
    BINNED,
    DELETING,
    LOADING,
    READY,
    annotated,
    annotators,
    datasets,
    items,
    loads,
)

KEPT = timedelta(days=30)

_PIECE = 2000  # positions deleted in one transaction
_MANY = 1000  # items that come at once, after which PostgreSQL counts anew
_MARK = "\x1f"  # before the name of a dataset that is set aside: no user's can have it
# Children first. Processes have rules of their own, see ``remove_processes``.
_BY_POSITION = [table for table in reversed(tables.metadata.sorted_tables) if "position" in table.c]
_OF_WHOLE = (
    *(tables.labels, annotators, tables.languages, loads),
    *(tables.entrances, tables.guidelines_read, tables.queues),
)


@contextmanager
def arriving(database: Database, name: str, *, create: bool) -> Iterator[DatasetRow]:
    """Open the dataset ``name`` for what comes into it; that is swept away if the block fails.

    The block gets the dataset as readers see it, writes above that, and ends with ``publish``.
    With ``create`` the dataset must be new, otherwise it is made if it is not there.

    Raises:
        UnderImportError: another import into it is under way.
        StoreError: the name is taken and ``create`` is set.
    """
    sweep(database)
    with ExitStack() as stack:
        with database.writing() as connection:
            opened = _open(connection, name, create=create)
            _claim(connection, database, opened, stack)
        try:
            yield opened
        except BaseException:
            with suppress(StoreError):  # such as a full disk: a later sweep does it
                _clear(database, opened.id)
            raise


def publish(connection: Connection, dataset: int, n_items: int, **values: Any) -> None:
    """Let readers see the positions of ``dataset`` up to ``n_items``, and other values of it."""
    here = datasets.c.id == dataset
    known = connection.execute(select(datasets.c.n_items).where(here)).scalar_one()
    if n_items - known >= _MANY:
        learn_sizes(connection)
    row = update(datasets).where(here)
    connection.execute(row.values(state=READY, n_items=n_items, **values))
    connection.execute(delete(loads).where(loads.c.dataset_id == dataset))


def leaving(database: Database, find: Callable[[Connection], DatasetRow | None]) -> bool:
    """Delete the dataset that ``find`` names, with all that belongs to it.

    Readers stop seeing it at once. Nobody comes in between what ``find`` looks at and that.

    Returns:
        Whether ``find`` named one.

    Raises:
        NotFoundError: ``find`` found that there is none.
        StoreError: an import into it is under way.
    """
    sweep(database)
    return _leave(database, find)


def sweep(database: Database) -> None:
    """Clean up after those that died half-way, and delete what was in the bin for 30 days.

    It is cheap if there is nothing. Where nothing at all was written for 30 days, the bin waits
    until something is: the clock may have been put forward.

    Raises:
        StoreError: the database refuses, such as on a full disk.
    """
    with database.reading() as connection:
        opened = connection.execute(select(loads.c.dataset_id)).scalars().all()
        now = datetime.now(UTC)
        old = [dataset.id for dataset in list_binned(connection) if dataset.until < now]
        if old and _last_written(connection) < (now - KEPT).isoformat():
            old = []
    for dataset in opened:
        with claim(database, dataset) as is_dead:
            if is_dead:
                _clear(database, dataset)
    for dataset in old:
        _leave(database, partial(_find_binned, dataset))


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


def put_in_bin(connection: Connection, name: str) -> None:
    """Put the dataset ``name`` into the bin, with its versions.

    Raises:
        NotFoundError: there is none.
        StoreError: an import into it is under way.
    """
    dataset = catalog.find(connection, name, delete=True)
    _check_idle(connection, dataset)
    is_version = and_(datasets.c.version_of == dataset.id, datasets.c.state == READY)
    _set_aside(connection, or_(datasets.c.id == dataset.id, is_version), BINNED)


def list_binned(connection: Connection) -> list[BinnedDataset]:
    """Return what is in the bin, the last deleted first; empty for nothing."""
    query = select(datasets).where(datasets.c.state == BINNED)
    return [
        BinnedDataset(
            row.id, _original_name(row.name), row.n_items, datetime.fromisoformat(row.deleted_at)
        )
        for row in connection.execute(query.order_by(datasets.c.deleted_at.desc(), datasets.c.id))
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
    dataset = _find_in_bin(connection, name)
    is_binned_version = and_(datasets.c.version_of == dataset.id, datasets.c.state == BINNED)
    with_it = is_binned_version & (datasets.c.deleted_at == dataset.deleted.isoformat())
    names_by_id = {dataset.id: new or name}
    for row in connection.execute(select(datasets.c.id, datasets.c.name).where(with_it)):
        names_by_id[row.id] = f"{new or name}@{_original_name(row.name).rpartition('@')[2]}"
    for number, new_name in names_by_id.items():
        catalog.rename_row(connection, number, new_name, state=READY, deleted_at=None)


def empty_bin(database: Database, name: str) -> None:
    """Delete for good what was deleted last under ``name``, and its versions with it.

    Raises:
        NotFoundError: the bin has none of this name.
    """
    with database.reading() as connection:
        dataset = _find_in_bin(connection, name)
        versions = catalog.versions_of(connection, dataset.id, BINNED)
    for number in (*(row.id for row in versions), dataset.id):
        leaving(database, partial(_find_binned, number))


def _find_in_bin(connection: Connection, name: str) -> BinnedDataset:
    binned = list_binned(connection)
    for dataset in binned:
        if dataset.name == name:
            return dataset
    in_bin = ", ".join(repr(dataset.name) for dataset in binned[:20]) or "nothing"
    raise NotFoundError(f"the bin has no dataset {name!r}; available: {in_bin}")


def _find_binned(number: int, connection: Connection) -> DatasetRow | None:
    """Return a dataset that is still in the bin; None if it came back or went meanwhile."""
    query = select(datasets.c.id, datasets.c.name, datasets.c.n_items)
    conditions = (datasets.c.id == number, datasets.c.state == BINNED)
    row = connection.execute(query.where(*conditions).with_for_update()).one_or_none()
    return None if row is None else DatasetRow(*row)


def _last_written(connection: Connection) -> str:
    """Return when a dataset was made, or somebody reviewed, for the last time (UTC, ISO 8601)."""
    times = (datasets.c.created, tables.operations.c.at)
    found = [connection.execute(select(func.max(time))).scalar() for time in times]
    return max(filter(None, found), default="")


def _set_aside(connection: Connection, which: ColumnElement[bool], state: str) -> None:
    """Hide datasets from everybody; their names are free again at once."""
    hidden = literal(_MARK) + cast(datasets.c.id, Text) + _MARK + datasets.c.name
    now = datetime.now(UTC).isoformat()
    row = update(datasets).where(which)
    connection.execute(row.values(state=state, name=hidden, deleted_at=now))


def _original_name(hidden: str) -> str:
    return hidden.rpartition(_MARK)[2]


def _open(connection: Connection, name: str, *, create: bool) -> DatasetRow:
    query = select(datasets).where(datasets.c.name == name).with_for_update(key_share=True)
    row = connection.execute(query).one_or_none()
    if row is None or create:
        try:
            return DatasetRow(catalog.create(connection, name, LOADING), name, 0)
        except StoreError:
            if create:
                raise
            raise _busy(name) from None  # another process has made it since
    if row.state != READY:
        raise _busy(name)
    if row.digest is not None:
        raise catalog.frozen_version_error(name)
    return DatasetRow(row.id, name, row.n_items)


def _claim(
    connection: Connection, database: Database, dataset: DatasetRow, stack: ExitStack
) -> None:
    """Enter a load of ``dataset`` and hold its lock until ``stack`` closes."""
    _check_idle(connection, dataset)
    now = datetime.now(UTC).isoformat()
    connection.execute(insert(loads).values(dataset_id=dataset.id, started=now))
    if not stack.enter_context(claim(database, dataset.id)):
        raise _busy(dataset.name)


def _check_idle(connection: Connection, dataset: DatasetRow) -> None:
    """Check that nothing comes into a dataset, and let nothing before the transaction ends."""
    row = select(datasets.c.id).where(datasets.c.id == dataset.id)
    connection.execute(row.with_for_update(key_share=True))
    if connection.execute(select(loads).where(loads.c.dataset_id == dataset.id)).first():
        raise _busy(dataset.name)


def _busy(name: str) -> UnderImportError:
    return UnderImportError(f"an import into {name!r} is under way: wait for its end")


def _leave(database: Database, find: Callable[[Connection], DatasetRow | None]) -> bool:
    with ExitStack() as stack:
        with database.writing() as connection:
            dataset = find(connection)
            if dataset is None:
                return False
            _claim(connection, database, dataset, stack)
            _set_aside(connection, datasets.c.id == dataset.id, DELETING)
        _clear(database, dataset.id)
    return True


def _clear(database: Database, dataset: int) -> None:
    """Delete the rows of ``dataset`` that readers do not see, in short transactions."""
    is_it = datasets.c.id == dataset
    with database.writing() as connection:
        query = select(datasets.c.state, datasets.c.n_items).join(loads).where(is_it)
        row = connection.execute(query).one_or_none()
        if row is None:  # it came to its end, or another process has swept it
            return
        if row.state == LOADING:
            _set_aside(connection, is_it, DELETING)
        keep = row.n_items if row.state == READY else 0
        highest = connection.execute(
            select(func.max(items.c.position)).where(items.c.dataset_id == dataset)
        ).scalar()
    for stop in range(keep if highest is None else highest + 1, keep, -_PIECE):
        with database.writing() as connection:
            _delete_items(connection, dataset, max(keep, stop - _PIECE), stop)
    remove_processes(database, dataset, keep)
    with database.writing() as connection:
        if row.state == READY:
            _forget_failed_append(connection, dataset)
        else:
            for table in _OF_WHOLE:
                connection.execute(delete(table).where(table.c.dataset_id == dataset))
            versions = update(datasets).where(datasets.c.version_of == dataset)
            connection.execute(versions.values(version_of=None))
            connection.execute(delete(datasets).where(is_it))


def _delete_items(connection: Connection, dataset: int, start: int, stop: int) -> None:
    # Whoever still writes to these items comes to an end first, or finds them gone.
    lock(connection, dataset, start, stop)
    for table in _BY_POSITION:
        where = (table.c.dataset_id == dataset, table.c.position >= start, table.c.position < stop)
        connection.execute(delete(table).where(*where))
    search.remove(connection, dataset, start, stop)


def _forget_failed_append(connection: Connection, dataset: int) -> None:
    has_annotations = exists().where(
        annotated.c.dataset_id == dataset, annotated.c.annotator_id == annotators.c.id
    )
    connection.execute(
        delete(annotators).where(
            annotators.c.dataset_id == dataset, annotators.c.n_annotations == 0, ~has_annotations
        )
    )
    connection.execute(delete(loads).where(loads.c.dataset_id == dataset))
