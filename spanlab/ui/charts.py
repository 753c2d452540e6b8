"""Tables of results as charts; the theme gives them text and background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from spanlab.output.tables import (
    ResultTable,
)
from spanlab.ui.dots import (
    AXES,
    HEAT,
    INK,
    LIGHT,
    NEUTRAL,
    Chart,
    axis_of,
    chart_frame,
    colour_of,
    column_of,
    dots,
    grouped_base,
    interval_ends,
    mean_of,
    names_axis,
    place_of,
    scale_of,
)

if TYPE_CHECKING:
    import altair as alt


_DAYS = 14  # on the axis at least, so that a campaign's first day is no block
MOST_COLOURS = len(LIGHT)  # that can be told apart


def chart_of(table: ResultTable) -> Chart:
    """Return the chart that a table names; the table has rows."""
    import altair as alt

    assert table.chart is not None
    number = alt.NumberLocale(
        decimal=".", thousands=",", grouping=[3], currency=["$", ""], percent=" %"
    )
    chart: Chart = _KINDS[table.chart.kind](table).configure(locale=alt.Locale(number=number))
    return chart


def is_fixed(table: ResultTable) -> bool:
    """Say whether a table's chart has a width of its own."""
    chart = table.chart
    return chart is not None and (
        chart.kind in {"matrix", "calibration"} or chart.group == "language"
    )


def _bars(table: ResultTable) -> Chart:
    """Return a bar for each name and group, groups below each other."""
    import altair as alt

    assert table.chart is not None
    base, value = grouped_base(table)
    scale = scale_of(mean_of(row[place_of(table, value.key)]) or 0.0 for row in table.rows)
    bars: alt.Chart = base.mark_bar()
    title = column_of(table, table.chart.y).title
    chart: alt.Chart = bars.encode(
        x=alt.X("mean:Q", title=value.title, scale=scale, axis=axis_of(is_share=True)),
        y=alt.Y("name:N", sort=None, title=title, axis=names_axis()),
    )
    return chart


def _stack(table: ResultTable) -> Chart:
    """Return a bar per name, divided by group."""
    import altair as alt

    data = chart_frame(table)
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X(
                "mean:Q",
                stack="normalize",
                title="Share of spans",
                scale=scale_of([1]),
                axis=axis_of(is_share=True),
            ),
            y=alt.Y("name:N", sort=list(data["name"]), title=None, axis=names_axis()),
            color=colour_of("group"),
            tooltip=[
                alt.Tooltip("name:N", title="Person"),
                alt.Tooltip("group:N", title="Label"),
                alt.Tooltip("mean:Q", title="Spans", format=","),
            ],
        )
    )
    return chart


def _days(table: ResultTable) -> Chart:
    """Return a bar per day, divided by person as long as colours can tell these apart."""
    import altair as alt

    data = chart_frame(table)
    is_divided = data["group"].nunique() <= MOST_COLOURS
    totals = data.groupby("name").agg(mean=("mean", "sum"), people=("group", "nunique"))
    last = pd.Timestamp(data["name"].max())
    first = min(pd.Timestamp(data["name"].min()), last - pd.Timedelta(days=_DAYS - 1))
    days = pd.date_range(first, last).strftime("%Y-%m-%d").tolist()
    who = (
        alt.Tooltip("group:N", title="Person")
        if is_divided
        else alt.Tooltip("people:Q", title="People")
    )
    chart: alt.Chart = (
        alt.Chart(data if is_divided else totals.reset_index())
        .mark_bar()
        .encode(
            x=alt.X(
                "name:O", title=None, scale=alt.Scale(domain=days), axis=alt.Axis(labelAngle=-45)
            ),
            y=alt.Y("mean:Q", title="Items finished", axis=alt.Axis(tickCount=5, tickMinStep=1)),
            tooltip=[
                alt.Tooltip("name:O", title="Day"),
                who,
                alt.Tooltip("mean:Q", title="Items", format=","),
            ],
        )
    )
    return chart.encode(color=colour_of("group")) if is_divided else chart


def _line(table: ResultTable) -> Chart:
    """Return figures over time or by count, with intervals; those of one item are rings."""
    import altair as alt

    assert table.chart is not None
    data, value = chart_frame(table), column_of(table, table.chart.x)
    from_ = column_of(table, table.chart.y)
    is_day = from_.unit == "text"
    title, angle = (None, -45) if is_day else (from_.title, 0)
    base = alt.Chart(data).encode(
        x=alt.X("name:O", title=title, sort=None, axis=alt.Axis(labelAngle=angle)),
        tooltip=[
            alt.Tooltip("name:O", title=from_.title),
            *([alt.Tooltip("items:Q", title="Items")] if "items" in data else []),
            alt.Tooltip("shown:N", title=value.title),
            alt.Tooltip("interval:N", title="95 %"),
        ],
    )
    axis = axis_of(is_share=value.unit == "share")
    y = alt.Y("mean:Q", title=value.title, scale=scale_of(interval_ends(data)), axis=axis)
    interval = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5, color=NEUTRAL)
    layers = [interval.encode(y=alt.Y("low:Q"), y2="high:Q"), base.mark_line().encode(y=y)]
    for is_filled, which in ((True, "isValid(datum.low)"), (False, "!isValid(datum.low)")):
        if data["low"].notna().eq(is_filled).any():  # an empty layer is a picture without a name
            marks = base.transform_filter(which)
            layers.append(marks.mark_point(filled=is_filled, size=60, opacity=1).encode(y=y))
    return alt.layer(*layers).properties(height=250)  # a page of 800 pixels shows its axis


