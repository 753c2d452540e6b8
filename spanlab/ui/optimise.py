"""The Optimise page: tune a detector's prompt on people's labels, watch it, use what it found."""

from __future__ import annotations

import streamlit as st

from optimizers.choosing import SearchEstimate, TuningForm, estimate_search, optimisation_of
from spanlab import jobs
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
from spanlab.ui.messages import errors_shown
from spanlab.ui.model_setup import is_set_up
from spanlab.ui.optimise_form import tuning_form
from spanlab.ui.optimise_views import show_found, show_search
from spanlab.ui.program_views import program_changed, show_programs
from spanlab.workflows.environment import model_environment
from spanlab.workflows.managing import DatasetSummary
from spanlab.workflows.wording import counted, money

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
    if latest is not None:
        with st.container(border=True, key="search"):
            every = None if latest.is_over else EVERY
            st.fragment(_search, run_every=every)(latest.id, latest.is_over)
    here = model_environment(set_up=is_set_up())
    form = tuning_form(summary, here)
    with st.container(border=True):
        if here.problem:
            st.markdown("Optimisation needs a model: see above.")
        else:
            _start(summary, form)
    show_programs()


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


def _start(summary: DatasetSummary, form: TuningForm) -> None:
    """Draw the search's estimate, and the button that starts it."""
    request = estimate = None
    with errors_shown():
        request = optimisation_of(form)
        key = (request.model_dump_json(exclude={"search": {"name"}}), repr(summary))
        known = st.session_state.get(_ESTIMATE)
        if known is None or known[0] != key:
            known = st.session_state[_ESTIMATE] = (key, estimate_search(store(), request))
        estimate = known[1]
        _show(estimate)
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
            jobs.submit_optimisation(chosen, again=again)

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
