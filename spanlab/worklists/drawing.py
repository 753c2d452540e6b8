"""Each person's own list of items, in a dataset with a plan or with check items.

A list is drawn when its person comes, and stored: their part of the plan in import order, with
check items at places among it that follow from a secret of the list. Whatever a browser asks for is
looked up in the list, and an item that is not in it is like one that does not exist. Where there
are check items the browser calls an item by a ``handle`` of that person alone. How many people
finished a check item, and what the plan makes of it, is told of its twin, the item of the plan
beside it. So neither an address nor an order, a number, a filter or a search tells a check item
from others.

Where everybody takes what others have left, nobody's part is settled beforehand: such a list grows
by one item whenever its person comes to its end. Where what it was drawn from has changed (items
came, the plan or the check items are others), the part that its person has not seen is drawn
anew. What they have seen keeps its place, and every item that stays keeps its handle.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import Connection, Select, delete, func, select, update

from spanlab.base.errors import UsageError
from spanlab.schema import DatasetSettings, QueueCursor, QueueQuery, Status
from spanlab.storage import Store
from spanlab.storage.assignment import deal, rows_of
from spanlab.storage.catalog import DatasetRow, annotators_of, settings_of
from spanlab.storage.engine import insert_new, insert_rows
from spanlab.storage.items import id_at
from spanlab.storage.tables import annotated, queue_items, queues
from spanlab.worklists import check_items
from spanlab.worklists.plans import part_of
from spanlab.worklists.reservations import reserve
from spanlab.worklists.selection import Selection

_BEHIND = 2  # items after the last one that somebody wrote to: on their screen, and loaded
_TRIES = 50  # items that others may take in the moment in which a list grows
_HANDLE_BYTES = 4  # few enough to be read out, and nobody finds one of another list by chance
_SECRET_BYTES = 16


class _ListState(NamedTuple):
    """The row of a list: ``n_before`` is None before it is drawn."""

    n_before: int | None
    secret: str


def grows(settings: DatasetSettings) -> bool:
    """Return whether people take what others have left, so that lists grow item by item."""
    return bool(settings.overlap) and not settings.assigned_to


def may_lose(settings: DatasetSettings) -> bool:
    """Return whether others may take items of a list that its person has not decided."""
    return bool(settings.overlap) and bool(grows(settings) or settings.away or settings.returned)


def is_drawn(store: Store, dataset: str, person: str) -> bool:
    """Return whether a person's list is there, with nothing left to be drawn of it."""
    with store.reading(dataset, person) as (connection, row, _):
        return _is_drawn(connection, row, person)


def draw(store: Store, dataset: str, person: str, sample: Sequence[str] = ()) -> None:
    """Draw a person's list, or anew what they have not seen of it, if there is reason to.

    Args:
        store: the annotation database.
        dataset: one with a plan or check items.
        person: whose list it is, who is past the test if there is one.
        sample: ids of items that the list has in any case, if they are of the person's share.
    """
    with store.reading(dataset, person) as (connection, row, _):
        share = settings_of(connection, dataset).share_of(person)
        query = QueueQuery(reviewer=person, share=share, sample=tuple(sample))
        others = Selection(connection, row, query).positions() if sample else []
        if _is_drawn(connection, row, person, others):
            return
    with store.reviewing(dataset, person) as (connection, row):
        _draw(connection, row, person, others)


def _is_drawn(
    connection: Connection, dataset: DatasetRow, reviewer: str, others: Collection[int] = ()
) -> bool:
    stored = select(queues.c.basis).where(*rows_of(queues, dataset, reviewer))
    basis = connection.execute(stored).scalar_one_or_none()
    if basis != _basis(connection, dataset):
        return False
    return not others or set(others) <= _handles(connection, dataset, reviewer).keys()


