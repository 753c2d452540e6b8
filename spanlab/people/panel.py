"""Links to items, by the names that they have for the visitor."""

from __future__ import annotations

import streamlit as st

from spanlab.base.errors import StoreError
from spanlab.ui.common import link, plain, store
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
