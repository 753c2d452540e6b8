"""Links to items, by the names that they have for the visitor, and the end of access."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import streamlit as st

from spanlab.base.errors import StoreError
from spanlab.people.logins import is_valid, token_line
from spanlab.schema import AccessToken
from spanlab.storage.access_register import TokenKind
from spanlab.ui.common import link, plain, store
from spanlab.ui.messages import tell_after_rerun
from spanlab.ui.session import session_reviewer
from spanlab.worklists.names import item_names


def link_to_item(dataset: str, item: str, label: str) -> None:
    """Draw a link that opens an item in Review; its name alone where it is not in one's list."""
    database = store()
    try:
        called = item_names(database, dataset, session_reviewer(dataset)).name(item)
    except StoreError:
        st.caption(plain(label), width="content")
    else:
        link("review", label, icon=":material/edit_note:", dataset=dataset, item=called)


def revocations(kind: TokenKind, tokens: Iterable[AccessToken]) -> dict[str, Callable[[], None]]:
    """Return what ends each of these keys, invitations or links, by the line that names it."""
    revoke = store().access.revoke_token
    valid = filter(is_valid, tokens)
    return {token_line(token): partial(revoke, kind, token.id) for token in valid}


def offer_to_revoke(what: str, lines: Mapping[str, Callable[[], None]]) -> None:
    """Let people choose a line, and do what ends that access.

    Args:
        what: what is revoked, such as "key".
        lines: what is done, by the line that people choose; nothing is drawn without any.
    """
    if not lines:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        line = st.selectbox("Revoke", list(lines), index=None, placeholder=f"A {what}")
        if st.button(f"Revoke {what}", key=f"revoke-{what}", disabled=line is None) and line:
            lines[line]()
            tell_after_rerun(f"Revoked: {plain(line)}.")
            st.rerun()
