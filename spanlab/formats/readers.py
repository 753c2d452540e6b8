"""Records out of files, whatever their format."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from copy import copy
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

from spanlab.base.errors import InputError, UsageError
from spanlab.formats.common_labels import in_common_labels
from spanlab.formats.contexts import ContextFiles
from spanlab.formats.detect import recognise, table_of
from spanlab.formats.field_report import FieldReport
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.known.tabular import SAMPLES, MappedReader, RecordLayout, TableReader
from spanlab.formats.read_options import ReadOptions, RejectedRecord
from spanlab.formats.reader import FormatReader, NoAnswer
from spanlab.formats.reasoning import ReasoningAside
from spanlab.formats.recipes import PARTS, as_toml
from spanlab.formats.registry import formats, options_of, reader_of
from spanlab.output.figures import counted
from spanlab.schema import Record


class PlacedRecord(NamedTuple):
    """A record, and where it stands in its file: the 1-based number of a line, row or record."""

    record: Record
    line: int
    unit: str = "line"


def read(path: Path | InputFile, options: ReadOptions | None = None) -> Iterator[Record]:
    """Return the records of a file, one after the other as they are asked for.

    Args:
        path: the file, possibly packed with gzip, or what holds it in memory.
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


def read_placed(
    path: Path | InputFile, options: ReadOptions | None = None
) -> Generator[PlacedRecord, None, None]:
    """Return what ``read`` returns, each record with its place in the file."""
    read_options = options or ReadOptions()
    file = path if isinstance(path, InputFile) else _input_file(path, read_options)
    reader = _make_reader(file, read_options)
    if not (file.path.is_dir() and reader.reads_folders):
        file.head()
    contexts = ContextFiles(read_options.contexts) if read_options.contexts is not None else None
    return _records(reader, file, read_options, contexts)


def table_layout(path: Path, options: ReadOptions | None = None) -> RecordLayout:
    """Return what a table's, or JSON's, records look like, for people to say which column is which.

    Returns:
        Columns, guesses and the first records, none if the file's format has fixed ones, or there
        are no rows; and which options of its own to ask for.

    Raises:
        InputError: the file is missing, empty, broken or of no known format.
        UsageError: there is no format of the name asked for.
    """
    read_options = options or ReadOptions()
    reader = _make_reader(_input_file(path, read_options), read_options)
    layout = reader.layout() if isinstance(reader, MappedReader) else RecordLayout()
    return layout._replace(options=reader.asked())


def recipe_of(path: Path, options: ReadOptions | None = None) -> str:
    """Return how a file is read, as a recipe in TOML: what options say, and what was guessed.

    Columns are in it where reading by them gives the same. Of other files the records are made
    first, of several messages or of the answers of several models, which no column says.

    Raises:
        InputError: the file is missing, empty, broken or of no known format.
        UsageError: there is no format of the name asked for.
    """
    chosen = (options or ReadOptions()).model_copy(
        update={"on_warning": _quiet, "on_fields": _quiet, "on_reject": _quiet}
    )
    file = _input_file(path, chosen)
    reader = _make_reader(file, chosen)
    given, unsaid = {**dict(chosen), **chosen.own}, ReadOptions()
    said = {name: given[name] for name in PARTS if given.get(name) != getattr(unsaid, name, None)}
    if not (isinstance(reader, MappedReader) and reader.maps_columns):
        name = recognise(file) if chosen.format == "auto" else chosen.format
        return as_toml(said | {"format": name})
    layout = reader.layout()
    by_now = {option.name: option.default for option in reader.asked() if option.name in PARTS}
    said = {**by_now, **said}
    columns = {**layout.guesses, **(chosen.columns or {})}
    by_columns = chosen.model_copy(update={**said, "columns": columns})
    if _first_of(path, by_columns) == _first_of(path, chosen):
        return as_toml({**said, "columns": columns}, why=layout.guesses.why)
    remark = "Fields are told by their names: the file's records are put together or apart first."
    return as_toml(said, remark)


def _quiet(*_: object) -> None:
    """Hear what a preview or an import says, too."""


def _first_of(path: Path, options: ReadOptions) -> list[Record] | None:
    """Return the first records of a file; None if it cannot be read so."""
    with suppress(InputError), closing(read_placed(path, options)) as placed:
        return [record.record for record in islice(placed, SAMPLES)]
    return None


def _input_file(path: Path, options: ReadOptions) -> InputFile:
    return InputFile(path, options.name or str(path), encoding=options.encoding)