def _draw(
    connection: Connection, dataset: DatasetRow, reviewer: str, others: Sequence[int]
) -> None:
    n_before, secret = _begin(connection, dataset, reviewer)
    if _is_drawn(connection, dataset, reviewer, others):
        return
    deal(connection, dataset)
    settings = settings_of(connection, dataset.name)
    planned = dict.fromkeys((*_planned(connection, dataset, settings, reviewer), *others))
    whole = grows(settings) or n_before is None
    seen = _seen(connection, dataset, reviewer, None if whole else planned.keys())
    had = set(seen)
    check_items.take_unseen(connection, dataset, reviewer, had)
    given = check_items.checks_of(connection, dataset, reviewer)
    n_others = sum(position not in given for position in seen)
    if n_before is None:  # who begins amid the work is not given what was due before
        n_before = 0 if any(not each.attempt for each in given.values()) else n_others
    pool = dict[int, None]()
    if settings.known:
        pool = dict.fromkeys(check_items.unseen_checks(connection, dataset, reviewer, secret))
    asked = [position for position in others if position in pool]
    checks = iter(dict.fromkeys((*asked, *pool)))
    fresh = [position for position in planned if not (position in had or position in pool)]
    n_begun, rate = n_others - n_before, _rate(settings)
    if not grows(settings):
        n_all = n_begun + len(fresh)
        n_had = sum(not each.attempt for each in given.values())
        n_left = _n_even(connection, dataset, settings, n_all) - n_had
        n_begun, rate = 0, Fraction(max(min(n_left, len(pool)), 0), max(len(fresh), 1))
    rest = [*_mixed(fresh, checks, lambda n: check_items.due(secret, n, rate), n_begun)]
    placed = set(rest)
    for position in asked:
        if position not in placed:
            rest.insert(check_items.draw(secret, f"place {position}") % (len(rest) + 1), position)
    check_items.give(connection, dataset, reviewer, [at for at in rest if at in pool])
    _write(connection, dataset, reviewer, [*seen, *rest])
    values = {"basis": _basis(connection, dataset), "n_before": n_before}
    connection.execute(update(queues).where(*rows_of(queues, dataset, reviewer)).values(values))


def _rate(settings: DatasetSettings) -> Fraction:
    """Return how many check items come with each other item, by the settings."""
    if settings.known is None:
        return Fraction(0)
    share = Fraction(settings.known.share).limit_denominator(10_000)
    return share / (1 - share)


