"""Workbooks of Excel (.xlsx): the first sheet with rows, read as a table with a header."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from typing import Any
from zipfile import ZipFile

from spanlab.base.errors import InputError
from spanlab.formats.containers import DAMAGE, ZIP, is_workbook
from spanlab.formats.files import InputFile
from spanlab.formats.known.analysis_table import CellsRow
from spanlab.formats.known.tabular import TableReader
from spanlab.formats.limits import UNPACKED, most_unpacked, too_large
from spanlab.formats.reader import FormatEntry


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
                cells = dict(zip(columns, map(_cell, values), strict=False))
                if any(cell is not None for cell in cells.values()):
                    yield CellsRow(number, cells)

    @contextmanager
    def _rows(self) -> Iterator[Iterator[tuple[Any, ...]]]:
        with self._book() as book:
            sheets = (sheet for sheet in book.worksheets if not _is_empty(sheet))
            sheet = next(sheets, None)
            yield iter(()) if sheet is None else sheet.iter_rows(values_only=True)

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


def _cell(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date | datetime | time) else value


FORMAT = FormatEntry(name="workbook", title="Excel workbook", reader=WorkbookReader, order=170)
