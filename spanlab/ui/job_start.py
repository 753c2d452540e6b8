"""Starting a job from a page: what is under way already is shown, and started again on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from spanlab import jobs
from spanlab.errors import UnderWayError
from spanlab.jobs.summary import progress_in_words
from spanlab.ui.common import plain
from spanlab.ui.messages import errors_shown

_ASKED = "spanlab.start-again"


@dataclass(frozen=True)
class _StartQuestion:
    """Whether to start what a job under way does already; ``form`` is what was filled in."""

    form: str
    job_id: str
    submit: Callable[[bool], object]


def start_job(form: str, submit: Callable[[bool], object] | None) -> None:
    """Start a job, unless one under way does the same: then ask first.

    Args:
        form: what is filled in now; a question is dropped where that changes.
        submit: starts the job, with whether also if one under way does the same; None if nothing
            is to be started now.
    """
    with errors_shown("Nothing was started."):
        if submit is not None:
            st.session_state.pop(_ASKED, None)
            try:
                submit(False)
            except UnderWayError as error:
                st.session_state[_ASKED] = _StartQuestion(form, error.job_id, submit)
            else:
                st.rerun()
        question: _StartQuestion | None = st.session_state.get(_ASKED)
        if question is not None and question.form == form:
            _ask(question)


def _ask(question: _StartQuestion) -> None:
    view = jobs.job(question.job_id)
    if view.is_over:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(
            f"Nothing was started: {plain(view.title)} is under way with the same settings "
            f"({plain(progress_in_words(view))}, job {view.id}).",
            icon=":material/content_copy:",
        )
        again = st.button(
            "Start it once more",
            icon=":material/replay:",
            key="start-again",
            help="Both would do the same, and be paid for.",
        )
    if again:
        st.session_state.pop(_ASKED, None)
        question.submit(True)
        st.rerun()
