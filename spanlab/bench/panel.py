"""The tab Bench of the page Compare."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import streamlit as st

from spanlab.base.errors import UsageError
from spanlab.base.settings import Settings
from spanlab.bench.files import read_table
from spanlab.bench.plan import BenchSystem, make_plan
from spanlab.bench.stored import write_datasets
from spanlab.detection.entry import DetectorEntry, asks_models, installed
from spanlab.detection.estimate import typical_cost
from spanlab.detection.form import ask_model
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications
from spanlab.jobs import Jobs, JobView
from spanlab.jobs.panel import EVERY, job_actions, job_head
from spanlab.schema import AnnotatorKind, Permission
from spanlab.schema.datasets import DatasetSummary
from spanlab.ui.common import actor, datasets_with, plain, start_bar, store
from spanlab.ui.messages import errors_shown
from spanlab.ui.panels import Panel
from spanlab.ui.session import pressed
from spanlab.ui.tables import show_table

_PLAY = ":material/play_arrow:"
_LOOK_BACK = 200  # jobs among which benchmarks are looked for


def _is_there(_summary: DatasetSummary) -> bool:
    """Say whether benchmarks may be seen and started."""
    return actor().may(Permission.ADMINISTER)


def _benchmarks() -> list[JobView]:
    views = Jobs(actor=actor()).list(_LOOK_BACK)
    return [view for view in views if view.kind == "bench" and view.request]


def _show(summary: DatasetSummary, _names: Collection[str]) -> None:
    """Draw what starts a benchmark, and the table of one that people choose."""
    views = {view.id: view for view in _benchmarks()}
    with st.expander("New benchmark", expanded=not views, icon=":material/add_chart:"):
        _ask(summary)
    if not views:
        return
    # By its id: a view that the box kept would be that of the job as it was.
    job_id = st.selectbox(
        "Benchmark", list(views), format_func=lambda job_id: _title(views[job_id]), key="bench-job"
    )
    view = views[job_id]
    if not view.is_over:
        st.fragment(_watch, run_every=EVERY)(view.id)
        return
    assert view.request is not None
    try:
        table = read_table(Path(view.request["output"]))
    except UsageError as error:
        if view.error:
            st.error(plain(view.error), icon=":material/error:")
        else:
            st.info(f"{plain(str(error))}: it was stopped, or is on another machine.")
        return
    for result_table in table.results:
        if result_table.rows:
            show_table(result_table.without("max_iou", "p", zeros=True), whole=result_table)


def _ask(summary: DatasetSummary) -> None:
    """Ask for detectors and datasets, and start them as a job."""
    left, right = st.columns(2)
    usable = {
        name: entry
        for name, entry in installed().items()
        if isinstance(entry, DetectorEntry) and not entry.required
    }
    with left:
        names = st.multiselect("Detectors", list(usable), ["offline"], key="bench-detectors")
    known = {one.name: one for one in datasets_with(Permission.EXPORT, versions=True)}
    labelled = [
        name
        for name, one in known.items()
        if one.names_of(AnnotatorKind.GOLD, AnnotatorKind.PERSON)
    ]
    chosen: list[str] = []
    with right:
        if labelled:
            chosen = st.multiselect(
                "Datasets",
                labelled,
                [summary.name] if summary.name in labelled else [],
                key=f"bench-datasets-{summary.name}",
                help="With gold labels, which are the reference; else the majority of people is.",
            )
        else:
            st.info("No dataset has gold labels or reviews yet, which are the reference.")
    asking = [name for name in names if asks_models(name)]
    models: dict[str, Any] = {}
    if asking:
        models = ask_model(asking)
        costs = ", ".join(f"{name} {typical_cost(usable[name])}" for name in asking)
        st.caption(plain(f"Cost per answer: {costs}; baselines run each detector twice more."))
    with start_bar(border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        limit = st.number_input("Items per dataset", 1, None, 100, key="bench-items", width=200)
        is_pressed = pressed("Start", type="primary", icon=_PLAY, key="start-bench")
    if is_pressed:
        with errors_shown("Nothing was started."):
            if not (names and chosen):
                raise UsageError("choose a detector and a dataset")
            systems = specifications(DetectorSelection.checked({"detectors": names, **models}))
            output = Settings.read().home / "bench" / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
            fields = write_datasets(store(), chosen, output)
            rows = [BenchSystem(name=spec.signs, detector=spec) for spec in systems]
            plan = make_plan({**fields, "systems": rows, "output": output, "limit": limit})
            Jobs(actor=actor()).submit(plan)
            st.session_state.pop("bench-job", None)  # the newest is shown
            st.rerun()


def _watch(job_id: str) -> None:
    """Draw how far a benchmark is; its table once it is there."""
    with errors_shown():
        view = Jobs(actor=actor()).find(job_id)
        if view.is_over:
            st.rerun()
        job_head(view)
        job_actions(view, "compare")


def _title(view: JobView) -> str:
    return f"{view.title}, {view.created:%-d %B %Y, %H:%M} ({view.id})"


PANEL = Panel("Bench", 80, _show, is_there=_is_there)
