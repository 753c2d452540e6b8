"""Renaming, merging and removing annotators of a dataset, and marking one as gold.

A name goes wherever a dataset mentions it: what others said, logs of reviews, the plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    bindparam,
    delete,
    insert,
    or_,
    select,
    update,
)

from spanlab import doors
from spanlab.base.errors import NotFoundError, StoreError, UsageError
from spanlab.base.names import alike, check_typed
from spanlab.schema import ADJUDICATED, Annotation, AnnotatorKind, DatasetSettings
from spanlab.storage import assignment, search
from spanlab.storage.annotations import stored_at, update_values
from spanlab.storage.catalog import (
    AnnotatorRow,
    DatasetRow,
    StatusTally,
    annotators_of,
    change_settings,
)
from spanlab.storage.items import lock, to_json
from spanlab.storage.tables import annotated, annotators, loads, operations, reservations, reviews


def reserved_names() -> dict[str, AnnotatorKind]:
    """Return names that no person may have, and what is called so."""
    kinds = (AnnotatorKind.DETECTOR, AnnotatorKind.VOTE, AnnotatorKind.GOLD)
    detectors = dict.fromkeys(doors.names("detectors"), AnnotatorKind.DETECTOR)
    return {kind.value: kind for kind in kinds} | {ADJUDICATED: AnnotatorKind.GOLD} | detectors


_WORDS = {
    AnnotatorKind.DETECTOR: "a detector",
    AnnotatorKind.VOTE: "a vote",
    AnnotatorKind.GOLD: "gold labels",
}


def check_reviewer(kinds: Mapping[str, AnnotatorKind], name: str) -> None:
    """Check that a person may review a dataset with annotators of these ``kinds`` as ``name``.

    A detector that is installed keeps its name in every dataset, or its results could not be
    stored there later. A person who has annotated the dataset already goes on.

    Raises:
        UsageError: it is no name, looks like one of a detector, a vote or gold labels, or looks
            like another person's (see ``base.names``).
    """
    check_typed(name, "a reviewer")
    if kinds.get(name) is AnnotatorKind.PERSON:
        return
    others = reserved_names() | dict(kinds)
    other = alike(name, others)
    if other is None:
        return
    if others[other] is AnnotatorKind.PERSON:
        raise UsageError(
            f"the name “{name}” looks like “{other}”, who annotates here: if that is you, type it "
            "as it is there; if not, use another name"
        )
    raise UsageError(
        f"the name “{name}” belongs to {_WORDS[others[other]]}: use another, such as your own name"
    )


def rename(connection: Connection, dataset: DatasetRow, name: str, new: str) -> None:
    """Give an annotator another name, which all that mentions it then has.

    Raises:
        NotFoundError: nobody of this name has annotated the dataset.
        UsageError: ``new`` cannot name an annotator.
        StoreError: it is taken, or an import is under way.
    """
    by_name = _lock_dataset(connection, dataset)
    annotator = _find(by_name, dataset, name)
    if new in by_name:
        raise StoreError(
            f"{dataset.name!r} has an annotator {new!r} already: merge the two instead"
        )
    check_typed(new, "an annotator", set(by_name) - {name})
    connection.execute(
        update(annotators).where(*_is_by(annotators.c.id, dataset, annotator)).values(name=new)
    )
    rename_mentions(connection, dataset, name, new)


def merge(connection: Connection, dataset: DatasetRow, name: str, into: str) -> int:
    """Move the annotations of one annotator to another one, and remove the first.

    Where both annotated an item, what ``into`` said stays and the other annotation goes.

    Returns:
        How many items were annotated by both.

    Raises:
        NotFoundError: nobody of one of these names has annotated the dataset.
        UsageError: it is the same annotator twice.
        StoreError: they are of two kinds, or an import is under way.
    """
    by_name = _lock_dataset(connection, dataset)
    source, target = (_find(by_name, dataset, name), _find(by_name, dataset, into))
    if source == target:
        raise UsageError(f"{name!r} cannot be merged into itself")
    if source.kind is not target.kind:
        raise StoreError(f"{name!r} is a {source.kind.value}, {into!r} is a {target.kind.value}")
    positions = set(_positions(connection, dataset, source))
    shared = positions & set(_positions(connection, dataset, target))
    _mark_leaving(connection, dataset, source)
    tally = StatusTally()
    for piece in _pieces(sorted(positions - shared)):
        rows_by_table = _delete_rows(connection, dataset, source, piece)
        for row in rows_by_table[annotated]:
            annotation = Annotation.model_validate_json(row["json"])
            tally.move(target.id, None, annotation.status)
            entry = search.entry_of_annotation(row["position"], target.id, annotation)
            search.put(connection, dataset.id, [entry])
        for table, rows in rows_by_table.items():
            if rows:
                owned = [{**row, "annotator_id": target.id} for row in rows]
                connection.execute(insert(table), owned)
    tally.write(connection, dataset.id)
    _remove(connection, dataset, source)
    rename_mentions(connection, dataset, name, into)
    _update(connection, dataset, sorted(positions))
    return len(shared)


def remove(connection: Connection, dataset: DatasetRow, name: str) -> None:
    """Delete all that an annotator said of a dataset, for good; votes stay as they were cast.

    Raises:
        NotFoundError: nobody of this name has annotated the dataset.
        StoreError: an import is under way.
    """
    annotator = _find(_lock_dataset(connection, dataset), dataset, name)
    positions = _positions(connection, dataset, annotator)
    _mark_leaving(connection, dataset, annotator)
    _remove(connection, dataset, annotator)
    assignment.forget_person(connection, dataset, name)
    _update(connection, dataset, positions)


def forget_copy(connection: Connection, dataset: DatasetRow, name: str) -> None:
    """Forget what these gold labels were copied from: others of that name may be no copy."""

    def change(settings: DatasetSettings) -> DatasetSettings:
        copies = (pair for pair in settings.gold_copies if pair[0] != name)
        return settings.model_copy(update={"gold_copies": tuple(copies)})

    change_settings(connection, dataset.name, change)


def gold_name(annotator: str) -> str:
    """Return the usual name of gold labels that are copied from an annotator's."""
    return f"gold of {annotator}"[:200]


