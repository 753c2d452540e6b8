"""Charts that can be taken along: the figures as CSV, the picture from the chart's own toolbar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

if TYPE_CHECKING:
    from spanlab.ui.chart_style import Chart


def show_chart(
    chart: Chart, data: pd.DataFrame, name: str, *, alt: str, width: str = "stretch"
) -> None:
    """Draw a chart, and below it the way to its figures and to its picture.

    Args:
        chart: what to draw.
        data: its figures.
        name: of the file, without its ending.
        alt: what the chart shows, for those who do not see it.
        width: "content" for a chart that is as wide as it says.
    """
    st.altair_chart(chart, alt=alt, width="content" if width == "content" else "stretch")
    csv_button(data, name, "The chart's toolbar, at its upper right, downloads the picture.")


def csv_button(data: pd.DataFrame, name: str, hint: str | None = None) -> None:
    """Draw the button that downloads a table as CSV.

    Args:
        data: the table.
        name: of the file, without its ending.
        hint: what stands beside it.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Download as CSV",
            data.to_csv(index=False),
            file_name=f"{name}.csv",
            mime="text/csv",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
            key=f"csv-{name}",
        )
        if hint:
            st.caption(hint)
