"""Jobs whose end this browser session is to announce."""

from __future__ import annotations

import streamlit as st

_WATCHED = "spanlab.jobs.watched"


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
