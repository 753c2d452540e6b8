"""The tab Error stages of the page Compare."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from spanlab.base.errors import UsageError
from spanlab.schema import Record
from spanlab.schema.datasets import DatasetSummary
from spanlab.storage.store import Store
from spanlab.systems.veritrail.stages import ErrorStages, error_stages, judges
from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import plain
from spanlab.ui.messages import progress
from spanlab.ui.panels import Panel
from spanlab.ui.session import seen_fingerprint, seen_store
from spanlab.ui.tables import show_table


def _show(summary: DatasetSummary, _names: Collection[str]) -> None:
    """Ask whose claims count, then draw each stage's share of their errors."""
    names = choose_annotators(
        summary.annotators,
        key=f"stages-{summary.name}",
        default=judges(summary),
        label="Annotators",
    )
    try:
        stages = _count_stages(
            summary.name, tuple(names), seen_fingerprint(summary), seen_store(summary)
        )
    except UsageError:
        stages = None
    if not names or stages is None or not any(run.shares for run in stages.runs):
        st.info(
            "No error is traced to the stage at which it was introduced. Run VeriTrail on items "
            "that say how their answers were made.",
            icon=":material/account_tree:",
        )
        return
    st.markdown(f"**{plain(stages.sentence or '')}**")
    for table in stages.tables():
        show_table(table)


@st.cache_resource(max_entries=16, show_spinner=False)
def _count_stages(
    dataset: str, names: tuple[str, ...], fingerprint: tuple[object, ...], _store: Store
) -> ErrorStages:
    """Count now, or return what any session has counted, as for rates."""
    with progress("Counting", None) as advance:
        return error_stages(_store, dataset, names, advance)


def _is_traced(record: Record) -> bool:
    return any(claim.error_stages for said in record.finished for claim in said.claims)


PANEL = Panel("Error stages", 50, _show, in_record=_is_traced)
