"""Where people let a detector learn from their reviews: a fold on the page Detect."""

from __future__ import annotations

from typing import Final

import streamlit as st

from spanlab.detection.fits import (
    FitState,
    fit_every,
    fit_in_words,
    fit_state,
    fit_tables,
    keep_fit,
    learn,
    marked_remarks,
    remove_fit,
)
from spanlab.schema import DatasetSummary, Permission
from spanlab.ui.common import plain, store
from spanlab.ui.messages import errors_shown, tell_after_rerun
from spanlab.ui.tables import show_grid

_EVERY: Final = 30  # further reviews, after which a detector learns again by itself


def draw_fit(summary: DatasetSummary, detector: str) -> None:
    """Draw what a detector has learnt from a dataset's reviews, and let people change that."""
    if not store().may(Permission.MANAGE, summary.name):
        return
    state = fit_state(summary, detector)
    title = f"What {detector} learnt from reviews"
    with st.expander(
        plain(title), state.is_due, key=f"fits-{summary.name}-{detector}", icon=":material/school:"
    ):
        st.markdown(plain(_describe(state)))
        with st.container(horizontal=True, vertical_alignment="center"):
            _draw_button(summary, state)
            if state.in_use is not None and st.button(
                "Remove",
                icon=":material/delete:",
                key=f"remove-fit-{summary.name}-{detector}",
                help="Runs use the detector as it is shipped. Existing annotations stay.",
            ):
                with errors_shown():
                    remove_fit(store(), summary.name, detector)
                    st.rerun()
        again = st.checkbox(
            f"Learn again after each {_EVERY} further reviews",
            value=bool(summary.settings.fit_every),
            key=f"fit-every-{summary.name}",
        )
        if again != bool(summary.settings.fit_every):
            with errors_shown():
                fit_every(store(), summary.name, _EVERY if again else 0)
                st.rerun()
        if state.latest is not None:
            for table in fit_tables(state.latest):
                show_grid(table)


def draw_marked_remarks(dataset: str, detectors: tuple[str, ...]) -> None:
    """Say of detectors that learn if they have marked nearly every answer of a dataset."""
    for remark in marked_remarks(store(), dataset, detectors):
        st.warning(plain(f"{remark[:1].upper()}{remark[1:]}."), icon=":material/school:")


def _describe(state: FitState) -> str:
    if state.in_use is not None:
        return (
            f"Runs use {state.in_use.id}, learnt from {len(state.in_use.learnt_from):,} answers "
            f"({state.in_use.made.astimezone():%Y-%m-%d %H:%M})."
        )
    if state.latest is not None:
        return (
            f"It gained nothing from {len(state.latest.learnt_from):,} answers, so nothing was "
            "changed."
        )
    return (
        f"Nothing yet. It needs {state.least} finished answers; this dataset has {state.reviews:,} "
        "reviews. It is used only if held-out answers are marked better."
    )


def _draw_button(summary: DatasetSummary, state: FitState) -> None:
    if not st.button(
        "Learn from the reviews",
        icon=":material/school:",
        key=f"fit-{summary.name}-{state.detector}",
        disabled=not state.can_learn,
        help="Takes a few seconds. It is used only if held-out answers are marked better.",
    ):
        return
    with errors_shown("Nothing was changed."), st.spinner("Learning …"):
        learnt = learn(store(), state.detector, summary.name)
        keep_fit(store(), summary.name, learnt)
        told = fit_in_words(learnt, summary.name, state.in_use, is_kept=True)
        tell_after_rerun(f"{told}.")
        st.rerun()
