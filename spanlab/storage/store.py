"""The annotation store: one object in front of the whole database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Self

from sqlalchemy import Connection, literal, select

from spanlab.errors import StoreError
from spanlab.oplog import ReviewState
from spanlab.oplog.operations import Review, SentOperation, WriteReply
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    DatasetSummary,
    QueuePage,
    QueuePlace,
    QueueQuery,
    Record,
    Status,
)
from spanlab.settings import Settings
from spanlab.storage import (
    annotators,
    api_jobs,
    assignment,
    campaigns,
    catalog,
    dataset_bin,
    imports,
    items,
    paging,
    reviews,
    staging,
)
from spanlab.storage.annotations import save_annotations
from spanlab.storage.api_jobs import StoredJob
from spanlab.storage.assignment import FinishedItem, PlanProgress
from spanlab.storage.campaigns import Entrance, KnownItems, ReadGuidelines
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.dataset_bin import BinnedDataset
from spanlab.storage.engine import Database
from spanlab.storage.findings import FoundAnnotations, save_findings
from spanlab.storage.items import StoredRecord
from spanlab.storage.selection import Selection
from spanlab.storage.upgrade import opened

_Place = tuple[Connection, DatasetRow]


class Store:
    """Datasets, annotations and reviews in one database; any number of threads may share it.

    Every method sees one consistent state of the database, and its writes are durable when it
    returns. Besides the errors named, every method raises ``StoreError`` if the database
    refuses or cannot be reached, and ``NotFoundError`` for a dataset or item that is not there.
    """

    reader: tuple[str, bool] | None = None  # who may see a part of it alone, in that class of store

    def __init__(self, database: Database) -> None:
        self.database = self._database = database

    @classmethod
    def open(cls, settings: Settings | None = None) -> Self:
        """Open the database that ``settings`` (None: the environment) name, migrating it if needed.

        An SQLite file that has something to migrate is first copied to ``<home>/backups``.

        Raises:
            UsageError: the database URL is none, or its driver is not installed.
            StoreError: it is no database, one of a newer spanlab, or cannot be reached.
        """
        database = opened(settings or Settings.read())
        try:
            with suppress(StoreError):  # nobody reads those rows, and whoever writes is told why
                staging.sweep(database)
                dataset_bin.sweep(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def close(self) -> None:
        """Close the database's connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _reading(self, dataset: str) -> Iterator[_Place]:
        with self._database.reading() as connection:
            yield connection, catalog.find(connection, dataset)

    def ping(self) -> None:
        """Ask the database for next to nothing, to see whether it answers."""
        with self._database.reading() as connection:
            connection.execute(select(literal(1)))

    # Datasets

    def datasets(self, *, versions: bool = False) -> list[DatasetSummary]:
        """Return all datasets, oldest first, with their versions if asked; see ``summaries``."""
        with self._database.reading() as connection:
            return catalog.summaries(connection, versions=versions)

    def import_records(
        self,
        dataset: str,
        records: Iterable[Record],
        on_progress: Callable[[int], None] | None = None,
        on_taken: Callable[[int, Record], None] | None = None,
    ) -> int:
        """Append new records to a dataset, all or nothing; see ``imports.import_records``."""
        return imports.import_records(self._database, dataset, records, on_progress, on_taken)

    def rename_dataset(self, name: str, new: str) -> None:
        """Rename a dataset; see ``catalog.rename``."""
        with self._database.writing() as connection:
            catalog.rename(connection, name, new)

    def settings(self, name: str) -> DatasetSettings:
        """Return the settings of a dataset."""
        with self._database.reading() as connection:
            return catalog.settings_of(connection, name)

    def change_settings(
        self, name: str, change: Callable[[DatasetSettings], DatasetSettings]
    ) -> DatasetSettings:
        """Store what ``change`` makes of a dataset's settings; see ``catalog.change_settings``."""
        with self._database.writing() as connection:
            return catalog.change_settings(connection, name, change)

    def rename_annotator(self, dataset: str, name: str, new: str) -> None:
        """Give an annotator of a dataset another name; see ``annotators.rename``."""
        with self._database.writing() as connection:
            annotators.rename(connection, catalog.find(connection, dataset), name, new)

    def merge_annotators(self, dataset: str, name: str, into: str) -> int:
        """Let one annotator be another one; see ``annotators.merge``."""
        with self._database.writing() as connection:
            return annotators.merge(connection, catalog.find(connection, dataset), name, into)

    def remove_annotator(self, dataset: str, name: str) -> None:
        """Delete all that an annotator said of a dataset; see ``annotators.remove``."""
        with self._database.writing() as connection:
            annotators.remove(connection, catalog.find(connection, dataset), name)

    def set_gold(self, dataset: str, name: str, *, gold: bool) -> None:
        """Let a person's annotations be gold labels, or not; see ``annotators.set_gold``."""
        with self._database.writing() as connection:
            annotators.set_gold(connection, catalog.find(connection, dataset), name, gold=gold)

    def duplicate_dataset(self, name: str, new: str) -> int:
        """Copy a dataset and return its number of items; its review logs begin anew."""
        return staging.duplicate(self._database, name, new)

    def freeze_dataset(self, name: str, version: str) -> int:
        """Copy a dataset to a version that never changes; return its number of items."""
        return staging.duplicate(self._database, name, version, version=True)

    def seal_version(self, version: str, digest: str) -> None:
        """Store the SHA-256 of a version's export, once."""
        with self._database.writing() as connection:
            catalog.seal(connection, version, digest)

    def delete_dataset(self, name: str) -> None:
        """Delete a dataset with all annotations and logs, for good; see ``staging.remove``."""
        staging.remove(
            self._database, lambda connection: catalog.find(connection, name, delete=True)
        )

    def bin_dataset(self, name: str) -> None:
        """Put a dataset and its versions into the bin for 30 days; see ``dataset_bin.put``."""
        with self._database.writing() as connection:
            dataset_bin.put(connection, name)

    def binned(self) -> list[BinnedDataset]:
        """Return what is in the bin, the last deleted first."""
        with self._database.reading() as connection:
            return dataset_bin.listed(connection)

    def restore_dataset(self, name: str, new: str | None = None) -> None:
        """Bring a dataset back out of the bin; see ``dataset_bin.restore``."""
        with self._database.writing() as connection:
            dataset_bin.restore(connection, name, new)

    def empty_bin(self, name: str) -> None:
        """Delete for good what was deleted last under a name; see ``dataset_bin.remove``."""
        dataset_bin.remove(self._database, name)

    # Jobs of the JSON API

    def enter_api_job(self, job_id: str, dataset: str) -> None:
        """Let a job own a dataset that was made for it; see ``api_jobs.enter``."""
        with self._database.writing() as connection:
            api_jobs.enter(connection, job_id, catalog.find(connection, dataset))

    def api_jobs(self, ids: Collection[str] | None = None, limit: int = 1) -> list[StoredJob]:
        """Return those of some jobs that are the API's, the newest first; see ``api_jobs.find``."""
        with self._database.reading() as connection:
            return api_jobs.find(connection, ids, limit)

    def forget_api_job(self, job_id: str) -> bool:
        """Forget a job, and delete its dataset unless people worked on it; return if it stays."""
        return not staging.remove(
            self._database, lambda connection: api_jobs.forget(connection, job_id)
        )

    # Records

    def records(self, dataset: str, *, annotators: Sequence[str] | None = None) -> Iterator[Record]:
        """Yield the records in import order, all of one snapshot, in bounded memory.

        ``annotators`` says whose annotations they carry; None for everybody's.

        Raises:
            NotFoundError: an annotator has annotated nothing in this dataset.
        """
        with self._reading(dataset) as place:
            for stored in items.all_of(*place, annotators):
                yield self._readable(stored, place)

    def record(self, dataset: str, item_id: str) -> Record:
        """Return one item with all its annotations."""
        with self._reading(dataset) as place:
            return self._readable(items.one(*place, items.position_of(*place, item_id)), place)

    def records_at(self, dataset: str, positions: Sequence[int]) -> list[Record]:
        """Return the records at these places of the import order (from 0), in that order.

        Places at which the dataset has no item are left out.
        """
        with self._reading(dataset) as place:
            return [self._readable(stored, place) for stored in items.at(*place, positions)]

    def _readable(self, stored: StoredRecord, place: _Place) -> Record:
        return items.with_nodes(stored.record(), self._database, place[1])

    def save_annotations(
        self, dataset: str, pairs: Iterable[tuple[str, Annotation]], *, whole: bool = False
    ) -> int:
        """Insert or replace annotations, as they come or as a whole; see ``save_annotations``."""
        return save_annotations(self._database, dataset, pairs, whole=whole)

    def save_findings(self, dataset: str, found: Iterable[FoundAnnotations]) -> int:
        """Insert or replace annotations and the passages they quote; see ``save_findings``."""
        return save_findings(self._database, dataset, found)

    # Queues

    def page(self, dataset: str, query: QueueQuery) -> QueuePage:
        """Return the rows of a queue at the place that ``query`` names."""
        with self._reading(dataset) as place:
            return paging.page(*place, query)

    def neighbour(self, dataset: str, query: QueueQuery, item_id: str, step: int = 1) -> str | None:
        """Return the next (``step`` 1) or previous (-1) item's id; see ``paging.neighbour``."""
        with self._reading(dataset) as place:
            return paging.neighbour(*place, query, item_id, step)

    def reserve(self, dataset: str, item_id: str, reviewer: str, people: int) -> tuple[str, ...]:
        """Reserve an item unless ``people`` others have it; return those; see ``assignment``."""
        with self._database.writing() as connection:
            found = catalog.find(connection, dataset)
            position = items.position_of(connection, found, item_id)
            return assignment.reserve(connection, found, position, reviewer, people)

    def standing(self, dataset: str, query: QueueQuery, item_id: str) -> QueuePlace:
        """Return which item of a queue one is, and of how many; see ``paging.standing``."""
        with self._reading(dataset) as place:
            return paging.standing(*place, query, item_id)

    def positions(self, dataset: str, query: QueueQuery) -> list[int]:
        """Return the places in import order of all items that pass the filter of ``query``.

        The query's own place and limit are ignored.
        """
        with self._reading(dataset) as place:
            return Selection(*place, query).positions()

    def positions_of(self, dataset: str, ids: Sequence[str]) -> list[int]:
        """Return the places in import order of the items with these ids, in the order given.

        Raises:
            NotFoundError: the dataset has no item of one of these ids.
        """
        with self._reading(dataset) as place:
            return [items.position_of(*place, item_id) for item_id in ids]

    def counts(self, dataset: str, reviewer: str) -> dict[Status, int]:
        """Return how many items are in each status under ``reviewer``, who may be unknown yet."""
        with self._reading(dataset) as place:
            return catalog.counts(*place, reviewer)

    def plan(self, dataset: str, only: str | None = None) -> PlanProgress | None:
        """Return how far a dataset's plan is, for all or for one person; see ``assignment``."""
        with self._reading(dataset) as place:
            return assignment.progress(*place, catalog.settings_of(place[0], dataset), only)

    # Campaigns

    def take_back(self, dataset: str, person: str) -> None:
        """Let others have what a person was to finish and has not: see ``DatasetSettings.away``."""

        def change(now: DatasetSettings) -> DatasetSettings:
            return now.model_copy(update={"away": tuple(dict.fromkeys((*now.away, person)))})

        with self._database.writing() as connection:
            catalog.change_settings(connection, dataset, change)
            assignment.let_go(connection, catalog.find(connection, dataset), person)

    def give_back(self, dataset: str, person: str) -> None:
        """Let a person who was away have their part of the plan again."""

        def change(now: DatasetSettings) -> DatasetSettings:
            away = tuple(name for name in now.away if name != person)
            return now.model_copy(update={"away": away})

        self.change_settings(dataset, change)

    def n_held(self, dataset: str, person: str) -> int:
        """Return how many items are reserved for a person who has not decided them."""
        with self._reading(dataset) as place:
            return assignment.n_held(*place, person)

    def known_items(self, dataset: str, person: str) -> KnownItems:
        """Return which items with known answers a person was given."""
        with self._reading(dataset) as place:
            return campaigns.known_items(*place, person)

    def give_known(self, dataset: str, person: str, after: str, share: float) -> None:
        """Give a person a known item after another one if it is due; see ``give_after``."""
        with self._database.writing() as connection:
            found = catalog.find(connection, dataset)
            position = items.position_of(connection, found, after)
            campaigns.give_after(connection, found, person, position, share)

    def give_test(self, dataset: str, person: str, attempt: int, n_items: int) -> None:
        """Give a person the items of a test; see ``campaigns.give_test``."""
        with self._database.writing() as connection:
            found = catalog.find(connection, dataset)
            campaigns.give_test(connection, found, person, attempt, n_items)

    def enter(self, dataset: str, entrance: Entrance) -> None:
        """Store that somebody has done a test, or was let in."""
        with self._database.writing() as connection:
            campaigns.enter(connection, catalog.find(connection, dataset), entrance)

    def entered(self, dataset: str) -> tuple[Entrance, ...]:
        """Return who has done a test or was let in."""
        with self._reading(dataset) as place:
            return campaigns.entered(*place)

    def confirm_read(self, dataset: str, person: str, version: int) -> None:
        """Store that a person has read a version of the guidelines; the first time counts."""
        with self._database.writing() as connection:
            campaigns.confirm_read(connection, catalog.find(connection, dataset), person, version)

    def readings(self, dataset: str) -> tuple[ReadGuidelines, ...]:
        """Return who has confirmed having read which version of the guidelines, and when."""
        with self._reading(dataset) as place:
            return campaigns.readings(*place)

    def last_active(self, dataset: str) -> dict[str, datetime]:
        """Return when each person has last done anything to an item."""
        with self._reading(dataset) as place:
            return campaigns.last_active(*place)

    def n_operations(self, dataset: str) -> int:
        """Return how many operations all reviews of a dataset hold; it grows with every edit."""
        with self._reading(dataset) as place:
            return catalog.n_operations(*place)

    def finished(self, dataset: str) -> tuple[FinishedItem, ...]:
        """Return which items each person finished, when and how fast; see ``assignment``."""
        with self._reading(dataset) as place:
            return assignment.finished(*place)

    def labels(self, dataset: str, reviewer: str | None = None) -> tuple[str, ...]:
        """Return the span labels in use in a dataset, or in one person's reviews of it.

        They come in the order in which anybody used them first.
        """
        with self._reading(dataset) as place:
            used = catalog.labels_in_use(*place)
            own = used if reviewer is None else reviews.labels_used(*place, reviewer)
            return tuple(label for label in used if label in own)

    # Reviews

    def review(
        self, dataset: str, item_id: str, reviewer: str, kind: AnnotatorKind = AnnotatorKind.PERSON
    ) -> Review:
        """Return one person's review, or the gold labels, of one item; see ``reviews.review``."""
        with self._reading(dataset) as place:
            return reviews.review(*place, item_id, reviewer, kind)

    def apply(
        self, dataset: str, item_id: str, reviewer: str, writes: Sequence[SentOperation]
    ) -> WriteReply:
        """Append a session's operations to a review's log; see ``reviews.apply``."""
        with self._database.writing() as connection:
            found = catalog.find(connection, dataset)
            return reviews.apply(connection, found, item_id, reviewer, writes)

    def rebuild(
        self, dataset: str, item_id: str, reviewer: str, kind: AnnotatorKind = AnnotatorKind.PERSON
    ) -> ReviewState:
        """Return a review's state as its snapshot and log alone give it."""
        with self._reading(dataset) as place:
            return reviews.rebuild(*place, item_id, reviewer, kind)
