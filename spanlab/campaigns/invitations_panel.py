"""Inviting people to a dataset, and their links: new ones for other browsers, and their end."""

from __future__ import annotations

from typing import Final

import streamlit as st

from spanlab.output.figures import counted, named_ids
from spanlab.people.logins import (
    has_login,
    in_days,
    invite_again,
    invite_all,
    token_line,
    token_table,
)
from spanlab.schema import AccessToken, DatasetSummary, Role
from spanlab.ui.common import plain, store
from spanlab.ui.messages import errors_shown, tell_after_rerun
from spanlab.ui.tables import show_grid

_MADE: Final = "campaign.invited"  # the text with the links that were made last, by dataset
_TAKEN: Final = "campaign.taken"  # names to invite that people have already, by dataset
_GUESTS: Final = [role for role in Role if role is not Role.LEAD]
_MOST: Final = 200  # links made at once


def has_new_links(dataset: str) -> bool:
    """Say whether links were made whose texts are shown."""
    return dataset in st.session_state.get(_MADE, {})


def links_of(dataset: str) -> list[AccessToken] | None:
    """Return a dataset's invitations, None where people do not come by them."""
    if not has_login():
        return None
    return [token for token in store().access.tokens("invitation") if token.dataset == dataset]


def draw_invitations(summary: DatasetSummary) -> None:
    """Draw the form that makes links, a text to send to each person, and a dataset's links."""
    dataset, links = summary.name, links_of(summary.name)
    if links is None:
        st.markdown(
            "Anybody who can reach this app may use all of it now. To invite people by links, "
            "start it with `spanlab serve --invite`. No login provider is needed."
        )
        return
    _ask(dataset)
    if made := st.session_state.get(_MADE, {}).get(dataset):
        st.success("Send each person their text. The links are shown only until you close them.")
        for text in made.split("\n\n"):
            st.code(text, language=None, wrap_lines=True)
        if st.button("Close", icon=":material/close:"):
            del st.session_state[_MADE]
            st.rerun()
    if links:
        _draw_links(dataset, links)


def _ask(dataset: str) -> None:
    with st.form("campaign-invite", border=False):
        left, right = st.columns(2)
        names = left.text_area("Names, one a line", placeholder="Anna\nBen", max_chars=20_000)
        role = right.selectbox("Role", _GUESTS, format_func=str.capitalize)
        first, left, middle, right = st.columns(4, vertical_alignment="bottom")
        crowd = first.number_input(
            "Links without a name",
            0,
            _MOST,
            help="For a crowd platform, which appends &worker= and the worker's ID.",
        )
        days = left.number_input(
            "Days", 1, 3650, 14, help="The links stop working after this many days."
        )
        code = middle.text_input(
            "Completion code", max_chars=100, help="Shown after enough items are done."
        )
        share = right.slider(
            "Show the completion code after (% of items)",
            0,
            100,
            round(100 * store().settings(dataset).code_share),
            help="The rest may be skipped. Applies to everybody in this dataset.",
        )
        taken = st.session_state.get(_TAKEN, {}).get(dataset, [])
        same = bool(taken) and st.checkbox(
            f"{plain(named_ids(taken))}: the same person as the one here with this name",
            help="Their reviews are theirs. For somebody else, change the name above.",
        )
        if not st.form_submit_button("Create links", type="primary"):
            return
        named = dict.fromkeys(filter(None, map(str.strip, names.splitlines())))
        people = [*named, *[""] * int(crowd)]
        if not people:
            st.error("Enter at least one name, or a number of links without a name.")
        elif len(people) > _MOST:
            st.error(f"{counted(len(people), 'link')}: at most {_MOST} can be created at once.")
        elif not same and (known := [name for name in named if store().access.called(name)]):
            st.session_state[_TAKEN] = {dataset: known}
            st.rerun()  # the form asks who they are
        else:
            st.session_state.pop(_TAKEN, None)
            store().change_settings(
                dataset, lambda now: now.model_copy(update={"code_share": share / 100})
            )
            end = in_days(int(days))
            text = invite_all(store(), dataset, people, end, code.strip(), role, same=same)
            st.session_state[_MADE] = {dataset: text}
            st.rerun()  # the review plan offers them from now on


def _draw_links(dataset: str, links: list[AccessToken]) -> None:
    st.markdown("**Links**")
    show_grid(token_table(links, "Links"))
    lines = {token_line(token): token for token in links}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        line = st.selectbox("Link of", list(lines), index=None, placeholder="Choose a person")
        if st.button(
            "New link for this person",
            disabled=line is None,
            help="For another browser, or after the end: what they did stays theirs.",
        ):
            with errors_shown("No link was made."):
                st.session_state[_MADE] = {dataset: invite_again(store(), lines[str(line)].id)}
                st.rerun()
        is_open = line is not None and not lines[line].revoked
        if st.button("Revoke", key="revoke-invitation", disabled=not is_open):
            store().access.revoke_token("invitation", lines[str(line)].id)
            tell_after_rerun(f"Revoked: {plain(str(line))}.")
            st.rerun()
