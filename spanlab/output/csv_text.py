"""The one writer of CSV: cells that a spreadsheet would take for formulas are made texts.

A cell that begins with =, +, -, @ (wide ones included), a tab or a line break is run by Excel,
LibreOffice and Google Sheets when its file is opened, whatever wrote it: an answer of a model, a
name or a label. So is what follows a semicolon, a tab or a line break inside of it, where a
spreadsheet splits rows there. Each of these gets an apostrophe before it, as spreadsheets write a
text, and every text is quoted. What we read back is freed of it again (``as_written``), so nothing
changes on the way. Programs that want the cells as they are ask for them (``unguarded``); JSON
Lines and parquet keep them anyway.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

UNGUARDED: Final = "unguarded"  # a column that a table without guards has, so that it is known
_RUN: Final = "=+@\uff1d\uff0b\uff0d\uff20-"
_SPLITS: Final = ";\t\r\n"
_UNSAFE: Final = re.compile(f"\\A(?=['\"]*[\t\r\n{_RUN}])|(?<=[{_SPLITS}])(?=['\"]*[{_RUN}])")
_GUARD: Final = re.compile(f"\\A'(?=['\"]*[\t\r\n{_RUN}])|(?<=[{_SPLITS}])'(?=['\"]*[{_RUN}])")
_are_unguarded: ContextVar[bool] = ContextVar("are_unguarded", default=False)


@contextmanager
def unguarded() -> Iterator[None]:
    """Have CSV be written for programs while the block lasts: cells as they are."""
    token = _are_unguarded.set(True)
    try:
        yield
    finally:
        _are_unguarded.reset(token)


def further_columns() -> tuple[str, ...]:
    """Return the columns that a table which is read back has beside its own."""
    return (UNGUARDED,) if _are_unguarded.get() else ()


def write_rows(stream: Any, rows: Iterable[Iterable[object]], *, line_end: str = "\n") -> None:
    """Write rows of cells to a text stream."""
    if _are_unguarded.get():
        csv.writer(stream, lineterminator=line_end).writerows(rows)
        return
    writer = csv.writer(stream, lineterminator=line_end, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows([safe_cell(cell) for cell in row] for row in rows)


def write_dicts(stream: Any, titles: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Write a head and rows by title; a row without a title's cell has an empty one."""
    write_rows(stream, [titles, *([row.get(title) for title in titles] for row in rows)])


def as_written(cell: Any) -> Any:
    """Return a cell of a table of ours; a text without the apostrophes that it got."""
    return _GUARD.sub("", cell) if isinstance(cell, str) and "'" in cell else cell


def safe_cell(cell: object) -> object:
    """Return a cell; a text with an apostrophe before each part that would be run."""
    return _UNSAFE.sub("'", cell) if isinstance(cell, str) else cell
