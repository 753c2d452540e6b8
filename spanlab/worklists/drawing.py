"""Each person's own list of items, in a dataset with a plan or with check items.

A list is drawn when its person comes, and stored: their part of the plan in import order. Where
there are check items it stands with them in an order that follows from a secret of the list, and
the browser calls each item by a ``handle`` of that person alone. Nothing that others do takes an
item out of it. So no address, order, number, filter or search tells a check item from others.

Where everybody takes what others have left, nobody's part is settled beforehand: such a list grows
by one item whenever its person comes to its end. Where what it was drawn from has changed (items
came, the plan or the check items are others), all is drawn anew but what its person has written to,
and what stays keeps its handle and, among what is unwritten, its order. Check items come into such
a list and leave it only as others do, at their rate: who kept a copy would know for one what comes
or goes alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from math import ceil
from secrets import token_hex
from typing import NamedTuple

from sqlalchemy import Connection, Select, delete, func, select, update

from spanlab.base.errors import UsageError
from spanlab.schema import DatasetSettings, QueueCursor, QueueQuery, Status
from spanlab.schema.progress import QueueProgress
from spanlab.storage import Store
from spanlab.storage.assignment import deal, is_by, rows_of
from spanlab.storage.catalog import DatasetRow, counts, settings_of
from spanlab.storage.engine import insert_new, insert_rows
from spanlab.storage.items import id_at
from spanlab.storage.tables import annotated, queue_items, queue_values, queues
from spanlab.worklists import check_items
from spanlab.worklists.reservations import ANY_NUMBER, reserve
from spanlab.worklists.selection import Selection, selecting

_COLUMNS = ("dataset_id", "reviewer", "place", "position", "handle", "attempt")
_TRIES = 50  # items that others may take in the moment in which a list grows
_AT_ONCE = 500  # positions that a statement names; SQLite and PostgreSQL take some ten thousands


class _Size(NamedTuple):
    """How many items a list has: ``others`` are no check items."""

    end: int  # the place behind all
    items: int
    others: int


class _Entry(NamedTuple):
    """An item of a list; ``attempt`` is that of a check item, ``handle`` empty for a new one."""

    position: int
    attempt: int | None = None
    handle: str = ""


def grows(settings: DatasetSettings) -> bool:
    """Return whether people take what others have left, so that lists grow item by item."""
    return bool(settings.overlap) and not settings.assigned_to


def draw(
    store: Store, dataset: str, person: str, sample: Sequence[str] = (), *, anew: bool = True
) -> None:
    """Draw a person's list, or anew what they have not seen of it, if there is reason to.

    Args:
        store: the annotation database.
        dataset: one with a plan or check items.
        person: whose list it is, who is past the test if there is one.
        sample: ids of items that the list has in any case, if they are of the person's share; check
            items among them come at their rate.
        anew: look also whether all of these are in a list that is drawn.
    """
    with store.reading(dataset, person) as (connection, row, _):
        if not anew and is_current(connection, row, person):
            return
        share = settings_of(connection, dataset).share_of(person)
        query = QueueQuery(reviewer=person, share=share, sample=tuple(sample))
        of_share = Selection(connection, row, query, without_checks=True)
        others = of_share.positions() if sample else []
        if is_current(connection, row, person, others):
            return
    with store.reviewing(dataset, person) as (connection, row):
        _draw(connection, row, person, others)


def is_current(
    connection: Connection, dataset: DatasetRow, reviewer: str, others: Collection[int] = ()
) -> bool:
    """Return whether nothing of a list is to be drawn, and all of the positions are in it."""
    stored = select(queues.c.basis).where(*rows_of(queues, dataset, reviewer))
    basis = connection.execute(stored).scalar_one_or_none()
    if basis != _basis(connection, dataset):
        return False
    if not others:
        return True
    return set(others) <= {entry.position for entry in _entries(connection, dataset, reviewer)}


def _draw(
    connection: Connection, dataset: DatasetRow, reviewer: str, others: Sequence[int]
) -> None:
    n_before, secret = _begin(connection, dataset, reviewer)
    if is_current(connection, dataset, reviewer, others):
        return
    deal(connection, dataset)
    settings = settings_of(connection, dataset.name)
    planned = dict.fromkeys((*_planned(connection, dataset, settings, reviewer), *others))
    listed, own = _entries(connection, dataset, reviewer), _own(connection, dataset, reviewer)
    handles = {entry.position: entry.handle for entry in listed}
    waiting = list[_Entry]()  # what is not begun of a list that does not grow
    if n_before is not None and not grows(settings):
        waiting = [entry for entry in listed if not (entry.attempt or entry.position in own)]
        listed = [entry for entry in listed if entry.attempt or entry.position in own]
    listed += map(_Entry, sorted(own.difference(entry.position for entry in listed)))
    had = {entry.position for entry in listed}
    n_others, n_given = (sum(each.attempt == kind for each in listed) for kind in (None, 0))
    if n_before is None:  # who begins amid the work is not given what was due before
        n_before = 0 if n_given else n_others
    given, pool = {entry.position for entry in waiting if entry.attempt == 0}, list[int]()
    if not (settings.assigned_to and settings.share_of(reviewer) is None):
        pool = [*given]  # where check items have ended, they stay: what goes alone would be one
        if settings.known:
            pool = check_items.unseen(connection, dataset, secret, had, given)
        end = max(handles, default=-1)  # behind it are items that came with the new others
        pool.sort(key=lambda at: (at not in given, at not in handles, at <= end))
    of_pool = {*pool}
    fresh = [position for position in planned if not (position in had or position in of_pool)]
    if grows(settings):
        due = partial(check_items.due, secret, rate=_rate(settings))
        n_checks = min(due(n_others + len(fresh)) - due(n_others), len(fresh))
    else:  # check items come only with others, and go only with others: alone they would be told
        unbegun = {entry.position for entry in waiting} - of_pool
        n_stay = len(unbegun.intersection(fresh))
        stay = Fraction(n_stay, len(unbegun)) if unbegun else Fraction(1)
        n_in_list = sum(position in handles for position in pool)
        most = ceil(n_in_list * stay) + ceil((len(fresh) - n_stay) * _rate(settings))
        n_even = _n_even(connection, dataset, settings, n_others - n_before + len(fresh)) - n_given
        n_checks = min(max(n_even, int(len(given) * stay)), most)
    checks = dict.fromkeys(pool[: max(n_checks, 0)])
    gone = given.difference(checks)  # of these, what is no check item any more is an item as others
    rest = [p for p in planned if p in gone or not (p in had or p in of_pool)]
    rest += checks
    if settings.known or checks:
        rest.sort(key=lambda position: check_items.draw(secret, f"place {position}"))
    listed += (
        _Entry(position, 0 if position in checks else None, handles.get(position, ""))
        for position in rest
    )
    _write(connection, dataset, reviewer, secret, listed)
    values = {"basis": _basis(connection, dataset), "n_before": n_before}
    connection.execute(update(queues).where(*rows_of(queues, dataset, reviewer)).values(values))


def _own(connection: Connection, dataset: DatasetRow, reviewer: str) -> set[int]:
    """Return the positions of what a person has annotated."""
    return {*connection.execute(_select_own(connection, dataset, reviewer)).scalars()}


def _select_own(connection: Connection, dataset: DatasetRow, reviewer: str) -> Select[int]:
    own = *is_by(connection, dataset, reviewer), annotated.c.position < dataset.n_items
    return select(annotated.c.position).where(*own)


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
    with selecting(store, dataset, query) as selection:
        query = selection.query
    with store.reviewing(dataset, query.reviewer) as (connection, row):
        return _draw_next(connection, row, query)


def _draw_next(connection: Connection, dataset: DatasetRow, query: QueueQuery) -> str | None:
    settings, reviewer = settings_of(connection, dataset.name), query.reviewer
    if not _may_grow(settings, query):
        return None
    _, secret = _begin(connection, dataset, reviewer)
    size, mine = _size(connection, dataset, reviewer), rows_of(queue_items, dataset, reviewer)
    at_end = select(queue_items.c.position).where(*mine, queue_items.c.place == size.end - 1)
    last = connection.execute(at_end).scalar()
    begin, check = last if query.order == "import" else None, None
    if settings.known:  # an order by values would leave out what stands before the last one
        query = replace(query, order="import", reverse=False)
        begin = check_items.draw(secret, f"others {size.others}") % dataset.n_items
    coming = _upcoming(connection, dataset, query, begin)
    if settings.known:  # also where none is due: else the time that it takes would tell
        pool = _coming(connection, dataset, reviewer, secret)
        near = [*islice(coming, _TRIES)]
        coming = chain(near, coming)
        # In a language that has no other items left it would be told by that.
        langs = _langs_at(connection, dataset, near or [last])
        alike = (replace(query, lang=lang) for lang in langs)
        found = (_fitting_check(connection, dataset, each, pool) for each in alike)
        check = next((position for position in found if position is not None), None)
        if not _n_due(connection, dataset, reviewer, secret, 0):
            check = None
    if check is None:
        n_people = settings.overlap
        free = (at for at in coming if not reserve(connection, dataset, at, reviewer, n_people))
        position = next(free, None)
    else:
        position = check
        reserve(connection, dataset, check, reviewer, ANY_NUMBER)
    if position is None:
        return None
    row = (size.end, position, _handle(secret, position), None if check is None else 0)
    insert_rows(connection, "queue_items", _COLUMNS, [(dataset.id, reviewer, *row)])
    return id_at(connection, dataset, position)


def _n_due(
    connection: Connection, dataset: DatasetRow, reviewer: str, secret: str, n_new: int
) -> int:
    """Return how many check items are due among so many new items of a list that grows.

    One that is due behind the last item comes next or never, whatever was asked for before.
    """
    size, mine = _size(connection, dataset, reviewer), rows_of(queue_items, dataset, reviewer)
    last = select(queue_items.c.attempt).where(*mine, queue_items.c.place == size.end - 1)
    is_behind_other = connection.execute(last).all() == [(None,)]
    due = partial(check_items.due, secret, rate=_rate(settings_of(connection, dataset.name)))
    return due(size.others + n_new) - due(size.others - is_behind_other)


def _may_grow(settings: DatasetSettings, query: QueueQuery) -> bool:
    """Return whether a query asks for what is in no list yet, where lists grow.

    With check items that is what it asks for by language alone: no check item would come for some
    narrow filters, and what comes later in spite of that would be one.
    """
    is_new = query.status in {None, Status.NOT_ANNOTATED} and not query.sample
    asks = query.listed and query.reserve and is_new and not (settings.known and query.narrows)
    return grows(settings) and asks and query.reviewer not in settings.away


def _pool(connection: Connection, dataset: DatasetRow, reviewer: str, secret: str) -> list[int]:
    """Return the positions of check items that a person has not had, in an order drawn for them."""
    listed = select(queue_items.c.position).where(*rows_of(queue_items, dataset, reviewer))
    had = _own(connection, dataset, reviewer).union(connection.execute(listed).scalars())
    return check_items.unseen(connection, dataset, secret, had)


def _coming(connection: Connection, dataset: DatasetRow, reviewer: str, secret: str) -> list[int]:
    """Return the check items by which a list may grow.

    Those of a measurement's sample only while it has others to come: a sample whose other items are
    all in the list would grow by nothing but check items.
    """
    pool, plan = _pool(connection, dataset, reviewer, secret), settings_of(connection, dataset.name)
    if plan.measurement is None:
        return pool
    sampled = QueueQuery(
        reviewer=reviewer, detector=plan.measurement.annotator, detector_status=Status.DONE
    )
    if _free(connection, dataset, sampled).search(None, 1, forward=True):
        return pool
    of_sample = {*_passing(connection, dataset, sampled, pool)}
    return [position for position in pool if position not in of_sample]


def _fitting_check(
    connection: Connection, dataset: DatasetRow, query: QueueQuery, pool: Sequence[int]
) -> int | None:
    """Return the first check item that passes the filter of a query; None if none does."""
    asked = replace(query, listed=False, unfinished=False, reserve=False, after=None, before=None)
    return next(_passing(connection, dataset, asked, pool), None)


def _passing(
    connection: Connection, dataset: DatasetRow, query: QueueQuery, pool: Sequence[int]
) -> Iterator[int]:
    """Yield those of some positions that a query lets through, in their order."""
    for first in range(0, len(pool), _AT_ONCE):  # a statement takes so many values
        some = tuple(pool[first : first + _AT_ONCE])
        shown = {*Selection(connection, dataset, query, among=some).positions()}
        yield from (position for position in some if position in shown)


def _free(connection: Connection, dataset: DatasetRow, query: QueueQuery) -> Selection:
    """Return what a query lets through that is in no list of its person, check items apart."""
    fresh = replace(query, listed=False, after=None, before=None)
    return Selection(connection, dataset, fresh, unlisted=True, without_checks=True)


def progress(store: Store, dataset: str, person: str) -> QueueProgress:
    """Return how far a person is with their list, and what is to come of one that grows.

    What others hold at the moment is left: nobody has more left when it becomes free. Of a list
    that grows, with check items, nothing is told of what others do before it has come to its end:
    check items, which others take from nobody, would be told by it.
    """
    with store.reading(dataset, person) as (connection, row, _):
        how_far, settings = progress_of(connection, row, person), settings_of(connection, dataset)
        if not (settings.known and grows(settings)):
            return how_far
        rest = how_far.by_others + how_far.left
        return replace(how_far, by_others=rest if how_far.waiting else 0)


def progress_of(connection: Connection, dataset: DatasetRow, reviewer: str) -> QueueProgress:
    """Return how far a person is, by what others have finished."""
    settings, size = settings_of(connection, dataset.name), _size(connection, dataset, reviewer)
    counted = counts(connection, dataset, reviewer)
    own = _select_own(connection, dataset, reviewer)
    decided = own.where(annotated.c.status.in_([Status.DONE.value, Status.SKIPPED.value]))
    listed = rows_of(queue_items, dataset, reviewer)
    both = select(func.count()).where(*listed, queue_items.c.position.in_(decided))
    done, skipped = counted[Status.DONE], counted[Status.SKIPPED]
    n_both = connection.execute(both).scalar_one()
    left = size.items - n_both
    total, waiting = done + skipped + left, False
    if settings.may_lose:
        query = QueueQuery(reviewer=reviewer, status=Status.NOT_ANNOTATED, listed=True)
        held = replace(query, reserve=True)
        if not settings.known:
            query = replace(query, max_annotators=settings.overlap - 1)
        left = Selection(connection, dataset, query).count()
        parts = [Selection(connection, dataset, held)]
        if grows(settings) and reviewer not in settings.away:
            n_unseen = len(_pool(connection, dataset, reviewer, "")) if settings.known else 0
            n_unlisted = dataset.n_items - size.items - n_unseen - (done + skipped - n_both)
            total += _n_to_come(connection, dataset, reviewer, n_unlisted)
            free = replace(query, max_annotators=settings.overlap - 1)
            n_free = _free(connection, dataset, free).count()
            left += _n_to_come(connection, dataset, reviewer, n_free)
            parts.append(_free(connection, dataset, held))
        waiting = not any(part.search(None, 1, forward=True) for part in parts)
    by_others, planned = total - done - skipped - left, bool(settings.overlap)
    return QueueProgress(done, skipped, total, planned, waiting=waiting, by_others=by_others)


def _n_to_come(connection: Connection, dataset: DatasetRow, reviewer: str, n_new: int) -> int:
    """Return by how many items a list grows with so many others, check items included."""
    own = connection.execute(_select_list(dataset, reviewer)).first()
    if own is None or settings_of(connection, dataset.name).known is None:
        return n_new
    n_due = _n_due(connection, dataset, reviewer, own.secret, n_new)
    return n_new + min(n_due, len(_coming(connection, dataset, reviewer, own.secret)))


def n_to_come(store: Store, dataset: str, query: QueueQuery) -> int:
    """Return how many items a query lets through are to come into its reviewer's list.

    With check items also those that others have finished (see ``progress``), and none by language:
    what is due beside a few items of one would tell when a check item comes.
    """
    with selecting(store, dataset, query) as selection:
        connection, row, query = selection.connection, selection.dataset, selection.query
        settings = settings_of(connection, dataset)
        if not _may_grow(settings, query) or (settings.known and query.lang):
            return 0
        most = None if settings.known else settings.overlap - 1
        n_free = _free(connection, row, replace(query, reserve=False, max_annotators=most)).count()
        return _n_to_come(connection, row, query.reviewer, n_free)


def give_test(store: Store, dataset: str, person: str, attempt: int, n_items: int) -> None:
    """Give a person the items of a test that has not begun yet.

    Raises:
        UsageError: too few are left that the person has not seen.
    """
    with store.reviewing(dataset, person) as (connection, row):
        _, secret = _begin(connection, row, person)
        listed = _entries(connection, row, person)
        if any(entry.attempt == attempt for entry in listed):
            return
        pool = _pool(connection, row, person, secret)
        if len(pool) < n_items:
            raise UsageError(
                f"a test needs {n_items} check items that {person!r} has not seen, "
                f"and {row.name!r} has {len(pool)}"
            )
        listed += (_Entry(position, attempt) for position in sorted(pool[:n_items]))
        _write(connection, row, person, secret, listed)


def _basis(connection: Connection, dataset: DatasetRow) -> str:
    """Return a hash of all that says which items a person gets, and which are check items."""
    settings = settings_of(connection, dataset.name)
    checks = settings.known and (settings.known.labels, settings.known.share)
    plan = (settings.overlap, settings.assigned_to, settings.away)
    basis = (dataset.n_items, plan, checks, check_items.n_checks(connection, dataset))
    return sha256(repr(basis).encode()).hexdigest()


def _begin(connection: Connection, dataset: DatasetRow, reviewer: str) -> tuple[int | None, str]:
    """Lock a person's list, which is empty if it is new.

    Returns:
        How many items came before check items did, None before it is drawn; its secret.
    """
    row = {"dataset_id": dataset.id, "reviewer": reviewer, "basis": ""}
    row |= {"secret": token_hex(16)}
    connection.execute(insert_new(connection, queues), row)
    own = _select_list(dataset, reviewer).with_for_update()
    n_before, secret = connection.execute(own).one()
    return n_before, secret


def _select_list(dataset: DatasetRow, reviewer: str) -> Select[int | None, str]:
    return select(queues.c.n_before, queues.c.secret).where(*rows_of(queues, dataset, reviewer))


def _size(connection: Connection, dataset: DatasetRow, reviewer: str) -> _Size:
    n_items, n_checks = func.count(), func.count(queue_items.c.attempt)
    end = func.coalesce(func.max(queue_items.c.place) + 1, 0)
    sizes = select(end, n_items, n_items - n_checks)
    return _Size(*connection.execute(sizes.where(*rows_of(queue_items, dataset, reviewer))).one())


def _entries(connection: Connection, dataset: DatasetRow, reviewer: str) -> list[_Entry]:
    """Return a person's list, in its order."""
    columns = (queue_items.c.position, queue_items.c.attempt, queue_items.c.handle)
    listed = select(*columns).where(*rows_of(queue_items, dataset, reviewer))
    return [_Entry(*row) for row in connection.execute(listed.order_by(queue_items.c.place))]


