"""Parquet files read in bounded memory: pages unpacked, rows made.

A file's metadata may say anything; what is unpacked is what the pages' own headers say. A header is
a Thrift structure in the compact protocol (parquet-format, ``PageHeader``): 1 the type, 2 and 3 the
sizes unpacked and packed, then structures that are skipped here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, BinaryIO, Final, NamedTuple

from spanlab.base.errors import InputError
from spanlab.doors import Export
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.known.analysis_table import ASKED, CellsRow, write_parquet
from spanlab.formats.known.arrow import SchemaReader, decode_dictionaries, rows_of
from spanlab.formats.known.jsonl import asked_by
from spanlab.formats.limits import UNPACKED, most_unpacked, too_large
from spanlab.formats.read_options import ReadOptions
from spanlab.formats.reader import FormatEntry

PARQUET: Final = b"PAR1"  # how a file begins
_BATCH = 1000  # rows held at a time, if that is safe
_BUFFER = 1 << 20  # bytes of a column that are read at a time
_LEVELS = 8  # bytes that an element of a list takes in a column


class ParquetReader(SchemaReader):
    """Reads parquet."""

    reads_folders = True

    @classmethod
    def owns(cls, file: InputFile) -> bool:
        """Say whether a file begins as one of parquet."""
        return file.path.is_file() and file.head().startswith(PARQUET)

    def rows(self) -> Iterator[FileRow]:
        """Yield the rows, once it is told what the dataset asks that they are of."""
        with self.open_table() as table:
            asked = (table.schema_arrow.metadata or {}).get(ASKED)
        if asked is not None:
            self._options.on_questions(asked_by(self._file.row(1, asked), self._file.name))
        return super().rows()

    def _schema(self) -> Sequence[Any]:
        with self.open_table() as table:
            return list(table.schema_arrow) if table.metadata.num_rows else []

    def _cells(self) -> Iterator[CellsRow]:
        columns = self._names()
        budget = most_unpacked(self._file.size, self._file.limit)
        line = 0
        with self.open_table() as table:
            for group in range(table.num_row_groups):
                count = _safe_rows(table.metadata.row_group(group), columns, self._file)
                batches = table.iter_batches(count, row_groups=[group], columns=columns)
                for batch in map(decode_dictionaries, batches):
                    for row in rows_of(batch, line, self._file.limit):
                        line += 1
                        yield row
                    budget -= batch.nbytes
                    if budget < 0:
                        raise self._at(too_large(UNPACKED, self._file.limit), line)

    def rows_with_cells(self) -> Iterator[CellsRow]:
        """Yield the rows as they stand."""
        return self._cells()

    @contextmanager
    def open_table(self) -> Iterator[Any]:
        """Open the file; raises InputError if it is no parquet file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self._file.open() as stream:
            try:
                yield pq.ParquetFile(stream, buffer_size=_BUFFER)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise InputError(
                    f"not a parquet file, or a damaged one: {error}",
                    file=self._file.name,
                    expected="parquet",
                ) from None


def _safe_rows(group: Any, columns: Sequence[str], file: InputFile) -> int:
    """Return how many rows of a group may be held, by what the file says before it is unpacked.

    Every row may repeat the longest text of a dictionary, which the file holds once.

    Raises:
        InputError: the group cannot be held at all.
    """
    chunks = [group.column(index) for index in range(group.num_columns)]
    chunks = [chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in columns]
    size = repeated = 0
    for page in (page for chunk in chunks for page in _pages(chunk, file)):
        size += page.size
        repeated += page.size if page.is_dictionary else 0
        if page.is_dictionary and page.size > file.limit // _COPIES:
            raise too_large("a text that rows repeat", file.limit, file=file.name)
    if size > most_unpacked(file.size, file.limit):
        raise too_large(UNPACKED, file.limit, file=file.name)
    elements = sum(chunk.num_values for chunk in chunks) - len(chunks) * group.num_rows
    if elements * _LEVELS > file.limit:
        raise too_large("a group of rows, by its lists,", file.limit, file=file.name)
    if size > file.limit // 2:
        return 1
    fitting: int = file.limit // 2 // max(repeated, 1)
    return max(1, min(_BATCH, fitting))


def _pages(chunk: Any, file: InputFile) -> Iterator[UnpackedPage]:
    """Yield the pages of a column, by their headers and not by what the metadata says of them."""
    start = min(
        offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset
    )
    with file.open() as stream:
        try:
            yield from pages(stream, start, start + chunk.total_compressed_size)
        except ValueError as error:
            raise InputError(
                f"a damaged parquet file: {error}",
                file=file.name,
                field=chunk.path_in_schema,
                expected="parquet",
            ) from None


