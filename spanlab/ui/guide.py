"""The guide in the app: its pages, a search, and the line on every page that leads to it."""

from __future__ import annotations

import re

import streamlit as st

from spanlab.errors import UsageError
from spanlab.ui import common
from spanlab.ui.messages import show_error
from spanlab.workflows.guide import FOLDER, GuidePage, guide_page, guide_pages, search_guide

_TOPIC = "topic"  # the query parameter of deep links
_PICTURE = re.compile(r"^!\[([^]]*)\]\((pictures/[\w-]+)\.webp\)$", re.MULTILINE)
_CODE = re.compile(r"^```(?:sh|python|toml)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([\w-]+)\.md(?:#[\w-]+)?\)")


def draw_guide() -> None:
    """Draw the page Guide."""
    listed, shown = st.columns([1, 3.2], gap="large")
    with listed.container(gap="xsmall"):
        words = st.text_input(
            "Search the guide", icon=":material/search:", **common.kept("guide.words")
        )
        if words.strip():
            _list_found(words)
        else:
            _list_all()
    with shown:
        try:
            _draw_page(guide_page(st.query_params.get(_TOPIC, guide_pages()[0].topic)))
        except UsageError as error:
            show_error(error)


def _list_all() -> None:
    section = ""
    for page in guide_pages():
        if page.section != section:
            st.caption(f"**{page.section}**")
            section = page.section
        _draw_link(page)


def _list_found(words: str) -> None:
    hits = search_guide(words)
    if not hits:
        st.caption("No page has all of these words. Try fewer of them.")
    for hit in hits:
        _draw_link(hit.page)
        st.caption(common.plain(hit.line))


def _draw_link(to: GuidePage) -> None:
    """Draw a button: a link from a page to itself would leave the address as it is."""
    st.button(
        to.title, key=f"guide-{to.topic}", type="tertiary", on_click=_turn_to, args=(to.topic,)
    )


def _turn_to(topic: str) -> None:
    st.query_params[_TOPIC] = topic


def _draw_page(shown: GuidePage) -> None:
    """Draw a page: text and pictures in turn, dark pictures where the app is dark."""
    dark = "-dark" if st.context.theme.type == "dark" else ""
    text = _LINK.sub(rf"](guide?{_TOPIC}=\1)", shown.text)
    text = _CODE.sub("```text", text)  # Streamlit's colours of code are too faint in the dark
    first_text, *pieces = _PICTURE.split(text)
    st.markdown(first_text)
    for about, picture, text_below in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        st.image(FOLDER / f"{picture}{dark}.webp", caption=about, alt=about)
        st.markdown(text_below)
