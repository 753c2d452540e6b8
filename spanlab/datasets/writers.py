"""Records into files, and into a folder as Hugging Face has them.

``unzip mine.zip -d mine`` and ``load_dataset("mine")``, or upload the folder to the Hub. Every line
has every field, and the card declares their types, so that no type is guessed from empty lists.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

from pydantic_core import to_json

from spanlab.datasets.files import replacing
from spanlab.datasets.formats import averitec, claims, jsonl, labelstudio_writer, mushroom
from spanlab.datasets.formats.analysis_table import (
    annotation_columns,
    csv_chunks,
    item_columns,
    write_parquet,
)
from spanlab.datasets.formats.jsonl import node_lines
from spanlab.datasets.reader import GROUP
from spanlab.datasets.scoring import AnnotatorChooser
from spanlab.errors import UsageError
from spanlab.inbound import brought, offered
from spanlab.schema import UNDETERMINED, DatasetSettings, Record, SharedProcess


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
        self, records: Iterable[Record], annotator: str | None, stream: BinaryIO, of: _Dataset
    ) -> int:
        count = 0
        stream.write(self.before)
        for chunk in self.chunks(records, annotator, of.settings):
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
    writer = _WRITERS.get(format) or _brought(format)
    of = _Dataset(title, settings or DatasetSettings())
    if isinstance(target, Path):
        with replacing(target) as stream:
            return writer(records, annotator, stream, of)
    count = writer(records, annotator, target, of)
    target.flush()  # an error comes here, and not after the caller was told of success
    return count


def _brought(format: str) -> _TextWriter:
    chunks = None
    if format in offered(GROUP):
        chunks = brought(GROUP, format, "format").chunks
    if chunks is None:
        raise UsageError(f"format {format!r} cannot be written; these can: {', '.join(WRITABLE)}")

    def written(records: Iterable[Record], annotator: str | None, _: object) -> Iterator[bytes]:
        return iter(chunks(_only(records, annotator)))

    return _TextWriter(written)


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


def _only(records: Iterable[Record], annotator: str | None) -> Iterator[Record]:
    """Yield the records with the annotation of ``annotator`` alone, or as they are for None."""
    for record in records:
        if annotator is None:
            yield record
        else:
            mine = record.by(annotator)
            yield record.model_copy(update={"annotations": () if mine is None else (mine,)})


def _spanlab(
    records: Iterable[Record], annotator: str | None, _: DatasetSettings
) -> Iterator[bytes]:
    written: set[str] = set()
    for record in _only(records, annotator):
        process = record.item.process
        if isinstance(process, SharedProcess) and process.id not in written:
            written.add(process.id)
            yield from map(_Preamble, node_lines(process))
        yield jsonl.dumps(record)


def _mushroom(
    records: Iterable[Record], annotator: str | None, _: DatasetSettings
) -> Iterator[bytes]:
    chooser = AnnotatorChooser(annotator, role="prediction")
    for record in records:
        annotation = chooser.done(record)
        if annotation is not None:
            yield mushroom.dumps(record.item.id, annotation)


def _averitec(
    records: Iterable[Record], annotator: str | None, _: DatasetSettings
) -> Iterator[bytes]:
    chooser = AnnotatorChooser(annotator, role="prediction")
    for record in records:
        annotation = chooser.done(record)
        if annotation is not None:
            yield averitec.dumps(record.item, annotation)


def _labelstudio(
    records: Iterable[Record], annotator: str | None, settings: DatasetSettings
) -> Iterator[bytes]:
    return labelstudio_writer.tasks(_only(records, annotator), settings)


def _claims(
    records: Iterable[Record], annotator: str | None, _: DatasetSettings
) -> Iterator[bytes]:
    return claims.rows(_only(records, annotator))


def _csv(
    records: Iterable[Record], annotator: str | None, settings: DatasetSettings
) -> Iterator[bytes]:
    return csv_chunks(_only(records, annotator), settings.questions)


def _parquet(
    records: Iterable[Record], annotator: str | None, stream: BinaryIO, of: _Dataset
) -> int:
    return write_parquet(_only(records, annotator), stream, of.settings.questions)


def _hub(records: Iterable[Record], annotator: str | None, stream: BinaryIO, of: _Dataset) -> int:
    return write_hub(_only(records, annotator), stream, of.title)


_WRITERS: dict[str, Callable[[Iterable[Record], str | None, BinaryIO, _Dataset], int]] = {
    "spanlab": _TextWriter(_spanlab),
    "mushroom": _TextWriter(_mushroom),
    "labelstudio": _TextWriter(_labelstudio, before=b"[\n", between=b",\n", after=b"\n]\n"),
    "averitec": _TextWriter(_averitec, before=b"[\n", between=b",\n", after=b"\n]\n"),
    "claims": _TextWriter(_claims, before=claims.header()),
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
_DATA = "data/train.jsonl"
_TIME = (1980, 1, 1, 0, 0, 0)  # the same records give the same bytes
_TEXT, _NUMBER, _OFFSET = "string", "float64", "int64"

_FEATURES: dict[str, object] = {
    "id": _TEXT,
    "lang": _TEXT,
    "question": _TEXT,
    "answer": _TEXT,
    "passages": [dict.fromkeys(("text", "title", "url", "date"), _TEXT)],
    "annotations": [
        {
            "annotator": _TEXT,
            "kind": _TEXT,
            "status": _TEXT,
            "spans": [
                {
                    "start": _OFFSET,
                    "end": _OFFSET,
                    "text": _TEXT,
                    "prob": _NUMBER,
                    "label": _TEXT,
                    "note": _TEXT,
                    "attributes": _TEXT,
                }
            ],
            "claims": [
                {
                    "text": _TEXT,
                    "verdict": _TEXT,
                    "prob": _NUMBER,
                    "start": _OFFSET,
                    "end": _OFFSET,
                    "note": _TEXT,
                }
            ],
            "note": _TEXT,
            "responses": _TEXT,
        }
    ],
    "meta": _TEXT,
}

_CARD = """
# {title}

