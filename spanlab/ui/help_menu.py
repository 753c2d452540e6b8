"""The Help menu: the guide, a tour, guidelines and version."""

from __future__ import annotations

from importlib.metadata import version

import streamlit as st

from spanlab.schema import Permission
from spanlab.ui import common, guide, tour


def pages() -> list[st.Page]:
    """Return the pages of the menu."""
    return [
        st.Page(guide.page, title="Guide", icon=":material/menu_book:", url_path="guide"),
        st.Page(tour.start, title="Tour", icon=":material/explore:", url_path="tour"),
        st.Page(_guidelines, title="Guidelines", icon=":material/rule:", url_path="guidelines"),
        st.Page(_version, title="Version", icon=":material/info:", url_path="version"),
    ]


def _guidelines() -> None:
    common.title("Guidelines")
    summaries = common.datasets_for("read guidelines of", Permission.SEE)
    if not summaries:
        return
    summary = common.choose_dataset(summaries)
    texts = summary.settings.guidelines
    if not texts:
        st.info("This dataset has no guidelines. Write them in its settings on the Datasets page.")
        common.page_link("datasets", "Go to Datasets", icon=":material/database:")
        return
    st.caption(f"Version {len(texts)}")
    with st.container(border=True):
        st.markdown(texts[-1])


def _version() -> None:
    common.title("Version")
    st.markdown(f"spanlab {version('spanlab')}")
    st.markdown("`spanlab --help` lists the commands; the guide has each with all its options.")
