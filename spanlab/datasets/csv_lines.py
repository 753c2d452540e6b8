"""Where the records of a CSV file stand: pandas reads the cells, but does not say from which line.

The standard library's reader splits a file into the same records and counts the lines that each
takes; a record whose cells hold line breaks takes several.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from spanlab.datasets.files import File

_LONGEST_CELL = 2**31 - 1  # characters; the library would refuse cells of more than 131,072


class Fault(NamedTuple):
    """What is wrong with a table, and the 1-based line of the record in which it is."""

    what: str
    line: int


class _Placed(NamedTuple):
    cells: list[str]
    line: int


def record_lines(file: File, delimiter: str) -> Iterator[int]:
    """Yield the line on which each record begins, counted from 1, without the header.

    Args:
        file: a CSV file that pandas can read.
        delimiter: what stands between its cells.
    """
    records = _records(file, delimiter)
    next(records, None)
    for record in records:
        yield record.line


def find_fault(file: File, delimiter: str) -> Fault | None:
    """Return what keeps pandas from reading a table that it has refused; None if unknown."""
    width = 0
    last = None
    try:
        for last in _records(file, delimiter):
            width = width or len(last.cells)
            if len(last.cells) > width:
                return Fault(f"this row has {len(last.cells)} cells, the header {width}", last.line)
    except UnicodeDecodeError:
        return None
    # Nothing else is wrong, so it is the end: a quote that was opened takes all that follows.
    return Fault("a quote is opened here and never closed", last.line) if last else None


def undecodable_line(file: File) -> int | None:
    """Return the first line that is not UTF-8, counted from 1; None if all are."""
    with file.open() as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None


class _Lines:
    """The lines of a text, the latest of which stays in sight."""

    def __init__(self, text: Iterable[str]) -> None:
        self._text = text
        self.latest = ""

    def __iter__(self) -> Iterator[str]:
        for line in self._text:
            self.latest = line
            yield line


def _records(file: File, delimiter: str) -> Iterator[_Placed]:
    """Yield the records, the header first; like pandas, without lines that are empty."""
    csv.field_size_limit(_LONGEST_CELL)
    with file.open() as stream:
        lines = _Lines(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""))
        reader = csv.reader(lines, delimiter=delimiter)
        begin = 1
        for cells in reader:
            blank = reader.line_num == begin and not lines.latest.strip(" \t\r\n")
            if not (blank and len(cells) < 2):
                yield _Placed(cells, begin)
            begin = reader.line_num + 1
