"""The plan of a dataset: who gets which items, how far people are, who leaves and comes back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

from sqlalchemy import ColumnElement, Connection, and_, case, false, func, or_, select, true

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
from spanlab.storage.assignment import is_by, over_planned
from spanlab.storage.catalog import (
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

    The people are those to whom items are assigned, in that order, and all others who reviewed.
    With ``away`` it is what it would be if these people were away.
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
    per_item = min(settings.overlap, len(settings.assigned_to) or settings.overlap)
    n_people = reservations.n_finished(connection, dataset, queue_values)
    counted = func.sum(case((n_people < per_item, n_people), else_=per_item))
    totals = over_planned(connection, dataset, func.count(), counted, func.sum(n_people))
    n_items, done, n_done = connection.execute(totals).one()
    surplus = 0 if settings.assigned_to or not n_items else n_done - done
    if not settings.may_lose:
        done = sum(person.done for person in reached)
    return PlanProgress(n_items * per_item, done or 0, reached, surplus)


def part_of(
    connection: Connection, dataset: DatasetRow, settings: DatasetSettings, name: str
) -> PersonProgress:
    """Count what a plan gives to one person: a share, or what too few others have finished.

    Without a plan that is every item that is no check item.
    """
    everybody, is_away = settings.assigned_to, name in settings.away
    share = settings.share_of(name)
    if name in everybody and share is None:  # those of their share that they finished stay theirs
        share = AssignedShare(everybody.index(name), len(everybody), settings.overlap)
    is_decided = annotated.c.status.in_([Status.DONE.value, Status.SKIPPED.value])
    n_enough = min(settings.overlap, len(everybody) or settings.overlap)
    is_free = reservations.n_finished(connection, dataset, queue_values) < n_enough
    is_own: ColumnElement[bool] = true()
    if share is not None:
        is_own = is_of_share(dataset, share)
        if settings.may_lose:
            is_own = and_(is_own, or_(is_free, annotated.c.status.is_not(None)))
    elif everybody:
        is_own = false()
    elif settings.overlap:
        is_own = or_(is_decided, false() if is_away else is_free)
    own, here = is_by(connection, dataset, name), annotated.c.position == queue_values.c.position
    mine = case((is_own, 1), else_=0).label("mine")
    counted = over_planned(connection, dataset, func.count(), mine, annotated.c.status)
    counted = counted.outerjoin(annotated, and_(here, *own)).group_by("mine", annotated.c.status)
    counts = {(bool(own), status): n for n, own, status in connection.execute(counted)}
    done, beyond = (counts.get((own, Status.DONE.value), 0) for own in (True, False))
    if everybody and share is None:
        return PersonProgress(name, beyond=beyond)
    if is_away:
        return PersonProgress(name, done, done=done, beyond=beyond)
    assigned = sum(n for (own, _), n in counts.items() if own)
    skipped = counts.get((True, Status.SKIPPED.value), 0)
    return PersonProgress(name, assigned, done=done, skipped=skipped, beyond=beyond)


def reserve(store: Store, dataset: str, item_id: str, reviewer: str) -> tuple[str, ...]:
    """Reserve an item unless as many others as the plan asks for have it.

    Where there are check items, what is in a list is its person's, whoever else has it: others
    never take a check item.

    Returns:
        These others, by name; none if it is reserved now, or there is no plan.
    """
    store.require(Permission.REVIEW, dataset)
    with store.reading(dataset, reviewer) as (connection, row, sight):
        position = position_of(connection, row, item_id, sight)
        settings = settings_of(connection, dataset)
        has_reserved = reservations.has_reserved(connection, row, position, reviewer)
        if not settings.overlap or has_reserved:
            return ()
    with store.reviewing(dataset, reviewer) as (connection, row):
        people = reservations.ANY_NUMBER if settings.known else settings.overlap
        return reservations.reserve(connection, row, position, reviewer, people)


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
