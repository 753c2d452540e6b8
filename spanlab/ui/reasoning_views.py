"""Reasonings compared: ways of verifying on the same questions, errors by type and position."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from spanlab.results import counted, figure
from spanlab.schema import DatasetSummary
from spanlab.ui.chart_style import axis_of, colour_of, names_axis, scale_of
from spanlab.ui.common import plain, store
from spanlab.ui.downloads import show_chart
from spanlab.ui.progress import progress
from spanlab.workflows.reasoning_results import (
    METHODS,
    MethodResult,
    ReasoningResults,
    reasoning_results,
)

if TYPE_CHECKING:
    import altair as alt

_MOST = 6  # annotators that a chart can tell apart
_SHARES = ("Exact match", "F1", "Judged correct")


def show_reasoning(summary: DatasetSummary, chosen: Collection[str]) -> None:
    """Draw what ways of verifying came to on the same questions, and where errors were found."""
    counts = tuple((a.name, tuple(sorted(a.counts.items()))) for a in summary.annotators)
    found = _counted(summary.name, (summary.created, summary.n_items, counts))
    if not found.methods and not found.judges:
        st.info(
            "No reasoning steps are verified yet: run the detector `safe`, or import the output of "
            "`spanlab reason`.",
            icon=":material/rule:",
        )
        return
    if found.methods:
        _methods(found)
    judges = {name: one for name, one in found.judges.items() if name in chosen}
    if judges:
        _errors(judges)
    elif found.judges:
        st.caption("None of the annotators chosen has found an error in a step.")


@st.cache_resource(max_entries=16, show_spinner=False)
def _counted(dataset: str, seen: tuple[object, ...]) -> ReasoningResults:
    """Count now, or return what any session has counted; ``seen`` tells changes."""
    with progress("Counting", None) as advance:
        return reasoning_results(store(), dataset, advance)


def method_table(methods: Mapping[str, MethodResult]) -> pd.DataFrame:
    """Return a row per way of verifying; what is not known of it is empty."""
    rows = []
    for way, one in methods.items():
        judged, right = one.judged
        rows.append(
            {
                "Method": METHODS[way],
                "Questions": one.questions,
                "Failed": one.failed,
                "Exact match": None if one.score is None else one.score.exact,
                "F1": None if one.score is None else one.score.f1,
                "Judged correct": right / judged if judged else None,
                "Correct despite a wrong step": one.spurious,
                "Forced answers": one.forced,
                "Calls per question": one.calls / max(one.questions, 1),
                "Tokens per question": one.tokens / max(one.questions, 1),
            }
        )
    return pd.DataFrame(rows)


def error_table(judges: Mapping[str, MethodResult]) -> pd.DataFrame:
    """Return a row for every type and position that somebody found errors of."""
    return pd.DataFrame(
        {"Annotator": name, "By": by, "Error": error, "Count": count, "Share": count / whole}
        for name, one in judges.items()
        for by, counts in (("type", one.errors), ("step", one.positions))
        if (whole := counts.total())
        for error, count in sorted(counts.items(), key=lambda pair: (str(type(pair[0])), pair[0]))
    )


def _methods(found: ReasoningResults) -> None:
    questions = max(one.questions for one in found.methods.values())
    st.markdown(f"**{counted(questions, 'question')} by verification method**")
    if found.left_out:
        st.caption(
            f"{counted(found.left_out, 'question')} left out: not all methods were run on it."
        )
    st.dataframe(
        method_table(found.methods),
        hide_index=True,
        column_config={
            "Method": st.column_config.TextColumn(pinned=True),
            **{name: st.column_config.NumberColumn(format="%.3f") for name in _SHARES},
            "Correct despite a wrong step": st.column_config.NumberColumn(
                format="%d", help="None where nobody has verified the steps."
            ),
            "Calls per question": st.column_config.NumberColumn(format="%.1f"),
            "Tokens per question": st.column_config.NumberColumn(format="%.0f"),
        },
        alt="Answers, calls and tokens by verification method",
    )
    for pair in found.pairs():
        difference = pair.difference
        mean, low, high = (
            figure(value, signed=True)
            for value in (difference.difference, difference.low, difference.high)
        )
        st.caption(
            plain(
                f"F1 of {METHODS[pair.b]} minus {METHODS[pair.a]}: {mean} ({low} to {high}), "
                f"p {figure(difference.p)}."
            )
        )


def _errors(judges: Mapping[str, MethodResult]) -> None:
    table = error_table(judges)
    most = sorted(judges, key=lambda name: judges[name].errors.total(), reverse=True)[:_MOST]
    if len(most) < len(judges):
        st.caption(
            f"Drawn are the {_MOST} who found most of {len(judges):,}; the files have all. Choose "
            "others under Annotators."
        )
    for by, title in (("type", "Errors by type"), ("step", "Errors by position")):
        shown = table[table["By"] == by]
        st.markdown(f"**{title}**")
        early = ", ".join(
            f"{plain(name)} {judges[name].early:.0%}" for name in most if judges[name].early
        )
        if by == "step" and early:
            st.caption(f"In the first three steps: {early}.")
        show_chart(
            _chart(shown[shown["Annotator"].isin(most)], "Type" if by == "type" else "Step"),
            shown,
            f"errors-by-{by}",
            alt=f"{title}, as shares of what each annotator found; the file has the figures",
        )


def _chart(table: pd.DataFrame, title: str) -> alt.Chart:
    import altair as alt

    bars: alt.Chart = alt.Chart(table).mark_bar()
    chart: alt.Chart = bars.encode(
        y=alt.Y("Error:N", sort=None, title=title, axis=names_axis()),
        yOffset="Annotator:N",
        x=alt.X(
            "Share:Q",
            title="Share of errors",
            scale=scale_of(table["Share"]),
            axis=axis_of(is_share=True),
        ),
        color=colour_of("Annotator"),
        tooltip=["Annotator:N", "Error:N", "Count:Q", alt.Tooltip("Share:Q", format=".1%")],
    )
    return chart
