"""Who reviews: asked for by name, and asked again before going on under a name in use."""

from __future__ import annotations

import getpass
import math
from collections.abc import Mapping
from urllib.parse import unquote

import streamlit as st
from pydantic import TypeAdapter

from spanlab.errors import StoreError, UsageError
from spanlab.schema import DatasetSummary
from spanlab.storage.store import Store
from spanlab.ui.common import kept, link, plain, store
from spanlab.ui.messages import show_error
from spanlab.workflows.blind import check_reviewer, has_reviewed, seen_by, sees_others
from spanlab.workflows.datasets import summary_of
from spanlab.workflows.own_lists import item_names

_PARAMETER = "reviewer"  # of the URL
_FIELD = "review.reviewer"
_COMPLETE = "spanlab.complete"
_CONFIRMED = "spanlab.reviewers"
_NAMES: TypeAdapter[frozenset[str]] = TypeAdapter(frozenset[str])
_COOKIE = "spanlab_reviewers"  # names that this browser session has reviewed under; see the wire


def ask_reviewer(summary: DatasetSummary) -> str:
    """Draw the field for the reviewer's name and return the name, empty if there is none.

    Where people log in nobody types one.
    """
    own = store().own_name(summary.name)
    if own is not None:
        st.text_input("Reviewer", own, disabled=True, help="Who you have logged in as.")
        return own
    default = st.query_params.get(_PARAMETER) or _login()
    name = st.text_input("Reviewer", default, max_chars=200, **kept(_FIELD))
    return " ".join((name or "").split())


def session_reviewer(dataset: str) -> str:
    """Return who reviews a dataset in this session: who has logged in, or the name typed last."""
    name = store().own_name(dataset) or st.session_state.get(kept(_FIELD)["key"])
    return " ".join(str(name or "").split())


def seen_store(summary: DatasetSummary) -> Store:
    """Return the database as the reviewer of this session may see a dataset in it."""
    return seen_by(store(), summary, session_reviewer(summary.name))


def link_to_item(dataset: str, item: str, label: str) -> None:
    """Draw a link that opens an item in Review; its name alone where it is not in one's list."""
    database = store()
    try:
        name = database.own_name(dataset) or st.session_state.get(kept(_FIELD)["key"])
        called = item_names(database, dataset, " ".join(str(name or "").split())).name(item)
    except StoreError:
        st.caption(plain(label), width="content")
    else:
        link("review", label, icon=":material/edit_note:", dataset=dataset, item=called)


def seen_summary(summary: DatasetSummary) -> DatasetSummary:
    """Return a dataset with the annotators that may be seen; asks for a name if it is blind."""
    if not summary.settings.always_blind:
        return summary
    name = ask_reviewer(summary)
    if sees_others(store(), summary, name):
        st.caption(
            "Reviewed blind. You see what everybody marked: you have no item left to review."
        )
        return summary
    exception = ", and others on items that you have finished" * summary.settings.shown_when_done
    st.caption(
        "This dataset is reviewed blind: until you have decided all of your items, you see what "
        f"detectors and you yourself said{exception}. Who does not review it sees all."
    )
    return summary_of(seen_store(summary), summary.name)


def show_completion(store: Store, dataset: str, progress: object) -> None:
    """Show an invitation's completion code once its person has done enough of their items.

    Args:
        store: the annotation database, with the visitor's rights.
        dataset: the dataset under review.
        progress: what the editor was told of it now; None for nothing new.
    """
    if isinstance(progress, Mapping):
        decided = progress["done"] + progress["skipped"]
        complete = decided >= progress["total"] > 0
        st.session_state[_COMPLETE] = (progress["done"], progress["total"]) if complete else None
    if not st.session_state.get(_COMPLETE):
        return
    invitation = store.access.own_invitation()
    if invitation is None or not invitation.code:
        return
    done, total = st.session_state[_COMPLETE]
    needed = math.ceil(store.settings(dataset).code_share * total)
    if done >= needed:
        st.success(f"All done, thank you. Your code: {plain(invitation.code)}")
    else:
        st.info(
            f"All decided, thank you: {done} of {total} done, the others skipped. The completion "
            f"code comes with {needed} done: go back to some that you skipped."
        )


def may_review(summary: DatasetSummary, name: str) -> bool:
    """Return whether ``name`` may review the dataset, or draw why not or the question whether.

    A name under which somebody has reviewed is asked about once in a browser session: two people
    under one name would change each other's annotations.
    """
    if not name:
        st.info(
            "Say who reviews, under Queue: the name goes with every span that you mark.",
            icon=":material/person:",
        )
        return False
    try:
        check_reviewer(summary, name)
    except UsageError as error:
        show_error(error, "Type another name under Queue.")
        return False
    if store().own_name(summary.name) is not None:
        return True
    if has_reviewed(summary, name) and name not in _confirmed_names():
        st.info(
            f"“{plain(name)}” has annotated “{plain(summary.name)}” before. If this is you, "
            "continue; if not, type another name under Queue.",
            icon=":material/person:",
        )
        st.button(f"Continue as {plain(name)}", type="primary", on_click=_confirm, args=(name,))
        return False
    _confirm(name)
    if st.query_params.get(_PARAMETER) != name:
        st.query_params[_PARAMETER] = name
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


def _login() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "reviewer"
    return "reviewer" if name == "root" else name


def seen_fingerprint(summary: DatasetSummary) -> tuple[object, ...]:
    """Return what tells that a dataset has changed, or is seen by somebody else."""
    return *summary.fingerprint, seen_store(summary).reader
