"""Tables in parquet, through pyarrow, as many rows at once as are safe to hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from spanlab.datasets.files import File
from spanlab.datasets.limits import UNPACKED, most_unpacked, too_large
from spanlab.datasets.parquet_pages import Page, pages
from spanlab.datasets.tabular import CELL, CellsRow, TableReader
from spanlab.errors import InputError

_BATCH = 1000  # rows held at a time, if that is safe
_BUFFER = 1 << 20  # bytes of a column that are read at a time
_ELEMENT = 100  # bytes of memory for an element of a list in a cell
_LEVELS = 8  # bytes that an element of a list takes in a column


class ParquetReader(TableReader):
    """Reads parquet; lists and structures are taken as they are, columns of bytes are left out."""

    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns that hold text; none if the table has no rows."""
        with self._opened() as table:
            names = tuple(f.name for f in table.schema_arrow if not _holds_bytes(f.type))
            return names if table.metadata.num_rows else ()

    def finish(self) -> None:
        """Say which columns hold bytes."""
        if images := self._of_bytes():
            self._options.on_warning(f"{self._file.name}: left out {images}")

    def _map(self, columns: Sequence[str]) -> dict[str, str]:
        try:
            return super()._map(columns)
        except InputError as error:
            if images := self._of_bytes():
                error.found = f"{error.found}, and {images}"
            raise

    def _of_bytes(self) -> str:
        """Name the columns that hold bytes; empty if there are none."""
        with self._opened() as table:
            names = [repr(f.name) for f in table.schema_arrow if _holds_bytes(f.type)]
        return f"what holds bytes and no text: the columns {', '.join(names)}" if names else ""

    def _cells(self) -> Iterator[CellsRow]:
        columns = list(self.columns())
        left = most_unpacked(self._file.path.stat().st_size, self._file.limit)
        line = 0
        with self._opened() as table:
            for group in range(table.num_row_groups):
                count = _safe_rows(table.metadata.row_group(group), columns, self._file)
                batches = table.iter_batches(count, row_groups=[group], columns=columns)
                for batch in map(_plain, batches):
                    for row in self._rows_of(batch, line):
                        line += 1
                        yield row
                    left -= batch.nbytes
                    if left < 0:
                        raise self._at(too_large(UNPACKED, self._file.limit), line)

    def _rows_of(self, batch: Any, line: int) -> Iterator[CellsRow]:
        """Yield the rows behind ``line``, one by one only where all at once may be too large."""
        limit = self._file.limit
        if _memory(batch) <= limit:
            for number, cells in enumerate(batch.to_pylist(), start=line + 1):
                yield CellsRow(number, cells)
            return
        for index in range(len(batch)):
            row = batch.slice(index, 1)
            if _memory(row) > limit:
                yield CellsRow(line + index + 1, {}, too_large("the row", limit))
            else:
                yield CellsRow(line + index + 1, row.to_pylist()[0])

    @contextmanager
    def _opened(self) -> Iterator[Any]:
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


def _safe_rows(group: Any, columns: Sequence[str], file: File) -> int:
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


def _pages(chunk: Any, file: File) -> Iterator[Page]:
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


def _plain(batch: Any) -> Any:
    """Return a batch with its repeated texts written out, so that each row has its own size."""
    import pyarrow as pa

    if not any(pa.types.is_dictionary(column.type) for column in batch.columns):
        return batch
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _memory(batch: Any) -> int:
    """Return how many bytes of memory rows of parquet take as JSON, as an upper bound."""
    return CELL * int(batch.nbytes) + _ELEMENT * sum(map(_elements, batch.columns))


def _elements(column: Any) -> int:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_map(kind):
        return len(column) + _elements(column.values)
    if pa.types.is_nested(kind) and not pa.types.is_struct(kind):
        return len(column) + _elements(column.flatten())
    if pa.types.is_struct(kind):
        return len(column) + sum(map(_elements, column.flatten()))
    return len(column)


def _holds_bytes(kind: Any) -> bool:
    """Say whether values of an arrow type hold bytes, such as those of an image."""
    inner = [kind.field(index).type for index in range(kind.num_fields)]
    return "binary" in str(kind) if not inner else any(map(_holds_bytes, inner))
