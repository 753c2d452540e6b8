"""Annotators of a dataset: renamed, merged, removed, marked as gold."""

from __future__ import annotations

from spanlab.detectors import installed
from spanlab.errors import UsageError
from spanlab.schema import Kind
from spanlab.storage import Store
from spanlab.workflows.lookup import summary_of


def rename_annotator(store: Store, dataset: str, annotator: str, new: str) -> None:
    """Give an annotator of a dataset another name.

    Raises:
        NotFoundError: there is no such dataset or annotator.
        UsageError: the new name is empty, too long or has control characters, or it is that of a
            detector that is installed.
        StoreError: the new name is taken, or an import is under way.
    """
    kinds = {who.name: who.kind for who in summary_of(store, dataset).annotators}
    reserved = {name.casefold() for name in installed()}
    if kinds.get(annotator) is not Kind.DETECTOR and new.casefold() in reserved:
        raise UsageError(f"“{new}” is the name of a detector: choose another")
    store.rename_annotator(dataset, annotator, new)


def merge_annotators(store: Store, dataset: str, annotator: str, into: str) -> int:
    """Let what one annotator said be said by another one; the first is gone then.

    Returns:
        How many items both had annotated; there, what ``into`` said stays.

    Raises:
        NotFoundError: there is no such dataset or annotator.
        UsageError: it is the same annotator twice.
        StoreError: they are of two kinds, or an import is under way.
    """
    return store.merge_annotators(dataset, annotator, into)


def remove_annotator(store: Store, dataset: str, annotator: str) -> None:
    """Delete all annotations of one annotator of a dataset for good.

    Raises:
        NotFoundError: there is no such dataset or annotator.
        StoreError: an import is under way.
    """
    store.remove_annotator(dataset, annotator)


def set_gold(store: Store, dataset: str, annotator: str, *, gold: bool) -> None:
    """Let what a person said of a dataset count as gold labels, or as that person's again.

    Raises:
        NotFoundError: there is no such dataset or annotator.
        StoreError: it is a detector or a vote, or an import is under way.
    """
    store.set_gold(dataset, annotator, gold=gold)
