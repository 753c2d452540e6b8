"""How a campaign is set up: guidelines, labels, questions, people, plan, check items.

Each part is saved by itself, and is closed unless it is the next to be filled in. Its heading says
what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

import streamlit as st

from spanlab.base.guide import shipped_guidelines
from spanlab.campaigns.invitations_panel import draw_invitations, has_new_links
from spanlab.campaigns.steps import INVITE
from spanlab.data import label_panel as label_editor
from spanlab.data import question_panel as question_editor
from spanlab.output.figures import counted, percent
from spanlab.output.wording import blind_in_words, plan_in_words
from spanlab.people.entrance import OPENED, change_checks, compared_in_words, usual_labels
from spanlab.people.logins import has_login
from spanlab.schema import (
    LABEL_SETS,
    AnnotatorKind,
    BlindRule,
    CheckRules,
    DatasetSettings,
    DatasetSummary,
    UndecidedRule,
)
from spanlab.ui.common import plain, store
from spanlab.ui.messages import errors_shown, tell_after_rerun

_CITATIONS: Final = "citations"  # a set of labels, for which guidelines ship
_UNDECIDED = {
    UndecidedRule.REJECTED: "Rejected",
    UndecidedRule.LIKELY: "Accept likely ones, reject the rest",
    UndecidedRule.ASK: "Ask each time",
}
_BLIND: dict[str, str] = {
    BlindRule.ALWAYS: "Always hidden",
    BlindRule.DONE: "Hidden until the reviewer has finished the item",
    BlindRule.ASK: "Hidden, unless reviewers ask for them under Queue",
    BlindRule.NEVER: "Shown",
}
_BY_PLAN = "plan"
_UNANSWERED: Final = {"refused": "Block Done", "told": "Warn only"}
_EDITED = "spanlab.campaign.edited"  # the dataset whose labels and questions are in the rows
_Change = Callable[[DatasetSettings], DatasetSettings]


@dataclass(frozen=True)
class SetupPart:
    """A part of a campaign's set-up: its title, what is stored of it in the settings, its form."""

    title: str
    icon: str
    state: Callable[[DatasetSettings], str] | None
    draw: Callable[[DatasetSummary], None]


def draw_setup(summary: DatasetSummary, opened: str = "") -> None:
    """Draw the parts of a campaign's settings.

    Args:
        summary: the dataset.
        opened: the title of the part that is drawn first, and open; empty for none.
    """
    if st.session_state.get(_EDITED) != summary.name:
        _forget_rows()
        st.session_state[_EDITED] = summary.name
    opened = INVITE if has_new_links(summary.name) else opened
    for part in sorted(SETUP_PARTS, key=lambda part: part.title != opened):
        state = f": {plain(part.state(summary.settings))}" if part.state else ""
        is_open = part.title == opened
        with st.expander(f"**{part.title}**{state}", expanded=is_open, icon=part.icon):
            part.draw(summary)


def _forget_rows() -> None:
    label_editor.ROWS.forget()
    question_editor.ROWS.forget()


def _save(summary: DatasetSummary, title: str, change: _Change) -> None:
    """Store a change of the settings, and draw the page with it."""
    with errors_shown("Nothing was saved."):
        saved = store().change_settings(summary.name, change)
        _say_saved(summary, title, blind_in_words(saved) if title == "Review plan" else "")


def _say_saved(summary: DatasetSummary, title: str, more: str = "") -> NoReturn:
    _forget_rows()
    tell_after_rerun(f"{title} of {summary.name}: saved. {more}".strip())
    st.rerun()


def _save_button(part: str) -> bool:
    return st.button("Save", type="primary", key=f"save-{part}")


def _draw_guidelines(summary: DatasetSummary) -> None:
    settings = summary.settings
    for_labels = settings.labels == LABEL_SETS[_CITATIONS]
    text = st.text_area(
        "Guidelines, in Markdown",
        settings.guidelines_now or (shipped_guidelines(_CITATIONS) if for_labels else ""),
        height=220,
        max_chars=100_000,
        key=f"guidelines-{summary.name}",
        placeholder="What counts as hallucinated, where a span begins and ends, examples",
        help="Reviewers confirm at their first item that they have read them, and again after a "
        "change. The key g shows them. Every annotation keeps the version that its author had.",
    )
    if _save_button("guidelines"):
        _save(summary, "Guidelines", lambda stored: stored.with_guidelines(text))


