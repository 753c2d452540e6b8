"""The rows of datasets, languages, labels and annotators: finding, listing, renaming, counting."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from spanlab.base.errors import NotFoundError, StoreError, UsageError
from spanlab.base.fields import message_of
from spanlab.base.names import check_typed
from spanlab.schema import (
    AnnotatorKind,
    AnnotatorSummary,
    DatasetSettings,
    DatasetSummary,
    Status,
)
from spanlab.storage.engine import is_writing, look_up_once
from spanlab.storage.tables import READY, annotators, datasets, labels, languages, operations


@dataclass(frozen=True)
class DatasetRow:
    """The row of a dataset."""

    id: int
    name: str
    n_items: int


@dataclass(frozen=True)
class AnnotatorRow:
    """The row of an annotator within its dataset."""

    id: int
    name: str
    kind: AnnotatorKind


def find(connection: Connection, name: str, *, delete: bool = False) -> DatasetRow:
    """Return the dataset ``name``.

    Args:
        connection: reads, or writes: then a version of a dataset is refused.
        name: its name.
        delete: whether it is to be deleted as a whole, which a version may be.

    Raises:
        NotFoundError: there is none, or its import has not finished; names those that there are.
        UsageError: it is a version, and would be changed.
    """
    row = find_row(connection, name)
    if row is None:
        query = select(datasets.c.name).where(datasets.c.state == READY)
        rows = connection.execute(query.order_by(datasets.c.id).limit(20)).all()
        names = ", ".join(repr(row.name) for row in rows) or "none yet"
        raise NotFoundError(f"no dataset named {name!r}; available: {names}")
    if row.digest is not None and not delete and is_writing(connection):
        raise frozen_version_error(name)
    return DatasetRow(row.id, row.name, row.n_items)


def find_row(connection: Connection, name: str) -> Any:
    """Return all columns of the dataset ``name``, also its settings; None if there is none."""

    def read() -> Any:
        query = select(datasets).where(datasets.c.state == READY, datasets.c.name == name)
        return connection.execute(query).one_or_none()

    return look_up_once(connection, ("dataset", name), read)


def frozen_version_error(name: str) -> UsageError:
    """Return the error for an attempt to change a version."""
    return UsageError(f"{name!r} is a version, which never changes: duplicate it to work on a copy")


def summaries(connection: Connection, *, versions: bool = False) -> list[DatasetSummary]:
    """Return all datasets in the order in which they were made; empty if there are none.

    Versions of others that are there are left out unless ``versions`` is set.
    """
    ready = datasets.c.state == READY
    names = dict(connection.execute(select(datasets.c.id, datasets.c.name).where(ready)).all())
    by_language: dict[int, dict[str, int]] = defaultdict(dict)
    for row in connection.execute(
        select(languages).join(datasets).where(ready).order_by(languages.c.code)
    ):
        by_language[row.dataset_id][row.lang] = row.n_items
    people: dict[int, list[AnnotatorSummary]] = defaultdict(list)
    for row in connection.execute(
        select(annotators, datasets.c.n_items)
        .join(datasets)
        .where(ready, annotators.c.n_annotations > 0)
        .order_by(annotators.c.id)
    ):
        counted = _counts(row.n_items, row.n_done, row.n_failed, row.n_skipped)
        drafts = row.n_annotations - row.n_done - row.n_failed - row.n_skipped
        kind = AnnotatorKind(row.kind)
        people[row.dataset_id].append(AnnotatorSummary(row.name, kind, counted, drafts))
    return [
        DatasetSummary(
            name=row.name,
            created=datetime.fromisoformat(row.created),
            n_items=row.n_items,
            languages=by_language[row.id],
            annotators=tuple(people[row.id]),
            settings=DatasetSettings.model_validate_json(row.settings),
            version_of=names.get(row.version_of),
            digest=row.digest,
        )
        for row in connection.execute(select(datasets).where(ready).order_by(datasets.c.id))
        if versions or row.version_of not in names
    ]


def counts(connection: Connection, dataset: DatasetRow, annotator: str) -> dict[Status, int]:
    """Return how many items of ``dataset`` are in each status under ``annotator``."""
    row = connection.execute(
        select(annotators.c.n_done, annotators.c.n_failed, annotators.c.n_skipped).where(
            annotators.c.dataset_id == dataset.id, annotators.c.name == annotator
        )
    ).one_or_none()
    return _counts(dataset.n_items, *(row or (0, 0, 0)))


def labels_in_use(connection: Connection, dataset: DatasetRow) -> tuple[str, ...]:
    """Return the span labels that annotations of ``dataset`` have had, in order of first use."""
    query = select(labels.c.label).where(labels.c.dataset_id == dataset.id)
    return tuple(connection.execute(query.order_by(labels.c.place, labels.c.label)).scalars())


def n_operations(connection: Connection, dataset: DatasetRow) -> int:
    """Return how many operations the logs of a dataset hold."""
    query = select(func.count()).where(operations.c.dataset_id == dataset.id)
    return connection.execute(query).scalar_one()


def annotators_of(connection: Connection, dataset: int) -> dict[str, AnnotatorRow]:
    """Return the annotators of ``dataset`` by name, in the order in which they came."""

    def read() -> dict[str, AnnotatorRow]:
        rows = connection.execute(
            select(annotators.c.id, annotators.c.name, annotators.c.kind)
            .where(annotators.c.dataset_id == dataset)
            .order_by(annotators.c.id)
        )
        return {row.name: AnnotatorRow(row.id, row.name, AnnotatorKind(row.kind)) for row in rows}

    return look_up_once(connection, ("annotators", dataset), read)


def kinds_of(connection: Connection, dataset: DatasetRow) -> dict[str, AnnotatorKind]:
    """Return the kinds of those who have annotated an item of ``dataset``, by name."""
    query = select(annotators.c.name, annotators.c.kind).where(
        annotators.c.dataset_id == dataset.id, annotators.c.n_annotations > 0
    )
    return {row.name: AnnotatorKind(row.kind) for row in connection.execute(query)}


def add_languages(connection: Connection, dataset: DatasetRow, added: Mapping[str, int]) -> None:
    """Count ``added`` items per language, entering those languages that are new."""
    query = select(languages.c.lang).where(languages.c.dataset_id == dataset.id)
    entered = set(connection.execute(query).scalars())
    new = [
        {"dataset_id": dataset.id, "code": code, "lang": lang, "n_items": 0}
        for code, lang in enumerate((lang for lang in added if lang not in entered), len(entered))
    ]
    if new:
        connection.execute(insert(languages), new)
    for lang, n_items in added.items():
        connection.execute(
            update(languages)
            .where(languages.c.dataset_id == dataset.id, languages.c.lang == lang)
            .values(n_items=languages.c.n_items + n_items)
        )


def create(connection: Connection, name: str, state: str) -> int:
    """Insert a dataset without items and return its id.

    Raises:
        UsageError: ``name`` is not a name.
        StoreError: the name is taken.
    """
    check_free(connection, name)
    row = {"name": name, "created": datetime.now(UTC).isoformat(), "state": state, "n_items": 0}
    statement = insert(datasets).values(row).returning(datasets.c.id)
    try:
        with connection.begin_nested():
            return int(connection.execute(statement).scalar_one())
    except IntegrityError:  # another process has just made it
        check_free(connection, name)
        raise


def rename(connection: Connection, name: str, new: str) -> None:
    """Give the dataset ``name`` the name ``new``; raises as ``find`` and ``create`` do."""
    dataset = find(connection, name)
    if new != name:
        check_free(connection, new)
        connection.execute(update(datasets).where(datasets.c.id == dataset.id).values(name=new))
        for version in versions_of(connection, dataset.id, READY):
            rename_row(connection, version.id, f"{new}@{version.name.rpartition('@')[2]}")


def versions_of(connection: Connection, dataset: int, state: str) -> list[DatasetRow]:
    """Return the versions of a dataset that are in a state, the oldest first."""
    query = select(datasets.c.id, datasets.c.name, datasets.c.n_items)
    query = query.where(datasets.c.version_of == dataset, datasets.c.state == state)
    rows = connection.execute(query.order_by(datasets.c.id))
    return [DatasetRow(*row) for row in rows]


def rename_row(connection: Connection, dataset: int, name: str, **values: str | None) -> None:
    """Give a dataset's row a name that has to be free, and other values; raises as ``create``."""
    check_free(connection, name)
    updating = update(datasets).where(datasets.c.id == dataset)
    connection.execute(updating.values(name=name, **values))