def _n_even(
    connection: Connection, dataset: DatasetRow, settings: DatasetSettings, n_others: int
) -> int:
    """Return how many check items go with so many other items: to each of the people as many."""
    people = len(settings.assigned_to)
    if people and not settings.away:
        n_planned = dataset.n_items - check_items.n_checks(connection, dataset)
        n_others = min(n_others, n_planned * min(settings.overlap, people) // people)
    return int(n_others * _rate(settings) + Fraction(1, 2))


def draw_next(store: Store, dataset: str, query: QueueQuery) -> str | None:
    """Let the list of a query's reviewer grow by the item that comes next, and reserve it for them.

    Returns:
        The item's id; None if there is nothing left, or the list does not grow.
    """
    with store.reading(dataset, query.reviewer) as (_, _, sight):
        query = sight.query(query)
    with store.reviewing(dataset, query.reviewer) as (connection, row):
        return _draw_next(connection, row, query)


def _draw_next(connection: Connection, dataset: DatasetRow, query: QueueQuery) -> str | None:
    settings, reviewer = settings_of(connection, dataset.name), query.reviewer
    is_new = query.status in {None, Status.NOT_ANNOTATED} and not query.sample
    if not (grows(settings) and query.reserve and is_new) or reviewer in settings.away:
        return None
    state = _begin(connection, dataset, reviewer)
    is_given = check_items.is_given(dataset, reviewer, queue_items.c.position)
    others = select(queue_items.c.position).where(
        *rows_of(queue_items, dataset, reviewer), ~is_given
    )
    n_others = _count(connection, others) - (state.n_before or 0)
    given = check_items.checks_of(connection, dataset, reviewer)
    n_given = sum(not each.attempt for each in given.values())
    last = connection.execute(others.order_by(queue_items.c.place.desc()).limit(1)).scalar()
    check = None
    if n_given < check_items.due(state.secret, n_others, _rate(settings)):
        pool = check_items.unseen_checks(connection, dataset, reviewer, state.secret)
        check = _fitting_check(connection, dataset, query, pool)
    if check is not None:
        check_items.give(connection, dataset, reviewer, [check])
    begin = last if query.order == "import" and not query.reverse else None
    position = _take_free(connection, dataset, settings, query, begin) if check is None else check
    if position is None:
        return None
    _append(connection, dataset, reviewer, position, None if check is None else last)
    return id_at(connection, dataset, position)


def _fitting_check(
    connection: Connection, dataset: DatasetRow, query: QueueQuery, pool: Sequence[int]
) -> int | None:
    """Return the first check item of those that a query could show next, as it could any other.

    It passes the filter, and where the queue is ordered by a value it comes before what is free;
    None if there is none now: it stays due.
    """
    what = replace(query, listed=False, unfinished=False, reserve=False, max_annotators=None)
    asked = replace(what, min_annotators=None, after=None, before=None)
    if query.order == "import":
        fitting = set(Selection(connection, dataset, asked, among=tuple(pool)).positions())
        return next((position for position in pool if position in fitting), None)
    free = _free(connection, dataset, query).search(None, 1, forward=True)
    among = (*pool, *free)
    first = Selection(connection, dataset, asked, among=among).search(None, 1, forward=True)
    return next((position for position in first if position not in free), None)


def _free(connection: Connection, dataset: DatasetRow, query: QueueQuery) -> Selection:
    """Return what a query lets through that is in no list of its person, check items apart."""
    fresh = replace(query, listed=False, after=None, before=None)
    return Selection(connection, dataset, fresh, unlisted=True, without_checks=True)


def n_left(store: Store, dataset: str, person: str) -> int:
    """Return how many items of a person's list are still theirs to decide, and to come.

    What enough others have by now is not among them. Nothing comes of a list that does not grow.
    """
    with store.reading(dataset, person) as (connection, row, _):
        settings = settings_of(connection, row.name)
        query = QueueQuery(reviewer=person, status=Status.NOT_ANNOTATED, listed=True)
        if may_lose(settings):
            query = replace(query, max_annotators=settings.overlap - 1, reserve=True)
        n_listed = len(Selection(connection, row, query).positions())
        return n_listed + (_n_to_come(connection, row, query) if grows(settings) else 0)


def _n_to_come(connection: Connection, dataset: DatasetRow, query: QueueQuery) -> int:
    """Return by how many items a list will grow, if its person takes all that is free now."""
    settings, reviewer = settings_of(connection, dataset.name), query.reviewer
    listed = select(queues.c.n_before, queues.c.secret).where(*rows_of(queues, dataset, reviewer))
    own = connection.execute(listed).first()
    part = part_of(connection, dataset, settings, reviewer)
    if own is None or part.assigned is None:
        return part.left
    given = check_items.checks_of(connection, dataset, reviewer)
    # A lower limit leaves out what the person has begun and enough others have finished.
    free = Selection(connection, dataset, replace(query, min_annotators=0)).positions()
    n_new = max(part.left - sum(position not in given for position in free), 0)
    n_others = len(_handles(connection, dataset, reviewer).keys() - given.keys()) + n_new
    n_due = check_items.due(own.secret, n_others - (own.n_before or 0), _rate(settings))
    n_given = sum(not each.attempt for each in given.values())
    n_unseen = len(check_items.unseen_checks(connection, dataset, reviewer, own.secret))
    return n_new + max(min(n_due - n_given, n_unseen), 0)


def give_test(store: Store, dataset: str, person: str, attempt: int, n_items: int) -> None:
    """Give a person the items of a test that has not begun yet.

    Raises:
        UsageError: too few are left that the person has not seen.
    """
    with store.reviewing(dataset, person) as (connection, row):
        _, secret = _begin(connection, row, person)
        given = check_items.checks_of(connection, row, person)
        if any(each.attempt == attempt for each in given.values()):
            return
        pool = check_items.unseen_checks(connection, row, person, secret)
        if len(pool) < n_items:
            raise UsageError(
                f"a test needs {n_items} check items that {person!r} has not seen, "
                f"and {row.name!r} has {len(pool)}"
            )
        test = sorted(pool[:n_items])
        check_items.give(connection, row, person, test, attempt)
        _write(connection, row, person, [*_handles(connection, row, person), *test])


def counts(store: Store, dataset: str, person: str) -> dict[Status, int]:
    """Return how many items of a person's list are in each status under that person."""
    with store.reading(dataset, person) as (connection, row, _):
        return Selection(connection, row, QueueQuery(reviewer=person, listed=True)).counts()


def _basis(connection: Connection, dataset: DatasetRow) -> str:
    """Return a hash of all that says which items a person gets, and which are check items."""
    settings = settings_of(connection, dataset.name)
    checks = settings.known and (settings.known.labels, settings.known.share)
    plan = (settings.overlap, settings.assigned_to, settings.away)
    basis = (dataset.n_items, plan, checks, check_items.n_checks(connection, dataset))
    return sha256(repr(basis).encode()).hexdigest()


def _begin(connection: Connection, dataset: DatasetRow, reviewer: str) -> _ListState:
    """Lock a person's list, which is empty if it is new, and return its row."""
    row = {"dataset_id": dataset.id, "reviewer": reviewer, "basis": ""}
    secret = secrets.token_hex(_SECRET_BYTES)
    connection.execute(insert_new(connection, queues), row | {"secret": secret})
    own = select(queues.c.n_before, queues.c.secret).where(*rows_of(queues, dataset, reviewer))
    return _ListState(*connection.execute(own.with_for_update()).one())


def _handles(connection: Connection, dataset: DatasetRow, reviewer: str) -> dict[int, str]:
    """Return the handles in a person's list by position, in its order."""
    columns = (queue_items.c.position, queue_items.c.handle)
    listed = select(*columns).where(*rows_of(queue_items, dataset, reviewer))
    rows = connection.execute(listed.order_by(queue_items.c.place))
    return {row.position: row.handle for row in rows}


def _seen(
    connection: Connection,
    dataset: DatasetRow,
    reviewer: str,
    planned: Collection[int] | None,
) -> list[int]:
    """Return the positions that a person has seen, in the order in which they stay.

    These are the first ones of the list, as far as they are still ``planned`` or the person has
    written to them. Where None is planned it is all of the list, and whatever was annotated or
    given before there was one.
    """
    listed = list(_handles(connection, dataset, reviewer))
    annotator = annotators_of(connection, dataset.id).get(reviewer)
    own = set(
        connection.execute(
            select(annotated.c.position).where(
                annotated.c.dataset_id == dataset.id,
                annotated.c.position < dataset.n_items,
                annotated.c.annotator_id == (-1 if annotator is None else annotator.id),
            )
        ).scalars()
    )
    given = check_items.checks_of(connection, dataset, reviewer)
    if planned is None:
        own |= given.keys()
    else:
        last = max((place for place, at in enumerate(listed) if at in own), default=-1)
        stays, seen, listed = bool(planned), listed[: last + 1 + _BEHIND], []
        for at in seen:
            if at not in given:  # a check item stays if the plan has the one before it
                stays = at in planned
            if stays or at in own or (at in given and given[at].attempt):
                listed.append(at)

    def order(position: int) -> tuple[int, ...]:
        check = given.get(position)
        if check is None or check.attempt == 0:
            after = None if check is None else check.after
            return (1, position, 0) if after is None else (1, after, 1)
        return (0, check.attempt, position)

    return [*listed, *sorted(own - set(listed), key=order)]


def _planned(
    connection: Connection, dataset: DatasetRow, settings: DatasetSettings, reviewer: str
) -> Sequence[int]:
    """Return the positions of what is a person's by the plan, in import order."""
    share = settings.share_of(reviewer)
    if grows(settings) or (settings.assigned_to and share is None):
        return ()
    query = QueueQuery(reviewer=reviewer, share=share)
    return Selection(connection, dataset, query, without_checks=True).positions()


def _mixed(
    others: Iterable[int], checks: Iterator[int], due: Callable[[int], int], n_begun: int
) -> Iterator[int]:
    """Yield other items, and a check item behind each at which ``due`` says so.

    ``due`` is how many check items go with the first n others, ``n_begun`` how many of these came
    before.
    """
    n_given = due(n_begun)
    for n, position in enumerate(others, n_begun + 1):
        yield position
        if n_given < due(n):
            n_given += 1
            yield from (at for at in [next(checks, None)] if at is not None)


def _take_free(
    connection: Connection,
    dataset: DatasetRow,
    settings: DatasetSettings,
    query: QueueQuery,
    last: int | None,
) -> int | None:
    """Reserve the first item of a queue that is in no list of its person; None if there is none.

    It is looked for behind the ``last`` position that they got, where most are still free, and only
    then from the beginning.
    """
    selection = _free(connection, dataset, query)
    for place in (QueueCursor(last), None) if last is not None else (None,):
        for n in range(1, _TRIES + 1):
            positions = selection.search(place, n, forward=True)
            if len(positions) < n:
                break
            people = settings.overlap
            if not reserve(connection, dataset, positions[-1], query.reviewer, people):
                return positions[-1]
    return None


def _write(
    connection: Connection, dataset: DatasetRow, reviewer: str, order: Sequence[int]
) -> None:
    """Store a list; what is in it already keeps its handle."""
    handles = _handles(connection, dataset, reviewer)
    pairs = zip(handles, order, strict=False)
    same = next(
        (n for n, (old, new) in enumerate(pairs) if old != new), min(len(handles), len(order))
    )
    changed = (*rows_of(queue_items, dataset, reviewer), queue_items.c.place >= same)
    connection.execute(delete(queue_items).where(*changed))
    taken, twins = set(handles.values()), _twins(connection, dataset, reviewer, order)
    rows = [
        (
            *(dataset.id, reviewer, place, position),
            handles.get(position) or _new_handle(taken),
            twins.get(position),
        )
        for place, position in enumerate(order[same:], same)
    ]
    insert_rows(connection, "queue_items", [c.name for c in queue_items.c], rows)


def _twins(
    connection: Connection, dataset: DatasetRow, reviewer: str, order: Sequence[int]
) -> Mapping[int, int]:
    """Return the twin of each check item of a list: the one before it, or the first that is none.

    Items of tests, of which their person knows, have none.
    """
    given = check_items.checks_of(connection, dataset, reviewer)
    checks = {position for position, each in given.items() if not each.attempt}
    last = next((position for position in order if position not in given), None)
    twins = {}
    for position in order:
        if position not in given:
            last = position
        elif position in checks and last is not None:
            twins[position] = last
    return twins


def _append(
    connection: Connection, dataset: DatasetRow, reviewer: str, position: int, twin: int | None
) -> None:
    """Store one more item at the end of a list, however long it is."""
    own = rows_of(queue_items, dataset, reviewer)
    last = connection.execute(select(func.max(queue_items.c.place)).where(*own)).scalar()
    handle = _new_handle(set())
    while connection.execute(
        select(queue_items).where(*own, queue_items.c.handle == handle)
    ).first():
        handle = _new_handle(set())
    place = 0 if last is None else last + 1
    row = (dataset.id, reviewer, place, position, handle, twin)
    insert_rows(connection, "queue_items", [c.name for c in queue_items.c], [row])


def _count(connection: Connection, positions: Select[tuple[int]]) -> int:
    counted = select(func.count()).select_from(positions.subquery())
    return connection.execute(counted).scalar_one()


def _new_handle(taken: set[str]) -> str:
    while (handle := secrets.token_hex(_HANDLE_BYTES)) in taken:
        pass
    taken.add(handle)
    return handle
