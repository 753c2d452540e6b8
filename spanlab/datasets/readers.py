"""Records out of files, whatever their format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from spanlab.datasets.arrow import ArrowReader
from spanlab.datasets.contexts import ContextFiles
from spanlab.datasets.detect import MAPPED, detect
from spanlab.datasets.files import InputFile
from spanlab.datasets.formats import (
    averitec,
    claims,
    faithbench,
    graphrag,
    jsonl,
    labelstudio_reader,
    multihop,
    mushroom,
    ragtruth,
    summaries,
    traces,
)
from spanlab.datasets.formats.csv_table import CsvReader
from spanlab.datasets.formats.json_table import JsonReader
from spanlab.datasets.formats.tabular import MappedReader, RecordLayout
from spanlab.datasets.parquet import ParquetReader
from spanlab.datasets.read_options import ReadOptions, RejectedRecord
from spanlab.datasets.reader import GROUP, FormatReader
from spanlab.errors import InputError, UsageError
from spanlab.inbound import brought, offered
from spanlab.schema import Record


class PlacedRecord(NamedTuple):
    """A record, and where it stands in its file: the 1-based number of a line, row or record."""

    record: Record
    line: int
    unit: str = "line"


READERS: dict[str, Callable[[InputFile, ReadOptions], FormatReader]] = {
    "spanlab": jsonl.SpanlabReader,
    "mushroom": mushroom.MushroomReader,
    "ragtruth": ragtruth.RagTruthReader,
    "faithbench": faithbench.FaithBenchReader,
    "labelstudio": labelstudio_reader.LabelStudioReader,
    "claims": claims.ClaimsReader,
    "averitec": averitec.AveritecReader,
    "multihop": multihop.MultihopReader,
    "graphrag": graphrag.GraphRagReader,
    "summaries": summaries.SummariesReader,
    "traces": traces.TraceReader,
    "csv": CsvReader,
    "parquet": ParquetReader,
    "arrow": ArrowReader,
    "json": JsonReader,
}
FORMATS = tuple(READERS)
_OF_FOLDERS = (graphrag.GraphRagReader, ParquetReader, ArrowReader)


def formats() -> tuple[str, ...]:
    """Return the names of all formats that may be read, those of installed packages last."""
    return (*READERS, *(name for name in offered(GROUP) if name not in READERS))


def read(path: Path, options: ReadOptions | None = None) -> Iterator[Record]:
    """Return the records of a file, one after the other as they are asked for.

    Args:
        path: the file, possibly packed with gzip.
        options: how to read it; by default strictly, with the format told from the content.

    Returns:
        An iterator; memory does not grow with the length of JSON Lines, CSV and parquet files.

    Raises:
        InputError: the file is missing, empty or of no known format (at once), or a record is
            wrong (when its turn comes; only in a strict read).
        UsageError: there is no format of the name asked for.
    """
    placed = read_placed(path, options)
    return (placed_record.record for placed_record in placed)


def read_placed(path: Path, options: ReadOptions | None = None) -> Iterator[PlacedRecord]:
    """Return what ``read`` returns, each record with its place in the file."""
    read_options = options or ReadOptions()
    file = InputFile(path, read_options.name or str(path))
    reader = _make_reader(file, read_options)
    if not (path.is_dir() and isinstance(reader, _OF_FOLDERS)):
        file.head()
    contexts = ContextFiles(read_options.contexts) if read_options.contexts is not None else None
    return _records(reader, file, read_options, contexts)


def table_layout(path: Path, options: ReadOptions | None = None) -> RecordLayout:
    """Return what a table's, or JSON's, records look like, for people to say which column is which.

    Returns:
        Columns, guesses and the first records; empty if the file's format has fixed ones, or there
        are no rows.

    Raises:
        InputError: the file is missing, empty, broken or of no known format.
        UsageError: there is no format of the name asked for.
    """
    read_options = options or ReadOptions()
    reader = _make_reader(InputFile(path, read_options.name or str(path)), read_options)
    return reader.layout() if isinstance(reader, MappedReader) else RecordLayout()


def _make_reader(file: InputFile, options: ReadOptions) -> FormatReader:
    name = detect(file.path, options.name) if options.format == "auto" else options.format
    if options.columns and options.format == "auto" and name == "claims":
        name = "csv"  # whoever maps its columns knows it for another table
    if name not in formats():
        raise UsageError(f"no format {name!r}; known are auto, {', '.join(formats())}")
    if options.records is not None and name != "json":
        raise UsageError(
            f"{file.name} is {name}, which has no lists of records to choose from; json has"
        )
    if options.columns and name not in MAPPED:
        raise UsageError(
            f"{file.name} is {name}, which has no columns to map; {', '.join(MAPPED)} have"
        )
    if name in READERS:
        return READERS[name](file, options)
    make: type[FormatReader] | None = brought(GROUP, name, "format").reader
    if make is None:
        raise UsageError(f"format {name!r} of {offered(GROUP)[name].value} cannot be read")
    return make(file, options)


def _records(
    reader: FormatReader, file: InputFile, options: ReadOptions, contexts: ContextFiles | None
) -> Iterator[PlacedRecord]:
    for row in reader.rows():
        try:
            record = reader.record(row)
            if contexts is not None:
                record = contexts.add(record)
        except InputError as error:
            # An error in a context names that file already.
            placed = error if error.file else error.at(file=file.name, line=row.line, unit=row.unit)
            if options.on_reject is None:
                raise placed from error.__cause__
            raw = row.beginning.decode(errors="backslashreplace").rstrip("\r\n")
            options.on_reject(RejectedRecord(file.name, row.line, str(placed), raw))
            continue
        yield PlacedRecord(record, row.line, row.unit)
    reader.finish()
    if contexts is not None:
        contexts.finish(options.on_warning)
