"""Each person's own list of items, in a dataset with a plan or with known answers.

A list is drawn when its person comes, and stored: their part of the plan in import order, with
known items at places drawn by chance among it. Whatever a browser asks for is looked up in the
list, and an item that is not in it is like one that does not exist. Where answers are known the
browser calls an item by a ``handle`` of that person alone. So neither an address nor an order, a
number or a search tells a known item from others.

Where everybody takes what others have left, nobody's part is settled beforehand: such a list grows
by one item whenever its person comes to its end. Where what it was drawn from has changed (items
came, the plan or the known answers are others), the part that its person has not seen is drawn
anew. What they have seen keeps its place, and every item that stays keeps its handle.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, delete, func, select, update

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.schema import DatasetSettings, QueueCursor, QueueQuery, Status
from spanlab.storage import campaigns
from spanlab.storage.catalog import DatasetRow, annotators_of, settings_of
from spanlab.storage.engine import insert_new, insert_rows
from spanlab.storage.items import position_of
from spanlab.storage.reservations import reserve
from spanlab.storage.selection import Selection
from spanlab.storage.tables import annotated, items, queue_items, queues

_BEHIND = 2  # items after the last one that somebody wrote to: on their screen, and loaded
_TRIES = 50  # items that others may take in the moment in which a list grows
_HANDLE_BYTES = 4  # few enough to be read out, and nobody finds one of another list by chance


def grows(settings: DatasetSettings) -> bool:
    """Return whether people take what others have left, so that lists grow item by item."""
    return bool(settings.overlap) and not settings.assigned_to


def is_drawn(
    connection: Connection, dataset: DatasetRow, reviewer: str, others: Collection[int] = ()
) -> bool:
    """Return whether a person's list is there, drawn from what the dataset is now, with others."""
    stored = select(queues.c.basis).where(*_of(queues, dataset, reviewer))
    basis = connection.execute(stored).scalar_one_or_none()
    if basis != _basis(connection, dataset):
        return False
    return not others or set(others) <= _handles(connection, dataset, reviewer).keys()


def draw(
    connection: Connection, dataset: DatasetRow, reviewer: str, others: Sequence[int] = ()
) -> None:
    """Draw a person's list, or anew what they have not seen of it, if there is reason to.

    Args:
        connection: in a transaction that may write.
        dataset: one with a plan or known answers.
        reviewer: the person, who is past the test if there is one.
        others: positions of items that the list has in any case, such as those of a measurement.
    """
    n_before = _begin(connection, dataset, reviewer)
    if is_drawn(connection, dataset, reviewer, others):
        return
    settings = settings_of(connection, dataset.name)
    planned = dict.fromkeys((*_planned(connection, dataset, settings, reviewer), *others))
    whole = grows(settings) or n_before is None
    seen = _seen(connection, dataset, reviewer, None if whole else planned.keys())
    campaigns.take_unseen(connection, dataset, reviewer, set(seen))
    given = campaigns.positions_given(connection, dataset, reviewer)
    n_others = sum(position not in given for position in seen)
    if n_before is None:  # who begins amid the work is not given what was due before
        n_before = 0 if any(not each.attempt for each in given.values()) else n_others
    share = settings.known.share if settings.known else 0.0
    pool = dict.fromkeys(campaigns.unseen_known(connection, dataset, reviewer))
    had = set(seen)
    unseen = (position for position in planned if position not in had)
    due = partial(campaigns.due, dataset, reviewer, share=share)
    rest = [*_mixed(unseen, iter(pool), due, n_others - n_before)]
    campaigns.give(connection, dataset, reviewer, [at for at in rest if at in pool])
    _write(connection, dataset, reviewer, [*seen, *rest])
    drawn = {"basis": _basis(connection, dataset), "n_before": n_before}
    connection.execute(update(queues).where(*_of(queues, dataset, reviewer)).values(drawn))