def pair_chart(pairs: ResultTable, which: str, order: Sequence[str]) -> Chart:
    """Return the matrix of pairs as a heat map: the figure, and below it the common items.

    Args:
        pairs: a row per pair, at least one.
        which: "iou" or "f1".
        order: the annotators from left to right and from top to bottom.
    """
    import altair as alt

    title = column_of(pairs, which).title
    half = _by_key(pairs).rename(columns={which: "value", "common-items": "items"})
    other = half.rename(columns={"a": "b", "b": "a"})
    rows = pd.concat([half, other])[["a", "b", "value", "items"]]
    base = alt.Chart(rows).encode(
        x=alt.X(
            "a:N",
            sort=list(order),
            title=None,
            axis=alt.Axis(labelAngle=-60, labelLimit=160, labelOverlap=False, orient="top"),
        ),
        y=alt.Y(
            "b:N", sort=list(order), title=None, axis=alt.Axis(labelLimit=160, labelOverlap=False)
        ),
        tooltip=[
            alt.Tooltip("a:N", title="Annotator"),
            alt.Tooltip("b:N", title="and"),
            alt.Tooltip("value:Q", title=title, format=".3f"),
            alt.Tooltip("items:Q", title="Common items", format=","),
        ],
    )
    ink = _ink("value")
    cells = base.mark_rect().encode(
        color=alt.Color(
            "value:Q",
            title=title,
            scale=alt.Scale(domain=[0, 1], range=list(HEAT)),
        )
    )
    figures = base.mark_text(fontSize=12, dy=-6).encode(
        text=alt.Text("value:Q", format=".2f"), color=ink
    )
    counts = base.mark_text(fontSize=9, dy=8).encode(
        text=alt.Text("items:Q", format=","), color=ink
    )
    return alt.layer(cells, figures, counts).properties(
        width=2 * AXES + 46 * len(order), height=AXES + 36 * len(order)
    )


def _confusion(table: ResultTable) -> Chart:
    """Return characters by the reference's label and that of others, shaded by share of a row."""
    import altair as alt

    right_title = column_of(table, "right").title
    data = _by_key(table).groupby(["right", "said"], as_index=False)["characters"].sum()
    data["share"] = data["characters"] / data.groupby("right")["characters"].transform("sum")
    base = alt.Chart(data).encode(
        x=alt.X(
            "said:N",
            title="Annotators",
            axis=alt.Axis(labelAngle=-30, labelLimit=160, labelOverlap=False),
        ),
        y=alt.Y("right:N", title=right_title, axis=alt.Axis(labelLimit=160, labelOverlap=False)),
        tooltip=[
            alt.Tooltip("right:N", title=right_title),
            alt.Tooltip("said:N", title="Annotators"),
            alt.Tooltip("characters:Q", title="Characters", format=","),
            alt.Tooltip("share:Q", title="Share of the row", format=".1%"),
        ],
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "share:Q",
            title="Share of the row",
            scale=alt.Scale(domain=[0, 1], range=list(HEAT)),
            legend=alt.Legend(format=".0%"),
        )
    )
    figures = base.mark_text(fontSize=12).encode(
        text=alt.Text("share:Q", format=".1%"), color=_ink("share")
    )
    return alt.layer(cells, figures).properties(
        width=2 * AXES + 80 * data["said"].nunique(), height=AXES + 36 * data["right"].nunique()
    )


def _ink(field: str) -> Any:
    """Return the colour of the figures in cells that ``field`` shades."""
    import altair as alt

    little, much = map(alt.value, INK)
    return alt.condition(alt.datum[field] > 0.55, much, little)


def _calibration(table: ResultTable) -> Chart:
    """Return a curve per detector: its probability against the share of people that mark it."""
    import altair as alt

    x, y = (
        alt.X(
            "probability:Q", title="Probability", scale=scale_of([1]), axis=axis_of(is_share=True)
        ),
        alt.Y(
            "share-of-people:Q",
            title="Share of people",
            scale=scale_of([1]),
            axis=axis_of(is_share=True),
        ),
    )
    lines = alt.Chart(_by_key(table)).encode(
        x=x,
        y=y,
        color=colour_of("detector"),
        tooltip=[
            alt.Tooltip("detector:N", title="Detector"),
            alt.Tooltip("probability:Q", title="Probability", format=".1%"),
            alt.Tooltip("share-of-people:Q", title="Share of people", format=".1%"),
            alt.Tooltip("characters:Q", title="Characters", format=","),
        ],
    )
    perfect = alt.Chart(pd.DataFrame({"probability": [0.0, 1.0], "share-of-people": [0.0, 1.0]}))
    diagonal = perfect.mark_line(strokeDash=[4, 4], color=NEUTRAL).encode(x=x, y=y)
    shaped = lines.mark_point(filled=True, size=60, opacity=1).encode(
        shape=alt.Shape("detector:N", legend=alt.Legend(orient="top", title=None, columns=4))
    )
    return alt.layer(diagonal, lines.mark_line(), shaped).properties(width=420, height=320)


def _by_key(table: ResultTable) -> pd.DataFrame:
    return pd.DataFrame(table.rows, columns=[column.key for column in table.columns])


_KINDS: dict[str, Callable[[ResultTable], Chart]] = {
    "dots": dots,
    "bars": _bars,
    "stack": _stack,
    "days": _days,
    "line": _line,
    "matrix": _confusion,
    "calibration": _calibration,
}