def _draw_labels(summary: DatasetSummary) -> None:
    labels = label_editor.edit_labels(summary.settings.labels)
    required = st.checkbox(
        "Label required: every span needs one before Done",
        summary.settings.label_required,
        key=f"label-required-{summary.name}",
    )
    if _save_button("labels"):
        if labels is None:
            st.error("Nothing was saved: correct the labels marked above.")
            return
        values = {"labels": labels, "label_required": required}
        _save(summary, "Labels", lambda stored: stored.model_copy(update=values))


def _draw_questions(summary: DatasetSummary) -> None:
    settings = summary.settings
    names = [label.name for label in settings.labels]
    questions = question_editor.edit_questions(settings, names)
    unanswered = st.radio(
        "If a required response is missing",
        list(_UNANSWERED),
        index=list(_UNANSWERED).index(settings.unanswered),
        format_func=_UNANSWERED.__getitem__,
        horizontal=True,
        key=f"unanswered-{summary.name}",
    )
    if _save_button("questions"):
        if questions is None:
            question_editor.show_problems()
            return
        values = {**questions, "unanswered": unanswered}
        _save(summary, "Questions", lambda stored: stored.model_copy(update=values))


def _draw_plan(summary: DatasetSummary) -> None:
    settings = summary.settings
    left, right = st.columns([1, 2])
    overlap = left.number_input(
        "People to finish each item",
        0,
        100,
        settings.overlap,
        key=f"overlap-{summary.name}",
        help="0 = no limit. Otherwise each person is offered unfinished items that fewer people "
        "have finished or opened. An offered item is reserved for an hour after the last edit.",
    )
    who = "Invite people" if has_login() else "Type names"
    assigned = right.multiselect(
        "Assigned to",
        list(dict.fromkeys((*_people(summary), *settings.assigned_to))),
        settings.assigned_to,
        # Under a login a name is somebody's: a name alone would be that of whoever comes first.
        accept_new_options=not has_login(),
        placeholder="First come, first served",
        key=f"assigned-{summary.name}",
        help=f"Items are shared equally. {who} to add them. A new list reassigns unfinished items.",
    )
    planned = settings.model_copy(
        update={"overlap": max(overlap, bool(assigned)), "always_blind": None}
    )
    rules = {_BY_PLAN: "By the plan", **_BLIND}
    rules[planned.blind_rule] += " (the plan's)"
    if settings.known:
        rules = {BlindRule.ALWAYS: _BLIND[BlindRule.ALWAYS]}
    now = _BY_PLAN if settings.always_blind is None else settings.blind_rule
    left, right = st.columns(2)
    rule = left.radio(
        "Other people's marks",
        list(rules),
        index=list(rules).index(now) if now in rules else 0,
        format_func=rules.__getitem__,
        key=f"blind-{summary.name}-{len(rules)}",
        help="By the plan, they are always hidden if several people finish an item. Where they are "
        "always hidden, or until the item is finished, Compare and Export hide them too, and "
        "reviewers cannot adjudicate. Check items need them always hidden.",
    )
    undecided = right.radio(
        "Suggestions left undecided when a reviewer presses Done",
        list(_UNDECIDED),
        index=list(_UNDECIDED).index(settings.undecided),
        format_func=_UNDECIDED.__getitem__,
        key=f"undecided-{summary.name}",
        help="The editor shows the counts and offers Undo.",
    )
    if _save_button("plan"):
        values = {
            "undecided": undecided,
            "overlap": max(overlap, bool(assigned)),
            "assigned_to": tuple(assigned),
        }

        def change(stored: DatasetSettings) -> DatasetSettings:
            changed = stored.with_blind_rule(None if rule == _BY_PLAN else BlindRule(rule))
            return changed.model_copy(update=values)

        _save(summary, "Review plan", change)


