"""Results as typed tables, and how they are written: as text, as HTML, as CSV, as JSON.

An analysis says once, by ``tables``, how its figures read; commands, pages, files and reports only
render that. A unit is written in one way everywhere (see ``figures``).
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar

from pydantic_core import to_jsonable_python

from spanlab.base.fields import FrozenModel
from spanlab.base.redaction import visible
from spanlab.output.csv_text import write_dicts
from spanlab.output.figures import duration, field_in_words, figure, money, percent

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table
    from rich.text import Text

ONE_ITEM: Final = "No interval: only one item."
MISSING: Final = "–"
_UNBOUNDED: Final = 1_000_000  # columns: what is piped is never folded
_RIGHT_TO_LEFT: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
Unit = Literal["text", "count", "share", "score", "difference", "points", "p", "seconds", "dollars"]


class MeanInterval(FrozenModel):
    """A mean with its 95 % interval, which is a point only where all there is to know is known."""

    mean: float
    low: float
    high: float


Cell: TypeAlias = str | int | float | MeanInterval | None
T = TypeVar("T")


class Column(FrozenModel):
    """A column of a table.

    Attributes:
        key: what programs call it.
        title: what people read above it; no two columns of a table have the same.
        unit: how its cells are written: a share is in [0, 1] and written in per cent, a score is
            in [-1, 1], a difference is one with its sign; points are a difference of shares.
        digits: decimals of scores, differences and seconds, and of counts that are no integers.
        about: what it means, in a sentence.
    """

    key: str
    title: str
    unit: Unit = "text"
    digits: int = 3
    about: str = ""

    @property
    def heading(self) -> str:
        """The title on screen and paper; programs read those of fields in files as they are."""
        is_field = self.title == "lang" or self.title.startswith("meta.")
        return field_in_words(self.title).capitalize() if is_field else self.title


class Chart(FrozenModel):
    """How a table is drawn: ``x`` and ``y`` are columns by key; ``group`` tells series apart."""

    kind: Literal["dots", "bars", "stack", "days", "line", "matrix", "calibration"]
    x: str
    y: str
    group: str | None = None


class ResultTable(FrozenModel):
    """A table of figures: every row has a cell for every column, None where nothing is known.

    ``empty`` is the sentence in place of the rows where there are none, ``remarks``
    are those below. ``tones`` are the rows' on a terminal, where any is not plain.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    remarks: tuple[str, ...] = ()
    chart: Chart | None = None
    empty: str = ""
    tones: tuple[Literal["", "red", "yellow"], ...] = ()

    def without(self, *keys: str, zeros: bool = False) -> ResultTable:
        """Return the table without these columns and those that are empty, or all ``zeros``."""
        nothing = (None, "", 0) if zeros else (None, "")
        kept = [
            at
            for at, column in enumerate(self.columns)
            if column.key not in keys and any(row[at] not in nothing for row in self.rows)
        ]
        columns, *rows = (tuple(row[at] for at in kept) for row in (self.columns, *self.rows))
        return self.model_copy(update={"columns": columns, "rows": tuple(rows)})


PERSON: Final = "person"  # kinds of annotators, as rows of tables say them
BASELINE: Final = "baseline"
LANGUAGE: Final = Column(key="language", title="Language")
ITEMS: Final = Column(key="items", title="Items", unit="count")
P_VALUE: Final = Column(
    key="p",
    title="p",
    unit="p",
    about="Chance of a difference at least this far from 0 if both were equally good: paired "
    "permutation test, two-sided.",
)


def column_of(unit: Unit, title: str, key: str = "", **more: Any) -> Column:
    """Return a column; by default its key is its title in small letters, with dashes."""
    key = key or title.lower().replace(" ", "-")
    return Column(key=key, title=title, unit=unit, **more)


def columns_of(unit: Unit, *titles: str) -> list[Column]:
    """Return columns of one unit, keys as those of ``column_of``."""
    return [column_of(unit, title) for title in titles]


def table_of(
    key: str,
    title: str,
    entries: Iterable[T],
    *columns: tuple[Column, Callable[[T], Cell]],
    **more: Any,
) -> ResultTable:
    """Return a table with a row for each entry, and beside each column what its cells are.

    ``more`` are further fields of the table.
    """
    heads = tuple(column for column, _ in columns)
    rows = tuple(tuple(cell(entry) for _, cell in columns) for entry in entries)
    return ResultTable(key=key, title=title, columns=heads, rows=rows, **more)


