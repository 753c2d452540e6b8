"""The Adjudicate page: one set of labels decided from what several annotators said of an item."""

from __future__ import annotations

import streamlit as st

from spanlab.errors import UsageError
from spanlab.schema import AnnotatorKind, DatasetSummary
from spanlab.ui import common, span_editor
from spanlab.ui.agreed import decided_at_once, offer_agreed
from spanlab.ui.messages import errors_shown, show_error
from spanlab.ui.review import answer_editor, entry_of
from spanlab.ui.reviewer import ask_reviewer, may_review
from spanlab.workflows import review
from spanlab.workflows.blind import ADJUDICATED
from spanlab.workflows.review import STATES, AdjudicationQueue, check_adjudicator

_PAGE = "adjudicate"


def page() -> None:
    """Draw the page."""
    summaries = common.datasets_for("adjudicate")
    if not summaries:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.popover("Queue", icon=":material/tune:", width="content"):
            summary = common.choose_dataset(summaries)
            author = ask_reviewer()
            queue = _queue(summary)
        described = st.empty()
        agreed = st.container(
            key="agreed", horizontal=True, vertical_alignment="center", width="content"
        )
        common.link("export", "Export", icon=":material/download:", dataset=summary.name)
    if not may_review(summary, author):
        return
    try:
        check_adjudicator(summary, author)
    except UsageError as error:
        show_error(error)
        return
    described.caption(common.plain(f"{summary.name} · {queue.described} · decided by {author}"))
    with agreed:
        offer_agreed(summary.name, queue, author)
    query = queue.query
    labels = review.labels(common.store(), summary.name, query)
    span_editor.editor(labels, summary.settings, adjudicating=True)
    with errors_shown():
        entry = entry_of(summary.name, query, _PAGE)
        place = span_editor.ReviewQueue(summary.name, query, entry, author, decided_at_once())
        answer_editor(place, _PAGE)


def _queue(summary: DatasetSummary) -> AdjudicationQueue:
    """Ask which items to decide, and under which name the labels are written."""
    gold = [who.name for who in summary.annotators if who.kind is AnnotatorKind.GOLD]
    people = sum(who.kind is AnnotatorKind.PERSON for who in summary.annotators)
    left, right = st.columns(2)
    with left:
        target = st.selectbox(
            "Write to",
            list(dict.fromkeys([ADJUDICATED, *gold])),
            **common.kept("adjudicate.target"),
            help="The gold labels that your decisions become. Those that were imported are "
            "changed where you decide, and nowhere else.",
        )
        state = st.selectbox("State", list(STATES), **common.kept("adjudicate.state"))
    with right:
        least = st.number_input(
            "Finished by at least",
            *(0, max(people, 1), min(people, 2)),
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
