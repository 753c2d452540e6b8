"""The page Jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from spanlab.jobs import Jobs, JobView
from spanlab.jobs.panel import (
    EVERY,
    dataset_of,
    job_actions,
    job_badge,
    job_changed,
    job_failures,
    job_log,
    job_progress,
)
from spanlab.jobs.summary import summary_of
from spanlab.jobs.views import described
from spanlab.ui.common import actor, link, page_buttons, page_link, plain, store, title
from spanlab.ui.messages import errors_shown, in_page_sentence

_PER_PAGE = 20
_WIDTHS = {"Status": 1.4, "Job": 2.6, "Created": 1.7, "Model": 1.6, "Done": 1.2}  # of others 1
_PAGE = "spanlab.jobs.page"
_OPEN = "job"  # query parameter: the job whose details are shown


def page() -> None:
    """Draw the page."""
    title("Jobs")
    st.fragment(_draw_jobs, run_every=EVERY)()


def _draw_jobs() -> None:
    """Draw one page of jobs; this alone runs again while they go on."""
    job_changed()  # the jobs are read again here in any case
    number = st.session_state.get(_PAGE, 0)
    with errors_shown():
        views = Jobs(actor=actor()).list(_PER_PAGE, number)
        if not views and number == 0:
            _say_no_jobs()
            return
        rows = [summary_of(view) for view in views]
        names = [name for name in next(iter(rows), ()) if any(row[name] for row in rows)]
        if views:
            _draw_head(names)
        for view, row in zip(views, rows, strict=True):
            _draw_row(view, {name: row[name] for name in names})
        if not views:
            st.caption("There are no older jobs.")
        back = partial(_turn_page, number - 1) if number else None
        on = partial(_turn_page, number + 1) if len(views) == _PER_PAGE else None
        page_buttons(back, on, key="jobs", about=f"Page {number + 1}")


def _say_no_jobs() -> None:
    st.info(
        "No job has been started yet. Start detectors on the Detect page; they work while you "
        "review.",
        icon=":material/work_history:",
    )
    page_link("detect", "Go to Detect", icon=":material/manage_search:")


def _columns(names: Iterable[str]) -> list[DeltaGenerator]:
    """Return a cell for each of these columns, and one for the button."""
    widths = [_WIDTHS.get(name, 1) for name in names]
    return st.columns([*widths, 0.8], vertical_alignment="center")


def _draw_head(names: Sequence[str]) -> None:
    with st.container(key="jobs-head"):
        for cell, name in zip(_columns(names), names, strict=False):
            cell.caption(name)


def _draw_row(view: JobView, row: Mapping[str, str]) -> None:
    is_open = st.query_params.get(_OPEN) == view.id
    with st.container(key=f"job-{view.id}", gap="small"):
        first, *cells = _columns(row)
        with first:
            job_badge(view)
        for cell, text in zip(cells, [*row.values()][1:], strict=False):
            if text:
                cell.markdown(plain(text))
            else:
                cell.caption("–")
        cells[-1].button(
            "Hide" if is_open else "Details",
            key=f"details-{view.id}",
            type="tertiary",
            on_click=_toggle,
            args=(None if is_open else view.id,),
        )
        if view.error and not is_open:
            st.caption(f":material/error: {in_page_sentence(view.error)}")
        if is_open:
            with errors_shown(), st.container(border=True):
                _draw_details(Jobs(actor=actor()).find(view.id))


def _draw_details(view: JobView) -> None:
    st.caption(_describe_job(view))
    job_progress(view)
    job_actions(view, "jobs")
    dataset = dataset_of(view, store().datasets())
    if dataset is not None:
        link("review", f"Review {dataset}", icon=":material/edit_note:", dataset=dataset)
    job_failures(view, dataset)
    job_log(view)


def _describe_job(view: JobView) -> str:
    began = view.created.astimezone()
    return plain(f"{described(view.kind).title} {view.id} · requested {began:%-d %B %Y, %H:%M}")


def _toggle(job_id: str | None) -> None:
    if job_id is None:
        st.query_params.pop(_OPEN, None)
    else:
        st.query_params[_OPEN] = job_id


def _turn_page(number: int) -> None:
    st.session_state[_PAGE] = number
