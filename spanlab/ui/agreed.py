"""On the Adjudicate page: all items on which everybody agrees, decided and taken back at once."""

from __future__ import annotations

import streamlit as st

from spanlab.results import counted
from spanlab.ui import common
from spanlab.ui.messages import errors_shown
from spanlab.workflows.analysis.agreed_items import TakenItems, agreed_items, take_agreed, take_back
from spanlab.workflows.review import AdjudicationQueue

_TIMES = "spanlab.agreed.times"


def decided_at_once() -> int:
    """Return how often many items were decided, or that was taken back: the editor's are old."""
    times: int = st.session_state.get(_TIMES, 0)
    return times


@st.cache_resource
def _last_taken() -> dict[tuple[str, str, str], TakenItems]:
    """Keep what was decided at once last, by dataset, gold labels and author, over reloads."""
    return {}


def offer_agreed(dataset: str, queue: AdjudicationQueue, author: str) -> None:
    """Draw the button that takes over what all agree on, or the one that takes this back."""
    if st.button("Take what all agree on…", icon=":material/done_all:", width="content"):
        _ask(dataset, queue, author)
    mine = (dataset, queue.target, author)
    taken = _last_taken().get(mine)
    if taken is None:
        return
    st.caption(f"{counted(len(taken.items), 'item')} taken over", width="content")
    if st.button("Undo all of it", icon=":material/undo:", width="content"):
        with errors_shown():
            undone = take_back(common.store(), taken)
            kept = len(taken.items) - undone
            said = f"Undone; to be decided again: {counted(undone, 'item')}."
            st.toast(f"{said} {kept} changed since stay." if kept else said)
            del _last_taken()[mine]
            _read_again()


@st.dialog("What all agree on", icon=":material/done_all:")
def _ask(dataset: str, queue: AdjudicationQueue, author: str) -> None:
    """Say how many items that are, and decide them when told to."""
    with errors_shown():
        agreed = agreed_items(common.store(), dataset, queue)
        empty = sum(item.n_spans == 0 for item in agreed)
        if not agreed:
            st.write("On no item that is not decided do two or more agree.")
            return
        st.write(
            "Not decided yet, and all who finished them mark the same characters with the same "
            f"labels: **{counted(len(agreed), 'item')}**, {empty} of them without any span."
        )
        st.caption("People count; where no person has finished an item, detectors do.")
        if st.button(f"Take over {counted(len(agreed), 'item')}", type="primary"):
            taken = take_agreed(common.store(), dataset, queue.target, author, agreed)
            _last_taken()[dataset, queue.target, author] = taken
            _read_again()


def _read_again() -> None:
    """Have the editor read its items again."""
    st.session_state[_TIMES] = decided_at_once() + 1
    st.rerun()
