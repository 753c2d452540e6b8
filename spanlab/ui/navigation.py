"""The app's pages and their order."""

from __future__ import annotations

import streamlit as st

from spanlab.ui import review


def run() -> None:
    """Draw the app: the navigation and the page that was chosen."""
    st.set_page_config(page_title="spanlab", page_icon="🖍️", layout="wide")
    pages = [
        st.Page(
            review.page,
            title="Review",
            icon=":material/edit_note:",
            url_path="review",
            default=True,
        ),
    ]
    st.navigation(pages, position="top").run()


if __name__ == "__main__":
    run()
