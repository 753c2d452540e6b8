"""What a plan gives to each of its people: as many items as to everybody else."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from spanlab.schema import Annotation, AnnotatorKind, Item, Permission, QueueQuery, Record
from spanlab.storage import Store
from spanlab.storage.tables import queue_values
from spanlab.worklists import drawing, plans

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Fay", "Gus", "Hal", "Ivy", "Jo", "Kim", "Leo")


def _add(store: Store, first: int, end: int) -> None:
    items = (Item(id=f"{number:02}", answer="said") for number in range(first, end))
    store.import_records("d", [Record(item=item) for item in items])


def _assigned(store: Store) -> list[int]:
    plan = plans.plan(store, "d")
    assert plan is not None
    return [part.assigned or 0 for part in plan.people]


@pytest.mark.parametrize(("people", "each"), [(6, 2), (5, 2), (10, 3), (12, 6), (4, 4), (3, 1)])
def test_shares_are_even_to_one_item_however_many_items_there_are(
    store: Store, people: int, each: int
) -> None:
    _add(store, 0, 1)
    plan = {"overlap": each, "assigned_to": NAMES[:people]}
    store.change_settings("d", lambda now: now.model_copy(update=plan))
    for n_items in range(1, 3 * people, 2):
        _add(store, n_items, n_items + 2)
        drawing.draw(store, "d", "Ada")
        shares = _assigned(store)
        assert sum(shares) == each * (n_items + 2)
        assert max(shares) - min(shares) <= 1


def test_what_somebody_has_done_elsewhere_is_once_in_the_total(store: Store) -> None:
    _add(store, 0, 18)
    store.change_settings("d", lambda now: now.model_copy(update={"overlap": 1}))
    query = QueueQuery(reviewer="Ada", listed=True, blind=True, unfinished=True, reserve=True)
    drawing.draw(store, "d", "Ada")
    assert drawing.draw_next(store, "d", query) == "00"
    assert drawing.progress(store, "d", "Ada").total == 18
    ada = Annotation(annotator="Ada", kind=AnnotatorKind.PERSON)
    store.save_annotations("d", [("04", ada), ("05", ada)])
    how_far = drawing.progress(store, "d", "Ada")
    assert (how_far.total, how_far.done, how_far.by_others) == (18, 2, 0)


def test_a_round_that_was_begun_in_the_ring_goes_on_so_and_items_keep_their_people(
    store: Store,
) -> None:
    """As 1.0 dealt: an item's turn was its position."""
    _add(store, 0, 9)
    plan = {"overlap": 2, "assigned_to": NAMES[:6]}
    store.change_settings("d", lambda now: now.model_copy(update=plan))
    turns = select(queue_values.c.turn).order_by(queue_values.c.position)
    with store.writing(Permission.MANAGE, "d") as connection:
        position = queue_values.c.position
        connection.execute(update(queue_values).values(turn=position))
    _add(store, 9, 30)
    drawing.draw(store, "d", "Ada")
    with store.writing(Permission.MANAGE, "d") as connection:
        dealt = [*connection.execute(turns).scalars()]
    assert dealt[:12] == [*range(12)]
    assert dealt[12:] != [*range(12, 30)]
    assert sorted(dealt) == [*range(30)]
    assert set(_assigned(store)) == {10}
