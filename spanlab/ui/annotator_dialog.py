"""What the Datasets page asks before it renames, merges, removes or marks annotators as gold."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import streamlit as st

from spanlab.results import counted
from spanlab.schema import AnnotatorKind, AnnotatorSummary, DatasetSummary
from spanlab.ui.common import plain, store
from spanlab.ui.messages import errors_shown
from spanlab.workflows.datasets import rename_annotator

Finish = Callable[[str], NoReturn]


def edit_annotators(summary: DatasetSummary, finish: Finish) -> None:
    """Draw the dialog: one annotator, and what to do with it.

    Args:
        summary: the dataset.
        finish: closes the dialog and says what was done.
    """
    if not summary.annotators:
        st.info("Nobody has annotated this dataset yet.")
        return
    people_first = sorted(summary.annotators, key=lambda who: who.kind is not AnnotatorKind.PERSON)
    who = st.selectbox(
        "Annotator",
        people_first,
        format_func=lambda each: f"{each.name} ({each.kind.value})",
        key="edited-annotator",
    )
    able = [name for name, (_, kinds) in _ACTS.items() if who.kind in kinds]
    act = st.radio("What to do", able, horizontal=True, key="annotator-act")
    with st.form("annotator", border=False):
        _ACTS[act][0](summary, who, finish)


def _rename(summary: DatasetSummary, who: AnnotatorSummary, finish: Finish) -> None:
    new = st.text_input("New name", who.name, max_chars=200).strip()
    if st.form_submit_button("Rename", type="primary"):
        with errors_shown("Nothing was changed."):
            rename_annotator(store(), summary.name, who.name, new)
            finish(f"{who.name} is now called {new} in {summary.name}.")


def _merge(summary: DatasetSummary, who: AnnotatorSummary, finish: Finish) -> None:
    others = [each.name for each in summary.annotators if each.kind is who.kind and each != who]
    into = st.selectbox("Into", others, placeholder="Nobody else of this kind")
    st.caption(
        f"What {plain(who.name)} said becomes this annotator's. Where both annotated an item, what "
        "this one said stays."
    )
    if st.form_submit_button("Merge", type="primary", disabled=not others):
        with errors_shown("Nothing was changed."):
            both = store().merge_annotators(summary.name, who.name, into)
            shared = f"; both had annotated {counted(both, 'item')}" if both else ""
            finish(f"{who.name} is {into} now in {summary.name}{shared}.")


def _mark(summary: DatasetSummary, who: AnnotatorSummary, finish: Finish) -> None:
    gold = who.kind is AnnotatorKind.PERSON
    st.caption(
        "Gold labels are what others are scored against. Nobody can review under this name then."
        if gold
        else "Somebody can review under this name again."
    )
    if st.form_submit_button("Mark as gold" if gold else "Not gold any more", type="primary"):
        with errors_shown("Nothing was changed."):
            store().set_gold(summary.name, who.name, gold=gold)
            what = "gold labels" if gold else "a person"
            finish(f"{who.name} counts as {what} in {summary.name}.")


def _remove(summary: DatasetSummary, who: AnnotatorSummary, finish: Finish) -> None:
    said = sum(count for status, count in who.counts.items() if status != "not-annotated")
    st.warning(
        f"This deletes what {plain(who.name)} said of {counted(said, 'item')} for good.",
        icon=":material/warning:",
    )
    typed = st.text_input(f"Type **{plain(who.name)}** to confirm")
    if st.form_submit_button("Remove", type="primary"):
        if typed != who.name:
            st.error("That is not the name of the annotator. Nothing was removed.")
            return
        with errors_shown("Nothing was changed."):
            store().remove_annotator(summary.name, who.name)
            finish(f"{who.name} was removed from {summary.name}.")


_Act = Callable[[DatasetSummary, AnnotatorSummary, Finish], None]
_ACTS: dict[str, tuple[_Act, frozenset[AnnotatorKind]]] = {
    "Rename": (_rename, frozenset(AnnotatorKind)),
    "Merge": (_merge, frozenset(AnnotatorKind)),
    "Mark as gold": (_mark, frozenset({AnnotatorKind.PERSON})),
    "Not gold any more": (_mark, frozenset({AnnotatorKind.GOLD})),
    "Remove": (_remove, frozenset(AnnotatorKind)),
}
