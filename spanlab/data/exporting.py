"""Exports of a dataset to a file or to Hugging Face's Hub, and previews of them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import BinaryIO

from spanlab import doors
from spanlab.base.errors import InputError, NotFoundError, StoreError
from spanlab.data.export_choice import FORMATS, REPORT, ExportChoice
from spanlab.data.report import write_report
from spanlab.data.report_figures import Overview, overview_of
from spanlab.formats import writable, write
from spanlab.formats.files import replacing
from spanlab.formats.hub import push
from spanlab.measure.rate_tally import add_measurement, measured_rate
from spanlab.measure.rates import fields_of, model_field
from spanlab.output.csv_text import unguarded
from spanlab.schema import DatasetSettings, Permission, Record, SharedProcess
from spanlab.storage import Store
from spanlab.storage.datasets import check_annotators, summary_of, with_progress
from spanlab.worklists import check_items

_NAMED = 5  # annotators named in a message
_OWN = (REPORT, *doors.exports())
_ASKING = (
    "spanlab",
    "parquet",
    "labelstudio",
    *_OWN,
)  # which say what a dataset asks, or nobody reads back
_PREVIEWED = 300_000  # bytes of the items in the preview of a report
_SHOWN_AS = {"parquet": "csv", "huggingface": "spanlab"}  # in a preview
_EVERYTHING = ExportChoice()


def export_dataset(
    store: Store,
    dataset: str,
    target: Path | BinaryIO,
    choice: ExportChoice = _EVERYTHING,
    *,
    on_progress: Callable[[int], None] | None = None,
) -> int:
    """Write a dataset as one consistent snapshot; a file appears only when it is complete.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        target: a path, replaced at the end, or an open binary stream.
        choice: the format, and whose annotations of which items; by default all, lossless.
        on_progress: called now and then with the number of items written.

    Returns:
        The number of items written.

    Raises:
        NotFoundError: the dataset, or the annotator or label in it, does not exist.
        UsageError: there is no such format.
        InputError: the target cannot be written, or the format needs one annotator to be named.
    """
    store.require(Permission.EXPORT, dataset)
    only = _only_annotator(store, dataset, choice)
    records = with_progress(_records(store, dataset, choice), on_progress)
    is_whole = choice.format not in _OWN or not isinstance(target, Path)  # else it comes here again
    if is_whole:
        # The owner gets their data off a disk that is full.
        with suppress(StoreError) if store.actor.is_owner else nullcontext():
            store.access.note("export", dataset, choice.format)
    if choice.format not in _OWN:
        settings = summary_of(store, dataset).settings
        with unguarded() if choice.raw else nullcontext():
            return write(
                *(records, target),
                format=choice.format,
                annotator=only,
                title=dataset,
                settings=settings,
            )
    if isinstance(target, Path):
        with replacing(target) as stream:
            return export_dataset(store, dataset, stream, choice, on_progress=on_progress)
    if place := FORMATS[choice.format].place:
        written: int = resolve_name(place)(records, target)
        return written
    return write_report(records, target, dataset, overview_dataset(store, dataset, choice))


def questions_left_out(settings: DatasetSettings, format: str) -> str:
    """Say which questions of a dataset do not come back with a file; "" if all do.

    CSV and Hugging Face's files keep what people responded, and not what was asked.
    """
    asked = [question.name for question in (*settings.attributes, *settings.questions)]
    if format in _ASKING or not asked:
        return ""
    return (
        f"left out what the dataset asks ({', '.join(asked)}): responses are in tables, their "
        "questions come back with spanlab's own JSONL and with parquet"
    )


def push_dataset(
    store: Store, dataset: str, repository: str, *, public: bool = False
) -> tuple[str, str]:
    """Write a dataset with all annotations to Hugging Face's Hub; see ``hub.push``.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        repository: ORGANISATION/NAME.
        public: whether one that is made can be read by everybody.

    Returns:
        Its address at the Hub, and what ``questions_left_out`` says of it.

    Raises:
        NotFoundError: the dataset does not exist.
        UsageError, InputError: see ``hub.push``.
    """
    with TemporaryDirectory() as folder:
        packed, files = Path(folder, "packed.zip"), Path(folder, "files")
        choice = ExportChoice(format="huggingface")
        export_dataset(store, dataset, packed, choice)
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(files)
        left_out = questions_left_out(summary_of(store, dataset).settings, choice.format)
        return push(files, repository, public=public), left_out


def preview_dataset(
    store: Store, dataset: str, n_items: int, choice: ExportChoice = _EVERYTHING
) -> str:
    """Return the export of a dataset's first items as text.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        n_items: how many items to take.
        choice: as in ``export_dataset``; of a format that is no text the lines inside are shown.

    Returns:
        The text; empty if the format has nothing to write for these items.

    Raises:
        NotFoundError: the dataset, or the annotator or label in it, does not exist.
        InputError: the format needs one annotator to be named.
    """
    only = _only_annotator(store, dataset, choice)
    shown = choice.format if choice.format in writable() else "spanlab"
    shown = _SHOWN_AS.get(shown, shown)
    records = map(_without_process_nodes, islice(_records(store, dataset, choice), n_items))
    written = BytesIO()
    settings = summary_of(store, dataset).settings
    with unguarded() if choice.raw else nullcontext():
        write(records, written, format=shown, annotator=only, settings=settings)
    return written.getvalue().decode()


def overview_dataset(
    store: Store,
    dataset: str,
    choice: ExportChoice,
    on_progress: Callable[[int], None] | None = None,
) -> Overview:
    """Compute the figures in the head of a dataset's report.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        choice: as in ``export_dataset``; the format does not matter.
        on_progress: called now and then with the number of items counted.

    Raises:
        NotFoundError: the dataset, or the annotator or label in it, does not exist.
    """
    summary = summary_of(store, dataset)
    check_annotators(summary, choice.annotators)
    kinds = {
        name: kind
        for name, kind in summary.kinds.items()
        if not choice.annotators or name in choice.annotators
    }
    by = model_field(fields_of(store, dataset)) or "lang"
    records = with_progress(_records(store, dataset, choice), on_progress)
    overview = overview_of(records, kinds, by, summary.settings)
    plan = summary.settings.measurement
    is_part = choice.languages or choice.labels or choice.states
    if overview.rates is None or plan is None or plan.annotator not in kinds or is_part:
        return overview
    measured = measured_rate(store, summary)
    return replace(overview, measured=measured, rates=add_measurement(overview.rates, measured))


def preview_report(
    store: Store, dataset: str, overview: Overview | None, choice: ExportChoice
) -> str:
    """Return the beginning of a dataset's report, itself a report, of bounded size.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        overview: the figures in its head; None for a preview without them.
        choice: as in ``export_dataset``.

    Raises:
        NotFoundError: the dataset, or the annotator or label in it, does not exist.
    """
    written = BytesIO()
    write_report(_records(store, dataset, choice), written, dataset, overview, limit=_PREVIEWED)
    return written.getvalue().decode()


def _records(store: Store, dataset: str, choice: ExportChoice) -> Iterator[Record]:
    store.require(Permission.EXPORT, dataset)
    left_out = frozenset[str]()
    if not choice.known_items and summary_of(store, dataset).settings.known:
        left_out = check_items.check_ids(store, dataset)
    _check_labels(store, dataset, choice)
    records = store.records(dataset, annotators=choice.annotators or None)
    chosen_records = (
        choice.part_of(record) for record in records if record.item.id not in left_out
    )
    return (record for record in chosen_records if record is not None)


def _check_labels(store: Store, dataset: str, choice: ExportChoice) -> None:
    """Refuse a label that no span has had and nobody may give: all would come out without spans."""
    usual = (label.name for label in summary_of(store, dataset).settings.labels)
    known = dict.fromkeys(("", *store.labels(dataset), *usual))
    if unknown := [label for label in choice.labels if label not in known]:
        raise NotFoundError(
            f"dataset {dataset!r} has no label {', '.join(map(repr, unknown))}; "
            f"available: {', '.join(map(repr, known))}"
        )


def _without_process_nodes(record: Record) -> Record:
    """Return a record without the nodes of a process that items share, which may be many."""
    if not isinstance(record.item.process, SharedProcess):
        return record
    process = record.item.process.among(None)
    return record.model_copy(update={"item": record.item.model_copy(update={"process": process})})


def _only_annotator(store: Store, dataset: str, choice: ExportChoice) -> str | None:
    """Return the annotator of a file that holds only one; None where the format holds several."""
    summary = summary_of(store, dataset)
    check_annotators(summary, choice.annotators)
    names = list(choice.annotators or summary.kinds)
    if choice.format != "mushroom" or not names:
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
