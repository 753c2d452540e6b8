"""Who reviews: asked for by name, and asked again before going on under a name in use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import streamlit as st
from pydantic import TypeAdapter

from spanlab.base.errors import UsageError
from spanlab.schema import DatasetSummary
from spanlab.storage.annotators import check_reviewer
from spanlab.storage.store import Store
from spanlab.ui.common import plain, store
from spanlab.ui.messages import show_error
from spanlab.ui.session import PARAMETER

_CONFIRMED = "spanlab.reviewers"
_NAMES: TypeAdapter[frozenset[str]] = TypeAdapter(frozenset[str])
_COOKIE = "spanlab_reviewers"  # names that this browser session has reviewed under; see the wire


def completion_words(store: Store, dataset: str, progress: Mapping[str, Any]) -> str:
    """Return an invitation's completion code once its person has done enough of their items.

    Args:
        store: the annotation database, with the visitor's rights.
        dataset: the dataset under review.
        progress: what the editor is told of it.

    Returns:
        The words with the code, or how much it takes; empty where items are left or no code is.
    """
    done, total = progress["done"], progress["total"] - progress["by_others"]
    if not total or (done + progress["skipped"] < total and not progress["waiting"]):
        return ""
    invitation = store.access.own_invitation()
    if invitation is None or not invitation.code:
        return ""
    needed = math.ceil(store.settings(dataset).code_share * total)
    if done >= needed:
        return f"All of your items are decided. Thank you. Your code: {invitation.code}"
    return (
        f"All of your items are decided: {done} of {total} done, the others skipped. The "
        f"completion code comes with {needed} done. Go back to some that you skipped."
    )


def may_review(summary: DatasetSummary, name: str) -> bool:
    """Return whether ``name`` may review the dataset, or draw why not or the question whether.

    A name under which somebody has reviewed is asked about once in a browser session: two people
    under one name would change each other's annotations.
    """
    if not name:
        st.info(
            "Enter your name under Queue. It is saved with every span you mark.",
            icon=":material/person:",
        )
        return False
    try:
        check_reviewer(summary.kinds, name)
    except UsageError as error:
        is_given = store().own_name(summary.name) is not None
        show_error(error, "Ask the lead for another name." if is_given else "")
        return False
    if store().own_name(summary.name) is not None:
        return True
    if name in summary.kinds and name not in _confirmed_names():
        st.info(
            f"“{plain(name)}” has annotated “{plain(summary.name)}” before. If this is you, "
            "continue; if not, use another name (under Queue).",
            icon=":material/person:",
        )
        st.button(f"Continue as {plain(name)}", type="primary", on_click=_confirm, args=(name,))
        return False
    _confirm(name)
    if st.query_params.get(PARAMETER) != name:
        st.query_params[PARAMETER] = name
    return True


def _confirm(name: str) -> None:
    st.session_state[_CONFIRMED] = _confirmed_names() | {name}


def _confirmed_names() -> frozenset[str]:
    """Return the names of this session: a reload forgets the state and keeps the cookie."""
    if _CONFIRMED not in st.session_state:
        try:
            names = _NAMES.validate_json(unquote(str(st.context.cookies.get(_COOKIE, "[]"))))
        except ValueError:
            names = frozenset()  # not written by the wire: ask
        st.session_state[_CONFIRMED] = names
    return frozenset(st.session_state[_CONFIRMED])
