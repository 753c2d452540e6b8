"""The Detect page: choose detectors, see the estimate, start them, follow their progress."""

from __future__ import annotations

from math import ceil
from typing import Any

import streamlit as st

from spanlab.detection.earlier import other_settings
from spanlab.detection.entry import asks_models
from spanlab.detection.estimate import RunEstimate, estimate
from spanlab.detection.fit_panel import draw_fit, draw_marked_remarks
from spanlab.detection.fits import learns
from spanlab.detection.form import run_form, start_job
from spanlab.detection.models_panel import environment
from spanlab.detection.request import RunOptions, RunRequest, request_with_options
from spanlab.detection.specifications import remarks_on
from spanlab.jobs import Jobs, JobView
from spanlab.jobs.panel import (
    EVERY,
    is_started_here,
    job_actions,
    job_changed,
    job_failures,
    job_head,
    latest_job,
    start_here,
)
from spanlab.output.figures import counted, money
from spanlab.schema import DatasetSummary, Permission
from spanlab.storage.datasets import has_item
from spanlab.ui.common import (
    actor,
    choose_dataset,
    datasets_for,
    link,
    plain,
    start_bar,
    store,
    title,
)
from spanlab.ui.messages import errors_shown, show_news
from spanlab.ui.session import pressed

_ESTIMATE = "spanlab.detect.estimate"
_STARTED = "spanlab.detect.started"  # how many runs, in this session
_TRIED = 3  # items, before a full run


def page() -> None:
    """Draw the page."""
    place = title("Detect")
    summaries = datasets_for("run detectors on", Permission.ADMINISTER)
    if not summaries:
        return
    summary = choose_dataset(summaries, place)
    show_news()
    latest = latest_job("detect", summary.name, summaries.values())
    # What was started here is beside its button; earlier jobs are what people come to see.
    started = latest if latest is not None and is_started_here(latest.id) else None
    if latest is not None and started is None:
        _draw_latest_job(latest, summary.name, border=True)
    filled = run_form()
    for name in filter(learns, filled["detectors"]):
        draw_fit(summary, name)
    item = _ask_only_item(summary)
    with start_bar():
        _draw_start(summary, {**filled, "items": (item,) if item else ()}, started)


def _ask_only_item(summary: DatasetSummary) -> str | None:
    """Ask whether to do nothing but the item that the address names, as Review's link does."""
    item = st.query_params.get("item")
    if item is None or not has_item(store(), summary.name, item):
        return None
    only = st.checkbox(
        f"Only the item “{plain(item)}”, also if it is finished",
        value=True,
        key=f"only-{summary.name}-{item}",
        help="The detectors' earlier annotations of it are replaced. They also read the passages "
        "that were added by hand.",
    )
    return item if only else None


def _draw_latest_job(view: JobView, dataset: str, *, border: bool) -> None:
    with st.container(border=border):
        every = None if view.is_over else EVERY
        st.fragment(_draw_job, run_every=every)(view.id, dataset, view.is_over)


def _draw_job(job_id: str, dataset: str, was_over: bool) -> None:
    """Draw how far a job is; when it ends, the counts of the page are drawn again as well."""
    with errors_shown():
        view = Jobs(actor=actor()).find(job_id)
        if job_changed() or (view.is_over and not was_over):
            st.rerun()
        job_head(view)

        def onward() -> None:
            if view.progress.done:
                link("review", "Review the spans", icon=":material/edit_note:", dataset=dataset)

        job_actions(view, "detect", onward)
        if view.is_over and view.request is not None:
            draw_marked_remarks(dataset, RunRequest.model_validate(view.request).annotators)
        job_failures(view, dataset)