def draw_next(connection: Connection, dataset: DatasetRow, query: QueueQuery) -> str | None:
    """Let a list grow by the item that comes next in a queue, and reserve it for its person.

    Returns:
        The item's id; None if there is nothing left, or the list does not grow.
    """
    settings, reviewer = settings_of(connection, dataset.name), query.reviewer
    is_new = query.status in {None, Status.NOT_ANNOTATED}
    if not (grows(settings) and query.reserve and is_new) or reviewer in settings.away:
        return None
    n_before = _begin(connection, dataset, reviewer) or 0
    is_given = campaigns.is_given(dataset, reviewer, queue_items.c.position)
    others = select(queue_items.c.position).where(*_of(queue_items, dataset, reviewer), ~is_given)
    n_others = _count(connection, others) - n_before
    given = campaigns.positions_given(connection, dataset, reviewer)
    n_given = sum(not each.attempt for each in given.values())
    share = settings.known.share if settings.known else 0.0
    pool: list[int] = []
    if n_given < campaigns.due(dataset, reviewer, n_others, share=share):
        pool = campaigns.unseen_known(connection, dataset, reviewer)[:1]
        campaigns.give(connection, dataset, reviewer, pool)
    last = None
    if query.order == "import" and not query.reverse:
        last = connection.execute(others.order_by(queue_items.c.place.desc()).limit(1)).scalar()
    position = pool[0] if pool else _take_free(connection, dataset, settings, query, last)
    if position is None:
        return None
    _append(connection, dataset, reviewer, position)
    where = (items.c.dataset_id == dataset.id, items.c.position == position)
    return str(connection.execute(select(items.c.item_id).where(*where)).scalar_one())


def give_test(
    connection: Connection, dataset: DatasetRow, reviewer: str, attempt: int, n_items: int
) -> None:
    """Give a person the items of a test that has not begun yet.

    Raises:
        UsageError: too few are left that the person has not seen.
    """
    _begin(connection, dataset, reviewer)
    given = campaigns.positions_given(connection, dataset, reviewer)
    if any(each.attempt == attempt for each in given.values()):
        return
    pool = campaigns.unseen_known(connection, dataset, reviewer)
    if len(pool) < n_items:
        raise UsageError(
            f"a test needs {n_items} items with known answers that {reviewer!r} has not seen, "
            f"and {dataset.name!r} has {len(pool)}"
        )
    test = sorted(pool[:n_items])
    campaigns.give(connection, dataset, reviewer, test, attempt)
    _write(connection, dataset, reviewer, [*_handles(connection, dataset, reviewer), *test])


def item_of(connection: Connection, dataset: DatasetRow, reviewer: str, handle: str) -> str:
    """Return the id of the item that a person's browser calls so.

    Raises:
        NotFoundError: none in the person's list is called so.
    """
    is_there = and_(
        items.c.dataset_id == queue_items.c.dataset_id, items.c.position == queue_items.c.position
    )
    named = select(items.c.item_id).join_from(queue_items, items, is_there)
    where = (*_of(queue_items, dataset, reviewer), queue_items.c.handle == handle)
    item_id = connection.execute(named.where(*where)).scalar_one_or_none()
    if item_id is None:
        raise NotFoundError(f"the dataset {dataset.name!r} has no item {handle!r}")
    return str(item_id)


def handle_of(connection: Connection, dataset: DatasetRow, reviewer: str, item_id: str) -> str:
    """Return what a person's browser calls an item.

    Raises:
        NotFoundError: the item is not in the person's list.
    """
    position = position_of(connection, dataset, item_id)
    where = (*_of(queue_items, dataset, reviewer), queue_items.c.position == position)
    handle = connection.execute(select(queue_items.c.handle).where(*where)).scalar_one_or_none()
    if handle is None:
        raise NotFoundError(f"the dataset {dataset.name!r} has no item {item_id!r}")
    return str(handle)


def counts(connection: Connection, dataset: DatasetRow, reviewer: str) -> dict[Status, int]:
    """Return how many items of a person's list are in each status under that person."""
    annotator = annotators_of(connection, dataset.id).get(reviewer)
    own = and_(
        annotated.c.dataset_id == queue_items.c.dataset_id,
        annotated.c.position == queue_items.c.position,
        annotated.c.annotator_id == (-1 if annotator is None else annotator.id),
    )
    status = func.coalesce(annotated.c.status, Status.NOT_ANNOTATED.value)
    rows = connection.execute(
        select(status, func.count())
        .select_from(queue_items.outerjoin(annotated, own))
        .where(*_of(queue_items, dataset, reviewer))
        .group_by(status)
    )
    return {Status(name): n for name, n in rows}


def rename_person(connection: Connection, dataset: DatasetRow, name: str, new: str) -> None:
    """Move a list to another name; who has a list under that name keeps that one."""
    has_list = connection.execute(select(queues).where(*_of(queues, dataset, new))).first()
    if has_list:
        forget_person(connection, dataset, name)
        anew = update(queues).where(*_of(queues, dataset, new))
        connection.execute(anew.values(basis=""))
        return
    for table in (queues, queue_items):
        moved = update(table).where(*_of(table, dataset, name))
        connection.execute(moved.values(reviewer=new))


def forget_person(connection: Connection, dataset: DatasetRow, name: str) -> None:
    """Delete a person's list."""
    for table in (queues, queue_items):
        connection.execute(delete(table).where(*_of(table, dataset, name)))


