"""A dataset's settings, and its annotators edited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

import streamlit as st

from spanlab.figures import counted
from spanlab.schema import (
    AnnotatorKind,
    AnnotatorSummary,
    DatasetSettings,
    DatasetSummary,
    KnownAnswers,
    UndecidedRule,
)
from spanlab.ui.common import plain, store
from spanlab.ui.messages import errors_shown
from spanlab.ui.views.label_editor import edit_labels
from spanlab.ui.views.question_editor import edit_questions
from spanlab.workflows.campaigns import usual_labels
from spanlab.workflows.datasets import copy_as_gold, gold_name, rename_annotator

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
_UNANSWERED: Final = {"refused": "Is refused", "told": "Is told, and may go on"}


def ask_settings(summary: DatasetSummary) -> bool:
    """Draw the settings of a dataset, and store them when they are saved.

    Returns:
        Whether they were saved just now.
    """
    settings = summary.settings
    review, labels, questions, guidelines, checks = st.tabs(
        ["Review", "Labels", "Questions", "Guidelines", "Known answers"]
    )
    with review:
        undecided = st.radio(
            "Suggestions left undecided when a reviewer presses Done",
            list(_UNDECIDED),
            index=list(_UNDECIDED).index(settings.undecided),
            format_func=_UNDECIDED.__getitem__,
            help="The editor says how many were counted how, and takes it back on request.",
        )
        people = st.radio(
            "What other people marked",
            list(_PEOPLE),
            index=list(_PEOPLE.values()).index(
                (settings.always_blind, settings.always_blind and settings.shown_when_done)
            ),
            help="Unless it is left to reviewers, Compare, Export and Adjudicate show what others "
            "marked to people who do not review this dataset, and to reviewers once they have "
            "decided all of their own items.",
        )
        overlap = st.number_input(
            "People to finish each item",
            0,
            100,
            settings.overlap,
            help="0 for any number. Else Review offers reviewers the items that they have not "
            "finished and that fewer people have finished or have open: what is offered stays "
            "reserved for an hour after the last edit.",
        )
        people_now = summary.names_of(AnnotatorKind.PERSON)
        assigned = st.multiselect(
            "Assigned to",
            list(dict.fromkeys((*people_now, *_invited(summary.name), *settings.assigned_to))),
            settings.assigned_to,
            accept_new_options=True,
            placeholder="Whoever comes first",
            help="Everybody gets the same number of items, each of which goes to as many people as "
            "said above. Type a name that is not in the list yet. Another list assigns all items "
            "anew; what is finished stays.",
        )
    with labels:
        labels_now = edit_labels(settings.labels)
        required = st.checkbox(
            "Label required: every span needs one before Done", settings.label_required
        )
    with questions:
        names = [
            label.name for label in (labels_now if labels_now is not None else settings.labels)
        ]
        questions_now = edit_questions(settings, names)
        unanswered = st.radio(
            "Done while a required question has no response",
            list(_UNANSWERED),
            index=list(_UNANSWERED).index(settings.unanswered),
            format_func=_UNANSWERED.__getitem__,
        )
    with guidelines:
        text = st.text_area(
            "Guidelines, in Markdown",
            settings.guidelines_now,
            height=280,
            max_chars=100_000,
            help="Annotators see them at their first item, until they confirm having read them, "
            "after a change again, and with the key g. Every annotation keeps the version that its "
            "author had; the Campaign page says who has read which.",
        )
        if settings.guidelines:
            st.caption(f"This is version {len(settings.guidelines)}.")
    with checks:
        known_now = _ask_known(summary)
    if not st.button("Save", type="primary", key="save-settings"):
        return False
    if labels_now is None:
        st.error("Nothing was saved: a label is wrong, see Labels.", icon=":material/error:")
        return False
    if questions_now is None:
        st.error("Nothing was saved: a question is wrong, see Questions.", icon=":material/error:")
        return False
    with errors_shown("Nothing was saved."):
        values = {
            "undecided": undecided,
            **dict(zip(("always_blind", "shown_when_done"), _PEOPLE[people], strict=True)),
            "overlap": max(overlap, bool(assigned)),
            "assigned_to": tuple(assigned),
            "labels": labels_now,
            "label_required": required,
            **questions_now,
            "unanswered": unanswered,
            "known": known_now,
        }

        def change(stored: DatasetSettings) -> DatasetSettings:
            return stored.model_copy(update=values).with_guidelines(text)

        store().change_settings(summary.name, change)
        return True
    return False


def _invited(dataset: str) -> list[str]:
    """Return the names of the people who were invited to a dataset."""
    tokens = store().access.tokens("invitation")
    return [token.label for token in tokens if token.dataset == dataset and token.label]


def _ask_known(summary: DatasetSummary) -> KnownAnswers | None:
    """Ask how known answers are used to see how well people mark; None for not at all."""
    rules = summary.settings.known
    used = st.checkbox(
        "Items with known answers tell how well people mark",
        rules is not None,
        help="They come up among others without a sign of it, for everybody, and count for no "
        "plan. What other people marked has to be always hidden then, see Review.",
    )
    usual = usual_labels(summary)
    rules = rules or KnownAnswers(labels=usual)
    gold = (*summary.names_of(AnnotatorKind.GOLD), *usual, *rules.labels)
    labels = st.multiselect(
        "Whose labels are the known answers",
        list(dict.fromkeys(gold)),
        sorted(summary.settings.known_labels(gold)) if rules.labels == () else rules.labels,
        accept_new_options=True,
        disabled=not used,
        help="Gold labels that came with the dataset, or a name under which you decide some items "
        "on the page Adjudicate. What is decided there under another name is no known answer.",
    )
    left, right = st.columns(2)
    with left:
        share = st.slider(
            "Of what a person reviews, in per cent",
            0,
            50,
            round(100 * rules.share),
            disabled=not used,
        )
        items = st.number_input(
            "Of these before somebody may begin",
            0,
            50,
            rules.test_items,
            disabled=not used,
            help="A short test; 0 for none. The Campaign page lets people in without it.",
        )
        retry = st.checkbox("Another try, with other items", rules.retry, disabled=not used)
    with right:
        low = st.slider("Warn below an IoU of", 0.0, 1.0, rules.warn_below, disabled=not used)
        pass_at = st.slider(
            "The test is passed at an IoU of", 0.0, 1.0, rules.pass_at, disabled=not used
        )
    if not used:
        return None
    return KnownAnswers(
        labels=tuple(labels) or usual,
        share=share / 100,
        warn_below=low,
        test_items=items,
        pass_at=pass_at,
        retry=retry,
    )


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
        f"What {plain(annotator.name)} said becomes this annotator's. Where both annotated an "
        "item, what this one said stays."
    )
    if st.form_submit_button("Merge", type="primary", disabled=not other_names):
        with errors_shown("Nothing was changed."):
            n_shared = store().merge_annotators(summary.name, annotator.name, into)
            shared = f"; both had annotated {counted(n_shared, 'item')}" if n_shared else ""
            finish(f"{annotator.name} is {into} now in {summary.name}{shared}.")


def _undo_gold(summary: DatasetSummary, annotator: AnnotatorSummary, finish: Finish) -> None:
    st.caption("What this annotator finished counts as a person's, and no more as gold labels.")
    if st.form_submit_button("Not gold any more", type="primary"):
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
        f"This deletes what {plain(annotator.name)} said of {counted(n_annotated, 'item')} for "
        "good.",
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
    "Not gold any more": (_undo_gold, frozenset({AnnotatorKind.GOLD})),
    "Remove": (_remove, frozenset(AnnotatorKind)),
}
