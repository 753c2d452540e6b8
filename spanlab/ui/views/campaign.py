"""The Campaign page: for its lead, how far people are with a dataset, how well, and until when."""

from __future__ import annotations

import streamlit as st

from spanlab.schema import ADJUDICATED, AnnotatorKind, Permission
from spanlab.ui.common import choose_dataset, datasets_for, link, page_link, plain, store, title
from spanlab.ui.comparisons import campaign_of
from spanlab.ui.messages import errors_shown, show_news, tell_after_rerun
from spanlab.ui.results.tables import csv_button, show_table
from spanlab.workflows.access import has_login, in_days, invite_all
from spanlab.workflows.analysis.people import CampaignOverview, oversee, remind_table
from spanlab.workflows.campaigns import describe_leaving, let_in


def page() -> None:
    """Draw the page."""
    title("Campaign")
    show_news()
    summaries = datasets_for("lead", Permission.MANAGE)
    if not summaries:
        return
    summary = choose_dataset(summaries)
    with st.expander("Invite people", icon=":material/person_add:"), errors_shown():
        _invite(summary.name)
    report = campaign_of(summary, store())
    if report is None:
        return
    with errors_shown():
        _draw(oversee(store(), summary.name, report=report))


_MADE = "campaign.invited"  # the text with the links that were made last, by dataset


def _invite(dataset: str) -> None:
    """Make a link for each of several people, with a text to send them."""
    if not has_login():
        st.markdown(
            "Anybody who reaches this app is its owner now. Start it with `spanlab serve --invite` "
            "to have people come by invitations; a provider of logins is not needed."
        )
        return
    with st.form("campaign-invite", border=False):
        names = st.text_area("Names, one a line", placeholder="Anna\nBen", max_chars=20_000)
        left, middle, right = st.columns(3)
        days = left.number_input("Days", 1, 3650, 14, help="After so many the links open nothing.")
        code = middle.text_input(
            "Completion code", max_chars=100, help="Shown to who has done enough of their items."
        )
        share = right.slider(
            "Code from so many per cent done",
            0,
            100,
            round(100 * store().settings(dataset).code_share),
            help="The rest may be skipped. It counts for everybody in this dataset.",
        )
        if st.form_submit_button("Make links", type="primary"):
            people = list(dict.fromkeys(filter(None, map(str.strip, names.splitlines()))))
            if not people:
                st.error("Type the name of somebody to invite.")
            elif len(people) > _MOST:
                st.error(f"{len(people)} names: make at most {_MOST} links at once.")
            else:
                end = in_days(int(days))
                store().change_settings(
                    dataset, lambda now: now.model_copy(update={"code_share": share / 100})
                )
                st.session_state[_MADE] = {dataset: invite_all(store(), dataset, people, end, code)}
    made = st.session_state.get(_MADE, {}).get(dataset)
    if made:
        st.success("Send each person their text. Closed, it is not shown again.")
        st.code(made, language=None)
        if st.button("Close", icon=":material/close:"):
            del st.session_state[_MADE]
            st.rerun()


_MOST = 200  # links made at once


def _draw(overview: CampaignOverview) -> None:
    people, *further_tables = overview.tables()
    if overview.people:
        _draw_figures(overview)
        _offer_actions(overview)
    show_table(people, icon=":material/group:")
    if not overview.people:
        st.caption("The dataset's settings say who is to finish what, on the Datasets page.")
        page_link("datasets", "Go to Datasets", icon=":material/database:")
        return
    for table in further_tables:
        show_table(table)
    _lead_on(overview)


def _lead_on(overview: CampaignOverview) -> None:
    """Lead to what comes after reviewing, in the order in which it is done."""
    dataset, gold = overview.summary.name, overview.summary.names_of(AnnotatorKind.GOLD)
    several = sum(person.done > 0 for person in overview.people) > 1
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        link("compare", "See what people marked", icon=":material/compare:", dataset=dataset)
        if several:
            decide = "Go on deciding" if ADJUDICATED in gold else "Decide what they disagree on"
            link("adjudicate", decide, icon=":material/gavel:", dataset=dataset)
        link("measure", "Measure the rate", icon=":material/straighten:", dataset=dataset)
        link("export", "Export all labels", icon=":material/download:", dataset=dataset)


def _draw_figures(overview: CampaignOverview) -> None:
    """Say the figures that a lead looks for first."""
    plan, end = overview.plan, overview.until
    about = "If days go on to be like the last fourteen" if end else None
    one, two, three = st.columns(3)
    of_needed = f" of {plan.needed:,}" if plan else ""
    one.metric("Annotations done", f"{overview.done:,}{of_needed}", border=True)
    two.metric("Left", f"{plan.needed - plan.done:,}" if plan else "no plan", border=True)
    three.metric("Done by", f"{end:%d %b %Y}" if end else "–", help=about, border=True)


def _offer_actions(overview: CampaignOverview) -> None:
    """Offer what a lead does about people: take back, give back, let in, remind."""
    settings = overview.summary.settings
    at_work = [person.name for person in overview.people if not person.away]
    with st.container(horizontal=True, vertical_alignment="center"):
        if settings.overlap and at_work:
            with st.popover("Take items back", icon=":material/assignment_return:"):
                _take_back(overview.summary.name, at_work)
        if settings.away:
            with st.popover("Give back", icon=":material/undo:"):
                _give_back(overview.summary.name, list(settings.away))
        if settings.known and settings.known.test_items:
            with st.popover("Let somebody in", icon=":material/door_open:"):
                _let_in(overview)
        reminded = remind_table(overview)
        if reminded.rows:
            n_people = len(reminded.rows)
            people_have = "1 person has" if n_people == 1 else f"{n_people} people have"
            csv_button(reminded, f"whom to remind: {people_have} items left")


def _take_back(dataset: str, people: list[str]) -> None:
    person = st.selectbox("From whom", people, key="taken-from")
    with errors_shown():
        announcement = describe_leaving(store(), dataset, person)
        st.write(plain(announcement))
        if st.button("Take them back", type="primary"):
            store().take_back(dataset, person)
            tell_after_rerun(f"{announcement} “Give back” undoes it.")
            st.rerun()


def _give_back(dataset: str, people: list[str]) -> None:
    person = st.selectbox("To whom", people, key="given-to")
    st.write("They get their part of the plan again, but for what others have finished meanwhile.")
    if st.button("Give it back", type="primary"):
        with errors_shown("Nothing was changed."):
            store().give_back(dataset, person)
            tell_after_rerun(f"{person} has their part of the plan again.")
            st.rerun()


def _let_in(overview: CampaignOverview) -> None:
    name = st.selectbox(
        "Whom",
        [person.name for person in overview.people if not person.has_begun],
        index=None,
        accept_new_options=True,
        placeholder="A name",
        key="let-in",
    )
    st.write("They may work on the dataset without the test, or although they did not pass it.")
    if st.button("Let them in", type="primary", disabled=not name) and name:
        with errors_shown("Nothing was changed."):
            let_in(store(), overview.summary.name, name)
            tell_after_rerun(f"{name} may begin.")
            st.rerun()
