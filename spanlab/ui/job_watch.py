"""Jobs whose end this browser session is to announce, and those that it started on the page."""

from __future__ import annotations

import streamlit as st

_WATCHED = "spanlab.jobs.watched"
_STARTED = "spanlab.jobs.started"


def watch(job_id: str, *, over: bool = False) -> None:
    """Remember a job that was started or is running; ``over`` forgets it."""
    watched: set[str] = st.session_state.setdefault(_WATCHED, set())
    if over:
        watched.discard(job_id)
    else:
        watched.add(job_id)


def is_watched(job_id: str) -> bool:
    """Return whether the end of a job is still to be announced."""
    return job_id in st.session_state.get(_WATCHED, ())


def start_here(job_id: str) -> None:
    """Remember a job whose button was pressed on this page, so that it is shown beside it."""
    st.session_state[_STARTED] = job_id


def is_started_here(job_id: str) -> bool:
    """Return whether a job's button was the last one that was pressed in this session."""
    return bool(st.session_state.get(_STARTED) == job_id)
