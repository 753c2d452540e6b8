"""What parquet and Arrow have in common: columns by a schema, and record batches as rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spanlab.datasets.formats.analysis_table import CellsRow
from spanlab.datasets.formats.tabular import CELL, TableReader
from spanlab.datasets.limits import too_large
from spanlab.errors import InputError

_ELEMENT = 100  # bytes of memory for an element of a list in a cell


class SchemaReader(TableReader):
    """Reads a table with a schema; lists and structures stay, columns of bytes are left out."""

    def columns(self) -> tuple[str, ...]:
        """Return the paths of the columns that hold text; none if the table has no rows."""
        kept = [field for field in self._schema() if not holds_bytes(field.type)]
        return tuple(path for field in kept for path in _paths(field))

    def finish(self) -> None:
        """Say which columns hold bytes."""
        if images := self._of_bytes():
            self._options.on_warning(f"{self._file.name}: left out {images}")

    @abstractmethod
    def _schema(self) -> Sequence[Any]:
        """Return the table's fields; none if it has no rows."""

    def _names(self) -> list[str]:
        """Return the names of the columns that are read."""
        return [field.name for field in self._schema() if not holds_bytes(field.type)]

    def _map(self, columns: Sequence[str], samples: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        try:
            return super()._map(columns, samples)
        except InputError as error:
            if images := self._of_bytes():
                error.found = f"{error.found}, and {images}"
            raise

    def _of_bytes(self) -> str:
        """Name the columns that hold bytes; empty if there are none."""
        names = [repr(field.name) for field in self._schema() if holds_bytes(field.type)]
        return f"what holds bytes and no text: the columns {', '.join(names)}" if names else ""


def _paths(field: Any, before: str = "") -> Iterator[str]:
    import pyarrow as pa

    path, kind = f"{before}{field.name}", field.type
    yield path
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            yield from _paths(kind.field(index), f"{path}.")


def rows_of(batch: Any, line: int, limit: int) -> Iterator[CellsRow]:
    """Yield the rows behind ``line``, one by one only where all at once may be too large."""
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


def plain(batch: Any) -> Any:
    """Return a batch with its repeated texts written out, so that each row has its own size."""
    import pyarrow as pa

    if not any(pa.types.is_dictionary(column.type) for column in batch.columns):
        return batch
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def holds_bytes(kind: Any) -> bool:
    """Say whether values of an arrow type hold bytes, such as those of an image."""
    inner = [kind.field(index).type for index in range(kind.num_fields)]
    return "binary" in str(kind) if not inner else any(map(holds_bytes, inner))


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
