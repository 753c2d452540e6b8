"""The Campaign page: where a campaign is set up, followed and led to its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import streamlit as st

from spanlab.campaigns.invitations_panel import links_of
from spanlab.campaigns.people_panel import show_people
from spanlab.campaigns.setup_form import draw_setup
from spanlab.campaigns.steps import ChecklistEntry, NextStep, checklist, next_step
from spanlab.comparison.comparisons_panel import campaign_of
from spanlab.data.dialogs_panel import ask, show_dialog
from spanlab.people.entrance import describe_leaving, describe_return, let_in
from spanlab.people.overview import CampaignOverview, oversee, reminders
from spanlab.schema import DatasetSummary, Permission
from spanlab.storage.datasets import summary_of
from spanlab.ui.common import choose_dataset, datasets_for, plain, store, switch_page, title
from spanlab.ui.messages import errors_shown, show_news, tell_after_rerun
from spanlab.ui.session import seen_summary, session_reviewer
from spanlab.worklists import plans

_EVERY = 10.0  # seconds after which the page looks again how far people are
_GO = ":material/arrow_forward:"


def page() -> None:
    """Draw the page."""
    place = title("Campaign")
    with st.container():  # also where it is empty: what is open below keeps its place, and stays so
        show_news()
    summaries = datasets_for("lead", Permission.READ)
    if not summaries:
        return
    summary = choose_dataset(summaries, place)
    if not store().may(Permission.MANAGE, summary.name):
        with errors_shown():
            seen = seen_summary(summary)
            if (report := campaign_of(seen)) is not None:
                show_people(seen, report, None)
        return
    with errors_shown():
        step = st.fragment(_draw_state, run_every=_EVERY)(summary.name)
        part = "" if step is None else step.part
        draw_progress = st.fragment(_draw_progress, run_every=_EVERY)
        if not part:  # what is to be filled in next is in view
            draw_progress(summary.name)
        st.header("Set up", anchor=False)
        draw_setup(summary, part)
        if part:
            draw_progress(summary.name)
    show_dialog({summary.name: summary})


def _draw_state(dataset: str) -> NextStep | None:
    """Draw what the campaign has and what comes next; by itself now and then."""
    with errors_shown():
        summary, links = summary_of(store(), dataset), links_of(dataset)
        plan = plans.plan(store(), dataset)
        valid = None if links is None else [link for link in links if not link.revoked]
        step = next_step(summary, plan, _versions(summary), valid)
        _draw_next(summary, step, checklist(summary, valid))
        return step
    return None


def _draw_progress(dataset: str) -> None:
    """Draw how far the people are; by itself now and then."""
    with errors_shown():
        head, counting = st.container(), st.empty()
        summary = summary_of(store(), dataset)
        with counting.container():
            report = campaign_of(summary, store())
        if report is None:
            return
        overview = oversee(store(), dataset, report, session_reviewer(dataset))
        if not overview.people:
            counting.empty()
            return
        head.header("Progress", anchor=False)
        _offer_actions(overview)
        show_people(summary, report, overview)


def _versions(summary: DatasetSummary) -> int:
    return sum(one.version_of == summary.name for one in store().datasets(versions=True))


def _draw_next(summary: DatasetSummary, step: NextStep, entries: Iterable[ChecklistEntry]) -> None:
    """Say what the campaign has and lacks, and what is to be done next, with the way there."""
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**Next: {plain(step.title)}.** {plain(step.why)}", width="stretch")
            label = f"Open {step.page.capitalize()}"
            if step.page and st.button(label, icon=_GO, type="primary", key="campaign-next"):
                switch_page(step.page, summary.name)
            is_last = step.title == "save a version"
            if st.button("Save version…", type="primary" if is_last else "tertiary"):
                ask("snapshot", summary.name)
                st.rerun()
        marks = {True: ":green[:material/check:]", False: ":material/remove:"}
        lines = (f"{marks[entry.is_there]} {plain(entry.text)}" for entry in entries)
        st.caption(" &nbsp; ".join(lines))


def _offer_actions(overview: CampaignOverview) -> None:
    """Offer what a lead does about people: reassign, undo it, waive the test, remind."""
    settings, dataset = overview.summary.settings, overview.summary.name
    at_work = [person.name for person in overview.people if not person.away]
    with st.container(horizontal=True, vertical_alignment="center"):
        # A new key after each of them: what was open is closed, and nobody is chosen in it.
        if settings.overlap and at_work:
            key = f"take-{dataset}-{len(settings.away)}"
            with st.popover("Reassign items…", icon=":material/assignment_return:", key=key):
                _take_back(dataset, at_work)
        if settings.away:
            key = f"give-{dataset}-{len(settings.away)}"
            with st.popover("Undo reassignment…", icon=":material/undo:", key=key):
                _give_back(dataset, settings.away)
        if settings.known and settings.known.test_items:
            key = f"waive-{dataset}-{sum(person.has_begun for person in overview.people)}"
            with st.popover("Waive the test…", icon=":material/door_open:", key=key):
                _let_in(overview, key)
        if texts := reminders(overview):
            with st.popover(f"Remind… ({len(texts)})", icon=":material/mail:", key="remind"):
                st.write("A text for each person who has not finished.")
                for text in texts.values():
                    st.code(text, language=None, wrap_lines=True)


def _take_back(dataset: str, people: Sequence[str]) -> None:
    person = _ask_person(people, f"taken-from-{dataset}-{len(store().settings(dataset).away)}")
    if person is None:
        return
    with errors_shown():
        announcement = describe_leaving(store(), dataset, person)
        st.write(plain(announcement))
        if st.button("Reassign items", type="primary"):
            plans.take_back(store(), dataset, person)
            tell_after_rerun(f"{announcement} “Undo reassignment” takes it back.")
            st.rerun()


def _give_back(dataset: str, people: Sequence[str]) -> None:
    person = _ask_person(people, f"given-to-{dataset}-{len(people)}")
    if person is None:
        return
    with errors_shown("Nothing was changed."):
        announcement = describe_return(store(), dataset, person)
        st.write(plain(announcement))
        if st.button("Undo reassignment", type="primary"):
            plans.give_back(store(), dataset, person)
            tell_after_rerun(announcement)
            st.rerun()


def _ask_person(people: Sequence[str], key: str) -> str | None:
    return st.selectbox("Person", people, index=None, placeholder="Choose a person", key=key)


def _let_in(overview: CampaignOverview, key: str) -> None:
    name = st.selectbox(
        "Person",
        [person.name for person in overview.people if not person.has_begun],
        index=None,
        accept_new_options=True,
        placeholder="A name",
        key=f"{key}-person",
    )
    st.write("They may review this dataset without passing the test.")
    if st.button("Waive the test", type="primary", disabled=not name) and name:
        with errors_shown("Nothing was changed."):
            let_in(store(), overview.summary.name, name)
            tell_after_rerun(f"{name} may start.")
            st.rerun()