def set_person(connection: Connection, dataset: DatasetRow, name: str) -> None:
    """Make gold labels the annotations of a person of this name.

    Raises:
        NotFoundError: nobody of this name has annotated the dataset.
        StoreError: it is a detector or a vote, or an import is under way.
    """
    annotator = _find(_lock_dataset(connection, dataset), dataset, name)
    if annotator.kind not in {AnnotatorKind.PERSON, AnnotatorKind.GOLD}:
        raise StoreError(f"{name!r} is a {annotator.kind.value}, and no gold labels")
    kind = AnnotatorKind.PERSON
    is_annotator = _is_by(annotators.c.id, dataset, annotator)
    connection.execute(update(annotators).where(*is_annotator).values(kind=kind.value))
    positions = _positions(connection, dataset, annotator)
    by_them = _is_by(annotated.c.annotator_id, dataset, annotator)
    mine = select(annotated).where(*by_them)
    for piece in _pieces(positions):
        rows = connection.execute(mine.where(annotated.c.position.in_(piece))).mappings()
        for row in rows.all():
            annotation = Annotation.model_validate_json(row["json"]).model_copy(
                update={"kind": kind}
            )
            at = annotated.c.position == row["position"]
            change = update(annotated).where(*by_them, at)
            connection.execute(change.values(json=to_json(annotation)))
    _update(connection, dataset, positions)


def _lock_dataset(connection: Connection, dataset: DatasetRow) -> dict[str, AnnotatorRow]:
    """Keep others from writing annotations until the transaction ends; return who there is."""
    loading = select(loads.c.dataset_id).where(loads.c.dataset_id == dataset.id)
    if connection.execute(loading).one_or_none() is not None:
        raise StoreError(f"an import into {dataset.name!r} is under way: wait for its end")
    lock(connection, dataset.id, 0, dataset.n_items)
    return annotators_of(connection, dataset.id)


def _find(by_name: dict[str, AnnotatorRow], dataset: DatasetRow, name: str) -> AnnotatorRow:
    if name not in by_name:
        known_names = ", ".join(map(repr, by_name)) or "nobody"
        raise NotFoundError(f"{dataset.name!r} has no annotator {name!r}; available: {known_names}")
    return by_name[name]


def _is_by(column: Any, dataset: DatasetRow, annotator: AnnotatorRow) -> list[ColumnElement[bool]]:
    return [column.table.c.dataset_id == dataset.id, column == annotator.id]