{items:,} answers of language models, with the characters that are hallucinated as annotators marked
them. Written by spanlab.

| annotator | kind | items annotated |
| --- | --- | --- |
{annotators}

`start` and `end` are offsets into `answer` in Unicode code points, `start` inclusive, `end`
exclusive; `prob` in [0, 1] is how likely the characters are hallucinated (for a vote: the share of
annotators that marked them). `status` tells *done* without spans from *failed* and *skipped*.
`meta` is JSON, as are responses to what was asked of each span (`attributes`) and of each answer
(`responses`).
"""


def write_hub(records: Iterable[Record], stream: BinaryIO, title: str) -> int:
    """Write records as such a zip; returns how many."""
    count = 0
    languages: Counter[str] = Counter()
    annotators: Counter[tuple[str, str]] = Counter()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(_member(_DATA), "w", force_zip64=True) as lines:
            for record in records:
                said = [annotation_columns(annotation) for annotation in record.annotations]
                lines.write(to_json({**item_columns(record.item), "annotations": said}) + b"\n")
                count += 1
                languages[record.item.lang] += 1
                annotators.update((a.annotator, a.kind.value) for a in record.annotations)
        rows = "\n".join(
            f"| {_plain(name)} | {kind} | {n:,} |" for (name, kind), n in annotators.items()
        )
        text = _CARD.format(title=_plain(title), items=count, annotators=rows or "| none | | |")
        archive.writestr(_member("README.md"), f"---\n{_front(languages)}\n---\n{text}")
    return count


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _TIME)
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def _front(languages: Iterable[str]) -> str:
    """Return what the card says to machines; JSON is YAML, too."""
    codes = sorted({lang.partition("-")[0] for lang in languages} - {UNDETERMINED})
    said = {
        **({"language": codes} if codes else {}),
        "tags": ["hallucination-detection"],
        "configs": [{"config_name": "default", "data_files": _DATA}],
        "dataset_info": {"features": [_feature(*item) for item in _FEATURES.items()]},
    }
    return "\n".join(f"{key}: {json.dumps(value)}" for key, value in said.items())


def _feature(name: str, kind: object) -> dict[str, object]:
    if isinstance(kind, list):
        return {"name": name, "list": [_feature(*item) for item in kind[0].items()]}
    return {"name": name, "dtype": kind}


def _plain(text: str) -> str:
    """Return a name as one line of Markdown in which nothing is markup."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()<>#+!|&" else c for c in " ".join(text.split()))
