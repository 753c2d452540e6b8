"""Records into files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from spanlab.base.errors import UsageError
from spanlab.formats.files import replacing
from spanlab.formats.reader import FormatEntry, Preamble, WrittenDataset
from spanlab.formats.registry import entry_of, known_formats, writable
from spanlab.formats.scoring import AnnotatorChooser
from spanlab.schema import DatasetSettings, Record


def write(
    records: Iterable[Record],
    target: Path | BinaryIO,
    *,
    format: str | None = None,
    annotator: str | None = None,
    title: str = "Answers with hallucinated spans",
    settings: DatasetSettings | None = None,
) -> int:
    """Write ``records`` to a file, streaming.

    Args:
        records: what to write, taken one at a time.
        target: a path, replaced as a whole when all is written (packed if it ends in ``.gz``), or
            an open binary stream.
        format: one of ``writable()``; None goes by the path's ending, see
            ``format_of``.
        annotator: for "mushroom" whose labels to write, by default the only prediction or else
            the gold labels; for the others None writes every annotator's, a name only that one's.
        title: what a dataset card calls them.
        settings: those of the dataset: what it asks has columns in tables, and is of a kind in
            Label Studio; None for one that asks nothing.

    Returns:
        The number of records written. "mushroom" leaves out items without a finished annotation,
        and those that are hallucinated without a marked place.

    Raises:
        UsageError: the format cannot be written, or the path's ending says none.
        InputError: the file cannot be written, a record cannot be (a lone surrogate), or it is
            not clear whose labels are meant.
    """
    if format is None:
        format = format_of(target) if isinstance(target, Path) else "spanlab"
    if not can_write(format) or (entry := entry_of(format)) is None:
        raise UsageError(f"format {format!r} cannot be written; these can: {', '.join(writable())}")
    dataset = WrittenDataset(title, settings or DatasetSettings())
    kept = (finished_by if entry.of_one else select_annotator)(records, annotator)
    if isinstance(target, Path):
        with replacing(target) as stream:
            return _write(entry, kept, stream, dataset)
    count = _write(entry, kept, target, dataset)
    target.flush()  # an error comes here, and not after the caller was told of success
    return count


def _write(
    entry: FormatEntry, records: Iterable[Record], stream: BinaryIO, dataset: WrittenDataset
) -> int:
    if entry.chunks is None:
        return 0 if entry.whole is None else entry.whole(records, stream, dataset)
    count = 0
    before, between, after = entry.around
    stream.write(before)
    asked = (dataset.settings,) if entry.asks else ()
    for chunk in entry.chunks(records, *asked):
        if isinstance(chunk, Preamble):
            stream.write(chunk)
            continue
        stream.write(between + chunk if count else chunk)
        count += 1
    stream.write(after)
    return count


def can_write(format: str) -> bool:
    """Say whether there is a format of this name that is written.

    Raises:
        SpanlabError: that of a package is broken.
    """
    entry = entry_of(format)
    return entry is not None and entry.is_written


def format_of(
    target: Path, usual: str = "spanlab", more: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the format in which a file is written that nobody names a format for.

    Args:
        target: the file; a ``.gz`` at the end of its name does not count.
        usual: the format where its ending fits it, or where it has none.
        more: formats beside those of ``write``, by ending.

    Raises:
        UsageError: no format has this ending, or several have.
    """
    ending = (target.with_suffix("") if target.suffix == ".gz" else target).suffix.lower()
    written = {name: known_formats()[name] for name in writable()}
    formats = {end: name for name, entry in written.items() for end in entry.endings}
    formats.update(more)
    offered = written[usual].export if usual in written else None
    if not ending or (offered is not None and ending == f".{offered.ending}"):
        return usual
    if ending not in formats:
        endings = ", ".join(f"{ending} ({name})" for ending, name in formats.items())
        raise UsageError(f"{target}: {ending!r} names no format; these do: {endings}")
    return formats[ending]


def select_annotator(records: Iterable[Record], annotator: str | None) -> Iterator[Record]:
    """Yield the records with the annotation of ``annotator`` alone, or as they are for None."""
    for record in records:
        if annotator is None:
            yield record
        else:
            mine = record.by(annotator)
            yield record.model_copy(update={"annotations": () if mine is None else (mine,)})


def finished_by(records: Iterable[Record], annotator: str | None) -> Iterator[Record]:
    """Yield the records that an annotator has finished, with their annotation alone.

    One that calls the answer hallucinated and marks no place is left out: its labels would say that
    nothing is wrong.

    Raises:
        InputError: nobody was named and several could be meant.
    """
    chooser = AnnotatorChooser(annotator, role="prediction")
    for record in records:
        annotation = chooser.done(record)
        if annotation is not None and not (annotation.is_verdict_only and annotation.hallucinated):
            yield record.model_copy(update={"annotations": (annotation,)})
