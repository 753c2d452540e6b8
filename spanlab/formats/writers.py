"""Records into files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

from spanlab.base.errors import UsageError
from spanlab.formats.files import replacing
from spanlab.formats.known import jsonl
from spanlab.formats.known.node_lines import node_lines
from spanlab.formats.registry import entry_of
from spanlab.formats.scoring import AnnotatorChooser
from spanlab.schema import DatasetSettings, Record, SharedProcess


class _Dataset(NamedTuple):
    """What a dataset is called, and its settings."""

    title: str
    settings: DatasetSettings


class _Preamble(bytes):
    """A chunk that stands before a record and is none."""


@dataclass(frozen=True)
class _TextWriter:
    """A format of text: one chunk of bytes per record, and what stands around them."""

    chunks: Callable[[Iterable[Record], str | None, DatasetSettings], Iterator[bytes]]
    before: bytes = b""
    between: bytes = b""
    after: bytes = b""

    def __call__(
        self, records: Iterable[Record], annotator: str | None, stream: BinaryIO, dataset: _Dataset
    ) -> int:
        count = 0
        stream.write(self.before)
        for chunk in self.chunks(records, annotator, dataset.settings):
            if isinstance(chunk, _Preamble):
                stream.write(chunk)
                continue
            stream.write(self.between + chunk if count else chunk)
            count += 1
        stream.write(self.after)
        return count


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
        format: one of ``WRITABLE``, or of a package; None goes by the path's ending, see
            ``format_of``.
        annotator: for "mushroom" whose labels to write, by default the only prediction or else
            the gold labels; for the others None writes every annotator's, a name only that one's.
        title: what a dataset card calls them.
        settings: those of the dataset: what it asks has columns in tables, and is of a kind in
            Label Studio; None for one that asks nothing.

    Returns:
        The number of records written. "mushroom" leaves out items without a finished annotation.

    Raises:
        UsageError: the format cannot be written, or the path's ending says none.
        InputError: the file cannot be written, a record cannot be (a lone surrogate), or it is
            not clear whose labels are meant.
    """
    if format is None:
        format = format_of(target) if isinstance(target, Path) else "spanlab"
    writer = _WRITERS.get(format) or _writer_of(format)
    dataset = _Dataset(title, settings or DatasetSettings())
    if isinstance(target, Path):
        with replacing(target) as stream:
            return writer(records, annotator, stream, dataset)
    count = writer(records, annotator, target, dataset)
    target.flush()  # an error comes here, and not after the caller was told of success
    return count


def can_write(format: str) -> bool:
    """Say whether there is a format of this name that is written.

    Raises:
        SpanlabError: that of a package is broken.
    """
    entry = None if format in _WRITERS else entry_of(format)
    return format in _WRITERS or (entry is not None and entry.chunks is not None)


def _writer_of(format: str) -> _TextWriter:
    entry = entry_of(format)
    chunks = None if entry is None else entry.chunks
    if chunks is None:
        raise UsageError(f"format {format!r} cannot be written; these can: {', '.join(WRITABLE)}")

    def split(records: Iterable[Record], annotator: str | None, _: object) -> Iterator[bytes]:
        return iter(chunks(select_annotator(records, annotator)))

    return _TextWriter(split)


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
    formats = {**_BY_ENDING, **more}
    if not ending or ending == _ENDINGS.get(usual):
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


def _spanlab(
    records: Iterable[Record], annotator: str | None, settings: DatasetSettings
) -> Iterator[bytes]:
    if settings.attributes or settings.questions:
        yield _Preamble(jsonl.questions_line(settings))
    written_ids: set[str] = set()
    for record in select_annotator(records, annotator):
        process = record.item.process
        if isinstance(process, SharedProcess) and process.id not in written_ids:
            written_ids.add(process.id)
            yield from map(_Preamble, node_lines(process))
        yield jsonl.dumps(record)


def _mushroom(
    records: Iterable[Record], annotator: str | None, _: DatasetSettings
) -> Iterator[bytes]:
    from spanlab.formats.known import mushroom

    chooser = AnnotatorChooser(annotator, role="prediction")
    for record in records:
        annotation = chooser.done(record)
        if annotation is not None:
            yield mushroom.dumps(record.item.id, annotation)


def _averitec(
    records: Iterable[Record], annotator: str | None, _: DatasetSettings
) -> Iterator[bytes]:
    from spanlab.formats.known import averitec

    chooser = AnnotatorChooser(annotator, role="prediction")
    for record in records:
        annotation = chooser.done(record)
        if annotation is not None:
            yield averitec.dumps(record.item, annotation)


def _labelstudio(
    records: Iterable[Record], annotator: str | None, settings: DatasetSettings
) -> Iterator[bytes]:
    from spanlab.formats.known import labelstudio_writer

    return labelstudio_writer.tasks(select_annotator(records, annotator), settings)


def _claims(
    records: Iterable[Record], annotator: str | None, _: DatasetSettings
) -> Iterator[bytes]:
    from spanlab.formats.known import claims

    yield _Preamble(claims.header())
    yield from claims.rows(select_annotator(records, annotator))


def _csv(
    records: Iterable[Record], annotator: str | None, settings: DatasetSettings
) -> Iterator[bytes]:
    from spanlab.formats.known.analysis_table import csv_chunks

    return csv_chunks(select_annotator(records, annotator), settings.questions)


def _parquet(
    records: Iterable[Record], annotator: str | None, stream: BinaryIO, dataset: _Dataset
) -> int:
    from spanlab.formats.known.analysis_table import write_parquet

    return write_parquet(select_annotator(records, annotator), stream, dataset.settings.questions)


def _hub(
    records: Iterable[Record], annotator: str | None, stream: BinaryIO, dataset: _Dataset
) -> int:
    from spanlab.formats.hub import write_hub

    return write_hub(select_annotator(records, annotator), stream, dataset.title)


_WRITERS: dict[str, Callable[[Iterable[Record], str | None, BinaryIO, _Dataset], int]] = {
    "spanlab": _TextWriter(_spanlab),
    "mushroom": _TextWriter(_mushroom),
    "labelstudio": _TextWriter(_labelstudio, before=b"[\n", between=b",\n", after=b"\n]\n"),
    "averitec": _TextWriter(_averitec, before=b"[\n", between=b",\n", after=b"\n]\n"),
    "claims": _TextWriter(_claims),
    "csv": _TextWriter(_csv),
    "parquet": _parquet,
    "huggingface": _hub,
}
WRITABLE = tuple(_WRITERS)
_BY_ENDING = {
    ".jsonl": "spanlab",
    ".ndjson": "spanlab",
    ".csv": "csv",
    ".parquet": "parquet",
    ".zip": "huggingface",
}


# Files that others read as well: these formats are written only where they are usual, or named.
_ENDINGS = {"mushroom": ".jsonl", "labelstudio": ".json", "averitec": ".json", "claims": ".csv"}
