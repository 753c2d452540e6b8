"""The one writer of CSV: cells that a spreadsheet would take for formulas are made texts.

A cell that begins with =, +, -, @, a tab or a carriage return is run by Excel, LibreOffice and
Google Sheets when its file is opened, whoever wrote it: an answer of a model, a name or a label.
It gets an apostrophe before it, as spreadsheets write a text. What we read back is freed of it
again (``as_written``), so nothing changes on the way. JSON Lines and parquet keep cells as they
are.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def write_rows(stream: Any, rows: Iterable[Iterable[object]], *, line_end: str = "\n") -> None:
    """Write rows of cells to a text stream."""
    writer = csv.writer(stream, lineterminator=line_end)
    writer.writerows([safe_cell(cell) for cell in row] for row in rows)


def write_dicts(stream: Any, titles: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Write a head and rows by title; a row without a title's cell has an empty one."""
    write_rows(stream, [titles, *([row.get(title) for title in titles] for row in rows)])


def as_written(cell: Any) -> Any:
    """Return a cell of a table of ours; a text without the apostrophe that it got."""
    is_changed = isinstance(cell, str) and cell.startswith("'") and _FORMULA.match(cell)
    return cell[1:] if is_changed else cell


def safe_cell(cell: object) -> object:
    """Return a cell; a text that would be run, with an apostrophe before it."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell
