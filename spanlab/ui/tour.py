"""A tour of five steps: a strip above the pages that says what each is for, and leads on."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from spanlab.schema import Permission
from spanlab.ui import common
from spanlab.workflows.importing import DATASET

_AT = "spanlab.tour"  # the step that this session is at


class TourStep(NamedTuple):
    """A page, by its title in small letters, and what to do there."""

    page: str
    text: str


STEPS = (
    TourStep(
        "review",
        "One answer of a language model, and beside it the evidence. The marked words may be "
        "hallucinated. Press `a` to accept a suggestion, `x` to reject it, and `Enter` when the "
        "answer is done.",
    ),
    TourStep(
        "detect",
        "Detectors make the suggestions. The first one needs nothing; most others ask a model. "
        "You see what they cost before anything starts.",
    ),
    TourStep(
        "compare",
        "One answer as several people and detectors marked it, with the most disagreed answers "
        "first. The tabs show scores, agreement and progress.",
    ),
    TourStep(
        "measure",
        "How often answers are hallucinated. A few reviews correct the rate that a detector "
        "suggests, and the rate comes with an interval.",
    ),
    TourStep("export", "Choose whose labels you want, which items, and which format."),
)


def start_tour() -> None:
    """Draw the page Tour: go to the first step, on the samples if they are there."""
    samples = DATASET in {summary.name for summary in common.datasets_with(Permission.SEE)}
    _go(_steps()[0], 0, DATASET if samples else None)


def _steps() -> list[TourStep]:
    """Return the steps whose pages are open to who is here."""
    return [step for step in STEPS if common.has_page(step.page)]


def draw_tour() -> None:
    """Draw the strip, while the tour goes on."""
    at: int | None = st.session_state.get(_AT)
    steps = _steps()
    if at is None or at >= len(steps):
        return
    with st.container(border=True, key="tour"):
        words, buttons = st.columns([2.4, 1], vertical_alignment="center")
        step = steps[at]
        words.markdown(f"**Tour, {at + 1} of {len(steps)}: {step.page.title()}.** {step.text}")
        with buttons.container(horizontal=True, horizontal_alignment="right", gap="small"):
            _draw_buttons(steps, at)


def _draw_buttons(steps: list[TourStep], at: int) -> None:
    if at > 0 and st.button("Back", key="tour-back", width="content"):
        _go(steps[at - 1], at - 1)
    is_last = at + 1 == len(steps)
    if not is_last and st.button("Next", type="primary", key="tour-next", width="content"):
        _go(steps[at + 1], at + 1)
    if st.button("End the tour", key="tour-end", width="content"):
        del st.session_state[_AT]
        st.rerun()


def _go(step: TourStep, at: int, dataset: str | None = None) -> None:
    st.session_state[_AT] = at
    common.switch_page(step.page, dataset)
