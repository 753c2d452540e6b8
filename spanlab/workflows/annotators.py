"""Annotators of a dataset: renamed, merged, removed, marked as gold."""

from __future__ import annotations

from spanlab.detectors import installed
from spanlab.errors import UsageError
from spanlab.schema import AnnotatorKind
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
    if kinds.get(annotator) is not AnnotatorKind.DETECTOR and new.casefold() in reserved:
        raise UsageError(f"“{new}” is the name of a detector: choose another")
    store.rename_annotator(dataset, annotator, new)
