"""A dataset's annotators edited: renamed, merged, copied as gold labels, removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import streamlit as st

from spanlab.output.figures import counted
from spanlab.schema import AnnotatorKind, AnnotatorSummary, DatasetSummary
from spanlab.storage.datasets import copy_as_gold, gold_name, rename_annotator
from spanlab.ui.common import plain, store
from spanlab.ui.messages import errors_shown

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
    people_first = sorted(
        summary.annotators, key=lambda annotator: annotator.kind is not AnnotatorKind.PERSON
    )
    annotator = st.selectbox(
        "Annotator",
        people_first,
        format_func=lambda option: f"{option.name} ({option.kind.value})",
        key="edited-annotator",
    )
    able = [name for name, (_, kinds) in _ACTS.items() if annotator.kind in kinds]
    act = st.radio("What to do", able, horizontal=True, key="annotator-act")
    with st.form("annotator", border=False):
        _ACTS[act][0](summary, annotator, finish)


def _rename(summary: DatasetSummary, annotator: AnnotatorSummary, finish: Finish) -> None:
    new = st.text_input("New name", annotator.name, max_chars=200).strip()
    if st.form_submit_button("Rename", type="primary"):
        with errors_shown("Nothing was changed."):
            rename_annotator(store(), summary.name, annotator.name, new)
            finish(f"{annotator.name} is now called {new} in {summary.name}.")


def _merge(summary: DatasetSummary, annotator: AnnotatorSummary, finish: Finish) -> None:
    other_names = [
        other.name
        for other in summary.annotators
        if other.kind is annotator.kind and other != annotator
    ]
    into = st.selectbox("Into", other_names, placeholder="Nobody else of this kind")
    st.caption(
        f"{plain(annotator.name)}'s annotations move here. On items that both annotated, this "
        "annotator's are kept."
    )
    if st.form_submit_button("Merge", type="primary", disabled=not other_names):
        with errors_shown("Nothing was changed."):
            n_shared = store().merge_annotators(summary.name, annotator.name, into)
            shared = f"; both had annotated {counted(n_shared, 'item')}" if n_shared else ""
            finish(f"{annotator.name} is {into} now in {summary.name}{shared}.")


def _undo_gold(summary: DatasetSummary, annotator: AnnotatorSummary, finish: Finish) -> None:
    st.caption("This annotator will count as a person, no longer as gold labels.")
    if st.form_submit_button("Stop using as gold", type="primary"):
        with errors_shown("Nothing was changed."):
            store().set_person(summary.name, annotator.name)
            finish(f"{annotator.name} counts as a person in {summary.name}.")


def _copy(summary: DatasetSummary, annotator: AnnotatorSummary, finish: Finish) -> None:
    st.caption(
        "Gold labels are what others are scored against. They are a copy, under a name of its own, "
        f"of what {plain(annotator.name)} finished so far; {plain(annotator.name)} stays as it is."
    )
    name = st.text_input(
        "Name of the gold labels", gold_name(annotator.name), max_chars=200
    ).strip()
    if st.form_submit_button("Copy as gold labels", type="primary"):
        with errors_shown("Nothing was changed."):
            n_copied = copy_as_gold(store(), summary.name, annotator.name, name)
            finish(
                f"“{name}” is a copy of what {annotator.name} finished in {summary.name}: "
                f"{counted(n_copied, 'item')}."
            )


def _remove(summary: DatasetSummary, annotator: AnnotatorSummary, finish: Finish) -> None:
    n_annotated = sum(
        count for status, count in annotator.counts.items() if status != "not-annotated"
    )
    st.warning(
        f"This permanently deletes {plain(annotator.name)}'s annotations of "
        f"{counted(n_annotated, 'item')}.",
        icon=":material/warning:",
    )
    typed = st.text_input(f"Type **{plain(annotator.name)}** to confirm")
    if st.form_submit_button("Remove", type="primary"):
        if typed != annotator.name:
            st.error("That is not the name of the annotator. Nothing was removed.")
            return
        with errors_shown("Nothing was changed."):
            store().remove_annotator(summary.name, annotator.name)
            finish(f"{annotator.name} was removed from {summary.name}.")


_Act = Callable[[DatasetSummary, AnnotatorSummary, Finish], None]
_ACTS: dict[str, tuple[_Act, frozenset[AnnotatorKind]]] = {
    "Rename": (_rename, frozenset(AnnotatorKind)),
    "Merge": (_merge, frozenset(AnnotatorKind)),
    "Copy as gold labels": (_copy, frozenset({AnnotatorKind.PERSON, AnnotatorKind.GOLD})),
    "Stop using as gold": (_undo_gold, frozenset({AnnotatorKind.GOLD})),
    "Remove": (_remove, frozenset(AnnotatorKind)),
}
