"""At which stages errors came in: shares by stage and run, as chart, table and file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from spanlab.errors import UsageError
from spanlab.schema import DatasetSummary
from spanlab.ui.chart_style import axis_of, colour_of, names_axis, scale_of
from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import plain, store
from spanlab.ui.downloads import show_chart
from spanlab.ui.progress import progress
from spanlab.workflows.stages import ErrorStages, error_stages, judges

if TYPE_CHECKING:
    from spanlab.ui.chart_style import Chart


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
    runs = found.tables()[0]
    titles = [column.title for column in runs.columns]
    st.dataframe([dict(zip(titles, map(str, row), strict=True)) for row in runs.rows])
    _show(found)


@st.cache_resource(max_entries=16, show_spinner=False)
def _counted(dataset: str, names: tuple[str, ...], seen: tuple[object, ...]) -> ErrorStages:
    """Count now, or return what any session has counted; ``seen`` tells changes."""
    with progress("Counting", None) as advance:
        return error_stages(store(), dataset, names, advance)


def _show(found: ErrorStages) -> None:
    rows = [
        {
            "Stage": stage,
            "Run": run.annotator,
            "Share": share.mean,
            "95 % from": share.low if is_several else None,
            "95 % to": share.high if is_several else None,
        }
        for run in found.runs
        for is_several in [run.claims - run.undetermined > 1]
        for stage, share in run.shares.items()
    ]
    table = pd.DataFrame(rows)
    show_chart(
        _chart(table, found.stages),
        table,
        "error-stages",
        alt="Share of errors by stage with 95 % intervals; the table below has the figures",
    )
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format="percent") for name in table.columns[2:]
        },
        placeholder="–",
        alt="Shares of errors by stage",
    )
    for remark in found.remarks:
        st.caption(plain(remark))
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


def _chart(table: pd.DataFrame, stages: tuple[str, ...]) -> Chart:
    """Return a dot for each stage and run, with its interval where it is of several claims."""
    import altair as alt

    base = alt.Chart(table).encode(
        y=alt.Y("Stage:N", sort=list(stages), title=None, axis=names_axis()),
        yOffset="Run:N",
        color=colour_of("Run"),
        tooltip=[
            "Stage:N",
            "Run:N",
            *(alt.Tooltip(f"{name}:Q", format=".1%") for name in table.columns[2:]),
        ],
    )
    share = alt.X(
        "Share:Q", title="Share of errors", scale=scale_of([1]), axis=axis_of(is_share=True)
    )
    shape = alt.Shape("Run:N", legend=alt.Legend(orient="top", title=None, columns=4))
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x=share, shape=shape)
    ranges = base.mark_rule(strokeWidth=1.5).encode(x="95 % from:Q", x2="95 % to:Q")
    return alt.layer(ranges, dots)
