"""The page Access: roles for datasets, invitations, keys, people who leave, and the log."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from spanlab.output.tables import ResultTable
from spanlab.people.forgetting import forget_person
from spanlab.people.logins import (
    in_days,
    invite,
    invite_again,
    log_table,
    role_table,
    state_of,
    token_table,
)
from spanlab.schema import AccessToken, Permission, Role
from spanlab.ui.common import actor, datasets_with, kept, plain, store, title
from spanlab.ui.messages import errors_shown, show_news, tell_after_rerun
from spanlab.ui.tables import show_grid

_ALL = "All datasets"
_MADE = "spanlab.access.made"  # what opens a door, to be shown once
_GUESTS = [role for role in Role if role is not Role.LEAD]
_MOST = 200  # links at once
_MARKS = {"Stays, under the pseudonym": True, "Is deleted": False}

Kind = Literal["key", "invitation"]


def page() -> None:
    """Draw the page."""
    title("Access")
    show_news()
    leads_all = actor().may(Permission.ADMINISTER)
    names = [summary.name for summary in datasets_with(Permission.MANAGE)]
    places = [*names, _ALL] if leads_all else names
    tabs = ["Roles", "Invitations", "Keys", *(["People", "Log"] if leads_all else [])]
    roles, invitations, keys, *for_leads = st.tabs(tabs)
    with roles, errors_shown():
        _draw_roles(places)
    with invitations, errors_shown():
        _draw_invitations(names)
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
        name = st.text_input("Name of the person", max_chars=200).strip()
        marks = st.radio("What they marked", list(_MARKS), horizontal=True)
        is_sure = st.checkbox("I want to remove this name permanently")
        if st.form_submit_button("Forget this person", type="primary") and name:
            if not is_sure:
                st.error("Nothing was changed: tick the box to confirm.")
                return
            said = forget_person(store(), name, keep=_MARKS[marks])
            tell_after_rerun(" ".join(f"{each[0].upper()}{each[1:]}." for each in said))
            st.rerun()


def _draw_roles(places: list[str]) -> None:
    granted = store().access.granted()
    st.caption(
        "Annotators review; adjudicators also see others' annotations and adjudicate; viewers see "
        "and export; leads do all this and manage the dataset. A change applies at their next "
        "click."
    )
    with st.form("grant", border=False):
        left, middle, right, last = st.columns([3, 1.5, 2, 1], vertical_alignment="bottom")
        person = left.text_input("Person", placeholder="anna@example.org, or the name shown here")
        role = middle.selectbox("Role", list(Role), format_func=str.capitalize)
        place = right.selectbox("Dataset", places)
        if last.form_submit_button("Grant role", type="primary") and person.strip() and role:
            store().access.grant(person.strip(), role, None if place == _ALL else place)
            tell_after_rerun(f"{person.strip()} is {role} now.")
            st.rerun()
    if not granted:
        st.info("Nobody has a role yet.")
        return
    _show_grid(role_table(granted), "Granted roles")
    lines = {
        f"{grant.name or grant.subject}: {grant.role} for {grant.dataset or 'all datasets'}": grant
        for grant in granted
    }
    with st.container(horizontal=True, vertical_alignment="bottom"):
        line = st.selectbox("Revoke", list(lines), index=None, placeholder="A role")
        if st.button("Revoke role", disabled=line is None) and line is not None:
            store().access.revoke(lines[line].subject, lines[line].role, lines[line].dataset)
            tell_after_rerun(f"Revoked: {line}.")
            st.rerun()


def _draw_invitations(names: list[str]) -> None:
    st.caption("A link lets one person without an account take part. Each link works once.")
    if not names:
        st.info("There is no dataset to invite anybody to yet.")
        return
    with st.form("invite", border=False):
        one, two, three, four = st.columns(4, vertical_alignment="bottom")
        dataset = one.selectbox("Dataset", names)
        role = two.selectbox("Role", _GUESTS, format_func=str.capitalize)
        days = three.number_input("Days", 1, 3650, 14, help="Stops working after this many days.")
        count = four.number_input("Links", 1, _MOST)
        one, two, three = st.columns([2, 2, 1], vertical_alignment="bottom")
        label = one.text_input(
            "Name", max_chars=100, help="Leave empty to use the link's `worker`."
        )
        code = two.text_input(
            "Completion code",
            max_chars=100,
            help="Shown after enough items are done (see Campaign).",
        )
        if three.form_submit_button("Create links", type="primary"):
            end = in_days(int(days))
            links = [
                invite(store(), str(dataset), role, end, label=label.strip(), code=code.strip())
                for _ in range(int(count))
            ]
            st.session_state[_MADE] = "\n".join(links)
    _show_made("Send one link per person. Crowd platforms append &worker= and the worker's ID.")
    _draw_tokens("invitation", "Invitations")


def _draw_keys(places: list[str]) -> None:
    st.caption("Keys let programs ask the JSON API and the MCP server: viewers look, leads detect.")
    with st.form("key", border=False):
        one, two, three, four, five = st.columns([2, 1.5, 2, 1.5, 1], vertical_alignment="bottom")
        label = one.text_input("What it is for", max_chars=100)
        role = two.selectbox("Role", [Role.VIEWER, Role.LEAD], format_func=str.capitalize)
        place = three.selectbox("Dataset", places)
        days = four.number_input("Days", 1, 3650, 90, help="Stops working after this many days.")
        if five.form_submit_button("Create key", type="primary"):
            where, end = None if place == _ALL else place, in_days(int(days))
            token = store().access.make_token("key", role, where, label=label.strip(), expires=end)
            st.session_state[_MADE] = token
    _show_made("Copy it now: it is stored as a hash, and cannot be shown again.")
    _draw_tokens("key", "Keys")


def _show_grid(table: ResultTable, heading: str) -> None:
    """Draw a table below a form: without the heading its toolbar would cover the form's button."""
    st.markdown(f"**{heading}**")
    show_grid(table)


def _show_made(hint: str) -> None:
    secret = st.session_state.pop(_MADE, None)
    if secret is not None:
        st.success(hint)
        st.code(secret, language=None)


def _draw_tokens(kind: Kind, heading: str) -> None:
    tokens = store().access.tokens(kind)
    if not tokens:
        st.info(f"There are no {kind}s yet.")
        return
    _show_grid(token_table(tokens, heading), heading)
    lines = {_line(token): token for token in tokens if not token.revoked}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        line = st.selectbox(
            "Revoke, or renew" if kind == "invitation" else "Revoke",
            list(lines),
            index=None,
            placeholder=f"One of the {kind}s",
            **kept(kind),
        )
        if st.button("Revoke", key=f"revoke-{kind}", disabled=line is None) and line in lines:
            store().access.revoke_token(kind, lines[line].id)
            tell_after_rerun(f"Revoked: {plain(line)}.")
            st.rerun()
        if (
            kind == "invitation"
            and st.button(
                "Another link",
                disabled=line is None,
                help="For the same person, in another browser: what they did stays theirs.",
            )
            and line in lines
        ):
            st.session_state[_MADE] = invite_again(store(), lines[line].id)
            st.rerun()


def _line(token: AccessToken) -> str:
    label = f" for {token.label}" if token.label else ""
    return (
        f"{token.id}{label}: {token.role} of {token.dataset or 'all datasets'}, {state_of(token)}"
    )
