"""A dataset of the annotation database into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from spanlab.datasets import write
from spanlab.errors import InputError
from spanlab.schema import Record
from spanlab.workflows.lookup import check_annotators, summary_of

if TYPE_CHECKING:
    from spanlab.storage import Store

_REPORT_EVERY = 1000  # items between two calls of `on_progress`


def export_dataset(
    store: Store,
    dataset: str,
    target: Path | BinaryIO,
    *,
    format: str = "spanlab",
    annotator: str | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> int:
    """Write a dataset as one consistent snapshot; a file appears only when it is complete.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        target: a path, replaced at the end, or an open binary stream.
        format: "spanlab" (lossless), "mushroom" or "labelstudio".
        annotator: only this annotator's annotations; None for all. "mushroom" holds one
            annotator's labels: None is refused where there are several.
        on_progress: called now and then with the number of items written.

    Returns:
        The number of items written.

    Raises:
        NotFoundError: the dataset, or the annotator in it, does not exist.
        InputError: the target cannot be written, or the format needs one annotator to be named.
    """
    annotator = _whose(store, dataset, format, annotator)
    records = store.records(dataset, annotators=None if annotator is None else [annotator])
    return write(reported(records, on_progress), target, format=format, annotator=annotator)


def preview_dataset(
    store: Store,
    dataset: str,
    n_items: int,
    *,
    format: str = "spanlab",
    annotator: str | None = None,
) -> str:
    """Return what the export of a dataset's first items alone would hold.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        n_items: how many items to take.
        format: as in ``export_dataset``.
        annotator: as in ``export_dataset``.

    Returns:
        The text; empty if the format has nothing to write for these items.

    Raises:
        NotFoundError: the dataset, or the annotator in it, does not exist.
        InputError: the format needs one annotator to be named.
    """
    annotator = _whose(store, dataset, format, annotator)
    chosen = None if annotator is None else [annotator]
    records = list(islice(store.records(dataset, annotators=chosen), n_items))
    written = BytesIO()
    write(records, written, format=format, annotator=annotator)
    return written.getvalue().decode()


def _whose(store: Store, dataset: str, format: str, annotator: str | None) -> str | None:
    """Return whose annotations go into the file, None for everybody's."""
    summary = summary_of(store, dataset)
    if annotator is not None:
        check_annotators(summary, [annotator])
        return annotator
    names = [each.name for each in summary.annotators]
    if format != "mushroom" or not names:
        return None
    if len(names) > 1:
        raise InputError(
            "a Mu-SHROOM file holds the labels of one annotator",
            found=f"everybody: {', '.join(names)}",
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
