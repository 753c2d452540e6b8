"""Tables in parquet, through pyarrow, as many rows at once as are safe to hold."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from spanlab.datasets.arrow_rows import SchemaReader, plain, rows_of
from spanlab.datasets.files import InputFile
from spanlab.datasets.formats.analysis_table import CellsRow
from spanlab.datasets.limits import UNPACKED, most_unpacked, too_large
from spanlab.datasets.parquet_pages import UnpackedPage, pages
from spanlab.datasets.reader import ReadOptions
from spanlab.errors import InputError

_BATCH = 1000  # rows held at a time, if that is safe
_BUFFER = 1 << 20  # bytes of a column that are read at a time
_LEVELS = 8  # bytes that an element of a list takes in a column


class ParquetReader(SchemaReader):
    """Reads parquet."""

    def _schema(self) -> Sequence[Any]:
        with self.opened() as table:
            return list(table.schema_arrow) if table.metadata.num_rows else []

    def _cells(self) -> Iterator[CellsRow]:
        columns = self._names()
        left = most_unpacked(self._file.path.stat().st_size, self._file.limit)
        line = 0
        with self.opened() as table:
            for group in range(table.num_row_groups):
                count = _safe_rows(table.metadata.row_group(group), columns, self._file)
                batches = table.iter_batches(count, row_groups=[group], columns=columns)
                for batch in map(plain, batches):
                    for row in rows_of(batch, line, self._file.limit):
                        line += 1
                        yield row
                    left -= batch.nbytes
                    if left < 0:
                        raise self._at(too_large(UNPACKED, self._file.limit), line)

    def rows_with_cells(self) -> Iterator[CellsRow]:
        """Yield the rows as they stand."""
        return self._cells()

    @contextmanager
    def opened(self) -> Iterator[Any]:
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
    if size > most_unpacked(file.path.stat().st_size, file.limit):
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
    start = min(each for each in (chunk.dictionary_page_offset, chunk.data_page_offset) if each)
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
    with reader.opened() as opened:
        there = opened.schema_arrow.names
    for column in columns:
        if column not in there:
            raise InputError(
                f"the column {column!r} is missing",
                file=file.name,
                found=f"the columns {', '.join(there)}",
            )
    for row in reader.rows_with_cells():
        if row.refused is not None:
            raise row.refused.at(file=file.name, line=row.line, unit="row")
        yield row
