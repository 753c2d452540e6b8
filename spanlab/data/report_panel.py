"""Links to a report, on the page Export: making them, and revoking them."""

from __future__ import annotations

from urllib.parse import urlsplit

import streamlit as st

from spanlab.base.settings import Settings
from spanlab.data.export_choice import ExportChoice
from spanlab.data.report_links import share_report
from spanlab.people.logins import in_days, token_table
from spanlab.people.panel import offer_to_revoke, revocations
from spanlab.schema import DatasetSummary
from spanlab.ui.common import store
from spanlab.ui.messages import errors_shown
from spanlab.ui.session import seen_store
from spanlab.ui.tables import show_grid


def draw_report_links(summary: DatasetSummary, choice: ExportChoice) -> None:
    """Draw what makes a link to the report as it is now, and the links there are."""
    dataset = summary.version_of or summary.name
    with st.expander("Link to this report", icon=":material/link:"), errors_shown():
        st.caption(
            "Anyone who has the link reads the report as it is now, without a login, and nothing "
            "else. It ends after the days that you set, or when you revoke it."
        )
        with st.form("report-link", border=False):
            left, right = st.columns([1, 5], vertical_alignment="bottom")
            days = left.number_input("Days", 1, 365, 30)
            if right.form_submit_button("Create link", type="primary"):
                path = share_report(seen_store(summary), summary.name, in_days(int(days)), choice)
                here = urlsplit(st.context.url or "")
                address = Settings.read().url or f"{here.scheme}://{here.netloc}"
                st.success("Copy it now: it is stored as a hash, and cannot be shown again.")
                st.code(f"{address.rstrip('/')}{path}", language=None, wrap_lines=True)
        links = [link for link in store().access.tokens("report") if link.dataset == dataset]
        if not links:
            return
        show_grid(token_table(links, "Links"))
        offer_to_revoke("link", revocations("report", links))
