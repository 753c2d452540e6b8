"""The settings of a dataset: what Done makes of suggestions, its labels, its guidelines."""

from __future__ import annotations

import streamlit as st

from spanlab.schema import AnnotatorKind, DatasetSettings, DatasetSummary, UndecidedRule
from spanlab.ui.common import store
from spanlab.ui.label_editor import edit_labels
from spanlab.ui.messages import errors_shown

_UNDECIDED = {
    UndecidedRule.REJECTED: "Rejected",
    UndecidedRule.LIKELY: "Accepted if likely (probability above 0.5), else rejected",
    UndecidedRule.ASK: "Ask each time",
}
_PEOPLE = {  # always blind, shown when done
    "Hidden, unless reviewers ask for it under Queue": (False, False),
    "Hidden until the reviewer has finished the item": (True, True),
    "Always hidden": (True, False),
}


def ask_settings(summary: DatasetSummary) -> bool:
    """Draw the settings of a dataset, and store them when they are saved.

    Returns:
        Whether they were saved just now.
    """
    now = summary.settings
    review, labels, guidelines = st.tabs(["Review", "Labels", "Guidelines"])
    with review:
        undecided = st.radio(
            "Suggestions left undecided when a reviewer presses Done",
            list(_UNDECIDED),
            index=list(_UNDECIDED).index(now.undecided),
            format_func=_UNDECIDED.__getitem__,
            help="The editor says how many were counted how, and takes it back on request.",
        )
        people = st.radio(
            "What other people marked",
            list(_PEOPLE),
            index=list(_PEOPLE.values()).index(
                (now.always_blind, now.always_blind and now.shown_when_done)
            ),
            help="Unless it is left to reviewers, Compare and Export show each of them the same as "
            "Review, and Adjudicate is for people who do not review this dataset.",
        )
        overlap = st.number_input(
            "People to finish each item",
            *(0, 100, now.overlap),
            help="0 for any number. Else Review offers reviewers the items that they have not "
            "finished and that fewer people have finished or have open: what is offered stays "
            "reserved for an hour after the last edit.",
        )
        known = [who.name for who in summary.annotators if who.kind is AnnotatorKind.PERSON]
        assigned = st.multiselect(
            "Assigned to",
            list(dict.fromkeys((*known, *now.assigned_to))),
            now.assigned_to,
            accept_new_options=True,
            placeholder="Whoever comes first",
            help="Everybody gets the same number of items, each of which goes to as many people as "
            "said above. Type a name that is not in the list yet. Another list assigns all items "
            "anew; what is finished stays.",
        )
    with labels:
        labels_now = edit_labels(now.labels)
        required = st.checkbox(
            "Label required: every span needs one before Done", now.label_required
        )
    with guidelines:
        text = st.text_area(
            "Guidelines, in Markdown",
            now.guidelines_now,
            height=280,
            max_chars=100_000,
            help="Annotators see them at their first item, after a change again, and with the key "
            "g. Every annotation keeps the version that its author had.",
        )
        if now.guidelines:
            st.caption(f"This is version {len(now.guidelines)}.")
    if not st.button("Save", type="primary", key="save-settings"):
        return False
    if labels_now is None:
        st.error("Nothing was saved: a label is wrong, see Labels.", icon=":material/error:")
        return False
    with errors_shown("Nothing was saved."):
        values = {
            "undecided": undecided,
            **dict(zip(("always_blind", "shown_when_done"), _PEOPLE[people], strict=True)),
            "overlap": max(overlap, bool(assigned)),
            "assigned_to": tuple(assigned),
            "labels": labels_now,
            "label_required": required,
        }

        def change(stored: DatasetSettings) -> DatasetSettings:
            return stored.model_copy(update=values).with_guidelines(text)

        store().change_settings(summary.name, change)
        return True
    return False
