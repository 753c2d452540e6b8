"""The tab Reasoning of the page Compare."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import streamlit as st

from spanlab.schema import Record
from spanlab.schema.datasets import DatasetSummary
from spanlab.storage.store import Store
from spanlab.systems.safe.results import (
    MethodResult,
    ReasoningResults,
    error_tables,
    reasoning_results,
)
from spanlab.systems.safe.trace import ReasoningTraceStep
from spanlab.ui.common import plain
from spanlab.ui.messages import progress
from spanlab.ui.panels import Panel
from spanlab.ui.session import seen_fingerprint, seen_store
from spanlab.ui.tables import csv_button, show_chart, show_table

_MOST_JUDGES = 6  # that a chart can tell apart


def _show(summary: DatasetSummary, names: Collection[str]) -> None:
    """Draw what ways of verifying came to on the same questions, and where errors were found."""
    results = _count_reasonings(summary.name, seen_fingerprint(summary), seen_store(summary))
    if not results.methods and not results.judges:
        st.info(
            "No reasoning steps are verified yet: run the detector `safe`, or import answers whose "
            "steps are.",
            icon=":material/rule:",
        )
        return
    st.markdown(f"**{plain(results.sentence)}**")
    for table in results.tables():
        show_table(table)
    chosen_judges = {name: judge for name, judge in results.judges.items() if name in names}
    if chosen_judges:
        _show_errors(chosen_judges)
    elif results.judges:
        st.caption("None of the annotators chosen has found an error in a step.")


def _show_errors(judges: Mapping[str, MethodResult]) -> None:
    judges_by_errors = sorted(judges, key=lambda name: judges[name].errors.total(), reverse=True)
    drawn = {name: judges[name] for name in judges_by_errors[:_MOST_JUDGES]}
    if len(drawn) < len(judges):
        st.caption(
            f"The chart shows the {_MOST_JUDGES} who found most errors, of {len(judges):,}; the "
            "download has all. Choose others under Annotators."
        )
    for table, chart in zip(error_tables(judges), error_tables(drawn), strict=True):
        st.markdown(f"**{table.title}**")
        show_chart(chart, f"{table.title}, as shares of what each annotator found")
        csv_button(table, " ".join(map(plain, chart.remarks)))


@st.cache_resource(max_entries=16, show_spinner=False)
def _count_reasonings(
    dataset: str, fingerprint: tuple[object, ...], _store: Store
) -> ReasoningResults:
    """Count now, or return what any session has counted, as for rates."""
    with progress("Counting", None) as advance:
        return reasoning_results(_store, dataset, advance)


def is_reasoned(record: Record) -> bool:
    """Say whether an answer was reasoned by spanlab, or somebody has judged its steps."""
    return isinstance(record.item.meta.get("reasoning"), dict) or any(
        isinstance(step, ReasoningTraceStep)
        for annotation in record.annotations
        for step in annotation.trace
    )


PANEL = Panel("Reasoning", 60, _show, in_record=is_reasoned)
