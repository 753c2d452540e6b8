"""The app's pages and their order."""

from __future__ import annotations

import streamlit as st

from spanlab.ui import common, compare, datasets, export, review


def run() -> None:
    """Draw the app: the navigation and the page that was chosen."""
    st.set_page_config(page_title="spanlab", page_icon=":material/ink_highlighter:", layout="wide")
    pages = [
        st.Page(review.page, title="Review", icon=":material/edit_note:", default=True),
        st.Page(datasets.page, title="Datasets", icon=":material/database:", url_path="datasets"),
        st.Page(compare.page, title="Compare", icon=":material/compare:", url_path="compare"),
        st.Page(export.page, title="Export", icon=":material/download:", url_path="export"),
    ]
    common.register_pages(pages)
    st.navigation(pages, position="top").run()


if __name__ == "__main__":
    run()
