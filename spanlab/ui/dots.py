"""What all charts share, and means with their intervals as dots: ranked, a row per name."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

import pandas as pd

from spanlab.output.figures import counted
from spanlab.output.tables import (
    BASELINE,
    PERSON,
    Cell,
    Column,
    MeanInterval,
    ResultTable,
    write_cell,
    write_interval,
)

if TYPE_CHECKING:
    import altair as alt


Chart: TypeAlias = "alt.Chart | alt.LayerChart | alt.FacetChart"
LIGHT: Final = ("#0065a8", "#cb8316", "#23a2a0", "#b10071", "#826601", "#905ef4", "#772d24")
DARK: Final = ("#2f8fd3", "#f9a822", "#32d0d5", "#e97196", "#c7b98a", "#9fa2ff", "#e5463e")
# On both backgrounds:
NEUTRAL: Final = "#8a8fa3"
DONE: Final = "#3b8bd1"
FAILED: Final = "#e5484d"
HEAT: Final = ("#f3e9dc", "#8a4300")  # little to much; both themes draw cells alike
INK: Final = ("#26211b", "#ffffff")  # on little, on much
_TICKS = 5
_NEAR = 1e-9  # of a step, by which a tick may miss its value
_ROOM = 0.02  # of an axis, at either end, so that no mark is cut


def scale_of(values: Iterable[float]) -> alt.Scale:
    """Return a scale from 0, or below, to the tick beyond the values, with room at both ends."""
    import altair as alt

    ends = [0.0, *values]
    low, high = min(ends), max(ends)
    high = high if high > low else 1.0
    least = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = power * next(by for by in (1, 2, 5, 10) if least / power < by * 2**0.5)
    low, high = step * math.floor(low / step + _NEAR), step * math.ceil(high / step - _NEAR)
    room = _ROOM * (high - low)
    return alt.Scale(domain=[low - room, high + room], nice=False, zero=False)


def axis_of(*, is_share: bool = False) -> alt.Axis:
    """Return an axis with about five ticks, in per cent for shares."""
    import altair as alt

    percent = "format(100 * datum.value, '~f') + ' %'"
    return alt.Axis(tickCount=_TICKS, labelExpr=percent if is_share else alt.Undefined)


def names_axis(room: int = 220) -> alt.Axis:
    """Return an axis that has a name for every row, in ``room`` pixels."""
    import altair as alt

    return alt.Axis(labelLimit=room, labelOverlap=False, labelFlush=False)


def colour_of(field: str) -> alt.Color:
    """Return the colours of groups, named above the chart."""
    import altair as alt

    return alt.Color(f"{field}:N", legend=alt.Legend(orient="top", title=None, columns=4))


_SHAPES = {  # by kind in words, in the order of the palette: told apart without colour, too
    PERSON: "circle",
    "detector": "diamond",
    "vote": "square",
    "gold labels": "triangle-up",
    BASELINE: "cross",
}
_ROW = 20  # pixels, the height of a dot's row
AXES = 110  # pixels that Streamlit takes off for axes and legends
_BESIDE = 3  # small charts beside each other


def ranked(table: ResultTable) -> ResultTable:
    """Return a table with detectors and votes before people, in both the best first.

    Baselines are ranked with detectors and votes or, where there are none, with people. Rows
    without the figure that is drawn come last.
    """
    assert table.chart is not None
    name, kind, value = (place_of(table, key) for key in (table.chart.y, "kind", table.chart.x))
    last_kinds = {PERSON}
    if all(row[kind] in {PERSON, BASELINE} for row in table.rows):
        last_kinds.add(BASELINE)

    def place(row: tuple[Cell, ...]) -> tuple[object, ...]:
        mean = mean_of(row[value])
        return mean is None, row[kind] in last_kinds, -(mean or 0.0), row[name]

    return table.model_copy(update={"rows": tuple(sorted(table.rows, key=place))})


def best(table: ResultTable, most: int) -> ResultTable:
    """Return a ranked table cut to ``most`` people and ``most`` others of each group."""
    assert table.chart is not None
    kind, value = place_of(table, "kind"), place_of(table, table.chart.x)
    group = table.chart.group and place_of(table, table.chart.group)
    counts: Counter[object] = Counter()
    rows = []
    for row in ranked(table).rows:
        which = row[kind] == PERSON, row[group] if group else None
        counts[which] += 1
        if counts[which] <= most and row[value] is not None:
            rows.append(row)
    return table.model_copy(update={"rows": tuple(rows)})


def place_of(table: ResultTable, key: str) -> int:
    """Return the index of the column with a key."""
    return next(at for at, column in enumerate(table.columns) if column.key == key)


def mean_of(cell: Cell) -> float | None:
    """Return the figure of a cell, of an interval its mean; None for texts and what is missing."""
    value = cell.mean if isinstance(cell, MeanInterval) else cell
    return None if value is None or isinstance(value, str) else value


def column_of(table: ResultTable, key: str) -> Column:
    """Return the column of a key."""
    return table.columns[place_of(table, key)]


def chart_frame(table: ResultTable) -> pd.DataFrame:
    """Return a table as a data frame: a row's plain values by key, and what charts draw.

    ``mean``, ``low`` and ``high`` are the figure drawn and its interval; ``shown`` and
    ``interval`` are both as text.
    """
    assert table.chart is not None
    value = column_of(table, table.chart.x)
    rows: list[dict[str, object]] = []
    for row in table.rows:
        cells = dict(zip((column.key for column in table.columns), row, strict=True))
        cell = cells[value.key]
        inner = cell if isinstance(cell, MeanInterval) else None
        name, items = str(cells[table.chart.y]), cells.get("items")
        is_one_item = inner is None and isinstance(items, int)
        rows.append(
            {
                key: mean_of(cell_value) if isinstance(cell_value, MeanInterval) else cell_value
                for key, cell_value in cells.items()
            }
            | {
                "name": name,
                "label": f"{name} · {counted(int(str(items)), 'item')}" if is_one_item else name,
                "kind": cells.get("kind", PERSON),
                "group": cells[table.chart.group] if table.chart.group else "",
                "mean": mean_of(cell),
                "low": inner and inner.low,
                "high": inner and inner.high,
                "shown": write_cell(mean_of(cell), value),
                "interval": write_interval(inner, value) if inner else "none",
            }
        )
    return pd.DataFrame(rows)


def interval_ends(data: pd.DataFrame) -> list[float]:
    """Return all means and ends of intervals, which an axis must have room for."""
    ends = data[["mean", "low", "high"]].astype(float).to_numpy().ravel()
    return [end for end in ends.tolist() if not math.isnan(end)]


def dots(table: ResultTable) -> Chart:
    """Return means as dots with their intervals, a row per name.

    Kinds are told apart by shape and colour; languages have small charts of their own, and other
    groups stand below each other in a row.
    """
    import altair as alt

    assert table.chart is not None
    if table.chart.group not in {None, "language"}:
        return _grouped_dots(table)
    data, value = chart_frame(table), column_of(table, table.chart.x)
    is_small = table.chart.group is not None
    kinds = [kind for kind in _SHAPES if (data["kind"] == kind).any()]
    # Two in a row: more of them are cut beside long names on a phone.
    named = alt.Legend(orient="top", title=None, values=kinds, columns=2)
    legend = named if len(kinds) > 1 else None
    order = list(dict.fromkeys(data["label"]))
    has_items = "items" in data
    base = alt.Chart(data).encode(
        y=alt.Y("label:N", sort=order, title=None, axis=names_axis(150 if is_small else 260)),
        color=alt.Color("kind:N", scale=alt.Scale(domain=list(_SHAPES)), legend=legend),
        tooltip=[
            alt.Tooltip("name:N", title=column_of(table, table.chart.y).title),
            *([alt.Tooltip("group:N", title="Language")] if is_small else []),
            alt.Tooltip("shown:N", title=value.title),
            alt.Tooltip("interval:N", title="Interval"),
            *([alt.Tooltip("items:Q", title="Items", format=",")] if has_items else []),
        ],
    )
    scale, axis = scale_of(interval_ends(data)), axis_of(is_share=value.unit == "share")
    title = f"{value.title} (s)" if value.unit == "seconds" else value.title
    x = alt.X("mean:Q", title=title, scale=scale, axis=axis)
    intervals = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.5)
        .encode(x=alt.X("low:Q", title=title, scale=scale, axis=axis), x2="high:Q")
    )
    shapes = alt.Scale(domain=list(_SHAPES), range=list(_SHAPES.values()))
    marks = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x, shape=alt.Shape("kind:N", scale=shapes, legend=legend)
    )
    layers = alt.layer(intervals, marks)
    if not is_small:
        return layers.properties(height=AXES + _ROW * len(order))
    small = layers.properties(width=190, height=_ROW * max(Counter(data["group"]).values()))
    facets = small.facet(facet=alt.Facet("group:N", title=None), columns=_BESIDE)
    own_names: Chart = facets.resolve_scale(y="independent")
    return own_names


def _grouped_dots(table: ResultTable) -> Chart:
    """Return a dot for each name and group, with its interval, groups below each other."""
    import altair as alt

    assert table.chart is not None
    base, value = grouped_base(table)
    scale = scale_of(interval_ends(chart_frame(table)))
    share = alt.X("mean:Q", title=value.title, scale=scale, axis=axis_of(is_share=True))
    shape = alt.Shape("group:N", legend=alt.Legend(orient="top", title=None, columns=4))
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x=share, shape=shape)
    ranges = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q"), x2="high:Q")
    return alt.layer(ranges, dots)


def grouped_base(table: ResultTable) -> tuple[alt.Chart, Column]:
    """Return a chart without marks yet that has a line per name and group, and the column drawn."""
    import altair as alt

    assert table.chart is not None
    assert table.chart.group is not None
    data, value = chart_frame(table), column_of(table, table.chart.x)
    base: alt.Chart = alt.Chart(data).encode(
        y=alt.Y("name:N", sort=list(dict.fromkeys(data["name"])), title=None, axis=names_axis()),
        yOffset="group:N",
        color=colour_of("group"),
        tooltip=[
            alt.Tooltip("name:N", title=column_of(table, table.chart.y).title),
            alt.Tooltip("group:N", title=column_of(table, table.chart.group).title),
            alt.Tooltip("shown:N", title=value.title),
            alt.Tooltip("interval:N", title="Interval"),
        ],
    )
    return base, value
