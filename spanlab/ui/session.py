"""Who reviews in this session, and what of a dataset they may see."""

from __future__ import annotations

import getpass

import streamlit as st

from spanlab.schema import DatasetSummary
from spanlab.storage.datasets import summary_of
from spanlab.storage.store import Store
from spanlab.ui.common import kept, store
from spanlab.worklists.sight import seen_by

PARAMETER = "reviewer"  # of the URL


_FIELD = "review.reviewer"


def ask_reviewer(summary: DatasetSummary) -> str:
    """Draw the field for the reviewer's name and return the name, empty if there is none.

    Where people log in nobody types one.
    """
    own = store().own_name(summary.name)
    if own is not None:
        st.text_input("Reviewer", own, disabled=True, help="Who you have logged in as.")
        return own
    default = st.query_params.get(PARAMETER) or _login()
    name = st.text_input("Reviewer", default, max_chars=200, **kept(_FIELD))
    return " ".join((name or "").split())


def session_reviewer(dataset: str) -> str:
    """Return who reviews a dataset in this session: who has logged in, or the name typed last."""
    name = store().own_name(dataset) or st.session_state.get(kept(_FIELD)["key"])
    return " ".join(str(name or "").split())


def seen_store(summary: DatasetSummary) -> Store:
    """Return the database as the reviewer of this session may see a dataset in it."""
    if not summary.settings.is_blind:
        return store()
    return seen_by(store(), summary.name, session_reviewer(summary.name))


def seen_summary(summary: DatasetSummary) -> DatasetSummary:
    """Return a dataset with the annotators that may be seen; asks for a name if it is blind."""
    if not summary.settings.is_blind:
        return summary
    name = ask_reviewer(summary)
    look = seen_by(store(), summary.name, name)
    if not look.sight(summary.name).blind:
        st.caption("You see everyone's marks because you have no items left to review here.")
        return summary
    exception = ", and others on items that you have finished" * summary.settings.shown_when_done
    st.caption(
        "This dataset is reviewed blind: until you have decided all of your items, you see only "
        f"detectors' and your own annotations{exception}. People who do not review it see all."
    )
    return summary_of(look, summary.name)


def _login() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "reviewer"
    return "reviewer" if name == "root" else name


def seen_fingerprint(summary: DatasetSummary) -> tuple[object, ...]:
    """Return what tells that a dataset has changed, or is seen by somebody else."""
    return *summary.fingerprint, seen_store(summary).sight(summary.name)
