"""The page Optimise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from optimizers.choosing import SearchOptions, optimisation_of
from optimizers.estimates import SearchEstimate, estimate_search
from optimizers.form import search_form
from optimizers.panel import (
    program_changed,
    show_changes,
    show_held_out,
    show_programs,
    show_prompts,
    use_button,
)
from optimizers.programs import registry
from optimizers.units import units
from spanlab.detection.entry import tunable
from spanlab.detection.form import start_job
from spanlab.detection.models_panel import environment
from spanlab.jobs import Jobs, JobState, JobView
from spanlab.jobs.panel import (
    EVERY,
    is_started_here,
    job_actions,
    job_changed,
    job_head,
    job_log,
    latest_job,
    start_here,
)
from spanlab.output.figures import counted, figure, money
from spanlab.schema import DatasetSummary, Permission, SearchTrial
from spanlab.ui.common import actor, choose_dataset, datasets_for, plain, start_bar, store, title
from spanlab.ui.dots import Chart, axis_of, scale_of
from spanlab.ui.messages import errors_shown

_ESTIMATE = "spanlab.optimise.estimate"


def page() -> None:
    """Draw the page."""
    place = title("Optimise")
    if not tunable():
        st.info("No detector that is installed has prompts to tune.")
        return
    summaries = datasets_for("learn from", Permission.ADMINISTER)
    if not summaries:
        show_programs()
        return
    summary = choose_dataset(summaries, place)
    latest = latest_job("optimise", summary.name, summaries.values())
    if latest is not None:
        _draw_latest_job(latest)
    here = environment()
    filled = search_form(summary, here)
    with start_bar():
        _draw_start(summary, filled, has_model=not here.problem)
        if latest is not None and is_started_here(latest.id):
            st.caption(plain(f"{latest.title} was started: see the top of the page."))
    show_programs()


def _draw_latest_job(view: JobView) -> None:
    with st.container(border=True, key="search"):
        every = None if view.is_over else EVERY
        st.fragment(_draw_search, run_every=every)(view.id, view.is_over)


def _draw_search(job_id: str, was_over: bool) -> None:
    """Draw a search; when it ends, the list of programs is drawn anew as well."""
    with errors_shown():
        view = Jobs(actor=actor()).find(job_id)
        if job_changed() or program_changed() or (view.is_over and not was_over):
            st.rerun()
        job_head(view)
        job_actions(view, "optimise")
        show_search(view)
        show_found(view)
        with st.expander("Log", key=f"log-{view.id}", icon=":material/notes:"):
            job_log(view)


def _draw_start(summary: DatasetSummary, filled: dict[str, Any], *, has_model: bool) -> None:
    """Draw the search's estimate, and the button that starts a search."""
    request = estimate = None
    if not has_model:
        st.markdown("Choose a model above to see the cost, and to start.")
    else:
        with errors_shown():
            request = optimisation_of(summary.name, SearchOptions.checked(filled))
            key = (request.model_dump_json(exclude={"search": {"name"}}), repr(summary))
            old = st.session_state.get(_ESTIMATE)
            if old is None or old[0] != key:
                old = st.session_state[_ESTIMATE] = (key, estimate_search(store(), request))
            estimate = old[1]
            _show(estimate)
    clicked = st.button(
        "Start",
        type="primary",
        icon=":material/play_arrow:",
        disabled=estimate is None,
        key="start-search",
    )
    if request is not None:
        submitted_request = request

        def submit(again: bool) -> None:
            start_here(Jobs(actor=actor()).submit(submitted_request, again=again))

        start_job(request.model_dump_json(), submit if clicked else None)


def _show(estimate: SearchEstimate) -> None:
    effort = estimate.effort
    figures = {
        f"Labelled {estimate.unit}": f"{estimate.items:,}",
        "Evaluations": f"{effort.trials:,}",
        "Calls at most": f"{effort.calls:,}",
        "Cost at most": "unknown" if estimate.cost is None else f"\\{money(estimate.cost)}",
    }
    for column, (label, value) in zip(st.columns(len(figures)), figures.items(), strict=True):
        column.metric(label, value)
    languages = ", ".join(f"{lang} {count:,}" for lang, count in estimate.languages.items())
    notes = [
        f"labels in {languages}",
        f"{counted(effort.prompt_calls, 'call')} of the prompt model",
    ]
    if effort.searches:
        notes.append(f"{effort.searches:,} searches")
    notes.append("replies in the cache cost nothing again")
    st.caption(plain(f"An estimate: {'; '.join(notes)}."))


_ALL = "all items"
_FULL, _FEW, _BEST = "all items to choose by", "a few items", "best so far"


def show_search(view: JobView) -> None:
    """Draw the score of every trial and the best so far, search by search, and the best prompt."""
    search = view.search
    trials = [] if search is None else [trial for trial in search.trials if trial.stage == "search"]
    if search is None or not trials:
        if view.state is JobState.RUNNING:
            st.caption("The first prompt is being scored; every candidate appears here.")
        return
    chart, best = st.columns([1.2, 1], gap="large")
    with chart:
        unit = units().get(search.unit)  # the package that brought it may be gone
        are_verdicts = unit is not None and unit.are_verdicts
        score = f"Accuracy per {search.unit.removesuffix('s')}" if are_verdicts else "Score"
        st.altair_chart(curve(trials, score), width="stretch")
    best_prompt = search.best
    with best:
        if best_prompt is not None:
            where = plain(_which(best_prompt))
            st.markdown(f"**Best prompt so far** · {figure(best_prompt.score)} in {where}")
            tried = sum(trial.full and trial.fold == best_prompt.fold for trial in trials)
            if tried > 1:
                st.caption(
                    f"Best of {tried:,} on these {counted(best_prompt.items, 'item')}: expect less "
                    "on others."
                )
            show_prompts(best_prompt.predictors, key=f"best-{view.id}")


def show_found(view: JobView) -> None:
    """Draw what a finished search found: its scores on held-out items, and a button to use it."""
    search = view.search
    name = None if search is None else search.program
    if search is None or name is None:
        return
    programs = {program.name: program for program in registry(actor=actor())}
    show_held_out(search.held_out)
    if name in programs:
        program = programs[name]
        with st.expander("What changed in the prompt", icon=":material/difference:"):
            show_changes(search.untuned, program)
        use_button(program, key=f"found-{view.id}")
    else:
        st.caption(plain(f"The tuned prompt {name} has been removed since."))


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