def _positions(connection: Connection, dataset: DatasetRow, annotator: AnnotatorRow) -> list[int]:
    by_them = _is_by(annotated.c.annotator_id, dataset, annotator)
    query = select(annotated.c.position).where(*by_them)
    return list(connection.execute(query.order_by(annotated.c.position)).scalars())


def _pieces(positions: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(positions), _PIECE):
        yield positions[start : start + _PIECE]


def _mark_leaving(connection: Connection, dataset: DatasetRow, annotator: AnnotatorRow) -> None:
    is_annotator = _is_by(annotators.c.id, dataset, annotator)
    connection.execute(update(annotators).where(*is_annotator).values(kind=LEAVING))


def _delete_rows(
    connection: Connection, dataset: DatasetRow, annotator: AnnotatorRow, positions: Sequence[int]
) -> dict[Table, list[dict[str, Any]]]:
    """Delete an annotator's rows at ``positions``, and return them; parents come first."""
    rows_by_table: dict[Table, list[dict[str, Any]]] = {}
    for table in (annotated, reviews, operations):
        where = [*_is_by(table.c.annotator_id, dataset, annotator), table.c.position.in_(positions)]
        rows_by_table[table] = [
            dict(row) for row in connection.execute(select(table).where(*where)).mappings()
        ]
    for table in reversed(rows_by_table):
        where = [
            *_is_by(table.c.annotator_id, dataset, annotator),
            table.c.position.in_(positions),
        ]
        connection.execute(delete(table).where(*where))
    entries = [search.SearchEntry(position, annotator.id, ()) for position in positions]
    search.put(connection, dataset.id, entries)
    return rows_by_table


def _remove(connection: Connection, dataset: DatasetRow, annotator: AnnotatorRow) -> None:
    for piece in _pieces(_positions(connection, dataset, annotator)):
        _delete_rows(connection, dataset, annotator, piece)
    connection.execute(delete(annotators).where(*_is_by(annotators.c.id, dataset, annotator)))


def _update(connection: Connection, dataset: DatasetRow, positions: Sequence[int]) -> None:
    """Work out anew the queue values of items at ``positions``, from all their annotations."""
    for piece in _pieces(positions):
        update_values(connection, dataset.id, stored_at(connection, dataset.id, piece), piece)


LEAVING = "leaving"  # in place of a kind, in a transaction: its log of operations may be deleted

_PIECE = 500  # positions at once
_NAMES = frozenset({"annotator", "decided_by", "source", "suggested_by"})
_HOW_MADE = frozenset({"source", "suggested_by"})  # "union" or "majority" where there are voters
_TEXTS = {annotated: ("json",), reviews: ("snapshot", "state"), operations: ("json",)}

_Row = dict[str, Any]


def rename_mentions(connection: Connection, dataset: DatasetRow, name: str, new: str) -> None:
    """Call an annotator ``new`` in annotations, logs and the plan of a dataset.

    Where something names both already, as a vote of the two does, it names ``new`` once.
    """
    rename_texts(connection, dataset, name, new)
    change_settings(
        connection, dataset.name, lambda settings: renamed_settings(settings, name, new)
    )


def rename_texts(connection: Connection, dataset: DatasetRow, name: str, new: str) -> bool:
    """Call an annotator ``new`` in annotations, logs and lists; return whether any named them."""
    is_named = False
    for table in (annotated, reviews):
        change = update(table).where(*_is_row(table))
        change = change.values({column: bindparam(f"new_{column}") for column in _TEXTS[table]})
        for rows in _mentions(connection, dataset, table, (name, new)):
            texts = [{f"new_{column}": row[column] for column in _TEXTS[table]} for row in rows]
            keys = _keys(table, rows)
            connection.execute(change, [at | to for at, to in zip(keys, texts, strict=True)])
            is_named = True
    _rename_in_logs(connection, dataset, (name, new))
    # What this person looks at is reserved again with the next edit, under the new name.
    is_reserved = (reservations.c.dataset_id == dataset.id, reservations.c.reviewer == name)
    connection.execute(delete(reservations).where(*is_reserved))
    assignment.rename_person(connection, dataset, name, new)
    return is_named


