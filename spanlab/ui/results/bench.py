"""Tables of benchmarks: those that jobs have filled, with their charts and files."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from spanlab import jobs
from spanlab.errors import UsageError
from spanlab.jobs import JobView
from spanlab.ui.common import plain
from spanlab.ui.results.tables import show_table
from spanlab.workflows.bench.files import read_table

_LOOK_BACK = 200  # jobs among which benchmarks are looked for


def show_bench() -> None:
    """Draw the table of a benchmark that people choose."""
    done = [view for view in jobs.jobs(limit=_LOOK_BACK) if view.kind == "bench" and view.request]
    if not done:
        st.info(
            "No benchmark has been run yet: `spanlab bench --detector offline -o table` compares "
            "a detector with controls on the samples, `spanlab bench --list` names more datasets.",
            icon=":material/leaderboard:",
        )
        return
    view = st.selectbox("Benchmark", done, format_func=_title, key="bench-job")
    assert view.request is not None
    try:
        table = read_table(Path(view.request["output"]))
    except UsageError as error:
        st.info(f"{plain(str(error))}: it is under way, or lies on another machine.")
        return
    st.caption("Detectors and controls on datasets in files, not on the dataset above.")
    for each in table.results:
        if each.rows:
            show_table(each)


def _title(view: JobView) -> str:
    return f"{view.title}, {view.created:%-d %B %Y, %H:%M} ({view.id})"
