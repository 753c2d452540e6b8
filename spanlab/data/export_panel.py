"""How an exported file will begin: its first lines, or a report as it will look."""

from __future__ import annotations

from base64 import b64encode

import streamlit as st

from spanlab.data.export_choice import BINARY, REPORT, ExportChoice
from spanlab.data.exporting import overview_dataset, preview_dataset, preview_report
from spanlab.data.report_figures import Overview
from spanlab.schema import DatasetSummary
from spanlab.storage.store import Store
from spanlab.ui.messages import errors_shown, progress
from spanlab.ui.session import seen_store

_ITEMS = 3  # whose lines are shown
_LINE = 600  # characters of a line
_LINES = 60
_FRAME = 640  # pixels, the height in which a report scrolls
_AT_ONCE = 2_000  # items that are counted for the head of a report's preview


def preview_of(summary: DatasetSummary, choice: ExportChoice) -> str | None:
    """Return how the file will begin; say what is wrong, and return None, if there can be none."""
    look = seen_store(summary)
    with errors_shown():
        if choice.format != REPORT:
            return preview_dataset(look, summary.name, _ITEMS, choice)
        overview = None
        if summary.n_items <= _AT_ONCE:
            edits = look.n_operations(summary.name)
            plan = str(summary.settings.measurement)
            fingerprint = (*summary.fingerprint, edits, look.reader, plan)
            overview = _count_overview(summary.name, choice, fingerprint, look)
        return preview_report(look, summary.name, overview, choice)
    return None


def show_preview(summary: DatasetSummary, choice: ExportChoice, beginning: str) -> None:
    """Draw the beginning of a file; a report in a frame of its own, apart from the app.

    Args:
        summary: of the dataset.
        choice: what goes into the file.
        beginning: as ``preview_of`` returns it.
    """
    with st.expander("Preview", expanded=True, icon=":material/visibility:"):
        if choice.format == REPORT:
            if summary.n_items > _AT_ONCE:
                st.caption("Its figures are counted when the file is made.")
            # As data, not as HTML: what the frame holds then has no access to the app.
            data = b64encode(beginning.encode()).decode()
            address = f"data:text/html;charset=utf-8;base64,{data}"
            st.iframe(address, height=_FRAME, alt=f"The report on {summary.name}")
            return
        lines = [
            line if len(line) <= _LINE else f"{line[:_LINE]} …" for line in beginning.split("\n")
        ]
        if beginning.strip():
            st.code("\n".join(lines[:_LINES]).rstrip(), language=None, wrap_lines=True)
        else:
            st.caption("The first items have nothing to write in this format.")
        if choice.format in BINARY:
            st.caption("The file shows the same items in its own form.")


@st.cache_resource(max_entries=16, show_spinner=False)
def _count_overview(
    dataset: str, choice: ExportChoice, fingerprint: tuple[object, ...], _store: Store
) -> Overview:
    """Count now, or return what any session has counted; ``seen`` tells changes."""
    with progress("Counting", None) as advance:
        return overview_dataset(_store, dataset, choice, advance)
