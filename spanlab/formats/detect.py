"""Which format a file has, told from its content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from spanlab.base.errors import InputError
from spanlab.formats.containers import check_utf8
from spanlab.formats.files import InputFile, is_list
from spanlab.formats.json_rows import first_objects, is_single, names_in, printed_objects
from spanlab.formats.known.csv_table import column_names
from spanlab.formats.known.jsonl import SpanlabReader
from spanlab.formats.known.tabular import TableReader
from spanlab.formats.read_options import ReadOptions
from spanlab.formats.registry import formats, reader_of
from spanlab.formats.shapes import is_row, lists_records

_OWN = "spanlab"
_HINTS = (
    (
        frozenset({"source_id", "source_info"}),
        "this is RAGTruth's source_info.jsonl",
        "its response.jsonl, with source_info.jsonl beside it",
    ),
    (
        frozenset({"user_id", "instance_id_to_span_to_value"}),
        "this is Potato's user_state.json, which has no texts",
        "its annotated_instances.jsonl, or an export that has the texts",
    ),
)
_PRINTED = 10_000  # lines and objects among which the first printed one is looked for
_LOADED = 1 << 24  # bytes of a file from which on only the names in its object are looked at
_CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def detect(path: Path, name: str | None = None, encoding: str | None = None) -> str:
    """Return the name of the format that the file at ``path`` has.

    Args:
        path: the file, possibly packed with gzip.
        name: what to call it in messages and whose ending counts; by default its path.
        encoding: that of its text; None for UTF-8.

    Raises:
        InputError: it is missing, empty, not text, or of no or more than one known format.
    """
    return recognise(InputFile(path, name or str(path), encoding=encoding))


def recognise(file: InputFile) -> str:
    """Return the name of a file's format; raises as ``detect`` does."""
    if owner := _owner_of(file):
        return owner
    head = file.head()
    # A single line may be wrong, which is for the reader to say.
    records = first_objects(file)
    if not records:
        check_utf8(head, file.name)
    if head.lstrip()[:1] in (b"{", b"[") or any(records):
        return _json_format(records or _first_value(file), file)
    for printed in _read_printed(file):  # between lines of a log
        if names := _formats_of(printed):
            return names[0]
    if file.name.lower().endswith(_CSV_SUFFIXES) or _looks_like_table(head):
        cells = dict.fromkeys(column_names(head))
        named = (name for name in _formats_of(cells) if reader_of(name).in_tables)
        return next(named, "csv")
    raise _unknown(file, "the format is not recognised", head[:60].decode(errors="replace"))


def _owner_of(file: InputFile) -> str | None:
    """Return the format of a folder, or of a file that is no text; None for a text.

    Raises:
        InputError: the folder is of none.
    """
    readers = {name: reader_of(name) for name in formats()}
    owner = next((name for name, reader in readers.items() if reader.owns(file)), None)
    reader = None if owner is None else readers[owner]
    if reader is not None and issubclass(reader, TableReader):
        table = reader(file, ReadOptions())
        cells = dict.fromkeys(table.columns())
        is_nested = any("." in column for column in cells)
        if is_nested and lists_records(next(row.readable for row in table.given())):
            return "json"
        return next((name for name in _formats_of(cells) if readers[name].in_parquet), owner)
    if owner is None and file.path.is_dir():
        folders = (reader.folder for reader in readers.values() if reader.folder)
        raise InputError(
            "this is a directory of no known format",
            file=file.name,
            expected=f"a file, or {', or '.join(folders)}",
        )
    return owner


def table_of(file: InputFile) -> type[TableReader] | None:
    """Return the reader of a table that is no text, as of parquet; None for another file."""
    owner = next((reader for reader in map(reader_of, formats()) if reader.owns(file)), None)
    return owner if owner is not None and issubclass(owner, TableReader) else None


def _first_value(file: InputFile) -> list[dict[str, object]]:
    """Return the first record of a file whose records are not lines; none if it is no object."""
    if file.head().lstrip().startswith(b"["):
        first_row = next(file.rows(lists=True), None)
        if first_row is None:
            raise InputError("the file is an empty array", file=file.name, expected="a record")
        try:
            value = first_row.value
        except InputError as error:
            raise error.at(file=file.name) from None
        if isinstance(value, list) and is_row(value):
            return [{}]  # a chat or the header of a table, which has no fields of a format
        if isinstance(value, list) and first_row.unit == "line":
            raise is_list(first_row.raw, file.name)
        value = value[0] if isinstance(value, list) and value else value
    elif printed_object := next(_read_printed(file), None):
        value = printed_object
    elif file.size > _LOADED and is_single(file):
        value = names_in(file)
    else:
        first_row = None if is_single(file) else next(file.rows(), None)
        if first_row is not None and first_row.refused is not None:
            raise first_row.refused
        value = file.load()
    return [value] if isinstance(value, dict) else []


def _read_printed(file: InputFile) -> Iterator[dict[str, object]]:
    """Yield the first objects of a file that has several of them, each over several lines."""
    for row in islice(() if is_single(file) else printed_objects(file), _PRINTED):
        if isinstance(value := row.readable, dict):
            yield value


def _json_format(records: list[dict[str, object]], file: InputFile) -> str:
    for record in records:
        keys = frozenset(record)
        names = _formats_of(record)
        if names == [_OWN] and (
            SpanlabReader.is_somebody_elses(record)
            or any(map(SpanlabReader.has_bare_spans, records))  # an empty list says nothing yet
        ):
            return "json"
        if len(names) == 1:
            return names[0]
        if names:
            raise InputError(
                f"the format may be {' or '.join(names)}",
                file=file.name,
                found=f"the fields {', '.join(sorted(keys))}",
                expected="its name, with the format option",
            )
        for signature, problem, expected in _HINTS:
            if signature <= keys:
                raise InputError(problem, file=file.name, expected=expected)
    if not records:
        raise _unknown(file, "the JSON has no objects")
    return "json"


def _formats_of(record: Mapping[str, object]) -> list[str]:
    """Return the formats whose fields a record has, without those that others go before."""
    recognised = [name for name in formats() if reader_of(name).recognises(record)]
    hidden = frozenset[str]().union(*(reader_of(name).before for name in recognised))
    return [name for name in recognised if name not in hidden]


def _looks_like_table(head: bytes) -> bool:
    header, _, later_lines = head.decode(errors="replace").partition("\n")
    return bool(later_lines.strip()) and any(mark in header for mark in ",;\t")


def _unknown(file: InputFile, what: str, found: str | None = None) -> InputError:
    return InputError(
        what,
        file=file.name,
        found=found,
        expected="JSON, JSON Lines, CSV, Excel, parquet or Arrow, with one answer per record",
    )
