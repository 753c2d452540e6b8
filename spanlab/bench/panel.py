"""The tab Bench of the page Compare."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import streamlit as st

from spanlab.base.errors import UsageError
from spanlab.bench.files import read_table
from spanlab.jobs import Jobs, JobView
from spanlab.schema import Permission
from spanlab.schema.datasets import DatasetSummary
from spanlab.ui.common import actor, plain
from spanlab.ui.panels import Panel
from spanlab.ui.tables import show_table

_LOOK_BACK = 200  # jobs among which benchmarks are looked for


def _is_there(_summary: DatasetSummary) -> bool:
    """Say whether a benchmark was run lately, and may be seen."""
    return actor().may(Permission.ADMINISTER) and bool(_benchmarks())


def _benchmarks() -> list[JobView]:
    views = Jobs(actor=actor()).list(_LOOK_BACK)
    return [view for view in views if view.kind == "bench" and view.request]


def _show(_summary: DatasetSummary, _names: Collection[str]) -> None:
    """Draw the table of a benchmark that people choose."""
    done = _benchmarks()
    if not done:
        st.info(
            "No benchmark has been run yet: `spanlab bench --detector offline -o table` compares "
            "a detector with baselines on the samples, `spanlab bench --list` names more datasets.",
            icon=":material/leaderboard:",
        )
        return
    view = st.selectbox("Benchmark", done, format_func=_title, key="bench-job")
    assert view.request is not None
    try:
        table = read_table(Path(view.request["output"]))
    except UsageError as error:
        st.info(f"{plain(str(error))}: it is running, or is on another machine.")
        return
    st.caption("Detectors and baselines on datasets in files, not on the dataset above.")
    for result_table in table.results:
        if result_table.rows:
            show_table(result_table)


def _title(view: JobView) -> str:
    return f"{view.title}, {view.created:%-d %B %Y, %H:%M} ({view.id})"


PANEL = Panel("Bench", 80, _show, is_there=_is_there)
