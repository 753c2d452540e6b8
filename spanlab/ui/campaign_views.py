"""How an annotation campaign goes: plan, items by day, labels by person, agreement, times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd
import streamlit as st

from spanlab.results import ONE_ITEM, MeanInterval
from spanlab.schema import DatasetSummary
from spanlab.ui.chart_style import LIGHT, NEUTRAL, axis_of, colour_of, names_axis, scale_of
from spanlab.ui.common import plain, store
from spanlab.ui.comparisons import campaign_of
from spanlab.ui.downloads import show_chart
from spanlab.ui.score_charts import PERSON, Dot, Wording, dot_plot
from spanlab.workflows.campaign import Campaign, Finished, Pace, agreement_over_time, pace
from spanlab.workflows.managing import plan_of
from spanlab.workflows.wording import plan_in_words

if TYPE_CHECKING:
    import altair as alt

    from spanlab.ui.chart_style import Chart

_MOST = 20  # people in a chart
_COLOURS = len(LIGHT)  # that can be told apart
_DAYS = 14  # on the axis at least, so that a campaign's first day is no block
_NO_LOG = "Imported annotations do not say when they were made."


class _Asked(NamedTuple):
    summary: DatasetSummary
    people: tuple[str, ...]
    finished: tuple[Finished, ...]


def show_campaign(summary: DatasetSummary, chosen: Collection[str]) -> None:
    """Draw what those people among ``chosen`` have done, one view at a time."""
    found = tuple(each for each in store().finished(summary.name) if each.annotator in chosen)
    people = tuple(who.name for who in summary.annotators if who.name in chosen)
    first = "Plan" if summary.settings.overlap else "Items by day"
    view = st.segmented_control(
        "Show", list(_VIEWS), default=first, required=True, key="spanlab.campaign"
    )
    _VIEWS[view](_Asked(summary, people, found))


def _plan(asked: _Asked) -> None:
    plan = plan_of(store(), asked.summary)
    if plan is None:
        st.info(
            "This dataset has no plan. Its settings on the Datasets page take one: how many people "
            "are to finish each item, and who.",
            icon=":material/event_available:",
        )
        return
    st.caption(
        f"{plain(plan_in_words(asked.summary.settings))}: {plan.done:,} of {plan.needed:,} "
        f"annotations done, {plan.needed - plan.done:,} left. Everybody is listed, whoever is "
        "chosen above. Done beyond are items that the plan gives to others."
    )
    table = pd.DataFrame(
        {
            "Person": person.annotator,
            "Assigned": person.assigned or 0,
            "Done": person.done,
            "Skipped": person.skipped,
            "Left": person.left,
            "Done beyond": person.beyond,
        }
        for person in plan.people
    )
    st.dataframe(table, hide_index=True, alt="Items assigned, done and left by person")


def _by_day(asked: _Asked) -> None:
    if not asked.finished:
        _say_nothing("None of the annotators chosen has pressed Done in Review yet.")
        return
    st.caption(
        "Items that are done now, each on the day (UTC) on which its annotator last pressed Done. "
        + _NO_LOG
    )
    days = Counter((each.at.date(), each.annotator) for each in asked.finished)
    table = pd.DataFrame(
        {"Day": day.isoformat(), "Person": who, "Items": items}
        for (day, who), items in days.items()
    ).sort_values(["Day", "Items", "Person"], ascending=[False, False, True])
    n_people = table["Person"].nunique()
    if n_people > _COLOURS:
        st.caption(f"{n_people:,} people together; the table below has each of them.")
    _show("Items finished by day and person", table, _bars(table), "items-by-day")


def _labels(asked: _Asked) -> None:
    found = campaign_of(asked.summary)
    if found is None:
        return
    table = label_table(found, asked.people)
    if table.empty:
        _say_nothing("None of the annotators chosen is a person who has finished an item.")
        return
    labels = table.columns[len(_LABEL_COLUMNS) :]
    first = table.head(_MOST)[["Person", *labels]].melt("Person", None, "Label", "Spans")
    drawn = _few(first, "Label", "Spans", "other labels").groupby(["Person", "Label"]).sum()
    _show("Spans by person and label", table, _shares(drawn.reset_index(), table), "labels")


def _agreement(asked: _Asked) -> None:
    found = campaign_of(asked.summary)
    if found is None:
        return
    periods = agreement_over_time(found.marks, asked.finished, asked.people)
    if not periods:
        _say_nothing(
            "Agreement over time needs items that two of the people chosen have finished, one of "
            "them in Review."
        )
        return
    st.caption(
        "Krippendorff's alpha over characters, with its 95 % interval from resampling the items. "
        "An item that two or more of the people chosen have finished counts when the last of them "
        "pressed Done (UTC); long campaigns are shown by week or month. " + _NO_LOG
    )
    table = pd.DataFrame(
        {
            "From": start.isoformat(),
            "Items": alpha.n,
            "Alpha": alpha.alpha,
            "95 % from": alpha.low if alpha.n > 1 else None,
            "95 % to": alpha.high if alpha.n > 1 else None,
        }
        for start, alpha in periods
    )
    if any(alpha.n == 1 for _, alpha in periods):
        st.caption(f"{ONE_ITEM} It is drawn as a ring.")
    _show("Agreement over time", table, _line(table), "agreement-over-time")


def _times(asked: _Asked) -> None:
    found = pace(asked.finished)
    if not found:
        _say_nothing("No time has been measured yet for the people chosen.")
        return
    st.caption(
        "From when an item is opened in Review until it is done or skipped, over all visits; a "
        "pause counts as one minute at most, and not at all while the tab is hidden. Nothing else "
        "is recorded. " + _NO_LOG
    )
    found = tuple(sorted(found, key=lambda each: (each.items == 1, each.median)))
    table = pd.DataFrame(
        {
            "Person": each.annotator,
            "Items": each.items,
            "Median (s)": round(each.median, 1),
            "25 % (s)": round(each.low, 1) if each.items > 1 else None,
            "75 % (s)": round(each.high, 1) if each.items > 1 else None,
            "Sum (h)": round(each.total / 3600, 2),
        }
        for each in found
    )
    _show("Time per item by person", table, _quartiles(found), "time-per-item")


_VIEWS: dict[str, Callable[[_Asked], None]] = {
    "Plan": _plan,
    "Items by day": _by_day,
    "Labels": _labels,
    "Agreement over time": _agreement,
    "Time per item": _times,
}
_SHARES = ("Items marked", "Characters marked")
_LABEL_COLUMNS = ("Person", "Items", *_SHARES, "Spans")


def label_table(found: Campaign, people: Collection[str]) -> pd.DataFrame:
    """Return a row per person, who has most items first: shares marked, and spans by label.

    Args:
        found: what was counted.
        people: whom to show.

    Returns:
        The columns of ``_LABEL_COLUMNS``, then one per label, the most frequent first.
    """
    shown = {who: counts for who, counts in found.labels.items() if who in people}
    labels = Counter[str]()
    for counts in shown.values():
        labels.update(counts.spans)
    ranked = sorted(shown, key=lambda who: (-shown[who].items, who))
    rows = []
    for who in ranked:
        counts = shown[who]
        shares = (counts.marked / counts.items, counts.characters / max(counts.length, 1))
        row = (who, counts.items, *(round(share, 4) for share in shares), counts.spans.total())
        rows.append((*row, *(counts.spans[label] for label, _ in labels.most_common())))
    # quoted, so that a label called "Items" is no second column of that name
    names = [f"“{name}”" for name, _ in labels.most_common()]
    return pd.DataFrame(rows, columns=[*_LABEL_COLUMNS, *names])


def _say_nothing(why: str) -> None:
    st.info(f"{why} {_NO_LOG}", icon=":material/event_available:")


def _show(about: str, table: pd.DataFrame, chart: Chart, name: str) -> None:
    show_chart(chart, table, name, alt=f"{about}; the table below has the figures")
    shares = {name: st.column_config.NumberColumn(format="percent") for name in _SHARES}
    st.dataframe(table, hide_index=True, column_config=shares, placeholder="–", alt=about)


def _few(table: pd.DataFrame, column: str, count: str, others: str) -> pd.DataFrame:
    """Return the table with all but the most frequent values of a column as one."""
    totals = table.groupby(column)[count].sum().sort_values(ascending=False, kind="stable")
    if len(totals) <= _COLOURS:
        return table
    kept = set(totals.index[: _COLOURS - 1])
    named = [
        value if value in kept else f"{len(totals) - len(kept)} {others}" for value in table[column]
    ]
    return table.assign(**{column: named})


def _bars(table: pd.DataFrame) -> alt.Chart:
    """Return a bar per day, divided by person as long as colours can tell these apart."""
    import altair as alt

    is_divided = table["Person"].nunique() <= _COLOURS
    totals = table.groupby("Day").agg(Items=("Items", "sum"), People=("Person", "nunique"))
    last = pd.Timestamp(table["Day"].max())
    first = min(pd.Timestamp(table["Day"].min()), last - pd.Timedelta(days=_DAYS - 1))
    days = pd.date_range(first, last).strftime("%Y-%m-%d").tolist()
    chart: alt.Chart = (
        alt.Chart(table if is_divided else totals.reset_index())
        .mark_bar()
        .encode(
            x=alt.X(
                "Day:O", title=None, scale=alt.Scale(domain=days), axis=alt.Axis(labelAngle=-45)
            ),
            y=alt.Y("Items:Q", title="Items finished", axis=alt.Axis(tickCount=5, tickMinStep=1)),
            tooltip=[
                "Day:O",
                "Person:N" if is_divided else "People:Q",
                alt.Tooltip("Items:Q", format=","),
            ],
        )
    )
    return chart.encode(color=colour_of("Person")) if is_divided else chart


def _shares(table: pd.DataFrame, people: pd.DataFrame) -> alt.Chart:
    """Return a bar per person, divided by the labels of their spans."""
    import altair as alt

    chart: alt.Chart = (
        alt.Chart(table)
        .mark_bar()
        .encode(
            x=alt.X(
                "Spans:Q",
                stack="normalize",
                title="Share of spans",
                scale=scale_of([1]),
                axis=axis_of(is_share=True),
            ),
            y=alt.Y("Person:N", sort=list(people["Person"]), title=None, axis=names_axis()),
            color=colour_of("Label"),
            tooltip=["Person:N", "Label:N", alt.Tooltip("Spans:Q", format=",")],
        )
    )
    return chart


def _line(table: pd.DataFrame) -> Chart:
    import altair as alt

    base = alt.Chart(table.assign(single=table["Items"] == 1)).encode(
        x=alt.X("From:O", title=None, axis=alt.Axis(labelAngle=-45)),
        tooltip=[
            "From:O",
            "Items:Q",
            *(alt.Tooltip(f"{name}:Q", format=".3f") for name in table.columns[2:]),
        ],
    )
    ends = table[table.columns[2:]].melt()["value"].dropna()
    value = alt.Y("Alpha:Q", title="Krippendorff's alpha", scale=scale_of(ends), axis=axis_of())
    interval = base.mark_rule(strokeWidth=1.5, color=NEUTRAL).encode(
        y=alt.Y("95 % from:Q"), y2="95 % to:Q"
    )
    return alt.layer(
        interval,
        base.mark_line().encode(y=value),
        base.transform_filter("!datum.single")
        .mark_point(filled=True, size=60, opacity=1)
        .encode(y=value),
        base.transform_filter("datum.single")
        .mark_point(filled=False, size=60, opacity=1)
        .encode(y=value),
    )


def _quartiles(found: Sequence[Pace]) -> Chart:
    most = sorted(found, key=lambda each: -each.items)[:_MOST]
    quartiles = {
        each: MeanInterval(mean=each.median, low=each.low, high=each.high)
        for each in found
        if each in most
    }
    dots = [Dot(each.annotator, PERSON, half, each.items) for each, half in quartiles.items()]
    title = "Seconds per item: median, and the middle half"
    return dot_plot(dots, Wording("Person", title, interval="Middle half"))
