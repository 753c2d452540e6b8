"""A page of a dataset's items to choose one from."""

from __future__ import annotations

import streamlit as st

from spanlab.schema import DatasetSummary, QueueCursor, QueuePage
from spanlab.ui.reviewer import seen_store
from spanlab.workflows.analysis.comparison import Order, list_items

ITEM = "item"  # the query parameter of deep links

_PLACE = "spanlab.item-list-place"
_IDS = "spanlab.item-list-ids"
_TABLE = "spanlab.item-list"


def open_item(item_id: str) -> None:
    """Make the item the one that the URL names."""
    st.query_params[ITEM] = item_id


def item_list(summary: DatasetSummary, order: Order, lang: str | None) -> None:
    """Draw a page of items; choosing a row opens its item.

    Args:
        summary: of an existing dataset.
        order: "disagreement" or "import".
        lang: only items of this language; None for all.
    """
    asked = (summary.name, order, lang)
    place, after, before = st.session_state.get(_PLACE, (asked, None, None))
    if place != asked:
        after = before = None
    shown = list_items(
        seen_store(summary), summary.name, order=order, lang=lang, after=after, before=before
    )
    st.session_state[_IDS] = [row.item_id for row in shown.rows]
    st.dataframe(
        [
            {
                "Differ": row.disagreement,
                "Lang": row.lang,
                "Answer": row.answer,
                "Item": row.item_id,
            }
            for row in shown.rows
        ],
        hide_index=True,
        height=425,
        column_config={
            "Differ": st.column_config.ProgressColumn(
                min_value=0.0,
                max_value=1.0,
                format="%.2f",
                width=85,
                help="How much persons and detectors disagree: 1 minus their mean pairwise IoU.",
            ),
            "Lang": st.column_config.TextColumn(width=50),
        },
        on_select=_open_selected,
        selection_mode="single-row",
        key=_TABLE,
        alt="Items; choose one to see it under all annotators",
    )
    _turn(asked, shown)


def _turn(asked: tuple[str, Order, str | None], shown: QueuePage) -> None:
    if shown.previous is None and shown.next is None:
        return
    with st.container(horizontal=True):
        st.button(
            "Earlier",
            icon=":material/chevron_left:",
            disabled=shown.previous is None,
            on_click=_go,
            args=(asked, None, shown.previous),
        )
        st.button(
            "Later",
            icon=":material/chevron_right:",
            disabled=shown.next is None,
            on_click=_go,
            args=(asked, shown.next, None),
        )


def _go(
    asked: tuple[str, Order, str | None], after: QueueCursor | None, before: QueueCursor | None
) -> None:
    st.session_state[_PLACE] = (asked, after, before)


def _open_selected() -> None:
    rows = st.session_state[_TABLE].selection.rows
    if rows:
        open_item(st.session_state[_IDS][rows[0]])
