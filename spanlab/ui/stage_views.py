"""At which stages errors came in: shares by stage and run, as chart, table and file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from spanlab.errors import UsageError
from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import plain, store
from spanlab.ui.progress import progress
from spanlab.workflows.managing import DatasetSummary
from spanlab.workflows.stages import ErrorStages, error_stages, judges
from spanlab.workflows.wording import counted, figure

if TYPE_CHECKING:
    import altair as alt


def show_stages(summary: DatasetSummary) -> None:
    """Ask whose claims count, then draw each stage's share of their errors."""
    names = choose_annotators(
        summary.annotators,
        key=f"stages-{summary.name}",
        default=judges(summary),
        label="Annotators",
    )
    counts = tuple((a.name, tuple(sorted(a.counts.items()))) for a in summary.annotators)
    try:
        found = _counted(summary.name, tuple(names), (summary.created, summary.n_items, counts))
    except UsageError:
        found = None
    if not names or found is None or not any(run.shares for run in found.runs):
        st.info(
            "No claim is traced to the stage at which an error came in: have VeriTrail judge items "
            "that say how their answers were made.",
            icon=":material/account_tree:",
        )
        return
    for run in found.runs:
        st.caption(
            f"{plain(run.annotator)}: {counted(run.claims, 'claim')} not supported; "
            f"the stage is known of {run.claims - run.undetermined:,}"
            + (f"; {run.scored}." if run.scored else ".")
        )
    _show(found)


@st.cache_resource(max_entries=16, show_spinner=False)
def _counted(dataset: str, names: tuple[str, ...], seen: tuple[object, ...]) -> ErrorStages:
    """Count now, or return what any session has counted; ``seen`` tells changes."""
    with progress("Counting", None) as advance:
        return error_stages(store(), dataset, names, advance)


def _show(found: ErrorStages) -> None:
    rows = [
        {"Stage": stage, "Run": run.annotator, **share.model_dump()}
        for run in found.runs
        for stage, share in run.shares.items()
    ]
    st.altair_chart(
        _chart(rows, found.stages),
        alt="Share of errors by stage with 95 % intervals; the table below has the figures",
    )
    table = pd.DataFrame(
        {
            "Stage": row["Stage"],
            "Run": row["Run"],
            "Share": row["mean"],
            "95 %": f"{figure(row['low'])} to {figure(row['high'])}",
        }
        for row in rows
    )
    st.dataframe(
        table,
        hide_index=True,
        column_config={"Share": st.column_config.NumberColumn(format="%.3f")},
        alt="Shares of errors by stage",
    )
    for remark in found.remarks:
        st.caption(plain(remark))
    st.download_button(
        "Download as CSV",
        table.to_csv(index=False),
        file_name="error-stages.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
    )
    if found.pairs:
        st.markdown(
            "**Two runs compared**",
            help="The Jensen-Shannon divergence is 0 for equal shares and 1 where no stage is "
            "common; Spearman's correlation compares the order of the stages.",
        )
        st.dataframe(
            pd.DataFrame(
                {
                    "Run": a,
                    "and": b,
                    "Divergence": agreement.divergence,
                    "Spearman": agreement.correlation,
                }
                for a, b, agreement in found.pairs
            ),
            hide_index=True,
            alt="Runs compared",
        )


def _chart(
    rows: list[dict[str, object]], stages: tuple[str, ...]
) -> alt.LayerChart | alt.FacetChart:
    import altair as alt

    base = alt.Chart(pd.DataFrame(rows)).encode(
        y=alt.Y("Stage:N", sort=list(stages), title=None, axis=alt.Axis(labelLimit=260)),
        yOffset="Run:N",
        tooltip=[
            "Stage:N",
            "Run:N",
            alt.Tooltip("mean:Q", title="Share", format=".3f"),
            alt.Tooltip("low:Q", title="95 % from", format=".3f"),
            alt.Tooltip("high:Q", title="to", format=".3f"),
        ],
    )
    axis = alt.X("mean:Q", title="Share of errors", scale=alt.Scale(domain=[0, 1]))
    bars = base.mark_bar().encode(x=axis, color=alt.Color("Run:N", title=None))
    ranges = base.mark_rule(color="gray").encode(x="low:Q", x2="high:Q")
    return alt.layer(bars, ranges)
