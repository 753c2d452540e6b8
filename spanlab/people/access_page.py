"""The page Access: roles for datasets, keys, people who leave, and the log."""

from __future__ import annotations

from functools import partial

import streamlit as st

from spanlab.output.tables import ResultTable
from spanlab.people.forgetting import forget_person
from spanlab.people.logins import in_days, is_valid, log_table, role_table, token_table
from spanlab.people.panel import offer_to_revoke, revocations
from spanlab.schema import Permission, Role
from spanlab.ui.common import actor, dataset_at, datasets_with, page_link, store, title
from spanlab.ui.messages import errors_shown, show_news, tell_after_rerun
from spanlab.ui.tables import show_grid

_ALL = "All datasets"
_MARKS = {"Stays, under the pseudonym": True, "Is deleted": False}


def page() -> None:
    """Draw the page."""
    title("Access")
    with st.container():  # also where it is empty: the tabs keep their place, and the one chosen
        show_news()
    leads_all = actor().may(Permission.ADMINISTER)
    names = [summary.name for summary in datasets_with(Permission.MANAGE)]
    names.sort(key=lambda name: name != dataset_at())  # the one at hand is offered first
    places = [*names, _ALL] if leads_all else names
    tabs = ["Roles", "Keys", *(["Forget a person", "Log"] if leads_all else [])]
    roles, keys, *for_leads = st.tabs(tabs)
    with roles, errors_shown():
        _draw_roles(places)
    with keys, errors_shown():
        _draw_keys(places)
    for tab, draw in zip(for_leads, (_draw_people, _draw_log), strict=False):
        with tab, errors_shown():
            draw()


def _draw_log() -> None:
    show_grid(log_table(store().access.log()))


def _draw_people() -> None:
    st.caption(
        "A person who leaves gets a pseudonym in place of the name everywhere: in datasets, their "
        "versions and the log. Roles and invitations end. This cannot be undone."
    )
    with st.form("forget", border=False):
        name = st.text_input("Name of the person", max_chars=200, width=400).strip()
        marks = st.radio("What they marked", list(_MARKS), horizontal=True)
        is_sure = st.checkbox("I want to remove this name permanently")
        if st.form_submit_button("Forget this person", type="primary"):
            if not (name and is_sure):
                st.error("Nothing was changed: give the name, and tick the box to confirm.")
                return
            said = forget_person(store(), name, keep=_MARKS[marks])
            tell_after_rerun(" ".join(f"{each[0].upper()}{each[1:]}." for each in said))
            st.rerun()


def _draw_roles(places: list[str]) -> None:
    access = store().access
    granted = access.granted()
    st.caption(
        "Annotators review; adjudicators also see others' annotations and adjudicate; viewers see "
        "and export; leads do all this and manage the dataset. A change applies at their next "
        "click."
    )
    page_link("campaign", "Invite people without an account", icon=":material/person_add:")
    with st.form("grant", border=False):
        left, middle, right, last = st.columns([3, 1.5, 2, 1], vertical_alignment="bottom")
        person = left.text_input("Person", placeholder="anna@example.org, or the name shown here")
        role = middle.selectbox("Role", list(Role), format_func=str.capitalize)
        place = right.selectbox("Dataset", places)
        is_asked = last.form_submit_button("Grant role", type="primary")
        if is_asked and not person.strip():
            st.error("Nothing was changed: say who the person is.")
        elif is_asked and role:
            access.grant(person.strip(), role, None if place == _ALL else place)
            tell_after_rerun(f"{person.strip()} is {role} now.")
            st.rerun()
    invited = [token for token in access.tokens("invitation") if is_valid(token)]
    _show_grid(role_table(granted, invited), "People with a role")
    lines = {
        f"{row[0]}: {row[2]} of {row[3]}": partial(
            access.revoke, grant.subject, grant.role, grant.dataset
        )
        for row, grant in zip(role_table(granted).rows, granted, strict=True)
    }
    offer_to_revoke("role", lines | revocations("invitation", invited))


def _draw_keys(places: list[str]) -> None:
    st.caption("Keys let programs ask the JSON API and the MCP server: viewers look, leads detect.")
    with st.form("key", border=False):
        one, two, three, four, five = st.columns([2, 1.5, 2, 1.5, 1], vertical_alignment="bottom")
        label = one.text_input("What it is for", max_chars=100)
        role = two.selectbox("Role", [Role.VIEWER, Role.LEAD], format_func=str.capitalize)
        place = three.selectbox("Dataset", places)
        days = four.number_input("Valid for (days)", 1, 3650, 90)
        if five.form_submit_button("Create key", type="primary"):
            where, end = None if place == _ALL else place, in_days(int(days))
            token = store().access.make_token("key", role, where, label=label.strip(), expires=end)
            st.success("Copy it now: it is stored as a hash, and cannot be shown again.")
            st.code(token, language=None)
    keys = store().access.tokens("key")
    _show_grid(token_table(keys, "Keys"), "Keys")
    offer_to_revoke("key", revocations("key", keys))


def _show_grid(table: ResultTable, heading: str) -> None:
    """Draw a table below a form: without the heading its toolbar would cover the form's button."""
    if not table.rows:
        st.caption(f"{table.empty.capitalize()}.")
        return
    st.markdown(f"**{heading}**")
    show_grid(table)
