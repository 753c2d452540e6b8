"""Each person's own list of items, where there is a plan or known answers: drawn, named, guarded.

``worklists/drawing.py`` says what such a list is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.people.entrance import check_items_of, entrance_of
from spanlab.storage import Store
from spanlab.worklists import drawing


def prepare_queue(
    store: Store, dataset: str, person: str, sample: Sequence[str] = (), *, anew: bool = True
) -> None:
    """Draw a person's own list of items, or what is to be drawn of it, if they may begin.

    Args:
        store: the annotation database.
        dataset: its name; nothing is done where people have no lists.
        person: whose list it is.
        sample: ids of items that the list is to have in any case: those of a measurement.
        anew: look also whether all of these are there, which takes longer than whether there is
            anything to be drawn.
    """
    settings = store.settings(dataset)
    if not settings.has_lists or (not anew and drawing.is_drawn(store, dataset, person)):
        return
    if entrance_of(store, dataset, person, settings).stage == "open":
        drawing.draw(store, dataset, person, sample)


def check_may_write(store: Store, dataset: str, person: str, item: str) -> None:
    """Check that a person may write to an item, whatever it is: marks, notes, states, evidence.

    Where people have lists these are the items of the person's own, before and during a test those
    of the test alone.

    Raises:
        UsageError: there is a test before.
        NotFoundError: there is no such dataset, or no such item for this person.
    """
    settings = store.settings(dataset)
    if not settings.has_lists:
        return
    state = entrance_of(store, dataset, person, settings)
    # A test that has come to an end may still be corrected: what counts is judged already.
    if any(answer.item_id == item for answer in check_items_of(store, dataset, person).tests):
        return
    if state.stage != "open":
        raise UsageError("this dataset has a test before anybody begins: open Review to do it")
    prepare_queue(store, dataset, person)
    drawing.handle_of(store, dataset, person, item)


@dataclass(frozen=True)
class ItemNames:
    """What a person's browser calls the items of a dataset.

    Where some have known answers these are handles of that person alone, else the items' ids. Who
    ``is_listed`` sees no items but those of their list.
    """

    store: Store
    dataset: str
    person: str
    is_listed: bool
    has_handles: bool

    def item(self, name: str) -> str:
        """Return the id of the item that the browser calls so.

        Raises:
            NotFoundError: it may not see such an item, or there is none.
        """
        if self.has_handles:
            return drawing.item_of(self.store, self.dataset, self.person, name)
        self.name(name)
        return name

    def find(self, name: str | None) -> str | None:
        """Return the same; None for no name, or where there is no such item."""
        try:
            return None if name is None else self.item(name)
        except NotFoundError:
            return None

    def name(self, item_id: str) -> str:
        """Return what the browser is to call an item of the person's queue.

        Raises:
            NotFoundError: it may not see such an item, or there is none.
        """
        if not self.is_listed:
            self.store.positions_of(self.dataset, [item_id])
            return item_id
        handle = drawing.handle_of(self.store, self.dataset, self.person, item_id)
        return handle if self.has_handles else item_id


def item_names(store: Store, dataset: str, person: str, *, adjudicating: bool = False) -> ItemNames:
    """Return what the browser of somebody who reviews or adjudicates a dataset calls its items.

    Raises:
        NotFoundError: there is no such dataset.
    """
    settings = store.settings(dataset)
    return ItemNames(
        store,
        dataset,
        person,
        is_listed=settings.has_lists and not adjudicating,
        has_handles=settings.known is not None and not adjudicating,
    )
