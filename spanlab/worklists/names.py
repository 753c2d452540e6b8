"""What a person's browser calls the items of a dataset, and which of them it may ask for."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, select

from spanlab.base.errors import NotFoundError
from spanlab.storage import Store
from spanlab.storage.assignment import rows_of
from spanlab.storage.tables import items, queue_items


def item_of(store: Store, dataset: str, person: str, handle: str) -> str:
    """Return the id of the item that a person's browser calls so.

    Raises:
        NotFoundError: none in the person's list is called so.
    """
    return _listed(store, dataset, person, items.c.item_id, queue_items.c.handle == handle, handle)


def handle_of(store: Store, dataset: str, person: str, item_id: str) -> str:
    """Return what a person's browser calls an item.

    Raises:
        NotFoundError: the item is not in the person's list.
    """
    is_named = items.c.item_id == item_id
    return _listed(store, dataset, person, queue_items.c.handle, is_named, item_id)


@dataclass(frozen=True)
class ItemNames:
    """What a person's browser calls the items of a dataset.

    Where there are check items these are handles of that person alone, else the items' ids. Who
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
            return item_of(self.store, self.dataset, self.person, name)
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
        handle = handle_of(self.store, self.dataset, self.person, item_id)
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


def _listed(
    store: Store,
    dataset: str,
    person: str,
    column: ColumnElement[str],
    is_named: ColumnElement[bool],
    name: str,
) -> str:
    """Return a column of the item of a person's list that somebody calls so."""
    at = [items.c[key] == queue_items.c[key] for key in ("dataset_id", "position")]
    named = select(column).join_from(queue_items, items, and_(*at)).where(is_named)
    with store.reading(dataset, person) as (connection, row, _):
        own = named.where(*rows_of(queue_items, row, person))
        value = connection.execute(own).scalar_one_or_none()
    if value is None:
        raise NotFoundError(f"the dataset {dataset!r} has no item {name!r}")
    return value
