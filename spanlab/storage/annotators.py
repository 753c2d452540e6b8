"""Renaming, merging and removing annotators of a dataset, and marking one as gold.

A name goes wherever a dataset mentions it: what others said, logs of reviews, the plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError
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

from spanlab.errors import NotFoundError, StoreError, UsageError
from spanlab.schema import Annotation, AnnotatorKind, DatasetSettings, Name
from spanlab.storage import campaigns, search
from spanlab.storage.catalog import (
    AnnotatorRow,
    DatasetRow,
    StatusTally,
    annotators_of,
    change_settings,
)
from spanlab.storage.items import lock, to_json
from spanlab.storage.queue_values import stored_at, update_values
from spanlab.storage.tables import annotated, annotators, loads, operations, reservations, reviews

_NAME: TypeAdapter[str] = TypeAdapter(Name)


def rename(connection: Connection, dataset: DatasetRow, name: str, new: str) -> None:
    """Give an annotator another name, which all that mentions it then has.

    Raises:
        NotFoundError: nobody of this name has annotated the dataset.
        UsageError: ``new`` cannot name an annotator.
        StoreError: it is taken, or an import is under way.
    """
    by_name = _open(connection, dataset)
    who = _named(by_name, dataset, name)
    try:
        _NAME.validate_python(new)
    except ValidationError as error:
        raise UsageError(
            f"{new!r} cannot name an annotator: 1 to 200 characters without control characters"
        ) from error
    if new in by_name:
        raise StoreError(
            f"{dataset.name!r} has an annotator {new!r} already: merge the two instead"
        )
    connection.execute(
        update(annotators).where(*_is(annotators.c.id, dataset, who)).values(name=new)
    )
    rename_mentions(connection, dataset, name, new)


def merge(connection: Connection, dataset: DatasetRow, name: str, into: str) -> int:
    """Let what one annotator said be said by another one, and remove the first.

    Where both annotated an item, what ``into`` said stays and the other annotation goes.

    Returns:
        How many items were annotated by both.

    Raises:
        NotFoundError: nobody of one of these names has annotated the dataset.
        UsageError: it is the same annotator twice.
        StoreError: they are of two kinds, or an import is under way.
    """
    by_name = _open(connection, dataset)
    who, other = _named(by_name, dataset, name), _named(by_name, dataset, into)
    if who == other:
        raise UsageError(f"{name!r} cannot be merged into itself")
    if who.kind is not other.kind:
        raise StoreError(f"{name!r} is a {who.kind.value}, {into!r} is a {other.kind.value}")
    positions = set(_positions(connection, dataset, who))
    both = positions & set(_positions(connection, dataset, other))
    _let_go(connection, dataset, who)
    tally = StatusTally()
    for piece in _pieces(sorted(positions - both)):
        kept = _take_out(connection, dataset, who, piece)
        for row in kept[annotated]:
            annotation = Annotation.model_validate_json(row["json"])
            tally.move(other.id, None, annotation.status)
            entry = search.of_annotation(row["position"], other.id, annotation)
            search.put(connection, dataset.id, [entry])
        for table, rows in kept.items():
            if rows:
                owned = [{**row, "annotator_id": other.id} for row in rows]
                connection.execute(insert(table), owned)
    tally.write(connection, dataset.id)
    _remove(connection, dataset, who)
    rename_mentions(connection, dataset, name, into)
    _judge(connection, dataset, sorted(positions))
    return len(both)


def remove(connection: Connection, dataset: DatasetRow, name: str) -> None:
    """Delete all that an annotator said of a dataset, for good; votes stay as they were cast.

    Raises:
        NotFoundError: nobody of this name has annotated the dataset.
        StoreError: an import is under way.
    """
    who = _named(_open(connection, dataset), dataset, name)
    positions = _positions(connection, dataset, who)
    _let_go(connection, dataset, who)
    _remove(connection, dataset, who)
    campaigns.forget_person(connection, dataset, name)
    _judge(connection, dataset, positions)


def set_gold(connection: Connection, dataset: DatasetRow, name: str, *, gold: bool) -> None:
    """Let what a person said count as gold labels, or as that person's again.

    Nobody can review under a name that stands for gold labels.

    Raises:
        NotFoundError: nobody of this name has annotated the dataset.
        StoreError: it is a detector or a vote, or an import is under way.
    """
    who = _named(_open(connection, dataset), dataset, name)
    if who.kind not in {AnnotatorKind.PERSON, AnnotatorKind.GOLD}:
        raise StoreError(f"{name!r} is a {who.kind.value}: what a person said can be gold labels")
    kind = AnnotatorKind.GOLD if gold else AnnotatorKind.PERSON
    here = _is(annotators.c.id, dataset, who)
    connection.execute(update(annotators).where(*here).values(kind=kind.value))
    positions = _positions(connection, dataset, who)
    mine = select(annotated).where(*_is(annotated.c.annotator_id, dataset, who))
    for piece in _pieces(positions):
        rows = connection.execute(mine.where(annotated.c.position.in_(piece))).mappings()
        for row in rows.all():
            annotation = Annotation.model_validate_json(row["json"]).model_copy(
                update={"kind": kind}
            )
            at = annotated.c.position == row["position"]
            change = update(annotated).where(*_is(annotated.c.annotator_id, dataset, who), at)
            connection.execute(change.values(json=to_json(annotation)))
    _judge(connection, dataset, positions)


def _open(connection: Connection, dataset: DatasetRow) -> dict[str, AnnotatorRow]:
    """Keep others from writing annotations until the transaction ends; return who there is."""
    loading = select(loads.c.dataset_id).where(loads.c.dataset_id == dataset.id)
    if connection.execute(loading).one_or_none() is not None:
        raise StoreError(f"an import into {dataset.name!r} is under way: wait for its end")
    lock(connection, dataset.id, 0, dataset.n_items)
    return annotators_of(connection, dataset.id)


def _named(by_name: dict[str, AnnotatorRow], dataset: DatasetRow, name: str) -> AnnotatorRow:
    if name not in by_name:
        there = ", ".join(map(repr, by_name)) or "nobody"
        raise NotFoundError(f"{dataset.name!r} has no annotator {name!r}; it has: {there}")
    return by_name[name]


def _is(column: Any, dataset: DatasetRow, who: AnnotatorRow) -> list[ColumnElement[bool]]:
    return [column.table.c.dataset_id == dataset.id, column == who.id]


def _positions(connection: Connection, dataset: DatasetRow, who: AnnotatorRow) -> list[int]:
    query = select(annotated.c.position).where(*_is(annotated.c.annotator_id, dataset, who))
    return list(connection.execute(query.order_by(annotated.c.position)).scalars())


def _pieces(positions: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(positions), _PIECE):
        yield positions[first : first + _PIECE]


def _let_go(connection: Connection, dataset: DatasetRow, who: AnnotatorRow) -> None:
    here = _is(annotators.c.id, dataset, who)
    connection.execute(update(annotators).where(*here).values(kind=LEAVING))


def _take_out(
    connection: Connection, dataset: DatasetRow, who: AnnotatorRow, positions: Sequence[int]
) -> dict[Table, list[dict[str, Any]]]:
    """Delete an annotator's rows at ``positions``, and return them; parents come first."""
    taken: dict[Table, list[dict[str, Any]]] = {}
    for table in (annotated, reviews, operations):
        here = [*_is(table.c.annotator_id, dataset, who), table.c.position.in_(positions)]
        taken[table] = [
            dict(row) for row in connection.execute(select(table).where(*here)).mappings()
        ]
    for table in reversed(taken):
        here = [*_is(table.c.annotator_id, dataset, who), table.c.position.in_(positions)]
        connection.execute(delete(table).where(*here))
    gone = [search.SearchEntry(position, who.id, ()) for position in positions]
    search.put(connection, dataset.id, gone)
    return taken


