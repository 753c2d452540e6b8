"""Workbooks of Excel (.xlsx): the first sheet with rows, read as a table with a header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple
from zipfile import ZipFile

from spanlab.base.errors import InputError
from spanlab.formats.containers import DAMAGE, ZIP, is_workbook
from spanlab.formats.files import InputFile
from spanlab.formats.known.analysis_table import CellsRow
from spanlab.formats.known.tabular import SAMPLES, TableReader
from spanlab.formats.limits import UNPACKED, most_unpacked, too_large
from spanlab.formats.reader import FormatEntry

# Of a number format: "Uhr", \h, _h, [$-409], and what is not the first of its sections.
_PLAIN_WORDS: Final = re.compile(r'"[^"]*"|[\\_].|\[[^\]]*\]|;.*')

_FIRST: Final = SAMPLES + 2  # rows that are kept: with wide ones, parsing is what takes long


class WorkbookReader(TableReader):
    """Reads a workbook; formulas count by the values that were saved with them."""

    @classmethod
    def owns(cls, file: InputFile) -> bool:
        """Say whether a file is a workbook."""
        return file.path.is_file() and file.head().startswith(ZIP) and is_workbook(file.path)

    def _read_header(self) -> tuple[str, ...]:
        """Return the names in the first row; a column without one has a number."""
        header, *rows = self._begin.rows or ((),)
        if not rows:
            return ()
        names = [str(name) if name is not None else "" for name in header]
        while names and not names[-1]:
            names.pop()
        return tuple(name or f"column {number}" for number, name in enumerate(names, start=1))

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        if others := self._begin.others:
            yield f"read was the first sheet; left out: {', '.join(others)}"

    def _cells(self) -> Iterator[CellsRow]:
        for number, values in enumerate(islice(self._rows(), 1, None), start=2):
            cells = dict(zip(self._header, values, strict=False))
            if any(cell is not None for cell in cells.values()):
                yield CellsRow(number, cells)

    def _rows(self) -> Iterator[Sequence[Any]]:
        yield from self._begin.rows
        if len(self._begin.rows) == _FIRST:
            with _book(self._file) as book:
                yield from islice(_rows_of(_sheets(book)[0]), _FIRST, None)

    @property
    def _begin(self) -> _Beginning:
        about = self._file.path.stat()
        return _beginning(self._file, (about.st_mtime_ns, about.st_size))


@contextmanager
def _book(file: InputFile) -> Iterator[Any]:
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    path, limit = file.path, file.limit
    try:
        with ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > most_unpacked(path.stat().st_size, limit):
            raise too_large(UNPACKED, limit, file=file.name)
        with path.open("rb") as stream:
            book = load_workbook(stream, read_only=True, data_only=True)
            yield book
            book.close()
    except (*DAMAGE, InvalidFileException, KeyError, SyntaxError) as error:  # the last of XML
        raise InputError(f"not a workbook, or a damaged one: {error}", file=file.name) from None


class _Beginning(NamedTuple):
    """The first rows of the first sheet that has any, and the names of the others that have."""

    rows: Sequence[Sequence[Any]] = ()
    others: Sequence[str] = ()


@lru_cache(maxsize=2)
def _beginning(file: InputFile, stamp: tuple[int, int]) -> _Beginning:
    """Return how a workbook begins; ``stamp`` tells a file from what it was before it changed."""
    with _book(file) as book:
        sheets = _sheets(book)
        rows = tuple(islice(_rows_of(sheets[0]), _FIRST)) if sheets else ()
        return _Beginning(rows, [sheet.title for sheet in sheets[1:]])


def _sheets(book: Any) -> list[Any]:
    return [sheet for sheet in book.worksheets if not _is_empty(sheet)]


def _rows_of(sheet: Any) -> Iterator[Sequence[Any]]:
    return (tuple(map(_value, row)) for row in sheet.iter_rows())


def _is_empty(sheet: Any) -> bool:
    return next(sheet.iter_rows(values_only=True, max_row=1), None) in (None, ())


def _value(cell: Any) -> Any:
    """Return what a cell shows: of a moment the day, if its format has no time and it is midnight.

    A duration is hours, minutes and seconds.
    """
    match cell.value:
        case datetime() as moment if moment.time() == time() and _is_day(cell.number_format):
            return moment.date().isoformat()
        case date() | time() as moment:
            return moment.isoformat()
        case timedelta() as duration:
            minutes, seconds = divmod(round(duration.total_seconds()), 60)
            return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
        case value:
            return value


def _is_day(number_format: str) -> bool:
    """Say whether a format of dates has neither hours nor seconds outside of its plain words."""
    return not re.search("[hs]", _PLAIN_WORDS.sub("", number_format), re.IGNORECASE)


FORMAT = FormatEntry(name="workbook", title="Excel workbook", reader=WorkbookReader, order=170)