def table(file: InputFile, columns: Collection[str]) -> Iterator[CellsRow]:
    """Yield the rows of a parquet file that must have these columns.

    Raises:
        InputError: it is missing or damaged, or a column is; names the file, or the row that is
            too large.
    """
    file.head()
    reader = ParquetReader(file, ReadOptions())
    with reader.open_table() as opened:
        names = opened.schema_arrow.names
    for column in columns:
        if column not in names:
            raise InputError(
                f"the column {column!r} is missing",
                file=file.name,
                found=f"the columns {', '.join(names)}",
            )
    for row in reader.rows_with_cells():
        if row.refused is not None:
            raise row.refused.at(file=file.name, line=row.line, unit="row")
        yield row


_COPIES: Final = 5  # of a dictionary's texts that are in memory at once, and those of a row
_HEADER: Final = 1 << 20  # bytes of a header at most; statistics may hold a long text
_DICTIONARY: Final = 2  # the type of a dictionary page
_LONGEST_NUMBER: Final = 10  # bytes of a number of 64 bits
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_NUMBERS: Final = frozenset((4, 5, 6))
_DEEPEST: Final = 8  # structures inside each other; PageHeader has three


class UnpackedPage(NamedTuple):
    """The bytes of a page once unpacked; ``is_dictionary`` if it holds texts that rows repeat."""

    size: int
    is_dictionary: bool


def pages(stream: BinaryIO, start: int, end: int) -> Iterator[UnpackedPage]:
    """Yield the pages in bytes ``[start, end)`` of a file, without unpacking any.

    Raises:
        ValueError: there is no header where one must be.
    """
    while start < end:
        stream.seek(start)
        header = BytesIO(stream.read(min(_HEADER, end - start)))
        numbers = _read_struct(header, 0)
        kind, size, packed = (numbers.get(field, -1) for field in (1, 2, 3))
        if kind < 0 or size < 0 or packed < 0:
            raise ValueError(f"no page begins at byte {start:,}")
        yield UnpackedPage(size, kind == _DICTIONARY)
        start += header.tell() + packed


def _read_struct(data: BytesIO, depth: int) -> dict[int, int]:
    """Read a structure; returns its numbers by field, everything else is skipped."""
    if depth > _DEEPEST:
        raise ValueError("structures too deep for the header of a page")
    numbers: dict[int, int] = {}
    field = 0
    while head := _read_byte(data):
        kind = head & 0x0F
        field = field + (head >> 4) if head >> 4 else _read_signed(data)
        if kind in _NUMBERS:
            numbers[field] = _read_signed(data)
        else:
            _skip(data, kind, depth)
    return numbers


def _skip(data: BytesIO, kind: int, depth: int) -> None:
    if kind in {_TRUE, _FALSE}:
        return
    if kind == _BYTE:
        _read_bytes(data, 1)
    elif kind in _NUMBERS:
        _read_unsigned(data)
    elif kind == _DOUBLE:
        _read_bytes(data, 8)
    elif kind == _BINARY:
        _read_bytes(data, _read_unsigned(data))
    elif kind == _STRUCT:
        _read_struct(data, depth + 1)
    elif kind in {_LIST, _SET}:
        _skip_list(data, depth)
    else:
        raise ValueError(f"a value of the kind {kind} in the header of a page")


def _skip_list(data: BytesIO, depth: int) -> None:
    head = _read_byte(data)
    count = head >> 4 if head >> 4 < 15 else _read_unsigned(data)
    for _ in range(count):
        kind = head & 0x0F
        # Truth values have no byte of their own as fields, but one as elements.
        _skip(data, _BYTE if kind in {_TRUE, _FALSE} else kind, depth + 1)


def _read_signed(data: BytesIO) -> int:
    number = _read_unsigned(data)
    return (number >> 1) ^ -(number & 1)  # zigzag


def _read_unsigned(data: BytesIO) -> int:
    number = 0
    for place in range(_LONGEST_NUMBER):
        byte = _read_byte(data)
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number
    raise ValueError("a number without an end")


def _read_byte(data: BytesIO) -> int:
    return _read_bytes(data, 1)[0]


def _read_bytes(data: BytesIO, count: int) -> bytes:
    chunk = data.read(count)
    if len(chunk) < count:
        raise ValueError("the header of a page is cut off")
    return chunk


FORMAT = FormatEntry(
    name="parquet",
    title="Parquet",
    reader=ParquetReader,
    whole=write_parquet,
    endings=(".parquet",),
    export=Export(
        "Parquet",
        "The same rows, for pandas and the like.",
        "parquet",
        "application/vnd.apache.parquet",
    ),
    order=180,
)
