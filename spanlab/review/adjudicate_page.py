"""The page Adjudicate."""

from __future__ import annotations

import streamlit as st

from spanlab.base.errors import UsageError
from spanlab.output.figures import counted
from spanlab.review import queue as review
from spanlab.review import span_editor
from spanlab.review.adjudication import (
    STATES,
    AdjudicationQueue,
    TakenItems,
    agreed_items,
    check_adjudicator,
    take_agreed,
    take_back,
)
from spanlab.review.page import REVIEW, answer_editor, entry_of
from spanlab.review.reviewer_panel import may_review
from spanlab.schema import ADJUDICATED, AnnotatorKind, DatasetSummary, Permission
from spanlab.ui import common
from spanlab.ui.messages import errors_shown
from spanlab.ui.session import ask_reviewer
from spanlab.worklists import paging

_PAGE = "adjudicate"


def page() -> None:
    """Draw the page."""
    summaries = common.datasets_for("adjudicate", Permission.ADJUDICATE, untitled="Adjudicate")
    if not summaries:
        return
    head = common.editor_head()
    summary = common.choose_dataset(summaries, head)
    with head:
        with st.popover("Queue", icon=":material/tune:", width="content"):
            author = ask_reviewer(summary)
            queue = _ask_queue(summary)
        described = st.empty()
        agreed = st.container(
            key="agreed", horizontal=True, vertical_alignment="center", width="content"
        )
        common.guide_link("Adjudicate")
    if not may_review(summary, author):
        return
    try:
        check_adjudicator(common.store(), summary, author)
    except UsageError as error:  # nothing is wrong, this comes later
        st.info(common.plain(str(error)), icon=":material/visibility_off:")
        common.link("review", "Review", icon=":material/edit_note:", dataset=summary.name)
        return
    n_unanimous = paging.n_unanimous(common.store(), summary.name, queue.query)
    last = f"Unanimous items last: {n_unanimous:,} · " if n_unanimous else ""
    described.caption(common.plain(f"{last}{queue.described}. Decided by {author}."))
    with agreed:
        offer_agreed(summary.name, queue, author)
    query = queue.query
    labels = review.labels(common.store(), summary.name, query)
    span_editor.mount_editor(labels, summary.settings, adjudicating=True)
    with errors_shown():
        entry = entry_of(summary.name, query, _PAGE)
        place = span_editor.ReviewQueue(
            summary.name, query, entry, author=author, decided_at_once=decided_at_once()
        )
        answer_editor(place, _PAGE, common.chosen_in(REVIEW, _PAGE))


def _ask_queue(summary: DatasetSummary) -> AdjudicationQueue:
    """Ask which items to decide, and under which name the labels are written."""
    known = summary.settings.known.labels if summary.settings.known else ()
    gold = dict.fromkeys((*summary.names_of(AnnotatorKind.GOLD), *known))
    people = len(summary.names_of(AnnotatorKind.PERSON))
    left, right = st.columns(2)
    with left:
        target = st.selectbox(
            "Save as",
            list(dict.fromkeys([ADJUDICATED, *gold])),
            **common.kept("adjudicate.target"),
            accept_new_options=True,
            help="Decisions are saved under this gold annotator; type a new name for labels of "
            "their own. Imported gold labels change only on items you decide.",
        )
        if target in known:
            st.caption("Items that you decide under this name become check items.")
        state = st.selectbox("Status", list(STATES), **common.kept("adjudicate.state"))
    with right:
        least = st.number_input(
            "Finished by at least",
            0,
            max(people, 1),
            min(people, 2),
            **common.kept(f"adjudicate.least.{summary.name}"),
            help="How many people must have finished an item before it is decided.",
        )
        langs = [None, *sorted(summary.languages)]
        lang = st.selectbox(
            "Language",
            langs,
            format_func=lambda code: code or "All",
            **common.kept("adjudicate.lang"),
        )
    return AdjudicationQueue(target=target, state=state, least=int(least), lang=lang)


_TIMES = "spanlab.agreed.times"


def decided_at_once() -> int:
    """Return how often items were decided at once, or that was undone; the editor reloads then."""
    times: int = st.session_state.get(_TIMES, 0)
    return times


@st.cache_resource
def _last_taken() -> dict[tuple[str, str, str], TakenItems]:
    """Keep what was decided at once last, by dataset, gold labels and author, over reloads."""
    return {}


def offer_agreed(dataset: str, queue: AdjudicationQueue, author: str) -> None:
    """Draw the button that adopts unanimous items, or the one that undoes it."""
    if st.button("Adopt unanimous items…", icon=":material/done_all:", width="content"):
        _ask_to_take(dataset, queue, author)
    decision_key = (dataset, queue.target, author)
    taken_items = _last_taken().get(decision_key)
    if taken_items is None:
        return
    st.caption(f"{counted(len(taken_items.items), 'item')} adopted", width="content")
    if st.button("Undo all", icon=":material/undo:", width="content"):
        with errors_shown():
            undone = take_back(common.store(), taken_items)
            n_kept = len(taken_items.items) - undone
            message = f"Undone: {counted(undone, 'item')} undecided again."
            st.toast(f"{message} {n_kept} changed since then kept." if n_kept else message)
            del _last_taken()[decision_key]
            _read_again()


@st.dialog("Unanimous items", icon=":material/done_all:")
def _ask_to_take(dataset: str, queue: AdjudicationQueue, author: str) -> None:
    """Say how many items that are, and decide them when told to."""
    with errors_shown():
        agreement = agreed_items(common.store(), dataset, queue)
        agreed = agreement.items
        empty = sum(item.n_spans == 0 for item in agreed)
        if n_left := sum(agreement.left.values()):
            reasons = ", ".join(f"{reason} ({n:,})" for reason, n in agreement.left.items())
            st.caption(f"{counted(n_left, 'item')} with the same marks left to decide: {reasons}.")
        if not agreed:
            st.write("No undecided item has two or more annotators in full agreement.")
            return
        st.write(
            "Undecided items on which all who finished them mark the same characters with the same "
            f"labels: **{counted(len(agreed), 'item')}**, {empty} of them without any span."
        )
        st.caption("People count; detectors count where no person has finished an item.")
        if st.button(f"Adopt {counted(len(agreed), 'item')}", type="primary"):
            taken_items = take_agreed(
                common.store(), dataset, queue.target, author=author, agreed=agreed
            )
            _last_taken()[dataset, queue.target, author] = taken_items
            _read_again()


def _read_again() -> None:
    """Have the editor read its items again."""
    st.session_state[_TIMES] = decided_at_once() + 1
    st.rerun()