def figures_of(**figures: Any) -> dict[str, Any]:
    """Return figures as JSON has them: models and dataclasses as objects, tuples as lists."""
    return dict(to_jsonable_python(figures))


def fact_table(key: str, title: str, facts: Mapping[str, str]) -> ResultTable:
    """Return facts as a table without head: what they are called, and what they are."""
    columns = (Column(key="name", title=""), Column(key="value", title=""))
    return ResultTable(key=key, title=title, columns=columns, rows=tuple(facts.items()))


class Result(Protocol):
    """What an analysis returns: its figures, and how they read."""

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the figures as tables for people."""

    def figures(self) -> dict[str, Any]:
        """Return all figures as JSON has them."""


class ResultViews:
    """A result as text, as a frame, and as HTML in a notebook: from its tables."""

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the figures as tables for people."""
        raise NotImplementedError

    def to_pandas(self, table: int = 0) -> pd.DataFrame:
        """Return a table as a frame; of an interval also its ends, "… from" and "… to".

        Args:
            table: which of ``tables()``, from 0.
        """
        import pandas as pd

        shown = self.tables()[table]
        return pd.DataFrame(flat_rows(shown), columns=_titles(shown))

    def __str__(self) -> str:
        return as_text(self.tables())

    def _repr_html_(self) -> str:
        return "".join(map(as_html, self.tables()))


def as_text(
    tables: Iterable[ResultTable], *, width: int | None = None, colour: bool = False
) -> str:
    """Return tables as text, one below the other, each with its title and remarks.

    Args:
        tables: what to write.
        width: the columns of a terminal, beyond which cells are folded; None never folds.
        colour: whether titles and heads stand out, as on a terminal.
    """
    return "\n\n".join(_text_of(table, width, colour) for table in tables)


def _text_of(table: ResultTable, width: int | None, colour: bool) -> str:
    from rich.console import Console
    from rich.text import Text

    console = Console(
        file=io.StringIO(),
        width=width or _UNBOUNDED,
        color_system="standard" if colour else None,
        force_terminal=colour,
        legacy_windows=False,
    )
    if table.title:
        console.print(Text(_one_line(table.title), style="bold"), soft_wrap=True)
    if table.rows:
        cells = [
            [Text(_isolated(text) if width else text) for text in written]
            for written in (map(write_cell, row, table.columns) for row in table.rows)
        ]
        grid = _grid(table, cells)
        is_wide = console.measure(grid).minimum > console.width
        console.print(_cards(table, cells) if is_wide else grid)
    for line in (table.empty if not table.rows else "", *table.remarks):
        if line:
            console.print(Text(_one_line(line)), soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def _grid(table: ResultTable, cells: Sequence[Sequence[Text]]) -> Table:
    """Return a line per row; titles stand above unless none is given."""
    from rich.table import Table
    from rich.text import Text

    has_head = any(column.title for column in table.columns)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=has_head)
    for column in table.columns:
        justify: Literal["left", "right"] = "left" if column.unit == "text" else "right"
        grid.add_column(Text(column.title), justify=justify, overflow="fold", header_style="bold")
    for row, tone in zip_longest(cells, table.tones):
        grid.add_row(*row, style=tone or None)
    return grid


