"""The annotation database and the datasets in it, as a whole."""

from __future__ import annotations

from spanlab.storage import AnnotatorSummary, DatasetSummary, Store, Undecided

__all__ = [
    "AnnotatorSummary",
    "DatasetSummary",
    "Store",
    "Undecided",
    "count_edits",
    "delete_dataset",
    "duplicate_dataset",
    "list_datasets",
    "open_store",
    "rename_dataset",
    "set_undecided",
]


def open_store() -> Store:
    """Open the annotation database that the environment names, brought up to date first.

    Returns:
        The store, for any number of threads; the caller closes it.
    """
    return Store.open()


def list_datasets(store: Store) -> list[DatasetSummary]:
    """Return all datasets with their counts, in the order in which they were made.

    The counts are kept, not counted: the answer takes as long for a million items as for one.
    """
    return store.datasets()


def count_edits(store: Store, dataset: str) -> int:
    """Return how many edits people have made in a dataset; undoing one is one more.

    Raises:
        NotFoundError: there is no such dataset.
    """
    return store.n_operations(dataset)


def rename_dataset(store: Store, dataset: str, new: str) -> None:
    """Give a dataset another name.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: the new name is empty, too long or has control characters.
        StoreError: the new name is taken.
    """
    store.rename_dataset(dataset, new)


def duplicate_dataset(store: Store, dataset: str, new: str) -> None:
    """Copy a dataset with all annotations and review logs.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: the new name is empty, too long or has control characters.
        StoreError: the new name is taken.
    """
    store.duplicate_dataset(dataset, new)


def set_undecided(store: Store, dataset: str, undecided: Undecided) -> None:
    """Set what becomes of suggestions that a reviewer has not decided when an item is Done.

    Raises:
        NotFoundError: there is no such dataset.
    """
    store.set_undecided(dataset, undecided)


def delete_dataset(store: Store, dataset: str) -> None:
    """Delete a dataset with all annotations for good.

    Raises:
        NotFoundError: there is no such dataset.
    """
    store.delete_dataset(dataset)