def seal(connection: Connection, name: str, digest: str) -> None:
    """Store the digest of a version."""
    updating = update(datasets).where(datasets.c.name == name, datasets.c.digest == "")
    connection.execute(updating.values(digest=digest))


def settings_of(connection: Connection, name: str) -> DatasetSettings:
    """Return the settings of the dataset ``name``; raises as ``find`` does."""
    find(connection, name)
    stored = find_row(connection, name).settings
    read = DatasetSettings.model_validate_json
    return look_up_once(connection, ("settings", name), lambda: read(stored))


def change_settings(
    connection: Connection, name: str, change: Callable[[DatasetSettings], DatasetSettings]
) -> DatasetSettings:
    """Store what ``change`` makes of the settings of ``name``, and return it.

    Nobody else changes them in between.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: they contradict each other, such as in two labels of one name.
    """
    is_dataset = datasets.c.id == find(connection, name).id
    stored = connection.execute(select(datasets.c.settings).where(is_dataset).with_for_update())
    before = DatasetSettings.model_validate_json(stored.scalar_one())
    changed = change(before)
    _check_people(connection, before, changed, name)
    text = changed.model_dump_json(exclude_defaults=True)
    try:
        settings = DatasetSettings.model_validate_json(text)
    except ValidationError as error:
        raise UsageError(f"settings of {name!r}: {message_of(error.errors()[0])}") from error
    connection.execute(update(datasets).where(is_dataset).values(settings=text))
    return settings