def _people(summary: DatasetSummary) -> Iterator[str]:
    """Yield the names of those who annotate the dataset, were invited or have a role in it."""
    yield from summary.names_of(AnnotatorKind.PERSON)
    access = store().access
    for invitation in access.tokens("invitation"):
        if invitation.dataset == summary.name and invitation.label:
            yield invitation.label
    for role in access.granted():
        if role.dataset in {summary.name, None} and role.name:
            yield role.name


def _draw_checks(summary: DatasetSummary) -> None:
    """Ask how check items are used to see how well people mark."""
    used = st.checkbox(
        "Use check items",
        summary.settings.known is not None,
        key=f"known-{summary.name}",
        help="Items with gold labels, shown unmarked in everybody's queue, which show how well "
        f"people mark. Queues are then in random order. They are not part of the plan. {OPENED}",
    )
    known = _ask_checks(summary) if used else None
    if used and not summary.settings.is_blind:
        st.caption("Saving also sets other people's marks to “Always hidden” (Review plan).")
    if used and (compared := compared_in_words(summary.settings)):
        st.caption(compared)
    if _save_button("known"):
        with errors_shown("Nothing was saved."):
            change_checks(store(), summary.name, None if known is None else known.model_dump())
            _say_saved(summary, "Check items")


def _ask_checks(summary: DatasetSummary) -> CheckRules:
    usual = usual_labels(summary)
    rules = summary.settings.known or CheckRules(labels=usual)
    gold = (*summary.names_of(AnnotatorKind.GOLD), *usual, *rules.labels)
    labels = st.multiselect(
        "Whose labels are right",
        list(dict.fromkeys(gold)),
        sorted(summary.settings.check_labels(gold)) if rules.labels == () else rules.labels,
        accept_new_options=True,
        help="Gold labels that came with the dataset, or a name under which you decide some items "
        "on the page Adjudicate. Items decided there under another name are not check items.",
    )
    left, right = st.columns(2)
    with left:
        share = st.slider("Check items per person (%)", 0, 50, round(100 * rules.share))
        items = st.number_input(
            "Items in the qualification test",
            0,
            50,
            rules.test_items,
            help="0 for no test. Below, “Waive the test…” lets a person start without it.",
        )
    with right:
        low = st.slider("Warn below an IoU of", 0.0, 1.0, rules.warn_below)
        pass_at = st.slider("Pass mark (IoU)", 0.0, 1.0, rules.pass_at)
        retry = st.checkbox("Allow retries with new items", rules.retry)
    return CheckRules(
        labels=tuple(labels) or usual,
        share=share / 100,
        warn_below=low,
        test_items=items,
        pass_at=pass_at,
        retry=retry,
    )


def _guidelines_state(settings: DatasetSettings) -> str:
    return f"version {len(settings.guidelines)}" if settings.guidelines_now else "none yet"


def _questions_state(settings: DatasetSettings) -> str:
    n_questions = len(settings.attributes) + len(settings.questions)
    return counted(n_questions, "question") if n_questions else "none (optional)"


def _check_state(settings: DatasetSettings) -> str:
    if settings.known is None:
        return "not used (optional)"
    share = f"{percent(settings.known.share)} of each person's items"
    test_items = settings.known.test_items
    return f"{share}, test of {counted(test_items, 'item')}" if test_items else share


SETUP_PARTS: Final = (
    SetupPart("Guidelines", ":material/rule:", _guidelines_state, _draw_guidelines),
    SetupPart(
        "Labels",
        ":material/label:",
        lambda settings: ", ".join(label.name for label in settings.labels)[:80] or "none",
        _draw_labels,
    ),
    SetupPart("Questions", ":material/quiz:", _questions_state, _draw_questions),
    SetupPart(INVITE, ":material/person_add:", None, draw_invitations),
    SetupPart(
        "Review plan",
        ":material/group:",
        lambda settings: plan_in_words(settings) or "none yet",
        _draw_plan,
    ),
    SetupPart("Check items", ":material/fact_check:", _check_state, _draw_checks),
)