def renamed_settings(settings: DatasetSettings, name: str, new: str) -> DatasetSettings:
    """Return settings in which an annotator is called ``new``."""

    def rename_all(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(new if old == name else old for old in names))

    stays = new in settings.assigned_to and new not in settings.away
    kept_away = (person for person in settings.away if person != name or not stays)
    plan = settings.measurement
    if plan is not None:
        (annotator,), reviewers = rename_all([plan.annotator]), rename_all(plan.reviewers)
        plan = plan.model_copy(update={"annotator": annotator, "reviewers": reviewers})
    setups = [
        setup.model_copy(update={"annotator": rename_all([setup.annotator])[0]})
        for setup in settings.setups
    ]
    known = settings.known and settings.known.model_copy(
        update={"labels": rename_all(settings.known.labels)}
    )
    update = {
        "known": known,
        "assigned_to": rename_all(settings.assigned_to),
        "away": rename_all(kept_away),
        "returned": rename_all(settings.returned),
        "measurement": plan,
        "setups": tuple(setups),
        "fits": tuple(
            fit.model_copy(update={"annotators": rename_all(fit.annotators)})
            for fit in settings.fits
        ),
        "gold_copies": tuple(
            (*rename_all([gold]), *rename_all([source])) for gold, source in settings.gold_copies
        ),
    }
    return settings.model_copy(update=update)


def _rename_in_logs(connection: Connection, dataset: DatasetRow, names: tuple[str, str]) -> None:
    """Write operations anew that mention the first of two names: they cannot be updated."""
    in_dataset = annotators.c.dataset_id == dataset.id
    columns = (annotators.c.id.label("who"), annotators.c.kind)
    kinds = connection.execute(select(*columns).where(in_dataset))
    kinds_before = [{"who": row.who, "was": row.kind} for row in kinds]
    connection.execute(update(annotators).where(in_dataset).values(kind=LEAVING))
    for rows in _mentions(connection, dataset, operations, names):
        connection.execute(delete(operations).where(*_is_row(operations)), _keys(operations, rows))
        connection.execute(insert(operations), rows)
    restore = update(annotators).where(in_dataset, annotators.c.id == bindparam("who"))
    if kinds_before:  # with no parameters a statement is executed once
        connection.execute(restore.values(kind=bindparam("was")), kinds_before)


def _is_row(table: Table) -> list[ColumnElement[bool]]:
    return [column == bindparam(f"at_{column.name}") for column in table.primary_key]


def _keys(table: Table, rows: Sequence[_Row]) -> list[_Row]:
    """Return the values of ``_is_row`` for each row."""
    names = [column.name for column in table.primary_key]
    return [{f"at_{name}": row[name] for name in names} for row in rows]


def _mentions(
    connection: Connection, dataset: DatasetRow, table: Table, names: tuple[str, str]
) -> Iterator[list[_Row]]:
    """Yield the rows of a table that mention the first of two names, some at a time.

    They have the second name in its place.
    """
    name, new = names
    quoted = json.dumps(name, ensure_ascii=False)
    texts = _TEXTS[table]
    conditions = [table.c[column].contains(quoted, autoescape=True) for column in texts]
    if "author" in table.c:
        conditions.append(table.c.author == name)
    for start in range(0, dataset.n_items, _PIECE):
        piece = table.c.position.between(start, start + _PIECE - 1)
        query = select(table).where(table.c.dataset_id == dataset.id, piece, or_(*conditions))
        rows = [dict(row) for row in connection.execute(query).mappings()]
        for row in rows:
            row |= {column: _rename_in_json(row[column], name, new) for column in texts}
            if row.get("author") == name:
                row["author"] = new
        if rows:
            yield rows


def _rename_in_json(text: str | None, name: str, new: str) -> str | None:
    if text is None:
        return None
    changed = _rename_in_value(json.loads(text), name, new)
    return json.dumps(changed, ensure_ascii=False, separators=(",", ":"))


def _rename_in_value(value: Any, name: str, new: str) -> Any:
    if isinstance(value, list):
        return [_rename_in_value(inner, name, new) for inner in value]
    if not isinstance(value, dict):
        return value
    untouched = _HOW_MADE | {"trace"} if value.get("voters") else {"trace"}
    return {
        key: inner
        if key in untouched
        else list(dict.fromkeys(new if voter == name else voter for voter in inner))
        if key == "voters" and isinstance(inner, list)
        else new
        if key in _NAMES and inner == name
        else _rename_in_value(inner, name, new)
        for key, inner in value.items()
    }