def _check_people(
    connection: Connection, before: DatasetSettings, after: DatasetSettings, dataset: str
) -> None:
    """Check the names that are assigned items now, by those who are or annotate already."""
    new = set(after.assigned_to) - set(before.assigned_to)
    if new:
        annotating = annotators_of(connection, find(connection, dataset).id)
        for name in new - annotating.keys():
            check_typed(name, "a reviewer", {*annotating, *after.assigned_to} - {name})


def check_free(connection: Connection, name: str) -> None:
    """Check that a dataset may be called ``name``; raises as ``create`` does."""
    check_typed(name, "a dataset")
    query = select(datasets.c.state).where(datasets.c.name == name)
    state = connection.execute(query).scalar_one_or_none()
    if state is not None:
        holder = "a dataset" if state == READY else "an unfinished import"
        raise StoreError(f"the name {name!r} is taken by {holder}")


def _counts(n_items: int, done: int, failed: int, skipped: int) -> dict[Status, int]:
    return {
        Status.NOT_ANNOTATED: n_items - done - failed - skipped,
        Status.DONE: done,
        Status.FAILED: failed,
        Status.SKIPPED: skipped,
    }


_COUNTED = {Status.DONE: "n_done", Status.FAILED: "n_failed", Status.SKIPPED: "n_skipped"}
_COUNTS = ("n_annotations", *_COUNTED.values())


class StatusTally:
    """Changes to the counts of a dataset's annotators, gathered for one write."""

    def __init__(self) -> None:
        self._changes: Counter[tuple[int, str]] = Counter()

    def move(self, annotator: int, before: Status | None, after: Status) -> None:
        """Count an annotation that had the status ``before`` (None: it is new) as ``after``."""
        if before is None:
            self._changes[annotator, "n_annotations"] += 1
        if before in _COUNTED:
            self._changes[annotator, _COUNTED[before]] -= 1
        if after in _COUNTED:
            self._changes[annotator, _COUNTED[after]] += 1

    def add(self, annotator: int, status: Status, n_annotations: int) -> None:
        """Count new annotations of one status."""
        self._changes[annotator, "n_annotations"] += n_annotations
        if status in _COUNTED:
            self._changes[annotator, _COUNTED[status]] += n_annotations

    def write(self, connection: Connection, dataset: int) -> None:
        """Add the changes to the stored counts."""
        rows = [
            {"of": dataset, "who": annotator}
            | {f"more_{name}": self._changes[annotator, name] for name in _COUNTS}
            for annotator in sorted({number for (number, _), n in self._changes.items() if n})
        ]
        if rows:
            sums = {name: annotators.c[name] + bindparam(f"more_{name}") for name in _COUNTS}
            is_annotator = (
                annotators.c.dataset_id == bindparam("of"),
                annotators.c.id == bindparam("who"),
            )
            connection.execute(update(annotators).where(*is_annotator).values(sums), rows)


def register(
    connection: Connection, dataset: DatasetRow, name: str, kind: AnnotatorKind
) -> AnnotatorRow:
    """Return the annotator ``name`` of ``dataset``, entering it if it is new.

    Raises:
        StoreError: the name belongs to an annotator of another kind.
    """
    annotator = annotators_of(connection, dataset.id).get(name)
    if annotator is None:
        # Numbers are given out one at a time: whoever holds the dataset's row gives the next.
        row_query = select(datasets.c.id).where(datasets.c.id == dataset.id)
        connection.execute(row_query.with_for_update(key_share=True))
        annotator = annotators_of(connection, dataset.id).get(name)
    if annotator is None:
        query = select(func.coalesce(func.max(annotators.c.id) + 1, 0))
        number = connection.execute(query.where(annotators.c.dataset_id == dataset.id)).scalar_one()
        row = {"dataset_id": dataset.id, "id": number, "name": name, "kind": kind.value}
        connection.execute(insert(annotators).values(row | dict.fromkeys(_COUNTS, 0)))
        return AnnotatorRow(number, name, kind)
    if annotator.kind is not kind:
        raise StoreError(
            f"{name!r} is a {annotator.kind.value} in {dataset.name!r} and cannot be a "
            f"{kind.value} too: choose another annotator name"
        )
    return annotator