def _make_reader(file: InputFile, options: ReadOptions) -> FormatReader:
    name = options.format
    if name == "auto":
        name = recognise(file)
    table, make = table_of(file), reader_of(name)
    if options.columns and options.format == "auto" and make.in_tables:
        is_json = table is None and file.head().lstrip()[:1] in (b"{", b"[")
        # Whoever maps the columns of a table knows it for another.
        make = make if is_json else table or reader_of("csv")
    if others := options.own.keys() - make.own_options.model_fields.keys():
        name = next(name for name in formats() if reader_of(name) is make)
        other = next(option for option in options_of() if option.name in others)
        own = ", ".join(option.flags[-1] for option in options_of(name))
        has = [one for one in formats() if other.name in reader_of(one).own_options.model_fields]
        raise UsageError(
            f"{file.name} is {name}, which has no option {other.flags[-1]}, "
            f"{f'only {own}' if own else 'and none of its own'}; "
            f"{', '.join(has)} {'has' if len(has) == 1 else 'have'} it"
        )
    if options.columns and not make.maps_columns:
        mapped = [other for other in formats() if reader_of(other).maps_columns]
        raise UsageError(
            f"{file.name} is {name}, which has no columns to map; {', '.join(mapped)} have"
        )
    if table is not None and not issubclass(make, TableReader):
        about = file.path.stat()
        file = _as_lines(table, file, (about.st_mtime_ns, about.st_size))
    return make(file, options)


@lru_cache(maxsize=4)
def _as_lines(table: type[TableReader], file: InputFile, stamp: tuple[int, int]) -> InputFile:
    """Return a table as lines; ``stamp`` tells a file from what it was before it changed."""
    return table(file, ReadOptions()).as_lines()


def _records(
    reader: FormatReader, file: InputFile, options: ReadOptions, contexts: ContextFiles | None
) -> Generator[PlacedRecord, None, None]:
    report, failed = FieldReport(), _FailedCalls()
    reasoning = ReasoningAside()
    try:
        for row in reader.rows():
            try:
                record = reader.record(row)
                if not reader.keeps_answer(record):
                    record = reasoning.taken_from(record)
                if contexts is not None:
                    record = contexts.add(record)
                if options.common_labels:
                    record = in_common_labels(record)
            except InputError as error:
                _leave_out(error, row, file, options, failed)
                continue
            report.add(row, record, reader)
            failed.n_read += 1
            _look_at(record, row, reader)
            yield PlacedRecord(record, row.line, row.unit)
    finally:
        if fields := report.fields(reader.sources):
            options.on_fields(file.name, {**reader.around, **fields})
    reader.finish()
    for remark in chain(reasoning.remarks(), failed.remarks()):
        options.on_warning(f"{file.name}: {remark}")
    if contexts is not None:
        contexts.finish(options.on_warning)


def _leave_out(
    error: InputError, row: FileRow, file: InputFile, options: ReadOptions, failed: _FailedCalls
) -> None:
    """Leave a wrong record out if its call failed, or people want it so; else raise its error."""
    # An error in a context names that file already.
    has_file = error.file is not None
    placed = error if has_file else error.at(file=file.name, line=row.line, unit=row.unit)
    is_failed = isinstance(error, NoAnswer)
    if options.on_reject is not None:
        raw = row.beginning.decode(errors="backslashreplace").rstrip("\r\n")
        kind = "" if is_failed else error.kind
        options.on_reject(RejectedRecord(file.name, row.line, str(placed), raw, kind, placed))
    elif is_failed:
        failed.add(placed)
    else:
        raise placed from error.__cause__


_LOST: Final = "\ufffd"  # what stands for a character that could not be read


_CONTRADICTING: Final = (
    "an annotation calls the answer right and marks a part of it, both are kept and the marks count"
)
_LABELLED: Final = (
    "{n} with a claim that an earlier version made of a whole-answer label, which counts as no "
    "answer; after the import `spanlab annotators verdicts DATASET ANNOTATOR` makes verdicts of "
    "them"
)
_UNREADABLE: Final = (
    f"{{n}} with {_LOST}, which stands for a character that was lost: half of an emoji, or a "
    "letter of another encoding"
)


def _look_at(record: Record, row: FileRow, reader: FormatReader) -> None:
    """Count a record that people should look at."""
    item = record.item
    if any(annotation.contradicts_itself for annotation in record.annotations):
        reader.count("record", _CONTRADICTING, f"{row.unit} {row.line:,}")
    if any(one.is_claim_of_whole(item) for one in record.annotations):
        reader.count("answer", _LABELLED, n=1)
    texts = (item.answer, item.question, *(passage.text for passage in item.passages))
    if any(_LOST in text for text in texts):
        reader.count("item", _UNREADABLE, n=1)


class _FailedCalls:
    """The records of a file without an answer, because the model's call failed."""

    def __init__(self) -> None:
        self.n_read = 0
        self._n = 0
        self._first: InputError | None = None

    def add(self, error: InputError) -> None:
        """Count a record that is left out."""
        self._n += 1
        self._first = self._first or error

    def remarks(self) -> Iterator[str]:
        """Yield how many were left out and why.

        Raises:
            InputError: nothing else is in the file.
        """
        if self._first is None:
            return
        if not self.n_read:
            nothing = copy(self._first)
            nothing.what = f"no record of {self._n:,} has an answer: {self._first.what}"
            raise nothing
        yield (
            f"{self._n:,} of {counted(self._n + self.n_read, 'record')} have no answer and are "
            f"left out, the first because {self._first}"
        )