def _draw_start(
    summary: DatasetSummary,
    filled: dict[str, Any],
    started: JobView | None,
) -> None:
    """Draw the run's estimate, what was started here, and the button that starts a run."""
    request = expected = None
    if not filled["detectors"]:
        st.markdown("Choose a detector to see what a run costs.")
    elif any(map(asks_models, filled["detectors"])) and environment().problem:
        st.markdown("Choose a model above to see the cost, and to start.")
    else:
        with errors_shown():
            request = request_with_options(store(), summary.name, RunOptions.checked(filled))
            expected = _estimate_once(summary, request)
            if not expected.items and _ask_anew(summary, request):
                request = request.model_copy(update={"again": True})
                expected = _estimate_once(summary, request)
            _show(expected)
            for remark in remarks_on(request.specs):
                st.info(plain(remark), icon=":material/travel_explore:")
    if started is not None:
        _draw_latest_job(started, summary.name, border=False)
    ready = request is not None and expected is not None and expected.items > 0
    with st.container(horizontal=True, vertical_alignment="center"):
        all_of_them = pressed(
            "Start",
            of=summary.name,
            type="primary" if started is None or started.is_over else "secondary",
            icon=":material/play_arrow:",
            disabled=not ready,
            key="start-run",
        )
        try_first = pressed(
            f"Try on {_TRIED} items",
            of=summary.name,
            icon=":material/science:",
            disabled=not ready,
            key="try-run",
            help="Preview on the next items. A full run skips them.",
        )
    if request is not None:
        submitted_request = request.model_copy(update={"limit": _TRIED}) if try_first else request

        def submit(again: bool) -> None:
            start_here(Jobs(actor=actor()).submit(submitted_request, again=again))
            st.session_state[_STARTED] = st.session_state.get(_STARTED, 0) + 1

        start_job(request.model_dump_json(), submit if all_of_them or try_first else None)


def _ask_anew(summary: DatasetSummary, request: RunRequest) -> bool:
    """Say that all is done, with which other settings if so, and ask whether to do it again."""
    st.markdown("Nothing is left to do: these detectors have finished every item.")
    for run in other_settings(request, summary.created, actor=actor()):
        changed = "; ".join(run.differences)
        st.info(
            f"{plain(run.annotator)} was last run here with other settings: now "
            f"{plain(changed)} (job {run.job_id}, {run.at.astimezone():%Y-%m-%d %H:%M}).",
            icon=":material/tune:",
        )
    return st.checkbox(
        "Rerun on all items",
        key=f"anew-{summary.name}-{st.session_state.get(_STARTED, 0)}",
        help="The detectors' earlier annotations are replaced. Replies in the cache cost nothing "
        "again.",
    )


def _estimate_once(summary: DatasetSummary, request: RunRequest) -> RunEstimate:
    """Return a request's estimate; computed once for the same request and counts."""
    key = (request.model_dump_json(), repr(summary))
    kept_estimate = st.session_state.get(_ESTIMATE)
    if kept_estimate is None or kept_estimate[0] != key:
        kept_estimate = st.session_state[_ESTIMATE] = (key, estimate(store(), request))
    run_estimate: RunEstimate = kept_estimate[1]
    return run_estimate


def _show(expected: RunEstimate) -> None:
    if not expected.items:
        return
    if not expected.calls:
        st.markdown(f"{counted(expected.items, 'item')} to do, without any model call.")
        return
    cost = "—" if expected.cost is None else f"\\{money(expected.cost, up=True)}"
    figures = {
        "Items to do": f"{expected.items:,}",
        "Calls at most": f"{expected.calls:,}",
        "Searches at most": f"{expected.searches:,}",
        "Tokens in at most": shorten(expected.input_tokens),
        "Tokens out at most": shorten(expected.output_tokens),
        "Cost at most": cost,
    }
    if not expected.searches:
        del figures["Searches at most"]
    for column, (label, value) in zip(st.columns(len(figures)), figures.items(), strict=True):
        column.metric(label, value)
    notes = []
    if expected.sampled < expected.items:
        notes.append(f"estimated from {expected.sampled} of the items")
    if expected.unpriced:
        notes.append(f"no price is known for {', '.join(expected.unpriced)}")
    notes.append("replies in the cache cost nothing again")
    st.caption(plain(f"An estimate: {'; '.join(notes)}."))


def shorten(number: int) -> str:
    """Return ``950``, ``12.3 k``, ``4.5 M``: an upper bound is rounded up."""
    if number < 10_000:
        return f"{number:,}"
    if number < 100_000:
        return f"{ceil(number / 100) / 10:,.1f} k"
    if number < 1_000_000:
        return f"{ceil(number / 1000):,} k"
    return f"{ceil(number / 100_000) / 10:,.1f} M"
