"""Who reviews in this session, and what of a dataset they may see."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from spanlab.base.settings import account_name
from spanlab.schema import DatasetSummary
from spanlab.storage.datasets import summary_of
from spanlab.storage.store import Store
from spanlab.ui.common import kept, store
from spanlab.worklists.sight import seen_by

PARAMETER = "reviewer"  # of the URL
_PRESSED = 10.0  # seconds for which a press waits for a run that comes to it
_FIELD = "review.reviewer"


def ask_reviewer(summary: DatasetSummary) -> str:
    """Draw the field for the reviewer's name and return the name, empty if there is none.

    Where people log in nobody types one.
    """
    own = store().own_name(summary.name)
    if own is not None:
        return own
    name = st.text_input("Reviewer", _expected(), max_chars=200, **kept(_FIELD))
    return " ".join((name or "").split())


def session_reviewer(dataset: str) -> str:
    """Return who reviews a dataset in this session: who has logged in, or the name typed last."""
    name = store().own_name(dataset) or st.session_state.get(kept(_FIELD)["key"], _expected())
    return " ".join(str(name or "").split())


def _expected() -> str:
    return st.query_params.get(PARAMETER) or account_name() or "reviewer"


def seen_store(summary: DatasetSummary) -> Store:
    """Return the database as the reviewer of this session may see a dataset in it."""
    if not summary.settings.is_blind:
        return store()
    return seen_by(store(), summary.name, session_reviewer(summary.name))


def seen_summary(summary: DatasetSummary) -> DatasetSummary:
    """Return a dataset with the annotators that may be seen; asks who is blind for a name."""
    look = seen_store(summary)
    if not (summary.settings.is_blind and look.sight(summary.name).blind):
        return summary
    ask_reviewer(summary)
    exception = ", and others on items that you have finished" * summary.settings.shown_when_done
    st.caption(
        "This dataset is reviewed blind: until you have decided all of your items, you see only "
        f"detectors' and your own annotations{exception}. People who do not review it see all."
    )
    return summary_of(look, summary.name)


def pressed(label: str, *, key: str, of: str = "", **button: Any) -> bool:
    """Draw a button, and say whether it was pressed since it was last drawn.

    A run of a page that another one ends, as when a job's progress is drawn or a box is left, takes
    a press with it that it has not come to. What a callback has stored stays for the next run, for
    some seconds.

    Args:
        label: what it says.
        key: its key.
        of: the dataset that a press is for; for another one it does not count.
        **button: what else ``st.button`` takes.
    """
    name = f"spanlab.pressed.{key}"
    st.button(label, key=key, on_click=_press, args=(name, of), **button)
    what, at = st.session_state.pop(name, ("", 0.0))  # what a callback stored
    return bool(what == of and time.monotonic() - at < _PRESSED)


def _press(name: str, of: str) -> None:
    st.session_state[name] = (of, time.monotonic())


def seen_fingerprint(summary: DatasetSummary) -> tuple[object, ...]:
    """Return what tells that a dataset has changed, or is seen by somebody else."""
    return *summary.fingerprint, seen_store(summary).sight(summary.name)
