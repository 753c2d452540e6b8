"""The Campaign page: where a campaign is set up, followed and led to its end."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from spanlab.campaigns.setup_form import draw_setup
from spanlab.campaigns.steps import NextStep, next_step
from spanlab.comparison.comparisons_panel import campaign_of
from spanlab.data.dialogs_panel import ask, show_dialog
from spanlab.people.entrance import describe_leaving, describe_return, let_in
from spanlab.people.logins import has_login, in_days, invite_all
from spanlab.people.overview import CampaignOverview, oversee, remind_table
from spanlab.schema import DatasetSummary, Permission
from spanlab.ui.common import choose_dataset, datasets_for, link, plain, store, title
from spanlab.ui.messages import errors_shown, show_news, tell_after_rerun
from spanlab.ui.tables import csv_button, show_table


def page() -> None:
    """Draw the page."""
    place = title("Campaign")
    with st.container():  # also where it is empty: what is open below keeps its place, and stays so
        show_news()
    summaries = datasets_for("lead", Permission.MANAGE)
    if not summaries:
        return
    summary = choose_dataset(summaries, place)
    report = campaign_of(summary, store())
    with errors_shown():
        overview = None if report is None else oversee(store(), summary.name, report=report)
        step = next_step(summary, overview, _versions(summary))
        _draw_next(summary, step)
        with st.container():
            if overview is not None and (overview.people or overview.invitations):
                _draw_progress(overview)
        st.subheader("Set up", anchor=False)
        draw_setup(summary, step.part)
        asked = step.part == "Invite people" or summary.name in st.session_state.get(_MADE, {})
        with st.expander("**Invite people**", icon=":material/person_add:", expanded=asked):
            _invite(summary.name)
    show_dialog({summary.name: summary})


def _versions(summary: DatasetSummary) -> int:
    return sum(one.version_of == summary.name for one in store().datasets(versions=True))


def _draw_next(summary: DatasetSummary, step: NextStep) -> None:
    """Say what is to be done next, with its button, and lead to all that comes after reviewing."""
    dataset = summary.name
    with st.container(border=True):
        st.markdown(f"**Next: {plain(step.title)}.** {plain(step.why)}")
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            for page_name, (label, icon) in _LINKS.items():
                said = f"{label} now" if page_name == step.page else label
                link(page_name, said, icon=f":material/{icon}:", dataset=dataset)
            if st.button(
                "Save a version…",
                icon=":material/inventory_2:",
                type="primary" if step.title == "save a version" else "tertiary",
                key="campaign-snapshot",
            ):
                ask("snapshot", dataset)


_LINKS = {
    "detect": ("Detect", "manage_search"),
    "review": ("Review", "edit_note"),
    "compare": ("Compare", "compare"),
    "adjudicate": ("Adjudicate", "gavel"),
    "measure": ("Measure", "straighten"),
    "export": ("Export", "download"),
}


_MADE = "campaign.invited"  # the text with the links that were made last, by dataset


def _invite(dataset: str) -> None:
    """Make a link for each of several people, with a text to send them."""
    if not has_login():
        st.markdown(
            "Anybody who can reach this app may use all of it now. To invite people by links, "
            "start it with `spanlab serve --invite`. No login provider is needed."
        )
        return
    with st.form("campaign-invite", border=False):
        names = st.text_area("Names, one a line", placeholder="Anna\nBen", max_chars=20_000)
        left, middle, right = st.columns(3)
        days = left.number_input(
            "Days", 1, 3650, 14, help="The links stop working after this many days."
        )
        code = middle.text_input(
            "Completion code", max_chars=100, help="Shown after enough items are done."
        )
        share = right.slider(
            "Code after (% of items done)",
            0,
            100,
            round(100 * store().settings(dataset).code_share),
            help="The rest may be skipped. Applies to everybody in this dataset.",
        )
        if st.form_submit_button("Create links", type="primary"):
            people = list(dict.fromkeys(filter(None, map(str.strip, names.splitlines()))))
            if not people:
                st.error("Enter at least one name.")
            elif len(people) > _MOST:
                st.error(f"{len(people)} names: at most {_MOST} links can be created at once.")
            else:
                end = in_days(int(days))
                store().change_settings(
                    dataset, lambda now: now.model_copy(update={"code_share": share / 100})
                )
                st.session_state[_MADE] = {dataset: invite_all(store(), dataset, people, end, code)}
                st.rerun()  # the review plan, drawn above, offers them from now on
    made = st.session_state.get(_MADE, {}).get(dataset)
    if made:
        st.success("Send each person their text. It is shown only until you close it.")
        st.code(made, language=None, wrap_lines=True)
        if st.button("Close", icon=":material/close:"):
            del st.session_state[_MADE]
            st.rerun()


_MOST = 200  # links made at once


def _draw_progress(overview: CampaignOverview) -> None:
    """Draw how far people are, and what a lead does about them."""
    st.subheader("Progress", anchor=False)
    if overview.people:
        _draw_figures(overview)
        _offer_actions(overview)
    for table in overview.tables():
        show_table(table, icon=":material/group:")


def _draw_figures(overview: CampaignOverview) -> None:
    """Say the figures that a lead looks for first."""
    plan, end = overview.plan, overview.until
    about = "At the pace of the last 14 days" if end else None
    one, two, three = st.columns(3)
    of_needed = f" of {plan.needed:,}" if plan else ""
    one.metric("Annotations done", f"{overview.done:,}{of_needed}", border=True)
    two.metric("Remaining", f"{plan.needed - plan.done:,}" if plan else "No plan", border=True)
    three.metric("Expected finish", f"{end:%d %b %Y}" if end else "–", help=about, border=True)


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
            with st.popover("Waive the test…", icon=":material/door_open:"):
                _let_in(overview)
        reminded = remind_table(overview)
        if reminded.rows:
            n_people = len(reminded.rows)
            people_have = "1 person has" if n_people == 1 else f"{n_people} people have"
            csv_button(reminded, f"people to remind: {people_have} items remaining")


def _take_back(dataset: str, people: Sequence[str]) -> None:
    person = _ask_person(people, f"taken-from-{dataset}-{len(store().settings(dataset).away)}")
    if person is None:
        return
    with errors_shown():
        announcement = describe_leaving(store(), dataset, person)
        st.write(plain(announcement))
        if st.button("Reassign items", type="primary"):
            store().take_back(dataset, person)
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
            store().give_back(dataset, person)
            tell_after_rerun(announcement)
            st.rerun()


def _ask_person(people: Sequence[str], key: str) -> str | None:
    return st.selectbox("Person", people, index=None, placeholder="Choose a person", key=key)


def _let_in(overview: CampaignOverview) -> None:
    name = st.selectbox(
        "Person",
        [person.name for person in overview.people if not person.has_begun],
        index=None,
        accept_new_options=True,
        placeholder="A name",
        key="let-in",
    )
    st.write("They may review this dataset without passing the test.")
    if st.button("Waive the test", type="primary", disabled=not name) and name:
        with errors_shown("Nothing was changed."):
            let_in(store(), overview.summary.name, name)
            tell_after_rerun(f"{name} may start.")
            st.rerun()
