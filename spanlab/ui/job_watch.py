"""Which jobs this window has seen at work, so that it can tell when they have ended."""

from __future__ import annotations

import streamlit as st

_WATCHED = "spanlab.jobs.watched"


def watch(job_id: str, *, over: bool = False) -> None:
    """Remember a job that was started or goes on; forget it once its end was told."""
    watched: set[str] = st.session_state.setdefault(_WATCHED, set())
    if over:
        watched.discard(job_id)
    else:
        watched.add(job_id)


def is_watched(job_id: str) -> bool:
    """Say whether the end of a job is still to be told."""
    return job_id in st.session_state.get(_WATCHED, ())