def _remove(connection: Connection, dataset: DatasetRow, who: AnnotatorRow) -> None:
    for piece in _pieces(_positions(connection, dataset, who)):
        _take_out(connection, dataset, who, piece)
    connection.execute(delete(annotators).where(*_is(annotators.c.id, dataset, who)))


def _judge(connection: Connection, dataset: DatasetRow, positions: Sequence[int]) -> None:
    """Work out anew what depends on all annotations of an item."""
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
    for table in (annotated, reviews):
        change = update(table).where(*_is_row(table))
        change = change.values({column: bindparam(f"new_{column}") for column in _TEXTS[table]})
        for rows in _mentions(connection, dataset, table, (name, new)):
            texts = [{f"new_{column}": row[column] for column in _TEXTS[table]} for row in rows]
            keys = _keys(table, rows)
            connection.execute(change, [at | to for at, to in zip(keys, texts, strict=True)])
    _rename_in_logs(connection, dataset, (name, new))
    # What this person looks at is reserved again with the next edit, under the new name.
    held = (reservations.c.dataset_id == dataset.id, reservations.c.reviewer == name)
    connection.execute(delete(reservations).where(*held))
    campaigns.rename_person(connection, dataset, name, new)

    def renamed(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(new if who == name else who for who in names))

    def assign(settings: DatasetSettings) -> DatasetSettings:
        stays = new in settings.assigned_to and new not in settings.away
        away = [new if who == name else who for who in settings.away if who != name or not stays]
        plan = settings.measurement
        if plan is not None:
            (annotator,), reviewers = renamed([plan.annotator]), renamed(plan.reviewers)
            plan = plan.model_copy(update={"annotator": annotator, "reviewers": reviewers})
        setups = [
            setup.model_copy(update={"annotator": renamed([setup.annotator])[0]})
            for setup in settings.setups
        ]
        update = {
            "assigned_to": renamed(settings.assigned_to),
            "away": tuple(dict.fromkeys(away)),
            "measurement": plan,
            "setups": tuple(setups),
        }
        return settings.model_copy(update=update)

    change_settings(connection, dataset.name, assign)


