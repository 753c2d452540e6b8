"""Tables in CSV, row by row, with the line on which each row begins."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import NamedTuple

from spanlab.base.errors import InputError
from spanlab.doors import Export
from spanlab.formats.files import InputFile
from spanlab.formats.known.analysis_table import CellsRow, csv_chunks, is_table
from spanlab.formats.known.tabular import CELL, TableReader
from spanlab.formats.limits import too_large
from spanlab.formats.reader import FormatEntry
from spanlab.output.csv_text import UNGUARDED, as_written

_DELIMITERS = ",;\t|"
_IMPORT_ID = '{"ImportId"'  # in Qualtrics' third header
_LOOKED_AT = 20  # rows that tell it


class CsvReader(TableReader):
    """Reads CSV. The delimiter is the one of comma, semicolon, tab and bar that splits alike."""

    _unit = "line"

    def _read_header(self) -> tuple[str, ...]:
        with closing(self._rows()) as rows:
            header, first_row = next(rows, None), next(rows, None)
        if header is None or first_row is None:
            return ()
        counts: Counter[str] = Counter()
        names = []
        for name in header.cells:
            names.append(f"{name}.{counts[name]}" if counts[name] else name)
            counts[name] += 1
        return tuple(names)

    def is_ours(self, columns: Sequence[str]) -> bool:
        """Say whether a table was written here: its texts that look like formulas are marked."""
        return is_table(columns)

    def _cells(self) -> Iterator[CellsRow]:
        columns = self._header
        is_ours = self.is_ours(columns)
        is_guarded = is_ours and UNGUARDED not in columns  # where formulas are marked
        with closing(self._rows()) as rows:
            next(rows, None)
            first = [*islice(rows, 2)]
            if any(cell.startswith(_IMPORT_ID) for row in first[1:] for cell in row.cells):
                first = []  # more headers, of Qualtrics
            for cells, line in chain(first, rows):
                if len(cells) > len(columns):
                    width = f"{len(cells)} cells, the header {len(columns)}"
                    raise self._error(f"this row has {width}", line)
                written = map(as_written, cells) if is_guarded else cells
                filled = [*written, *[""] * (len(columns) - len(cells))]
                row = dict(zip(columns, filled, strict=True))
                if is_ours:
                    row.pop(UNGUARDED, None)
                yield CellsRow(line, row)

    def _rows(self) -> Generator[_CsvRow]:
        """Yield the rows, the header first, without lines that are empty."""
        with (
            self._file.open() as stream,
            io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text,
        ):
            lines = _BoundedLines(text, self._file)
            delimiter, is_said = _delimiter(self._file.head())
            if is_said:
                text.readline()
                lines.begin = 2
            csv.field_size_limit(2**31 - 1)  # the lines of a row are counted, whatever its cells
            for cells in self._parsed(lines, delimiter):
                last_line = lines.number + is_said
                blank = last_line == lines.begin and not lines.latest.strip(" \t\r\n")
                # Excel ends tables with rows of separators alone.
                if not (blank and len(cells) < 2) and (len(cells) < 2 or any(cells)):
                    yield _CsvRow(cells, lines.begin)
                lines.begin, lines.taken = last_line + 1, 0

    def _parsed(self, lines: _BoundedLines, delimiter: str) -> Iterator[list[str]]:
        """Yield the rows; a quote inside a line's cell may be a sign of its own, as others write.

        Raises:
            InputError: one that a cell of several lines begins with has text behind its end.
        """
        source = iter(lines)
        rows = csv.reader(source, delimiter=delimiter, strict=True)
        while True:
            first = lines.number + 1
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error:
                if lines.number > first and not lines.is_over:
                    problem = "a quote is opened here, and text stands where it closes"
                    raise self._error(f"{problem}, on line {lines.number}", lines.begin) from None
                cells = next(csv.reader(chain([lines.latest], source), delimiter=delimiter))
                if lines.is_over:
                    problem = "a quote is opened here and never closed"
                    raise self._error(problem, lines.begin) from None
            yield cells

    def _error(self, problem: str, line: int) -> InputError:
        return InputError(
            f"the table is broken: {problem}",
            file=self._file.name,
            line=line,
            expected="as many cells in every row as in the header, and closed quotes",
        )


class _CsvRow(NamedTuple):
    cells: list[str]
    line: int  # where it begins, counted from 1


class _BoundedLines:
    """The lines of a CSV file; a row that takes too many of them is refused."""

    def __init__(self, text: io.TextIOBase, file: InputFile) -> None:
        self._text = text
        self._file = file
        self._most = file.limit // CELL
        self.begin = 1  # line on which the present row begins
        self.taken = 0  # characters of it
        self.number = 0  # of the latest line
        self.is_over = False  # whether more was asked for than there is
        self.latest = ""

    def __iter__(self) -> Iterator[str]:
        try:
            while line := self._text.readline(self._most + 1):
                self.taken += len(line)
                if self.taken > self._most:
                    what, limit = "the row (is a quote closed?)", self._file.limit
                    raise too_large(what, limit, file=self._file.name, line=self.begin)
                self.latest, self.number = line, self.number + 1
                yield line
            self.is_over = True
        except UnicodeDecodeError as error:
            raise InputError(
                f"not UTF-8: {error.reason}",
                file=self._file.name,
                line=_undecodable_line(self._file),
                expected="UTF-8; --encoding NAME reads another, such as windows-1252 or cp932",
            ) from None


def _undecodable_line(file: InputFile) -> int | None:
    """Return the first line that is not UTF-8, counted from 1; None if all are."""
    with file.open() as stream:
        for row, _ in file.lines(stream):
            try:
                row.beginning.decode()
            except UnicodeDecodeError:
                return row.line
    return None


def _delimiter(head: bytes) -> tuple[str, bool]:
    """Return what separates cells, and whether a first line ``sep=;`` says so, as for Excel."""
    lines = head.decode("utf-8", errors="replace").splitlines()
    if lines[0].lower().startswith("sep=") and len(lines[0]) == len("sep=;"):
        return lines[0][-1], True
    sizes = {
        mark: [len(row) for row in islice(csv.reader(lines, delimiter=mark), _LOOKED_AT)]
        for mark in _DELIMITERS
    }
    # Rows as long as the header tell more than its length: it may have commas in a name.
    fits = {mark: rows[0] > 1 and sum(n == rows[0] for n in rows) for mark, rows in sizes.items()}
    return max(_DELIMITERS, key=lambda mark: (fits[mark], sizes[mark][0])), False


def column_names(head: bytes) -> frozenset[str]:
    """Return the names in the first line of a table, read from its beginning."""
    first = next(iter(head.decode(errors="replace").splitlines()), "")
    return frozenset(re.split(r'[,;\t|"]+', first))


FORMAT = FormatEntry(
    name="csv",
    title="CSV",
    reader=CsvReader,
    chunks=csv_chunks,
    asks=True,
    endings=(".csv",),
    export=Export(
        "CSV",
        "A row for each item and annotator; without evidence, rejected spans and traces.",
        "csv",
        "text/csv",
    ),
    order=160,
)
