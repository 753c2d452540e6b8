"""A dataset of the annotation database into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from spanlab.datasets import write
from spanlab.errors import InputError
from spanlab.schema import Record, SharedProcess
from spanlab.workflows.lookup import check_annotators, summary_of

if TYPE_CHECKING:
    from spanlab.storage import Store

_REPORT_EVERY = 1000  # items between two calls of `on_progress`
_NAMED = 5  # annotators named in a message


def export_dataset(
    store: Store,
    dataset: str,
    target: Path | BinaryIO,
    *,
    format: str = "spanlab",
    annotators: Sequence[str] = (),
    on_progress: Callable[[int], None] | None = None,
) -> int:
    """Write a dataset as one consistent snapshot; a file appears only when it is complete.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        target: a path, replaced at the end, or an open binary stream.
        format: "spanlab" (lossless), "mushroom" or "labelstudio".
        annotators: only their annotations; empty for everybody's. "mushroom" holds the labels of
            one annotator: several are refused.
        on_progress: called now and then with the number of items written.

    Returns:
        The number of items written.

    Raises:
        NotFoundError: the dataset, or the annotator in it, does not exist.
        InputError: the target cannot be written, or the format needs one annotator to be named.
    """
    only = _whose(store, dataset, format, annotators)
    records = store.records(dataset, annotators=annotators or None)
    return write(reported(records, on_progress), target, format=format, annotator=only)


def preview_dataset(
    store: Store,
    dataset: str,
    n_items: int,
    *,
    format: str = "spanlab",
    annotators: Sequence[str] = (),
) -> str:
    """Return what the export of a dataset's first items alone would hold.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        n_items: how many items to take.
        format: as in ``export_dataset``.
        annotators: as in ``export_dataset``.

    Returns:
        The text; empty if the format has nothing to write for these items.

    Raises:
        NotFoundError: the dataset, or the annotator in it, does not exist.
        InputError: the format needs one annotator to be named.
    """
    only = _whose(store, dataset, format, annotators)
    records = map(_bare, islice(store.records(dataset, annotators=annotators or None), n_items))
    written = BytesIO()
    write(records, written, format=format, annotator=only)
    return written.getvalue().decode()


def _bare(record: Record) -> Record:
    """Return a record without the nodes of a process that others share, which may be many."""
    if not isinstance(record.item.process, SharedProcess):
        return record
    process = record.item.process.among(None)
    return record.model_copy(update={"item": record.item.model_copy(update={"process": process})})


def _whose(store: Store, dataset: str, format: str, annotators: Sequence[str]) -> str | None:
    """Return the only annotator of the file, None where the format holds several."""
    summary = summary_of(store, dataset)
    check_annotators(summary, annotators)
    names = list(annotators) or [each.name for each in summary.annotators]
    if format != "mushroom" or not names:
        return None
    if len(names) > 1:
        shown = ", ".join(names[:_NAMED]) + (
            f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
        )
        raise InputError(
            "a Mu-SHROOM file holds the labels of one annotator",
            found=f"{len(names)} annotators: {shown}",
            expected="one of them as the annotator",
        )
    return names[0]


def reported(
    records: Iterable[Record],
    on_progress: Callable[[int], None] | None,
    every: int = _REPORT_EVERY,
) -> Iterator[Record]:
    """Yield ``records``, and call ``on_progress`` with their number after ``every`` so many."""
    for count, record in enumerate(records, start=1):
        yield record
        if on_progress is not None and count % every == 0:
            on_progress(count)
