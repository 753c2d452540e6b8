"""The annotation store: records and reviews under the eyes of somebody, and what may be written.

It checks what the actor may do before each call of a module below. What else is read and written,
such as people's lists, goes through ``reading``, ``reviewing`` and ``writing``, which check it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from typing import Self

from sqlalchemy import Connection, literal, select

from spanlab.base.errors import AccessError, StoreError
from spanlab.base.settings import Settings
from spanlab.oplog.operations import Review, SentOperation, WriteReply
from spanlab.schema import (
    OWNER,
    Actor,
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    DatasetSummary,
    Item,
    Permission,
    Record,
    Status,
)
from spanlab.storage import (
    access,
    annotators,
    assignment,
    catalog,
    copies,
    forgetting,
    imports,
    items,
    moves,
    processes,
    reviews,
)
from spanlab.storage.access_register import AccessRegister
from spanlab.storage.annotations import FoundAnnotations, save_annotations, save_findings
from spanlab.storage.catalog import DatasetRow
from spanlab.storage.engine import Database
from spanlab.storage.forgetting import Forgotten
from spanlab.storage.moves import BinnedDataset
from spanlab.storage.sight import EVERYTHING, Sight
from spanlab.storage.upgrade import open_database

_Place = tuple[Connection, DatasetRow]
_Seen = tuple[Connection, DatasetRow, Sight]


class Store:
    """Datasets, annotations and reviews in one database; any number of threads may share it.

    Every method sees one consistent state of the database, and its writes are durable when it
    returns. Besides the errors named, every method raises ``StoreError`` if the database
    refuses or cannot be reached, and ``NotFoundError`` for a dataset or item that is not there.
    Who acts is ``actor``, by default the owner, who may do everything; every method raises
    ``AccessError`` if others may not do what it does.
    """

    def __init__(self, database: Database, actor: Actor = OWNER) -> None:
        self.database = self._database = database
        self.actor = actor
        self._hides = False
        self._seen: Mapping[str, Sight] = {}  # of datasets of which less is seen than may be

    def acting_as(self, actor: Actor, *, hides: bool = False) -> Self:
        """Return a store over the same database that checks the roles of ``actor``.

        To whoever reviews a dataset blind, it refuses everything that others said, or ``hides`` it.
        """
        bound = copy(self)
        bound.actor, bound._hides = actor, hides
        return bound

    def seen_with(self, dataset: str, sight: Sight) -> Self:
        """Return a store in which the actor sees no more of a dataset than ``sight`` shows."""
        bound = copy(self)
        bound._seen = {dataset: sight}
        return bound

    def sight(self, dataset: str) -> Sight:
        """Return what the actor sees of many records of a dataset."""
        if self.actor.may(Permission.ADMINISTER):
            return self._seen.get(dataset, EVERYTHING)
        with self.reading(dataset, many=True) as (_, _, sight):
            return sight

    @property
    def access(self) -> AccessRegister:
        """The people, roles, keys and invitations, as the actor may see and change them."""
        return AccessRegister(self._database, self.actor)

    @classmethod
    def open(cls, settings: Settings | None = None) -> Self:
        """Open the database that ``settings`` (None: the environment) name, migrating it if needed.

        An SQLite file that has something to migrate is first copied to ``<home>/backups``.

        Raises:
            UsageError: the database URL is none, or its driver is not installed.
            StoreError: it is no database, one of a newer spanlab, or cannot be reached.
        """
        settings = settings or Settings.read()
        database = open_database(settings)
        copies.sweep_copies(settings.home)
        try:
            with suppress(StoreError):  # nobody reads those rows, and whoever writes is told why
                moves.sweep(database)
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
    def reading(
        self, dataset: str, reviewer: str | None = None, *, many: bool = False
    ) -> Iterator[_Seen]:
        """Give a dataset to read, what concerns one reviewer if that is named, and what is shown.

        Reviewers without permission to see others' marks can only query their own. Of a dataset
        that is reviewed blind, and of ``many`` records of any, they see a part, if the store hides
        the rest.
        """
        with self._database.reading() as connection:
            checked = access.require(connection, self.actor, Permission.SEE, dataset)
            sight = self._seen.get(dataset, EVERYTHING)
            if checked is not None and not self.actor.may(Permission.READ, checked.number):
                sight = checked.sight(self.actor, many=many)
                if sight.blind and not self._hides:
                    raise AccessError(f"{dataset!r} is read blind here: what others said is hidden")
                self._check_own(checked.number, reviewer)
            yield connection, catalog.find(connection, dataset), sight

    @contextmanager
    def writing(self, permission: Permission, dataset: str | None = None) -> Iterator[Connection]:
        """Give the database to write, to an actor who has a permission; see ``require``."""
        with self._database.writing() as connection:
            access.require(connection, self.actor, permission, dataset)
            yield connection

    @contextmanager
    def reviewing(self, dataset: str, person: str) -> Iterator[_Place]:
        """Give a dataset to write what a person does in it, who has to be the actor."""
        with self.writing(Permission.REVIEW, dataset) as connection:
            row = catalog.find(connection, dataset)
            self._check_own(row.id, person)
            yield connection, row

    def require(self, permission: Permission, dataset: str | None = None) -> None:
        """Check that the actor may do something with a dataset, or with the whole database.

        Raises:
            AccessError: they may not, or may not see that there is such a dataset.
        """
        if not self.actor.may(Permission.ADMINISTER):
            with self._database.reading() as connection:
                access.require(connection, self.actor, permission, dataset)

    def may(self, permission: Permission, dataset: str | None = None) -> bool:
        """Return whether ``require`` lets the actor through."""
        try:
            self.require(permission, dataset)
        except AccessError:
            return False
        return True

    def note(self, connection: Connection, action: str, dataset: str, about: str = "") -> None:
        """Enter into the log what the actor does to a dataset."""
        access.note(connection, self.actor, action, dataset=dataset, about=about)

    def _check_own(self, dataset: int, reviewer: str | None) -> None:
        if not self.actor.is_owner and reviewer not in {None, self.actor.name_in(dataset)}:
            raise AccessError(f"{self.actor.name} may not do this as {reviewer!r}")

    def own_name(self, dataset: str) -> str | None:
        """Return the name under which the actor annotates a dataset; None for the owner's any."""
        if self.actor.is_owner:
            return None
        with self._database.reading() as connection:
            checked = access.require(connection, self.actor, Permission.SEE, dataset)
            number = catalog.find(connection, dataset).id if checked is None else checked.number
        return self.actor.name_in(number)

    def ping(self) -> None:
        """Check that the database answers."""
        with self._database.reading() as connection:
            connection.execute(select(literal(1)))

    # Datasets

    def datasets(self, *, versions: bool = False) -> list[DatasetSummary]:
        """Return all datasets, oldest first, with their versions if asked; see ``summaries``."""
        with self._database.reading() as connection:
            summaries = catalog.summaries(connection, versions=versions)
            visible = access.filter_visible(connection, self.actor, summaries)
            return [self._seen.get(each.name, EVERYTHING).summary(each) for each in visible]

    def import_records(
        self,
        dataset: str,
        records: Iterable[Record],
        on_progress: Callable[[int], None] | None = None,
        on_taken: Callable[[int, Record], Record | None] | None = None,
    ) -> int:
        """Append new records to a dataset, all or nothing; see ``imports.import_records``."""
        if not self.actor.may(Permission.ADMINISTER):  # who alone makes new datasets
            self.require(Permission.MANAGE, dataset)
        return imports.import_records(
            self._database, dataset, records, on_progress=on_progress, on_taken=on_taken
        )

    def kept_items(self, dataset: str, names: Collection[str]) -> list[str]:
        """Return which items are not revised; see ``imports.kept_items``."""
        self.require(Permission.MANAGE, dataset)
        with self._database.reading() as connection:
            return imports.kept_items(connection, catalog.find(connection, dataset), names)

    def revise_item(self, dataset: str, name: str, item: Item) -> int | None:
        """Store an item in place of another one; see ``imports.revise_item``."""
        with self.writing(Permission.MANAGE, dataset) as connection:
            return imports.revise_item(connection, catalog.find(connection, dataset), name, item)

    def rename_dataset(self, name: str, new: str) -> None:
        """Rename a dataset; see ``catalog.rename``."""
        with self.writing(Permission.MANAGE, name) as connection:
            catalog.rename(connection, name, new)

    def settings(self, name: str) -> DatasetSettings:
        """Return the settings of a dataset."""
        self.require(Permission.SEE, name)
        with self._database.reading() as connection:
            return catalog.settings_of(connection, name)

    def change_settings(
        self, name: str, change: Callable[[DatasetSettings], DatasetSettings]
    ) -> DatasetSettings:
        """Store what ``change`` makes of a dataset's settings; see ``catalog.change_settings``."""
        with self.writing(Permission.MANAGE, name) as connection:
            before = catalog.settings_of(connection, name)
            place = catalog.find(connection, name)
            begun = catalog.annotators_of(connection, place.id)
            changed = catalog.change_settings(
                connection, name, lambda now: change(now).after_plan(before, begun)
            )
            if (before.assigned_to, before.known) != (changed.assigned_to, changed.known):
                assignment.deal(connection, place, anew=True)
            return changed

    def rename_annotator(self, dataset: str, name: str, new: str) -> None:
        """Give an annotator of a dataset another name; see ``annotators.rename``."""
        with self.writing(Permission.MANAGE, dataset) as connection:
            place = catalog.find(connection, dataset)
            annotators.rename(connection, place, name, new)
            access.follow_name(connection, place.id, name, new)
            self.note(connection, "annotator renamed", dataset, f"{name} to {new}")

    def merge_annotators(self, dataset: str, name: str, into: str) -> int:
        """Merge one annotator into another one; see ``annotators.merge``."""
        with self.writing(Permission.MANAGE, dataset) as connection:
            place = catalog.find(connection, dataset)
            n_shared = annotators.merge(connection, place, name, into)
            access.follow_name(connection, place.id, name, into)
            self.note(connection, "annotator merged", dataset, f"{name} into {into}")
            return n_shared

    def remove_annotator(self, dataset: str, name: str) -> None:
        """Delete all that an annotator said of a dataset; see ``annotators.remove``."""
        with self.writing(Permission.MANAGE, dataset) as connection:
            place = catalog.find(connection, dataset)
            annotators.remove(connection, place, name)
            annotators.forget_copy(connection, place, name)
            self.note(connection, "annotator deleted", dataset, name)

    def forget_person(self, name: str, *, keep: bool) -> Forgotten:
        """Put a pseudonym in place of a person's name everywhere; see ``forgetting.forget``.

        Of SQLite the whole file is written anew: rows that are gone stay in it otherwise.
        """
        if name == self.actor.name:
            raise AccessError("somebody else who leads all datasets has to do this for you")
        with self.writing(Permission.ADMINISTER) as connection:
            forgotten = forgetting.forget(connection, name, keep=keep)
            access.note(connection, self.actor, "person forgotten", about=forgotten.pseudonym)
        return forgotten._replace(is_erased=self._database.compact())

    def set_person(self, dataset: str, name: str) -> None:
        """Make gold labels a person's annotations; see ``annotators.set_person``."""
        with self.writing(Permission.MANAGE, dataset) as connection:
            annotators.set_person(connection, catalog.find(connection, dataset), name)

    def duplicate_dataset(self, name: str, new: str) -> int:
        """Copy a dataset and return its number of items; its review logs begin anew."""
        self.require(Permission.ADMINISTER)
        return copies.duplicate(self._database, name, new)

    def freeze_dataset(self, name: str, version: str) -> int:
        """Copy a dataset to a version that never changes; return its number of items."""
        self.require(Permission.MANAGE, name)
        return copies.duplicate(self._database, name, version, version=True)

    def seal_version(self, version: str, digest: str) -> None:
        """Store the SHA-256 of a version's export, once."""
        with self.writing(Permission.MANAGE, version) as connection:
            catalog.seal(connection, version, digest)

    def delete_dataset(self, name: str) -> None:
        """Delete a dataset with all annotations and logs, for good; see ``moves.leaving``."""

        def find_dataset(connection: Connection) -> DatasetRow:
            access.require(connection, self.actor, Permission.MANAGE, name)
            row = catalog.find(connection, name, delete=True)
            self.note(connection, "dataset deleted permanently", name)
            return row

        moves.leaving(self._database, find_dataset)

    def bin_dataset(self, name: str) -> None:
        """Put a dataset and its versions into the bin for 30 days; see ``moves.put_in_bin``."""
        with self.writing(Permission.MANAGE, name) as connection:
            moves.put_in_bin(connection, name)
            self.note(connection, "dataset deleted", name)

    def binned(self) -> list[BinnedDataset]:
        """Return what is in the bin, the last deleted first."""
        self.require(Permission.ADMINISTER)
        with self._database.reading() as connection:
            return moves.list_binned(connection)

    def restore_dataset(self, name: str, new: str | None = None) -> None:
        """Bring a dataset back out of the bin; see ``moves.restore``."""
        with self.writing(Permission.ADMINISTER) as connection:
            moves.restore(connection, name, new)

    def empty_bin(self, name: str) -> None:
        """Delete for good what was deleted last under a name; see ``moves.empty_bin``."""
        self.require(Permission.ADMINISTER)
        moves.empty_bin(self._database, name)
        self.access.note("dataset deleted permanently", name)

    # Records

    def records(self, dataset: str, *, annotators: Sequence[str] | None = None) -> Iterator[Record]:
        """Yield the records in import order, all of one snapshot, in bounded memory.

        ``annotators`` says whose annotations they carry; None for everybody's.

        Raises:
            NotFoundError: an annotator has annotated nothing in this dataset.
        """
        with self.reading(dataset, many=True) as (connection, row, sight):
            for stored in items.read_all(connection, row, annotators, sight):
                yield self._readable(stored.record(sight, annotators), row)

    def record(self, dataset: str, item_id: str) -> Record:
        """Return one item with all its annotations."""
        with self.reading(dataset) as (connection, row, sight):
            position = items.position_of(connection, row, item_id, sight)
            return self._readable(items.read_one(connection, row, position).record(sight), row)

    def records_at(self, dataset: str, positions: Sequence[int]) -> list[Record]:
        """Return the records at these places of the import order (from 0), in that order.

        Places at which the dataset has no item are left out.
        """
        with self.reading(dataset, many=True) as (connection, row, sight):
            stored_records = items.read_at(connection, row, positions, sight)
            return [self._readable(stored.record(sight), row) for stored in stored_records]

    def _readable(self, record: Record, row: DatasetRow) -> Record:
        return processes.with_nodes(record, self._database, row)

    def save_annotations(
        self, dataset: str, pairs: Iterable[tuple[str, Annotation]], *, whole: bool = False
    ) -> int:
        """Insert or replace annotations, as they come or as a whole; see ``save_annotations``."""
        self.require(Permission.MANAGE, dataset)
        return save_annotations(self._database, dataset, pairs, whole=whole)

    def save_findings(self, dataset: str, findings: Iterable[FoundAnnotations]) -> int:
        """Insert or replace annotations and the passages they quote; see ``save_findings``.

        Who reviews may add passages alone, to items that there are for them.
        """
        if not self.actor.may(Permission.ADMINISTER):
            findings = tuple(findings)
            annotates = any(finding.annotations for finding in findings)
            self.require(Permission.MANAGE if annotates else Permission.REVIEW, dataset)
            self.positions_of(dataset, [finding.item.id for finding in findings])
        return save_findings(self._database, dataset, findings)

    # Queues

    def positions_of(self, dataset: str, ids: Sequence[str]) -> list[int]:
        """Return the places in import order of the items with these ids, in the order given.

        Raises:
            NotFoundError: the dataset has no item of one of these ids.
        """
        with self.reading(dataset) as (connection, row, sight):
            return items.positions_of(connection, row, ids, sight)

    def counts(self, dataset: str, reviewer: str) -> dict[Status, int]:
        """Return how many items are in each status under ``reviewer``, who may be unknown yet."""
        with self.reading(dataset, reviewer) as (connection, row, _):
            return catalog.counts(connection, row, reviewer)

    def n_operations(self, dataset: str) -> int:
        """Return how many operations all reviews of a dataset hold; it grows with every edit."""
        with self.reading(dataset) as (connection, row, _):
            return catalog.n_operations(connection, row)

    def labels(self, dataset: str, reviewer: str | None = None) -> tuple[str, ...]:
        """Return the span labels in use in a dataset, or in one person's reviews of it.

        They come in the order in which anybody used them first.
        """
        with self.reading(dataset) as (connection, row, sight):
            used = catalog.labels_in_use(connection, row)
            person = sight.name if sight.blind else reviewer
            own = used if person is None else reviews.labels_used(connection, row, person)
            return tuple(label for label in used if label in own)

    # Reviews

    def review(
        self, dataset: str, item_id: str, reviewer: str, kind: AnnotatorKind = AnnotatorKind.PERSON
    ) -> Review:
        """Return one person's review of an item, or the gold labels; see ``read_review``."""
        with self.reading(dataset, reviewer) as (connection, row, sight):
            return reviews.read_review(connection, row, item_id, reviewer, sight=sight, kind=kind)

    def suggestions_seen(self, dataset: str) -> dict[tuple[str, str], bool | None]:
        """Return whether suggestions were shown in each review; see ``reviews.suggestions_seen``.

        That is no mark of anybody: whoever may read the dataset may know it.
        """
        self.require(Permission.READ, dataset)
        with self.reading(dataset) as (connection, row, _):
            return reviews.suggestions_seen(connection, row)

    def apply(
        self, dataset: str, item_id: str, reviewer: str, writes: Sequence[SentOperation]
    ) -> WriteReply:
        """Append a session's operations to a review's log; see ``reviews.apply``."""
        authors = {write.author for write in writes if write.author is not None}
        needed = Permission.ADJUDICATE if authors else Permission.REVIEW
        with self._database.writing() as connection:
            checked = access.require(connection, self.actor, needed, dataset)
            sight = EVERYTHING if checked is None else checked.sight(self.actor, many=False)
            row = catalog.find(connection, dataset)
            for author in authors or {reviewer}:
                self._check_own(row.id, author)
            subject = None if self.actor.is_owner else self.actor.subject
            position = items.position_of(connection, row, item_id, sight)
            return reviews.apply(connection, row, position, reviewer, writes, subject)
