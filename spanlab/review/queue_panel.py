"""The queue of the page Review: which items, in which order, and how it is described."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypedDict

import streamlit as st

from spanlab.measure.panel import measured_items
from spanlab.measure.sample import MeasuredItems
from spanlab.schema import (
    AnnotatorKind,
    AssignedShare,
    DatasetSettings,
    DatasetSummary,
    Order,
    QueueQuery,
    Status,
)
from spanlab.ui import common

_ALL = "All"
_STATES = {
    _ALL: None,
    "Not annotated": Status.NOT_ANNOTATED,
    "Done": Status.DONE,
    "Skipped": Status.SKIPPED,
}
_IMPORTED: Final = "As imported"
_ORDERS: Final[Mapping[str, Order]] = {
    _IMPORTED: "import",
    "Most disagreement first": "disagreement",
    "Least sure first": "uncertainty",
}


def _kept(name: str) -> common.WidgetKey:
    return common.kept(f"review.{name}")


class _QueuePlan(TypedDict, total=False):
    """The fields of a queue by which it offers each person what they are to finish."""

    unfinished: bool
    min_annotators: int
    max_annotators: int
    reserve: bool
    share: AssignedShare


def _ask_plan(settings: DatasetSettings, reviewer: str) -> _QueuePlan:
    """Ask whether to go by the dataset's plan, which is what its reviewers do unless they say no.

    Without a plan, what one person has finished may wait for a second one, unless they are blind.
    """
    if not settings.overlap:
        if settings.is_blind:
            return {}
        two = st.checkbox("Needs a second annotator", **_kept("second"))
        return {"unfinished": True, "min_annotators": 1, "max_annotators": 1} if two else {}
    people = settings.assigned_to
    people_per_item = "1 person" if settings.overlap == 1 else f"{settings.overlap} people"
    planned = st.checkbox(
        "Assigned to you" if people else f"Needs you ({people_per_item} each)",
        value=True,
        **_kept("planned"),
        help=f"The settings of this dataset ask for {people_per_item} per item. Items that you "
        "have finished are left out.",
    )
    if not planned:
        return {}
    if not people:
        return {"unfinished": True, "reserve": True}
    share = settings.share_of(reviewer)
    if share is None:
        others = "1 other person" if len(people) == 1 else f"{len(people)} other people"
        st.caption(f"This dataset is assigned to {others}.")
        return {}
    # After people left, came or came back, more may be asked for an item than are to have it.
    return {"unfinished": True, "reserve": settings.may_lose, "share": share}


def choose_measurement(summary: DatasetSummary, reviewer: str) -> MeasuredItems | None:
    """Ask whether to review the sample of the dataset's measurement; None if not, or for none.

    Those whose reviews count by its plan, and who comes by its link, begin with it: reviews in
    import order with suggestions shown would bias the rate. For the same reason an error ends the
    page: no other queue takes the sample's place.
    """
    plan = summary.settings.measurement
    if plan is None:
        return None
    key = _kept(f"sample.{summary.name}")
    is_asked_for = st.query_params.pop(common.QUEUE, None) == common.SAMPLE
    if is_asked_for or key["key"] not in st.session_state:
        st.session_state[key["key"]] = is_asked_for or reviewer in (plan.reviewers or (reviewer,))
    is_chosen = st.checkbox(
        "Measurement sample",
        **key,
        help="You can stop at any time: what you have reviewed is a valid sample.",
    )
    return measured_items(summary, plan, common.store()) if is_chosen else None


def choose_sample(summary: DatasetSummary, reviewer: str, measured: MeasuredItems) -> QueueQuery:
    """Return the queue of a measurement's sample, and say whether suggestions are shown.

    Of the sample's items it has those that are assigned to the reviewer, if any are.
    """
    settings, plan = summary.settings, summary.settings.measurement
    assert plan is not None
    shown = "shown" if plan.show_suggestions else "hidden"
    st.caption(f"Detectors' suggestions are {shown}, as the plan on the Measure page says.")
    if plan.reviewers and reviewer not in plan.reviewers:
        st.caption(common.plain(f"Only the reviews of {', '.join(plan.reviewers)} count."))
    planned = _ask_plan(settings, reviewer) if settings.overlap else _QueuePlan()
    planned.pop("unfinished", None)  # who reviews a sample may go back in it
    return QueueQuery(
        **planned,
        reviewer=reviewer,
        sample=measured.queue,
        listed=settings.has_lists,
        blind=True,
        own_only=not plan.show_suggestions,
    )


def choose_queue(summary: DatasetSummary, reviewer: str) -> QueueQuery:
    """Ask which items to go through, and in which order."""
    searched = st.text_input(
        "Search",
        max_chars=200,
        placeholder="Question, answer, comment or id",
        **_kept("text"),
        help="All words must occur in the item (question, answer, ID), or all in one comment.",
    )
    left, right = st.columns(2)
    with left:
        state = st.selectbox("Your status", list(_STATES), **_kept("state"))
        low, high = st.slider(
            "Highest span probability",
            0.0,
            1.0,
            (0.0, 1.0),
            step=0.05,
            **_kept("prob"),
            help="Of any detector, or of the one selected.",
        )
        plan = _ask_plan(summary.settings, reviewer)
    with right:
        lang = st.selectbox("Language", [_ALL, *sorted(summary.languages)], **_kept("lang"))
        detectors = summary.names_of(AnnotatorKind.DETECTOR)
        detector = st.selectbox("Detector", [_ALL, *detectors], **_kept("detector"))
        split = st.slider("Disagreement at least", 0.0, 1.0, 0.0, step=0.05, **_kept("split"))
    if summary.settings.known is not None:  # another order would tell check items
        st.caption("Items are in random order.")
        order = _IMPORTED
    else:
        order = st.segmented_control(
            "Order",
            list(_ORDERS),
            default=_IMPORTED,
            required=True,
            **_kept("order"),
            help="“Least sure” are answers whose highest span probability is close to one half: "
            "what a detector learns most from.",
        )
    unplaced = st.checkbox(
        "Where is it?",
        **_kept("unplaced"),
        help="Only answers that are called hallucinated as a whole and have no marked place yet.",
    )
    locked = summary.settings.is_blind
    shown = _kept("people")
    if shown["key"] not in st.session_state:
        st.session_state[shown["key"]] = summary.settings.others_shown
    people = st.checkbox(
        "Show other people's marks",
        **shown,
        disabled=locked,
        help="Other people's spans and comments, gold labels, and votes with people in them. "
        "Without it you review blind: disagreement then means that of detectors.",
    )
    if unplaced and (locked or not people):
        st.caption("Reviewing blind, you get only answers that detectors call hallucinated.")
    if locked:
        later = " You see it once you have finished an item."
        st.caption(
            "Locked: this dataset is reviewed blind."
            + (later if summary.settings.shown_when_done else "")
        )
    return QueueQuery(
        **plan,
        reviewer=reviewer,
        listed=summary.settings.has_lists,
        blind=locked or not people,
        shown_when_done=locked and summary.settings.shown_when_done,
        text=searched.strip() or None,
        lang=None if lang == _ALL else lang,
        status=_STATES[state],
        detector=None if detector == _ALL else detector,
        min_prob=low if low > 0.0 else None,
        max_prob=high if high < 1.0 else None,
        min_disagreement=split if split > 0.0 else None,
        unplaced=unplaced,
        order=_ORDERS[order],
    )


def describe_queue(query: QueueQuery) -> str:
    """Say in one line what of a dataset is being reviewed, and by whom."""
    parts = [
        f"as {query.reviewer}",
        None if query.blind else "not blind",
        "suggestions hidden" if query.own_only else None,
        query.text and f"“{query.text}”",
        query.lang,
        query.status,
        query.detector,
    ]
    if query.min_prob is not None or query.max_prob is not None:
        parts.append(f"probability {query.min_prob or 0:g} to {query.max_prob or 1:g}")
    if query.min_disagreement is not None:
        parts.append(f"disagreement from {query.min_disagreement:g}")
    if query.unplaced:
        parts.append("hallucinated, place not marked")
    if query.unfinished:
        parts.append("needs a second annotator" if query.min_annotators else "needed from you")
    if query.order != "import":
        parts += [words.lower() for words, order in _ORDERS.items() if order == query.order]
    return " · ".join(part for part in parts if part)
