"""The app's pages and their order."""

from __future__ import annotations

import streamlit as st

from spanlab import jobs as work
from spanlab.ui import common, help_menu, model_setup
from spanlab.ui.views import (
    adjudicate,
    compare,
    datasets,
    detect,
    export,
    jobs,
    measure,
    memory,
    optimise,
    review,
)

# A marked line of text. Streamlit's emoji and material icons would be fetched from other hosts.
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    '<rect x="3" y="8" width="26" height="15" rx="3" fill="#f3b37a"/>'
    '<path d="M3 25h26" stroke="#b85500" stroke-width="4"/>'
    '<path d="M8 15.5h16" stroke="#262730" stroke-width="4" stroke-linecap="round"/></svg>'
)
_NAME = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 118 32"><title>spanlab</title>'
    '<rect x="2" y="7" width="52" height="17" rx="3" fill="#f3b37a"/>'
    '<path d="M2 26h52" stroke="#b85500" stroke-width="3"/>'
    '<text x="6" y="21" font-family="sans-serif" font-size="18" font-weight="700" '
    'fill="#262730">span<tspan dx="6" fill="#b85500">lab</tspan></text></svg>'
)


def run() -> None:
    """Draw the app: the navigation and the page that was chosen."""
    st.set_page_config(page_title="spanlab", page_icon=_ICON, layout="wide")
    if "Origin" in st.context.headers:  # of every browser; the guard (`ui/server.py`) takes it away
        st.error("Nothing guards this server: start the app with `spanlab serve`.")
        return
    work.start_embedded_worker()
    pages = [
        st.Page(review.page, title="Review", icon=":material/edit_note:", default=True),
        st.Page(datasets.page, title="Datasets", icon=":material/database:", url_path="datasets"),
        st.Page(detect.page, title="Detect", icon=":material/manage_search:", url_path="detect"),
        st.Page(optimise.page, title="Optimise", icon=":material/tune:", url_path="optimise"),
        st.Page(jobs.page, title="Jobs", icon=":material/work_history:", url_path="jobs"),
        st.Page(compare.page, title="Compare", icon=":material/compare:", url_path="compare"),
        st.Page(measure.page, title="Measure", icon=":material/straighten:", url_path="measure"),
        st.Page(
            adjudicate.page, title="Adjudicate", icon=":material/gavel:", url_path="adjudicate"
        ),
        st.Page(memory.page, title="Memory", icon=":material/psychology:", url_path="memory"),
        st.Page(export.page, title="Export", icon=":material/download:", url_path="export"),
    ]
    common.register_pages(pages)
    common.style()
    model_setup.watch()
    st.logo(_NAME, size="medium")
    st.navigation({"": pages, "Help": help_menu.pages()}, position="top").run()


if __name__ == "__main__":
    run()
