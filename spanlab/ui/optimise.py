"""The Optimise page: tune a detector's prompt on people's labels, watch it, use what it found."""

from __future__ import annotations

from typing import Any

import streamlit as st

from optimizers.choosing import SearchEstimate, SearchOptions, estimate_search, optimisation_of
from spanlab import jobs
from spanlab.jobs import JobView
from spanlab.results import counted, money
from spanlab.schema import DatasetSummary
from spanlab.ui.common import choose_dataset, datasets_for, page_link, plain, store, title
from spanlab.ui.job_start import start_job
from spanlab.ui.job_views import (
    EVERY,
    job_actions,
    job_changed,
    job_head,
    job_log,
    latest_job,
)
from spanlab.ui.job_watch import is_started_here, start_here
from spanlab.ui.messages import errors_shown
from spanlab.ui.model_setup import is_set_up
from spanlab.ui.optimise_form import search_form
from spanlab.ui.optimise_views import show_found, show_search
from spanlab.ui.program_views import program_changed, show_programs
from spanlab.workflows.detection.models import model_environment

_ESTIMATE = "spanlab.optimise.estimate"


def page() -> None:
    """Draw the page."""
    title("Optimise")
    summaries = datasets_for("learn from")
    if not summaries:
        show_programs()
        return
    summary = choose_dataset(summaries)
    latest = latest_job("optimise", summary.name, summaries.values())
    # What was started here stands beside its button; earlier ones are what people come to see.
    started = latest if latest is not None and is_started_here(latest.id) else None
    if latest is not None and started is None:
        _latest(latest)
    here = model_environment(set_up=is_set_up())
    filled = search_form(summary, here)
    with st.container(border=True):
        if here.problem:
            st.markdown("Optimisation needs a model: see above.")
            if started is not None:
                _latest(started)
        else:
            _start(summary, filled, started)
    show_programs()


def _latest(view: JobView) -> None:
    with st.container(border=True, key="search"):
        every = None if view.is_over else EVERY
        st.fragment(_search, run_every=every)(view.id, view.is_over)


def _search(job_id: str, was_over: bool) -> None:
    """Draw a search; when it ends, the list of programs is drawn anew as well."""
    with errors_shown():
        view = jobs.job(job_id)
        if job_changed() or program_changed() or (view.is_over and not was_over):
            st.rerun()
        job_head(view)

        def onward() -> None:
            page_link("jobs", "All jobs", icon=":material/work_history:")

        job_actions(view, "optimise", onward)
        show_search(view)
        show_found(view)
        with st.expander("Log", icon=":material/notes:"):
            job_log(view)


def _start(summary: DatasetSummary, filled: dict[str, Any], started: JobView | None) -> None:
    """Draw the search's estimate, what was started here, and the button that starts a search."""
    request = estimate = None
    with errors_shown():
        request = optimisation_of(summary.name, SearchOptions.checked(filled))
        key = (request.model_dump_json(exclude={"search": {"name"}}), repr(summary))
        known = st.session_state.get(_ESTIMATE)
        if known is None or known[0] != key:
            known = st.session_state[_ESTIMATE] = (key, estimate_search(store(), request))
        estimate = known[1]
        _show(estimate)
    if started is not None:
        _latest(started)
    clicked = st.button(
        "Start",
        type="primary",
        icon=":material/play_arrow:",
        disabled=estimate is None,
        key="start-search",
    )
    if request is not None:
        chosen = request

        def submit(again: bool) -> None:
            start_here(jobs.submit_optimisation(chosen, again=again))

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
    notes.append("answers that are in the cache cost nothing again")
    st.caption(plain(f"An estimate: {'; '.join(notes)}."))
