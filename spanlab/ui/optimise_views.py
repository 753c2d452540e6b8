"""A search as the Optimise page shows it: its curve, the best prompt so far, how it scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from spanlab.jobs import JobState, JobView
from spanlab.results import figure
from spanlab.schema import SearchTrial
from spanlab.ui.chart_style import axis_of, scale_of
from spanlab.ui.common import plain
from spanlab.ui.program_views import show_changes, show_held_out, show_prompts, use_button
from spanlab.workflows.programs import registry

if TYPE_CHECKING:
    from spanlab.ui.chart_style import Chart

_ALL = "all items"
_SCORES = {"claims": "Accuracy per claim", "steps": "Accuracy per step"}
_FULL, _FEW, _BEST = "all items to choose by", "a few items", "best so far"


def show_search(view: JobView) -> None:
    """Draw the score of every trial and the best so far, search by search, and the best prompt."""
    search = view.search
    trials = [] if search is None else [each for each in search.trials if each.stage == "search"]
    if search is None or not trials:
        if view.state is JobState.RUNNING:
            st.caption("The first prompt is being scored; every candidate appears here.")
        return
    chart, best = st.columns([1.2, 1], gap="large")
    with chart:
        score = _SCORES.get(search.unit, "Score")
        st.altair_chart(curve(trials, score), width="stretch")
    found = search.best
    with best:
        if found is not None:
            st.markdown(f"**Best prompt so far** · {figure(found.score)} in {plain(_which(found))}")
            show_prompts(found.predictors, key=f"best-{view.id}")


def show_found(view: JobView) -> None:
    """Draw what a finished search found: its scores on held-out items, and a button to use it."""
    search = view.search
    name = None if search is None else search.program
    if search is None or name is None:
        return
    programs = {program.name: program for program in registry()}
    show_held_out(search.held_out)
    if name in programs:
        found = programs[name]
        with st.expander("What changed in the prompt", icon=":material/difference:"):
            show_changes(search.untuned, found)
        use_button(found, key=f"found-{view.id}")
    else:
        st.caption(plain(f"The program {name} has been removed since."))


def curve(trials: Sequence[SearchTrial], score: str = "Score") -> Chart:
    """Return the chart of a job's searches: points for trials, a line for the best so far.

    Args:
        trials: as the job reports them, at least one.
        score: what their scores are.
    """
    import altair as alt

    data = pd.DataFrame(_points(trials))
    lines = pd.DataFrame(_best(trials))
    searches = list(dict.fromkeys(data["search"]))
    colour = alt.Color(
        "search:N",
        sort=searches,
        title=None,
        scale=alt.Scale(domain=searches),
        legend=alt.Legend(orient="bottom"),
    )
    y = alt.Y("score:Q", title=score, scale=scale_of([1.0, *data["score"]]), axis=axis_of())
    x = alt.X("number:Q", title="Trial", axis=alt.Axis(tickCount=5, tickMinStep=1, format="d"))
    shape = alt.Shape(
        "on:N",
        title=None,
        scale=alt.Scale(domain=[_FULL, _FEW], range=["circle", "triangle-up"]),
        legend=alt.Legend(orient="bottom"),
    )
    points = (
        alt.Chart(data)
        .mark_point(filled=True, size=60, opacity=0.9)
        .encode(
            x=x,
            y=y,
            color=colour,
            shape=shape,
            tooltip=[
                alt.Tooltip("search:N", title="Search"),
                alt.Tooltip("number:Q", title="Trial"),
                alt.Tooltip("score:Q", title=score, format=".3f"),
                alt.Tooltip("items:Q", title="Items"),
                alt.Tooltip("on:N", title="Scored on"),
            ],
        )
    )
    best = (
        alt.Chart(lines)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(x=x, y=y, color=colour)
    )
    return alt.layer(best, points).properties(height=300)


def _points(trials: Sequence[SearchTrial]) -> list[dict[str, Any]]:
    return [
        {
            "search": _which(trial),
            "number": trial.number,
            "score": trial.score,
            "items": trial.items,
            "on": _FULL if trial.full else _FEW,
        }
        for trial in trials
    ]


def _best(trials: Sequence[SearchTrial]) -> list[dict[str, Any]]:
    best: dict[str, float] = {}
    rows = []
    for trial in trials:
        search = _which(trial)
        if trial.full:
            best[search] = max(best.get(search, trial.score), trial.score)
        if search in best:
            rows.append({"search": search, "number": trial.number, "score": best[search]})
    return rows


def _which(trial: SearchTrial) -> str:
    return f"fold {trial.fold}" if trial.fold else _ALL
