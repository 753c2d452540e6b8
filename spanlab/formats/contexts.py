"""Passages and sources that stand apart from their items, found by a key."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spanlab.base.errors import InputError
from spanlab.formats.files import BOM, FileRow, InputFile
from spanlab.formats.limits import too_large
from spanlab.formats.reader import GivenPassages, input_error, ours, passages_of
from spanlab.schema import Passage, Record

SUFFIX = ".context.txt"
_NAMED = 5  # so many ids without a context are named


class ContextFiles:
    """Adds passages to records and counts the items that have none.

    Args:
        path: a directory of ``<id>.context.txt`` files, a directory of such directories, or a
            JSON Lines file of ``{"id", "passages": [text or {"text", "title", "url", "date"}]}``
            or ``{"id", "context": text}``.

    Raises:
        InputError: there is nothing of the kind at ``path``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._source = _Directory(path) if path.is_dir() else _ContextLines(path)
        self._without: list[str] = []
        self._n_without = 0
        self._n = 0

    def add(self, record: Record) -> Record:
        """Return ``record`` with its passages after those that it already has.

        A passage whose text the item has already is not repeated, so reading a file with the
        contexts it was written with changes nothing.
        """
        self._n += 1
        item = record.item
        passages = self._source.passages(item.id)
        if not passages:
            self._n_without += 1
            if len(self._without) < _NAMED:
                self._without.append(item.id)
            return record
        texts = {passage.text for passage in item.passages}
        new = tuple(passage for passage in passages if passage.text not in texts)
        item = item.model_copy(update={"passages": (*item.passages, *new)})
        return record.model_copy(update={"item": item})

    def finish(self, on_warning: Callable[[str], None]) -> None:
        """Say how many items had no context, if there were any."""
        if not self._n_without:
            return
        names = ", ".join(self._without) + (", …" if self._n_without > _NAMED else "")
        on_warning(f"{self._path}: no context for {self._n_without} of {self._n} items: {names}")


class _Directory:
    """Context files. They are listed once, so that no id can lead out of the directory."""

    def __init__(self, path: Path) -> None:
        self._files: dict[str, list[Path]] = {}
        folders = [path, *sorted(child for child in path.iterdir() if child.is_dir())]
        for folder in folders:
            for file in folder.iterdir():
                if file.name.endswith(SUFFIX) and file.is_file():
                    self._files.setdefault(file.name.removesuffix(SUFFIX), []).append(file)
        if not self._files:
            raise InputError(
                "no context file in this directory",
                file=path,
                expected=f"files named <id>{SUFFIX}, here or one directory down",
            )

    def passages(self, item_id: str) -> tuple[Passage, ...]:
        """Return one passage per file, in the order of the directories' names."""
        texts = (_text(InputFile(file, str(file))) for file in self._files.get(item_id, ()))
        return tuple(Passage(text=text) for text in texts if text.strip())


class _ContextRow(BaseModel):
    """A line of a context file; whatever else it says is left alone."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = Field(coerce_numbers_to_str=True)
    passages: GivenPassages = ()
    context: str | None = None

    def all(self) -> tuple[Passage, ...]:
        """Return the passages that say something, the single context last."""
        passages = (*ours(self.passages), *passages_of(self.context, "context"))
        return tuple(passage for passage in passages if passage.text.strip())


class _ContextLines:
    """A JSON Lines file of contexts."""

    def __init__(self, path: Path) -> None:
        self._index = RecordIndex(InputFile(path, str(path)), lambda row: _context_row(row).id)

    def passages(self, item_id: str) -> tuple[Passage, ...]:
        """Return the passages of every line with this id, in the file's order."""
        return tuple(p for row in self._index.rows(item_id) for p in _context_row(row).all())


def _context_row(row: FileRow) -> _ContextRow:
    return _ContextRow.model_validate_json(row.raw)


def _text(file: InputFile) -> str:
    try:
        return file.whole().decode()
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error.reason}", file=file.name, expected="UTF-8") from None


_BUFFER = 1 << 16
_ENTRY = 250  # bytes of memory for a key and its place, without the key's letters


class RecordIndex:
    """JSON Lines looked up by a key of theirs; only where each key stands is kept in memory.

    A packed file, in which places cannot be gone back to cheaply, is unpacked to a temporary one.

    Args:
        file: the lines.
        key: the key of a line.

    Raises:
        InputError: the file cannot be read, a line has no key or is too large, or there are more
            keys than memory should hold.
    """

    def __init__(self, file: InputFile, key: Callable[[FileRow], str]) -> None:
        self.name = file.name
        self._file = file
        self._places: dict[str, list[tuple[int, int]]] = {}
        file.head()
        self._unpacked: BinaryIO | None = None
        if file.packed():
            self._unpacked = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - stays open
            weakref.finalize(self, self._unpacked.close)
            with file.open() as stream:
                shutil.copyfileobj(stream, self._unpacked, _BUFFER)
        memory = 0
        with self._open() as stream:
            for row, place in file.lines(stream):
                if row.beginning.isspace():
                    continue
                name = self._key(key, row)
                self._places.setdefault(name, []).append((row.line, place))
                memory += _ENTRY + len(name)
                if memory > 2 * file.limit:  # of three; the rest is for records
                    raise too_large("the list of the keys", file.limit, file=file.name)

    @property
    def keys(self) -> Iterable[str]:
        """The keys, in the file's order."""
        return self._places

    def rows(self, key: str) -> Iterator[FileRow]:
        """Yield the lines with this key, in the file's order; none if there are none."""
        places = self._places.get(key)
        if places:
            with self._open() as stream:
                for number, place in places:
                    stream.seek(place)
                    yield self._file.row(number, stream.readline().removeprefix(BOM))

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if self._unpacked is None:
            with self._file.open() as stream:
                yield stream
        else:
            self._unpacked.seek(0)
            yield self._unpacked

    def _key(self, key: Callable[[FileRow], str], row: FileRow) -> str:
        try:
            return key(row)
        except ValidationError as error:
            raise input_error(error).at(file=self.name, line=row.line) from None
