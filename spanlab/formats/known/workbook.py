"""Workbooks of Excel (.xlsx): the first sheet with rows, read as a table with a header."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from zipfile import ZipFile

from spanlab.base.errors import InputError
from spanlab.formats.containers import DAMAGE, ZIP, is_workbook
from spanlab.formats.files import InputFile
from spanlab.formats.known.analysis_table import CellsRow
from spanlab.formats.known.tabular import TableReader
from spanlab.formats.limits import UNPACKED, most_unpacked, too_large
from spanlab.formats.reader import FormatEntry

# Of a number format: "Uhr", \h, _h, [$-409], and what is not the first of its sections.
_PLAIN_WORDS: Final = re.compile(r'"[^"]*"|[\\_].|\[[^\]]*\]|;.*')


class WorkbookReader(TableReader):
    """Reads a workbook; formulas count by the values that were saved with them."""

    @classmethod
    def owns(cls, file: InputFile) -> bool:
        """Say whether a file is a workbook."""
        return file.path.is_file() and file.head().startswith(ZIP) and is_workbook(file.path)

    def _header(self) -> tuple[str, ...]:
        """Return the names in the first row; a column without one has a number."""
        with self._rows() as rows:
            header, first_row = next(rows, None), next(rows, None)
        if header is None or first_row is None:
            return ()
        names = [str(name) if name is not None else "" for name in header]
        while names and not names[-1]:
            names.pop()
        return tuple(name or f"column {number}" for number, name in enumerate(names, start=1))

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        with self._book() as book:
            others = [sheet.title for sheet in book.worksheets if not _is_empty(sheet)][1:]
        if others:
            yield f"read was the first sheet; left out: {', '.join(others)}"

    def _cells(self) -> Iterator[CellsRow]:
        columns = self._header()
        with self._rows() as rows:
            next(rows, None)
            for number, values in enumerate(rows, start=2):
                cells = dict(zip(columns, values, strict=False))
                if any(cell is not None for cell in cells.values()):
                    yield CellsRow(number, cells)

    @contextmanager
    def _rows(self) -> Iterator[Iterator[tuple[Any, ...]]]:
        with self._book() as book:
            sheets = (sheet for sheet in book.worksheets if not _is_empty(sheet))
            sheet = next(sheets, None)
            rows = iter(()) if sheet is None else sheet.iter_rows()
            yield (tuple(map(_value, row)) for row in rows)

    @contextmanager
    def _book(self) -> Iterator[Any]:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException

        path, limit = self._file.path, self._file.limit
        try:
            with ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
            if size > most_unpacked(path.stat().st_size, limit):
                raise too_large(UNPACKED, limit, file=self._file.name)
            with path.open("rb") as stream:
                book = load_workbook(stream, read_only=True, data_only=True)
                yield book
                book.close()
        except (*DAMAGE, InvalidFileException, KeyError, SyntaxError) as error:  # the last of XML
            raise InputError(
                f"not a workbook, or a damaged one: {error}", file=self._file.name
            ) from None


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