def _planned(
    connection: Connection, dataset: DatasetRow, settings: DatasetSettings, reviewer: str
) -> Sequence[int]:
    """Return the positions of what a plan still wants of a person, in import order."""
    share = settings.share_of(reviewer)
    if grows(settings) or (settings.assigned_to and share is None):
        return ()
    most = settings.overlap - 1 if settings.known and settings.may_lose else None
    query = QueueQuery(reviewer=reviewer, share=share, max_annotators=most)
    return Selection(connection, dataset, query, without_checks=True).positions()


def _upcoming(
    connection: Connection, dataset: DatasetRow, query: QueueQuery, last: int | None
) -> Iterator[int]:
    """Yield the positions of a queue that are in no list of its person, the next one first.

    They are looked for behind the ``last`` position that they got, where most are still free, and
    only then from the beginning.
    """
    selection = _free(connection, dataset, query)
    for place in (QueueCursor(last), None) if last is not None else (None,):
        yield from selection.search(place, _TRIES, forward=True)


def _langs_at(
    connection: Connection, dataset: DatasetRow, positions: Sequence[int | None]
) -> list[str | None]:
    """Return the languages of items, that of the first one first; [None] for no item."""
    at = queue_values.c.position
    where = queue_values.c.dataset_id == dataset.id, at.in_(positions)
    rows = connection.execute(select(at, queue_values.c.lang).where(*where))
    langs: dict[int | None, str] = {row.position: row.lang for row in rows}
    return [*dict.fromkeys(langs[each] for each in positions if each in langs)] or [None]


def _write(
    connection: Connection,
    dataset: DatasetRow,
    reviewer: str,
    secret: str,
    listed: Sequence[_Entry],
) -> None:
    """Store a list; what is in it already keeps its handle."""
    connection.execute(delete(queue_items).where(*rows_of(queue_items, dataset, reviewer)))
    rows = [
        (dataset.id, reviewer, place, position, handle or _handle(secret, position), attempt)
        for place, (position, attempt, handle) in enumerate(listed)
    ]
    insert_rows(connection, "queue_items", _COLUMNS, rows)


def _handle(secret: str, position: int) -> str:
    """Return what a person's browser calls an item: nobody finds one of another list by chance."""
    return f"{check_items.draw(secret, f'handle {position}'):016x}"
