"""How many items people finish day by day: chart, table and file."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from spanlab.ui.common import store
from spanlab.ui.downloads import show_chart
from spanlab.workflows.managing import DatasetSummary

if TYPE_CHECKING:
    import altair as alt


def show_finished(summary: DatasetSummary, chosen: Collection[str]) -> None:
    """Draw how many items each person of those chosen finished on each day."""
    every = store().finished_by_day(summary.name)
    found = [each for each in every if each.annotator in chosen]
    if not found:
        st.info(
            "None of the annotators chosen has pressed Done in Review yet. Imported annotations do "
            "not say when they were made.",
            icon=":material/event_available:",
        )
        return
    st.caption(
        "Items that are done now, each on the day (UTC) on which its annotator last pressed Done. "
        "Imported annotations do not say when they were made."
    )
    table = pd.DataFrame(
        {"Day": each.day.isoformat(), "Person": each.annotator, "Items": each.items}
        for each in found
    )
    show_chart(
        _chart(table),
        table,
        "items-by-day",
        alt="Items finished by day and person; the table below has the figures",
    )
    st.dataframe(table, hide_index=True, alt="Items finished by day and person")


def _chart(table: pd.DataFrame) -> alt.Chart:
    import altair as alt

    chart: alt.Chart = (
        alt.Chart(table)
        .mark_bar()
        .encode(
            x=alt.X("Day:O", title="Day", axis=alt.Axis(labelAngle=-45)),
            y=alt.Y("Items:Q", title="Items finished", axis=alt.Axis(tickMinStep=1)),
            color=alt.Color("Person:N", legend=alt.Legend(orient="top", title=None)),
            tooltip=["Day:O", "Person:N", alt.Tooltip("Items:Q", format=",")],
        )
    )
    return chart
