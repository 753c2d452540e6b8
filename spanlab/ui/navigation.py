"""The app's pages and their order."""

from __future__ import annotations

import streamlit as st

from spanlab.ui import common, compare, datasets, export, review


def run() -> None:
    """Draw the app: the navigation and the page that was chosen."""
    st.set_page_config(page_title="spanlab", page_icon="🖍️", layout="wide")
    pages = {
        "review": st.Page(
            review.page,
            title="Review",
            icon=":material/edit_note:",
            url_path="review",
            default=True,
        ),
        "datasets": st.Page(
            datasets.page, title="Datasets", icon=":material/database:", url_path="datasets"
        ),
        "compare": st.Page(
            compare.page, title="Compare", icon=":material/compare_arrows:", url_path="compare"
        ),
        "export": st.Page(
            export.page, title="Export", icon=":material/download:", url_path="export"
        ),
    }
    common.register_pages(pages)
    st.navigation(list(pages.values()), position="top").run()


if __name__ == "__main__":
    run()
