"""Arrow files and streams read in bounded memory.

They are mapped into memory: nothing is taken before the place it is at is known to be there. What
is compressed, or repeats itself, would grow when it is read, and is refused.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

from spanlab.base.errors import InputError
from spanlab.formats.files import InputFile
from spanlab.formats.guess import Guess
from spanlab.formats.known.analysis_table import CellsRow
from spanlab.formats.known.tabular import CELL, TableReader
from spanlab.formats.limits import too_large
from spanlab.formats.read_options import ReadOptions
from spanlab.formats.reader import FormatEntry

_ELEMENT = 100  # bytes of memory for an element of a list in a cell


class SchemaReader(TableReader):
    """Reads a table with a schema; lists and structures stay, columns of bytes are left out."""

    def _read_header(self) -> tuple[str, ...]:
        """Return the paths of the columns that hold text; none if the table has no rows."""
        text_fields = [field for field in self._schema() if not holds_bytes(field.type)]
        return tuple(path for field in text_fields for path in _paths(field))

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        if images := self._name_byte_columns():
            yield f"left out {images}"

    @abstractmethod
    def _schema(self) -> Sequence[Any]:
        """Return the table's fields; none if it has no rows."""

    def _names(self) -> list[str]:
        """Return the names of the columns that are read."""
        return [field.name for field in self._schema() if not holds_bytes(field.type)]

    def _map(self, columns: Sequence[str], samples: Sequence[Mapping[str, Any]]) -> Guess:
        try:
            return super()._map(columns, samples)
        except InputError as error:
            if images := self._name_byte_columns():
                error.found = f"{error.found}, and {images}"
            raise

    def _name_byte_columns(self) -> str:
        """Name the columns that hold bytes; empty if there are none."""
        names = [repr(field.name) for field in self._schema() if holds_bytes(field.type)]
        return f"what holds bytes and no text: the columns {', '.join(names)}" if names else ""


def _paths(field: Any, prefix: str = "") -> Iterator[str]:
    import pyarrow as pa

    path, kind = f"{prefix}{field.name}", field.type
    yield path
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            yield from _paths(kind.field(index), f"{path}.")


def rows_of(batch: Any, line: int, limit: int) -> Iterator[CellsRow]:
    """Yield a batch's rows, numbered after ``line``; one at a time where all may be too large."""
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


def decode_dictionaries(batch: Any) -> Any:
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
    return CELL * int(batch.nbytes) + _ELEMENT * sum(map(_count_elements, batch.columns))


def _count_elements(column: Any) -> int:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_map(kind):
        return len(column) + _count_elements(column.values)
    if pa.types.is_nested(kind) and not pa.types.is_struct(kind):
        return len(column) + _count_elements(column.flatten())
    if pa.types.is_struct(kind):
        return len(column) + sum(map(_count_elements, column.flatten()))
    return len(column)


_DICTIONARY, _RECORDS = 2, 3  # kinds of messages: "Message.fbs" of Arrow's format
_GROWING = ("run_end_encoded", "view")  # types whose values may share their bytes


class ArrowReader(SchemaReader):
    """Reads the streams of record batches that ``save_to_disk`` writes."""

    reads_folders = True

    @classmethod
    def owns(cls, file: InputFile) -> bool:
        """Say whether a file is called as those of Arrow, which begin in several ways."""
        return file.path.is_file() and file.name.endswith(".arrow")

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        path = PurePath(file.name)  # train/data-00000-of-00002.arrow
        shard = self._stem.removeprefix("data-").removesuffix("-of-00001").removesuffix("00000")
        self._stem = "-".join(filter(None, (path.parent.name, shard.strip("-")))) or self._stem

    def _schema(self) -> Sequence[Any]:
        with self._open_stream() as reader:
            return list(reader.schema)

    def _cells(self) -> Iterator[CellsRow]:
        columns, line = self._names(), 0
        self._check()
        with self._open_stream() as reader:
            for batch in reader:
                batch.validate(full=True)
                text_batch = batch.select(columns)
                grows = any("dictionary" in str(field.type) for field in text_batch.schema)
                step = 1 if grows else max(len(text_batch), 1)
                for start in range(0, len(text_batch), step):
                    piece = decode_dictionaries(text_batch.slice(start, step))
                    for row in rows_of(piece, line, self._file.limit):
                        line += 1
                        yield row

    def _check(self) -> None:
        """Refuse what would take more memory than it takes on disk."""
        import pyarrow as pa

        with self._open_stream() as reader:
            kinds = str(reader.schema.types)
        grows = any(kind in kinds for kind in _GROWING)
        with self._translate_errors(), pa.memory_map(str(self._file.path)) as stream:
            for message in pa.ipc.MessageReader.open_stream(stream):
                if grows or _is_compressed(message.metadata.to_pybytes()):
                    raise self._unreadable("it is compressed")

    @contextmanager
    def _open_stream(self) -> Iterator[Any]:
        import pyarrow as pa

        path = str(self._file.path)
        with (
            self._translate_errors(),
            pa.memory_map(path) as stream,
            pa.ipc.open_stream(stream) as reader,
        ):
            yield reader

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Have what pyarrow raises told in our words."""
        import pyarrow as pa

        try:
            yield
        except FileNotFoundError:
            raise InputError("there is no such file", file=self._file.name) from None
        except (pa.ArrowException, OSError, UnicodeDecodeError, struct.error) as error:
            raise self._unreadable(str(error)) from None

    def _unreadable(self, why: str) -> InputError:
        return InputError(
            f"not an Arrow file that can be read, or a damaged one: {why}",
            file=self._file.name,
            expected="a stream of record batches without compression, as save_to_disk writes it, "
            "or parquet",
        )


def _is_compressed(metadata: bytes) -> bool:
    """Say whether the buffers of a message are compressed, by its flatbuffer."""
    message = struct.unpack_from("<I", metadata, 0)[0]
    kind_at, header_at = _field(metadata, message, 1), _field(metadata, message, 2)
    if kind_at is None or header_at is None or metadata[kind_at] not in {_DICTIONARY, _RECORDS}:
        return False
    batch: int | None = _follow_offset(metadata, header_at)
    if metadata[kind_at] == _DICTIONARY:
        data_at = _field(metadata, _follow_offset(metadata, header_at), 1)
        batch = None if data_at is None else _follow_offset(metadata, data_at)
    return batch is not None and _field(metadata, batch, 3) is not None


def _field(data: bytes, table: int, number: int) -> int | None:
    """Return where a field of a flatbuffer's table is; None if it is not set."""
    fields = table - int(struct.unpack_from("<i", data, table)[0])
    size = struct.unpack_from("<H", data, fields)[0]
    slot = 4 + 2 * number
    offset = struct.unpack_from("<H", data, fields + slot)[0] if slot < size else 0
    return table + int(offset) if offset else None


def _follow_offset(data: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", data, at)[0])


FORMAT = FormatEntry(
    name="arrow",
    title="Arrow (Hugging Face datasets)",
    reader=ArrowReader,
    order=190,
)
