"""The Optimise page: tune a detector's prompt on people's labels, watch it, use what it found."""

from __future__ import annotations

import streamlit as st

from optimizers.choosing import Foreseen, TuningWish, foresee, optimisation_of
from spanlab import jobs
from spanlab.ui.common import choose_dataset, counted, nothing_yet, page_link, plain, store, title
from spanlab.ui.job_views import (
    EVERY,
    job_actions,
    job_changed,
    job_head,
    job_log,
    latest_job,
    money,
)
from spanlab.ui.messages import errors_shown
from spanlab.ui.optimise_form import wish_form
from spanlab.ui.optimise_views import show_found, show_search
from spanlab.ui.program_views import program_changed, show_programs
from spanlab.workflows.managing import DatasetSummary, list_datasets
from spanlab.workflows.surroundings import surroundings

_FORESEEN = "spanlab.optimise.foreseen"


def page() -> None:
    """Draw the page."""
    title("Optimise")
    summaries = {summary.name: summary for summary in list_datasets(store())}
    if not summaries:
        nothing_yet("learn from")
        show_programs()
        return
    summary = summaries[choose_dataset(list(summaries))]
    latest = latest_job("optimise", summary.name, summaries.values())
    if latest is not None:
        with st.container(border=True, key="search"):
            every = None if latest.is_over else EVERY
            st.fragment(_search, run_every=every)(latest.id, latest.is_over)
    here = surroundings()
    wish = wish_form(summary, here)
    with st.container(border=True):
        if here.problem:
            st.markdown("A search waits for a model: see above.")
        else:
            _start(summary, wish)
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


def _start(summary: DatasetSummary, wish: TuningWish) -> None:
    """Draw what the search will come to, and the button that starts it."""
    request = foreseen = None
    with errors_shown():
        request = optimisation_of(wish)
        key = (request.model_dump_json(exclude={"search": {"name"}}), repr(summary))
        known = st.session_state.get(_FORESEEN)
        if known is None or known[0] != key:
            known = st.session_state[_FORESEEN] = (key, foresee(store(), request))
        foreseen = known[1]
        _show(foreseen)
    clicked = st.button(
        "Start",
        type="primary",
        icon=":material/play_arrow:",
        disabled=foreseen is None,
        key="start-search",
    )
    if clicked and request is not None:
        with errors_shown("Nothing was started."):
            jobs.submit_optimisation(request)
            st.rerun()


def _show(foreseen: Foreseen) -> None:
    effort = foreseen.effort
    figures = {
        "Labelled items": f"{foreseen.items:,}",
        "Evaluations": f"{effort.trials:,}",
        "Calls at most": f"{effort.calls:,}",
        "Cost at most": "unknown" if foreseen.cost is None else f"\\{money(foreseen.cost)}",
    }
    for column, (label, value) in zip(st.columns(len(figures)), figures.items(), strict=True):
        column.metric(label, value)
    languages = ", ".join(f"{lang} {count:,}" for lang, count in foreseen.languages.items())
    notes = [
        f"labels in {languages}",
        f"{counted(effort.prompt_calls, 'call')} of the prompt model",
    ]
    notes.append("answers that are in the cache cost nothing again")
    st.caption(plain(f"An estimate: {'; '.join(notes)}."))