def _of(table: Table, dataset: DatasetRow, reviewer: str) -> list[ColumnElement[bool]]:
    return [table.c.dataset_id == dataset.id, table.c.reviewer == reviewer]


def _basis(connection: Connection, dataset: DatasetRow) -> str:
    """Return a hash of all that says which items a person gets, and which of them are known."""
    settings = settings_of(connection, dataset.name)
    known = settings.known and (settings.known.labels, settings.known.share)
    plan = (settings.overlap, settings.assigned_to, settings.away)
    basis = (dataset.n_items, plan, known, campaigns.n_known(connection, dataset))
    return sha256(repr(basis).encode()).hexdigest()


def _begin(connection: Connection, dataset: DatasetRow, reviewer: str) -> int | None:
    """Lock a person's list, which is empty if it is new, and return its ``n_before``."""
    row = {"dataset_id": dataset.id, "reviewer": reviewer, "basis": ""}
    connection.execute(insert_new(connection, queues), row)
    own = select(queues.c.n_before).where(*_of(queues, dataset, reviewer))
    n_before: int | None = connection.execute(own.with_for_update()).scalar_one()
    return n_before


def _handles(connection: Connection, dataset: DatasetRow, reviewer: str) -> dict[int, str]:
    """Return the handles in a person's list by position, in its order."""
    columns = (queue_items.c.position, queue_items.c.handle)
    listed = select(*columns).where(*_of(queue_items, dataset, reviewer))
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
    given = campaigns.positions_given(connection, dataset, reviewer)
    if planned is None:
        own |= given.keys()
    else:
        last = max((place for place, at in enumerate(listed) if at in own), default=-1)
        seen = listed[: last + 1 + _BEHIND]
        listed = [at for at in seen if at in own or at in given or at in planned]

    def order(position: int) -> tuple[int, ...]:
        known = given.get(position)
        if known is None or known.attempt == 0:
            after = None if known is None else known.after
            return (1, position, 0) if after is None else (1, after, 1)
        return (0, known.attempt, position)

    return [*listed, *sorted(own - set(listed), key=order)]


def _planned(
    connection: Connection, dataset: DatasetRow, settings: DatasetSettings, reviewer: str
) -> Sequence[int]:
    """Return the positions of what is a person's by the plan, in import order."""
    share = settings.share_of(reviewer)
    if grows(settings) or (settings.assigned_to and share is None):
        return ()
    query = QueueQuery(reviewer=reviewer, known="none", share=share)
    return Selection(connection, dataset, query).positions()


def _mixed(
    others: Iterable[int], known: Iterator[int], due: Callable[[int], int], n_begun: int
) -> Iterator[int]:
    """Yield other items, and a known one behind each at which ``due`` says so.

    ``due`` is how many known items go with the first n others, ``n_begun`` how many of these came
    before.
    """
    n_given = due(n_begun)
    for n, position in enumerate(others, n_begun + 1):
        yield position
        if n_given < due(n):
            n_given += 1
            yield from (at for at in [next(known, None)] if at is not None)


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
    fresh = replace(query, listed=False, known="none", after=None, before=None)
    selection = Selection(connection, dataset, fresh, unlisted=True)
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
    changed = (*_of(queue_items, dataset, reviewer), queue_items.c.place >= same)
    connection.execute(delete(queue_items).where(*changed))
    taken = set(handles.values())
    rows = [
        (dataset.id, reviewer, place, position, handles.get(position) or _new_handle(taken))
        for place, position in enumerate(order[same:], same)
    ]
    insert_rows(connection, "queue_items", [c.name for c in queue_items.c], rows)


def _append(connection: Connection, dataset: DatasetRow, reviewer: str, position: int) -> None:
    """Store one more item at the end of a list, however long it is."""
    own = _of(queue_items, dataset, reviewer)
    last = connection.execute(select(func.max(queue_items.c.place)).where(*own)).scalar()
    handle = _new_handle(set())
    while connection.execute(
        select(queue_items).where(*own, queue_items.c.handle == handle)
    ).first():
        handle = _new_handle(set())
    place = 0 if last is None else last + 1
    row = (dataset.id, reviewer, place, position, handle)
    insert_rows(connection, "queue_items", [c.name for c in queue_items.c], [row])


def _count(connection: Connection, positions: Select[tuple[int]]) -> int:
    counted = select(func.count()).select_from(positions.subquery())
    return connection.execute(counted).scalar_one()


def _new_handle(taken: set[str]) -> str:
    while (handle := secrets.token_hex(_HANDLE_BYTES)) in taken:
        pass
    taken.add(handle)
    return handle