def _cards(table: ResultTable, cells: Sequence[Sequence[Text]]) -> Table:
    """Return a line per cell, for a table of which not even the words fit beside each other."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    grid.add_column(overflow="fold", style="bold")
    grid.add_column(overflow="fold")
    for number, row in enumerate(cells):
        if number:
            grid.add_row()
        for column, cell in zip(table.columns, row, strict=True):
            grid.add_row(Text(column.title), cell)
    return grid


def _isolated(text: str) -> str:
    """Keep a cell that runs from right to left from taking the figures beside it along."""
    return f"\u2068{text}\u2069" if _RIGHT_TO_LEFT.search(text) else text


def as_html(table: ResultTable) -> str:
    """Return a table with its title and remarks; every text is escaped, and there is no script."""
    remarks = "".join(f"<p class='about'>{escape(remark)}</p>\n" for remark in table.remarks)
    if not table.rows:
        return f"<p>{escape(table.empty)}</p>\n{remarks}"
    classes = ["" if column.unit == "text" else " class='number'" for column in table.columns]
    head = "".join(
        f"<th scope='col'{_about(column)}{of}>{escape(column.heading)}</th>"
        for column, of in zip(table.columns, classes, strict=True)
    )
    body = "".join(
        f"<tr><th scope='row' dir='auto'>{escape(name)}</th>"
        + "".join(
            f"<td{of}>{escape(cell)}</td>" for cell, of in zip(cells, classes[1:], strict=True)
        )
        + "</tr>\n"
        for name, *cells in (map(write_cell, row, table.columns) for row in table.rows)
    )
    caption = f"<caption dir='auto'>{escape(table.title)}</caption>"
    first = f"<tr>{head}</tr>\n" if any(column.title for column in table.columns) else ""
    return f"<table>{caption}\n{first}{body}</table>\n{remarks}"


def _about(column: Column) -> str:
    return f" title='{escape(column.about)}'" if column.about else ""


def as_csv(table: ResultTable) -> str:
    """Return a table as CSV with its titles as head; an interval is three columns."""
    stream = io.StringIO()
    write_dicts(stream, _titles(table), flat_rows(table))
    return stream.getvalue()


def flat_rows(table: ResultTable) -> list[dict[str, Cell]]:
    """Return a row's plain values by title; of an interval also its ends, "… from" and "… to"."""
    rows = []
    columns = _intervals(table)
    for row in table.rows:
        cells: dict[str, Cell] = {}
        for (title, has_ends), cell in zip(columns, row, strict=True):
            inner = cell if isinstance(cell, MeanInterval) else None
            cells[title] = inner.mean if inner else cell
            if has_ends:
                cells[f"{title} from"] = inner.low if inner else None
                cells[f"{title} to"] = inner.high if inner else None
        rows.append(cells)
    return rows


def _intervals(table: ResultTable) -> list[tuple[str, bool]]:
    """Return each column's title, and whether it has an interval anywhere."""
    return [
        (column.title, any(isinstance(row[at], MeanInterval) for row in table.rows))
        for at, column in enumerate(table.columns)
    ]


def _titles(table: ResultTable) -> list[str]:
    ends = ("", " from", " to")
    columns = _intervals(table)
    return [title + end for title, has_ends in columns for end in ends[: 3 if has_ends else 1]]


def as_json(result: Result, *, ascii_only: bool = True) -> str:
    """Return all figures of a result as JSON, as it names them itself."""
    return json.dumps(result.figures(), ensure_ascii=ascii_only, indent=1)


def write_cell(cell: Cell, column: Column) -> str:
    """Return a cell as people read it: ``.513 [.498, .530]``, ``12.0 %``, ``–`` where unknown."""
    if isinstance(cell, MeanInterval):
        ends = write_interval(cell, column).removeprefix(MISSING)
        return f"{_figure_in(cell.mean, column)} {ends}".rstrip()
    if cell is None:
        return MISSING
    return _one_line(cell) if isinstance(cell, str) else _figure_in(cell, column)


def _one_line(text: str) -> str:
    return visible(" ".join(text.splitlines()).replace("\t", "·"))


def write_interval(cell: MeanInterval, column: Column) -> str:
    """Return the ends of an interval: ``[.498, .530]``; ``–`` if both are written alike."""
    low, high = (
        _figure_in(end, column).removesuffix(" %" if column.unit == "share" else "\0")
        for end in (cell.low, cell.high)
    )
    return MISSING if low == high else f"[{low}, {high}]"


def _figure_in(value: float, column: Column) -> str:
    written: dict[str, Callable[[float], str]] = {
        "share": percent,
        "score": lambda number: figure(number, column.digits),
        "difference": lambda number: figure(number, column.digits, signed=True),
        "points": lambda number: f"{100 * number:+z.1f}",
        "p": lambda number: figure(number) if number >= 0.001 else "< .001",
        "seconds": lambda number: _seconds(number, column.digits),
        "dollars": money,
    }
    if column.unit in written:
        return written[column.unit](value)
    return f"{value:,}" if isinstance(value, int) else f"{value:z,.{column.digits}f}"


def _seconds(value: float, digits: int) -> str:
    return duration(value) if value >= 60 else f"{value:z.{digits}f} s"


def several(mean: MeanInterval | None, items: int, *, groups: int = 1) -> Cell:
    """Return a mean with its interval where there are more items than groups, else alone."""
    return mean if mean is None or items > groups else mean.mean
