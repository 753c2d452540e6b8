"""Arrow files as Hugging Face's ``datasets`` keeps them on disk (``save_to_disk``).

They are mapped into memory: nothing is taken before the place it is at is known to be there. What
is compressed, or repeats itself, would grow when it is read, and is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

from spanlab.datasets.arrow_rows import SchemaReader, plain, rows_of
from spanlab.datasets.files import InputFile
from spanlab.datasets.formats.analysis_table import CellsRow
from spanlab.datasets.reader import ReadOptions
from spanlab.errors import InputError

_DICTIONARY, _RECORDS = 2, 3  # kinds of messages: "Message.fbs" of Arrow's format
_GROWING = ("run_end_encoded", "view")  # types whose values may share their bytes


class ArrowReader(SchemaReader):
    """Reads the streams of record batches that ``save_to_disk`` writes."""

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        path = PurePath(file.name)  # train/data-00000-of-00002.arrow
        shard = self._stem.removeprefix("data-").removesuffix("-of-00001").removesuffix("00000")
        self._stem = "-".join(filter(None, (path.parent.name, shard.strip("-")))) or self._stem

    def _schema(self) -> Sequence[Any]:
        with self._opened() as reader:
            return list(reader.schema)

    def _cells(self) -> Iterator[CellsRow]:
        columns, line = self._names(), 0
        self._check()
        with self._opened() as reader:
            for batch in reader:
                batch.validate(full=True)
                chosen = batch.select(columns)
                grows = any("dictionary" in str(field.type) for field in chosen.schema)
                step = 1 if grows else max(len(chosen), 1)
                for start in range(0, len(chosen), step):
                    part = plain(chosen.slice(start, step))
                    for row in rows_of(part, line, self._file.limit):
                        line += 1
                        yield row

    def _check(self) -> None:
        """Refuse what would take more memory than it takes on disk."""
        import pyarrow as pa

        with self._opened() as reader:
            kinds = str(reader.schema.types)
        grows = any(each in kinds for each in _GROWING)
        with self._told(), pa.memory_map(str(self._file.path)) as stream:
            for message in pa.ipc.MessageReader.open_stream(stream):
                if grows or _is_compressed(message.metadata.to_pybytes()):
                    raise self._unreadable("it is compressed")

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow as pa

        path = str(self._file.path)
        with self._told(), pa.memory_map(path) as stream, pa.ipc.open_stream(stream) as reader:
            yield reader

    @contextmanager
    def _told(self) -> Iterator[None]:
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
    batch: int | None = _target(metadata, header_at)
    if metadata[kind_at] == _DICTIONARY:
        data_at = _field(metadata, _target(metadata, header_at), 1)
        batch = None if data_at is None else _target(metadata, data_at)
    return batch is not None and _field(metadata, batch, 3) is not None


def _field(data: bytes, table: int, number: int) -> int | None:
    """Return where a field of a flatbuffer's table is; None if it is not set."""
    fields = table - int(struct.unpack_from("<i", data, table)[0])
    size = struct.unpack_from("<H", data, fields)[0]
    slot = 4 + 2 * number
    offset = struct.unpack_from("<H", data, fields + slot)[0] if slot < size else 0
    return table + int(offset) if offset else None


def _target(data: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", data, at)[0])
