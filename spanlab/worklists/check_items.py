"""Check items: which these are, and who was given which.

No reviewer is to know: all of it needs the right to read the dataset.
"""

from __future__ import annotations

from sqlalchemy import select

from spanlab.schema import Permission
from spanlab.storage import Store, campaigns
from spanlab.storage.campaigns import CheckItems
from spanlab.storage.tables import items


def given_to(store: Store, dataset: str, person: str) -> CheckItems:
    """Return which check items a person was given."""
    store.require(Permission.READ, dataset)
    with store.reading(dataset) as (connection, row, _):
        return campaigns.check_items_of(connection, row, person)


def check_ids(store: Store, dataset: str) -> frozenset[str]:
    """Return the ids of all check items."""
    store.require(Permission.READ, dataset)
    with store.reading(dataset) as (connection, row, _):
        query = select(items.c.item_id).where(items.c.dataset_id == row.id)
        known = campaigns.is_check(connection, row, items.c.position)
        return frozenset(connection.execute(query.where(known)).scalars())
