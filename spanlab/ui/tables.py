"""A result table on a page: its grid, its chart, its file and its remarks."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from spanlab.output.csv_text import as_written, safe_cell
from spanlab.output.tables import (
    MISSING,
    Cell,
    Column,
    MeanInterval,
    ResultTable,
    as_csv,
    write_cell,
    write_interval,
)
from spanlab.ui.charts import chart_of, is_fixed
from spanlab.ui.common import plain

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler


_FRAME = 640  # pixels, the height in which a page scrolls


def show_table(
    table: ResultTable,
    *,
    alt: str = "",
    drawn: ResultTable | None = None,
    whole: ResultTable | None = None,
    icon: str = ":material/info:",
) -> None:
    """Draw a table with the chart that it names, a button for its figures, and its remarks.

    Args:
        table: what to show; without rows, the sentence for that.
        alt: what it shows, for those who do not see it; by default its title.
        drawn: what the chart shows instead, such as the first rows.
        whole: what the file has instead, such as all columns.
        icon: of the sentence in place of the rows.
    """
    if not table.rows:
        st.info(table.empty, icon=icon)
        return
    if table.title:
        st.markdown(f"**{plain(table.title)}**")
    show_grid(table, alt)
    drawn = drawn or table
    if drawn.chart is not None:
        show_chart(drawn, alt or table.title)
        csv_button(whole or table)
    show_remarks(table)


def show_remarks(table: ResultTable) -> None:
    """Draw the remarks of a table, a line each."""
    if table.remarks:
        st.caption("  \n".join(map(plain, table.remarks)))


def show_page(page: str, alt: str) -> None:
    """Draw a page of HTML in a frame of its own, which has no access to the app."""
    data = b64encode(page.encode()).decode()  # as data: what the frame holds is of no origin
    st.iframe(f"data:text/html;charset=utf-8;base64,{data}", height=_FRAME, alt=alt)


def show_grid(table: ResultTable, alt: str = "") -> None:
    """Draw the grid of a table, its first column pinned."""
    st.dataframe(
        _style_table(table),
        hide_index=True,
        column_config=_column_config(table),
        placeholder=MISSING,
        alt=alt or table.title,
    )


def show_chart(table: ResultTable, alt: str) -> None:
    """Draw the chart that a table names, if it has rows."""
    if table.rows:
        width: Any = "content" if is_fixed(table) else "stretch"
        st.altair_chart(chart_of(table), alt=f"{alt}; the file has the figures", width=width)


def csv_button(table: ResultTable, hint: str = "") -> None:
    """Draw the button that downloads a table as CSV, with a hint beside it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Download as CSV",
            as_csv(table),
            file_name=f"{table.key}.csv",
            mime="text/csv",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
            key=f"csv-{table.key}",
        )
        if hint:
            st.caption(hint)


def text_grid(rows: Sequence[Mapping[str, object]]) -> Styler:
    """Return rows for a grid whose toolbar writes no cell that a spreadsheet would run.

    The browser writes that CSV itself, from the values; shown is what was given.
    """
    texts = {name for row in rows for name, cell in row.items() if isinstance(cell, str)}
    guarded = [{name: safe_cell(cell) for name, cell in row.items()} for row in rows]
    return pd.DataFrame(guarded).style.format(dict.fromkeys(texts, as_written))


def _style_table(table: ResultTable) -> Styler:
    """Return the values, by which a grid sorts, with how they are written."""
    series: dict[str, pd.Series[Any]] = {}
    measured = _with_intervals(table)
    for at, column in enumerate(table.columns):
        cells = [row[at] for row in table.rows]
        series[column.title] = _values(cells, column)
        if column in measured:
            series[_ends(column)] = pd.Series(
                [
                    write_interval(cell, column) if isinstance(cell, MeanInterval) else None
                    for cell in cells
                ],
                dtype=object,
            )
    formatters: dict[Any, Any] = {
        column.title: partial(_write_value, column=column) for column in table.columns
    }
    return pd.DataFrame(series).style.format(formatters, na_rep=MISSING)


def _values(cells: Sequence[Cell], column: Column) -> pd.Series[Any]:
    values = [cell.mean if isinstance(cell, MeanInterval) else safe_cell(cell) for cell in cells]
    is_count = all(value is None or isinstance(value, int) for value in values)
    kind = "Int64" if is_count else float
    return pd.Series(values, dtype=object if column.unit == "text" else kind)


def _write_value(value: Any, column: Column) -> str:
    is_missing = value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
    is_count = column.unit == "count" and not isinstance(value, float)
    value = int(value) if is_count and not is_missing else as_written(value)
    return MISSING if is_missing else write_cell(value, column)


def _with_intervals(table: ResultTable) -> list[Column]:
    return [
        column
        for at, column in enumerate(table.columns)
        if any(isinstance(row[at], MeanInterval) for row in table.rows)
    ]


def _ends(column: Column) -> str:
    return f"{column.title} 95 %"


def _column_config(table: ResultTable) -> dict[str, Any]:
    measured = _with_intervals(table)
    title = "95 %" if len(measured) == 1 else None  # else each names its figure
    config: dict[str, Any] = {
        _ends(column): st.column_config.TextColumn(title, alignment="right") for column in measured
    }
    for column in table.columns:
        config[column.title] = st.column_config.Column(column.heading, help=column.about or None)
    config[table.columns[0].title]["pinned"] = True
    return config
