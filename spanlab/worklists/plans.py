"""The plan of a dataset: who gets which items, how far people are, who leaves and comes back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

from sqlalchemy import ColumnElement, Connection, and_, case, false, func, or_, select

from spanlab.schema import (
    AnnotatorKind,
    AssignedShare,
    DatasetSettings,
    DatasetSummary,
    Permission,
    Status,
)
from spanlab.schema.progress import FinishedItem, PersonProgress, PlanProgress
from spanlab.storage import Store
from spanlab.storage.assignment import is_check, is_planned, n_dealt, over_items
from spanlab.storage.catalog import (
    AnnotatorRow,
    DatasetRow,
    annotators_of,
    change_settings,
    find,
    settings_of,
)
from spanlab.storage.items import position_of
from spanlab.storage.tables import annotated, annotators, items, operations, queue_values
from spanlab.worklists import reservations
from spanlab.worklists.selection import is_of_share


def plan_of(store: Store, summary: DatasetSummary) -> PlanProgress | None:
    """Return the progress of a dataset's plan; None for a dataset without one.

    Raises:
        NotFoundError: there is no such dataset any more.
    """
    return plan(store, summary.name) if summary.settings.overlap else None


def plan(store: Store, dataset: str, *, away: Sequence[str] | None = None) -> PlanProgress | None:
    """Return how far a dataset's plan is, for all people; None without one.

    The people are those to whom items are assigned, in that order, and all others who reviewed. Who
    may not read what others said is told of their own part alone: see ``part``. With ``away`` it is
    what it would be if these people were away.
    """
    store.require(Permission.READ, dataset)
    with store.reading(dataset) as (connection, row, _):
        settings = settings_of(connection, dataset)
        if away is not None:
            settings = settings.model_copy(update={"away": tuple(away)})
        return _progress(connection, row, settings) if settings.overlap else None


def _progress(
    connection: Connection, dataset: DatasetRow, settings: DatasetSettings
) -> PlanProgress:
    by_name = annotators_of(connection, dataset.id)
    reviewed = (name for name, row in by_name.items() if row.kind is AnnotatorKind.PERSON)
    people = dict.fromkeys((*settings.assigned_to, *reviewed))
    reached = tuple(part_of(connection, dataset, settings, name) for name in people)
    per_item = settings.overlap
    planned = is_planned(connection, dataset, settings)
    if settings.assigned_to:
        per_item = min(per_item, len(settings.assigned_to))
    if settings.assigned_to and not settings.returned:
        done = sum(person.done for person in reached)
    else:
        n_people = queue_values.c.n_people
        counted = case((n_people < per_item, n_people), else_=per_item)
        summed = over_items(dataset, func.sum(counted)).where(planned)
        done = connection.execute(summed).scalar_one() or 0
    n_items = dataset.n_items
    if settings.known:
        n_items = connection.execute(over_items(dataset, func.count()).where(planned)).scalar_one()
    return PlanProgress(n_items * per_item, done, reached)


def part(store: Store, dataset: str, person: str) -> PersonProgress | None:
    """Return how far one person is with what the plan gives them; None without a plan.

    As check items are no part of it, it would tell them to a reviewer of a dataset with some: that
    needs the right to read the dataset.
    """
    if store.settings(dataset).known:
        store.require(Permission.READ, dataset)
    with store.reading(dataset, person) as (connection, row, _):
        settings = settings_of(connection, dataset)
        return part_of(connection, row, settings, person) if settings.overlap else None


def part_of(
    connection: Connection, dataset: DatasetRow, settings: DatasetSettings, name: str
) -> PersonProgress:
    """Count what a plan gives to one person: a share, or what too few others have."""
    annotator = annotators_of(connection, dataset.id).get(name)
    everybody: Sequence[str] = settings.assigned_to
    is_away = name in settings.away
    share = settings.share_of(name)
    planned = is_own = is_planned(connection, dataset, settings)
    if share is not None:
        is_own = and_(planned, is_of_share(dataset, share))
    elif name in everybody:  # those of their share that they have finished stay theirs
        old_share = AssignedShare(everybody.index(name), len(everybody), settings.overlap)
        is_own = and_(planned, is_of_share(dataset, old_share))
    elif everybody:
        is_own = false()
    elif not is_away:
        n_held = reservations.held_by_others(dataset, name, queue_values.c.position)
        is_own = and_(planned, queue_values.c.n_people + n_held < settings.overlap)

    def count(condition: ColumnElement[bool]) -> int:
        counting = over_items(dataset, func.count()).where(condition)
        return int(connection.execute(counting).scalar_one())

    if share is not None and settings.returned:
        taken = queue_values.c.n_people >= min(settings.overlap, len(everybody))
        assigned = count(is_own & ~(taken & ~_is_annotated(dataset, annotator)))
    elif share is not None and not share.away:  # only check items are counted one by one
        assigned = share.size(n_dealt(connection, dataset))
        if settings.known:
            checks = is_check(connection, dataset, queue_values.c.position)
            dealt = queue_values.c.turn.is_not(None)
            assigned -= count(checks & dealt & is_of_share(dataset, share))
    else:
        assigned = count(is_own)
    # All else is counted over what the person has annotated.
    mine = (
        over_items(dataset, annotated.c.status, func.count(), func.sum(case((is_own, 1), else_=0)))
        .join(
            annotated,
            (annotated.c.dataset_id == dataset.id)
            & (annotated.c.position == queue_values.c.position),
        )
        .where(planned, annotated.c.annotator_id == (-1 if annotator is None else annotator.id))
        .group_by(annotated.c.status)
    )
    counts = {Status(status): (n, n_given) for status, n, n_given in connection.execute(mine)}
    (done, done_given), (skipped, skipped_given) = (
        counts.get(status, (0, 0)) for status in (Status.DONE, Status.SKIPPED)
    )
    if everybody and name not in everybody:
        return PersonProgress(name, beyond=done)
    if is_away:
        return PersonProgress(name, done_given, done=done_given, beyond=done - done_given)
    if not everybody:  # who has finished or skipped an item was given it
        assigned += done - done_given + skipped - skipped_given
        done_given, skipped_given = done, skipped
    beyond = done - done_given
    return PersonProgress(name, assigned, done=done_given, skipped=skipped_given, beyond=beyond)


def _is_annotated(dataset: DatasetRow, annotator: AnnotatorRow | None) -> ColumnElement[bool]:
    """Return the condition that somebody has annotated an item."""
    at = annotated.c.position == queue_values.c.position
    by = annotated.c.annotator_id == (-1 if annotator is None else annotator.id)
    own = select(annotated.c.position).where(annotated.c.dataset_id == dataset.id, at, by)
    return own.correlate(queue_values).exists()


def reserve(
    store: Store, dataset: str, item_id: str, reviewer: str, people: int
) -> tuple[str, ...]:
    """Reserve an item unless ``people`` others have it; return those, none if it is reserved now.

    A check item is never reserved: see ``reservations.holders_of_check``.
    """
    store.require(Permission.REVIEW, dataset)
    with store.reading(dataset, reviewer) as (connection, row, _):
        position = position_of(connection, row, item_id)
        holders = reservations.holders_of_check(connection, row, position, reviewer, people)
        if holders is not None:
            return holders
        if reservations.has_reserved(connection, row, position, reviewer):
            return ()
    with store.reviewing(dataset, reviewer) as (connection, row):
        position = position_of(connection, row, item_id)
        return reservations.reserve(connection, row, position, reviewer, people=people)


def take_back(store: Store, dataset: str, person: str) -> None:
    """Let others have what a person was to finish and has not: see ``DatasetSettings.away``."""

    def change(settings: DatasetSettings) -> DatasetSettings:
        away = tuple(dict.fromkeys((*settings.away, person)))
        return settings.model_copy(update={"away": away})

    with store.writing(Permission.MANAGE, dataset) as connection:
        change_settings(connection, dataset, change)
        reservations.release(connection, find(connection, dataset), person)
        store.note(connection, "items reassigned", dataset, person)


def give_back(store: Store, dataset: str, person: str) -> None:
    """Let a person who was away have their part of the plan again."""

    def change(settings: DatasetSettings) -> DatasetSettings:
        away = tuple(name for name in settings.away if name != person)
        returned = tuple(dict.fromkeys((*settings.returned, person)))
        return settings.model_copy(update={"away": away, "returned": returned})

    store.change_settings(dataset, change)


def n_held(store: Store, dataset: str, person: str) -> int:
    """Return how many items are reserved for a person who has not decided them."""
    with store.reading(dataset, person) as (connection, row, _):
        return reservations.n_held(connection, row, person)


_DONE = ('{"kind":"finish"', '{"kind":"status","status":"done"')  # how such operations begin


def finished(store: Store, dataset: str) -> tuple[FinishedItem, ...]:
    """Return the items that are done now, once per person, the earliest first, then by name.

    Who may not read what others said is told of their own alone. Imported annotations have no log
    and are not among them. Empty where nobody has pressed Done.
    """
    done = or_(*(operations.c.json.startswith(start, autoescape=True) for start in _DONE))
    at = func.max(case((done, operations.c.at)))
    names = ("dataset_id", "position", "annotator_id")
    query = (
        select(annotators.c.name, items.c.item_id, at, func.sum(operations.c.seconds))
        .select_from(operations)
        .join(annotated, and_(*(operations.c[name] == annotated.c[name] for name in names)))
        .join(items, and_(*(operations.c[name] == items.c[name] for name in names[:2])))
        .join(
            annotators,
            (annotators.c.dataset_id == operations.c.dataset_id)
            & (annotators.c.id == operations.c.annotator_id),
        )
        .where(
            or_(done, operations.c.seconds.is_not(None)),
            annotated.c.status == Status.DONE.value,
            annotators.c.kind == AnnotatorKind.PERSON.value,
        )
        .group_by(annotators.c.name, items.c.item_id)
        .having(at.is_not(None))
    )
    with store.reading(dataset) as (connection, row, sight):
        rows = connection.execute(query.where(operations.c.dataset_id == row.id)).all()
    finished_items = [
        FinishedItem(person, item, datetime.fromisoformat(finished_at), seconds)
        for person, item, finished_at, seconds in rows
        if sight.concerns(person)
    ]
    return tuple(sorted(finished_items, key=attrgetter("at", "annotator", "item_id")))
