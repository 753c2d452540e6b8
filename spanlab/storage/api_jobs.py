"""Jobs of the JSON API: each owns the dataset that was made for it, whatever its name is now."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, and_, delete, exists, insert, or_, select

from spanlab.base.errors import NotFoundError
from spanlab.schema import AnnotatorKind, DatasetSettings, Permission
from spanlab.storage import Store, access, catalog, moves
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.items import lock
from spanlab.storage.tables import READY, annotators, api_jobs, datasets, loads, operations


@dataclass(frozen=True)
class StoredJob:
    """A job of the API: ``dataset`` is what its dataset is called now, None once it is deleted."""

    id: str
    dataset: str | None
    total: int  # answers


def enter(store: Store, job_id: str, dataset: str) -> None:
    """Let a job own a dataset that was made for it, as it is now."""
    now = datetime.now(UTC).isoformat()
    with store.writing(Permission.MANAGE, dataset) as connection:
        place = catalog.find(connection, dataset)
        row = {"id": job_id, "created": now, "dataset_id": place.id, "total": place.n_items}
        connection.execute(insert(api_jobs).values(row))


def find(store: Store, ids: Collection[str] | None = None, limit: int = 1) -> list[StoredJob]:
    """Return up to ``limit`` jobs of the API, the newest first; with ``ids`` all of those.

    Of all these, those are left out whose dataset the actor may not see.
    """
    ready = and_(datasets.c.id == api_jobs.c.dataset_id, datasets.c.state == READY)
    query = select(api_jobs.c.id, datasets.c.name, api_jobs.c.total)
    query = query.select_from(api_jobs.outerjoin(datasets, ready))
    query = query.order_by(api_jobs.c.created.desc(), api_jobs.c.id)
    limited = query.limit(limit) if ids is None else query.where(api_jobs.c.id.in_(list(ids)))
    with store.database.reading() as connection:
        jobs = [StoredJob(*row) for row in connection.execute(limited)]
        return [job for job in jobs if access.owns_job(connection, store.actor, job.dataset)]


def forget(store: Store, job_id: str) -> bool:
    """Forget a job, and delete its dataset unless people work on it; return if it stays.

    Raises:
        NotFoundError: the API has no such job.
    """
    store.require(Permission.ADMINISTER)
    return not moves.leaving(store.database, lambda connection: _forget(connection, job_id))


def _forget(connection: Connection, job_id: str) -> DatasetRow | None:
    """Delete the row of a job, and return its dataset if nobody has worked on it, or is to.

    None also where the dataset was deleted already.

    Raises:
        NotFoundError: the API has no such job.
    """
    job = delete(api_jobs).where(api_jobs.c.id == job_id)
    row = connection.execute(job.returning(api_jobs.c.dataset_id, api_jobs.c.total)).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no job {job_id!r}")
    owned = (datasets.c.id == row.dataset_id, datasets.c.state == READY)
    dataset = connection.execute(select(datasets).where(*owned)).one_or_none()
    if dataset is None:
        return None
    lock(connection, dataset.id, 0, dataset.n_items)  # whoever reviews now comes first
    people = annotators.c.kind.in_([AnnotatorKind.PERSON.value, AnnotatorKind.GOLD.value])
    touched = or_(
        exists().where(annotators.c.dataset_id == dataset.id, people),
        exists().where(operations.c.dataset_id == dataset.id),
        exists().where(loads.c.dataset_id == dataset.id),  # somebody imports more into it
    )
    settings = DatasetSettings.model_validate_json(dataset.settings)
    is_planned = settings.has_lists or settings.measurement is not None
    is_grown = dataset.n_items != row.total
    if is_grown or is_planned or connection.execute(select(touched)).scalar():
        return None
    return DatasetRow(dataset.id, dataset.name, dataset.n_items)