def _rename_in_logs(connection: Connection, dataset: DatasetRow, names: tuple[str, str]) -> None:
    """Write operations anew that mention the first of two names: they cannot be updated."""
    here = annotators.c.dataset_id == dataset.id
    kinds = connection.execute(select(annotators.c.id.label("who"), annotators.c.kind).where(here))
    before = [{"who": row.who, "was": row.kind} for row in kinds]
    connection.execute(update(annotators).where(here).values(kind=LEAVING))
    for rows in _mentions(connection, dataset, operations, names):
        connection.execute(delete(operations).where(*_is_row(operations)), _keys(operations, rows))
        connection.execute(insert(operations), rows)
    again = update(annotators).where(here, annotators.c.id == bindparam("who"))
    connection.execute(again.values(kind=bindparam("was")), before)


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
    wanted = [table.c[column].contains(quoted, autoescape=True) for column in texts]
    if "author" in table.c:
        wanted.append(table.c.author == name)
    for first in range(0, dataset.n_items, _PIECE):
        piece = table.c.position.between(first, first + _PIECE - 1)
        query = select(table).where(table.c.dataset_id == dataset.id, piece, or_(*wanted))
        rows = [dict(row) for row in connection.execute(query).mappings()]
        for row in rows:
            row |= {column: _renamed(row[column], name, new) for column in texts}
            if row.get("author") == name:
                row["author"] = new
        if rows:
            yield rows


def _renamed(text: str | None, name: str, new: str) -> str | None:
    if text is None:
        return None
    changed = _walked(json.loads(text), name, new)
    return json.dumps(changed, ensure_ascii=False, separators=(",", ":"))


def _walked(value: Any, name: str, new: str) -> Any:
    if isinstance(value, list):
        return [_walked(inner, name, new) for inner in value]
    if not isinstance(value, dict):
        return value
    kept = _HOW_MADE | {"trace"} if value.get("voters") else {"trace"}
    return {
        key: inner
        if key in kept
        else list(dict.fromkeys(new if who == name else who for who in inner))
        if key == "voters" and isinstance(inner, list)
        else new
        if key in _NAMES and inner == name
        else _walked(inner, name, new)
        for key, inner in value.items()
    }
