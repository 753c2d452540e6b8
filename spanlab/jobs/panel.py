"""Widgets that show a job, on the page Jobs and on others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from spanlab.base.errors import SpanlabError
from spanlab.jobs import Jobs, JobState, JobView
from spanlab.jobs.summary import progress_in_words, state_in_words
from spanlab.output.figures import counted
from spanlab.output.wording import usage_in_words
from spanlab.people.panel import link_to_item
from spanlab.schema import DatasetSummary, Permission
from spanlab.schema.progress import FailedItem
from spanlab.ui.common import actor, page_link, plain
from spanlab.ui.messages import in_page_sentence, share, show_error

EVERY = 1.0  # seconds between two looks at a job that goes on
_ERROR = "spanlab.job-error"
_CHANGED = "spanlab.job-changed"
_ITEMS = 5  # failed items of one reason that are named
_REASONS = 20
_LOG = 30
_LOOK_BACK = 40  # jobs among which a dataset's latest one is looked for


@dataclass(frozen=True)
class _Badge:
    icon: str
    colour: Literal["gray", "blue", "orange", "green", "red"]


_BADGES = {
    JobState.QUEUED: _Badge(":material/schedule:", "gray"),
    JobState.RUNNING: _Badge(":material/play_arrow:", "blue"),
    JobState.PAUSED: _Badge(":material/pause:", "orange"),
    JobState.DONE: _Badge(":material/check:", "green"),
    JobState.FAILED: _Badge(":material/error:", "red"),
    JobState.CANCELLED: _Badge(":material/block:", "gray"),
}
_SOME_FAILED = _Badge(":material/warning:", "orange")


@dataclass(frozen=True)
class _Button:
    label: str
    icon: str
    act: Callable[[Jobs, str], object]


_PAUSE = _Button("Pause", ":material/pause:", Jobs.pause)
_RESUME = _Button("Resume", ":material/play_arrow:", Jobs.resume)
_CANCEL = _Button("Cancel", ":material/stop:", Jobs.cancel)
_RETRY = _Button("Retry", ":material/replay:", Jobs.retry)
_BUTTONS: Mapping[JobState, Sequence[_Button]] = {
    JobState.QUEUED: (_PAUSE, _CANCEL),
    JobState.RUNNING: (_PAUSE, _CANCEL),
    JobState.PAUSED: (_RESUME, _CANCEL),
    JobState.CANCELLED: (_RESUME,),
    JobState.DONE: (),
    JobState.FAILED: (_RETRY,),
}


def job_head(view: JobView) -> None:
    """Draw a job's title and state, and what ``job_progress`` draws."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(view.title)}**", width="content")
        job_badge(view)
    job_progress(view)


def job_badge(view: JobView) -> None:
    """Draw a job's state; done is amber if some items failed, and red if all did."""
    badge = _BADGES[JobState.FAILED if view.is_all_failed else view.state]
    if view.state is JobState.DONE and view.progress.failed and not view.is_all_failed:
        badge = _SOME_FAILED
    st.badge(state_in_words(view), icon=badge.icon, color=badge.colour)


def job_progress(view: JobView) -> None:
    """Draw how far a job is, what it has used, and why it ended."""
    st.progress(_share(view), text=plain(progress_in_words(view)))
    used = usage_in_words(view.progress.usage)
    if used:
        st.caption(plain(used))
    if view.error:
        st.error(in_page_sentence(view.error), icon=":material/error:")
    if view.progress.stopped and view.state is not JobState.RUNNING:
        st.warning(f"Stopped early: {plain(view.progress.stopped)}", icon=":material/info:")


def job_actions(view: JobView, key: str, *extra: Callable[[], None]) -> None:
    """Draw the buttons of a job in a line.

    Args:
        view: the job.
        key: the page; its buttons' keys begin with it, and all but Jobs lead to that.
        extra: draw more into the same line.
    """
    buttons = list(_BUTTONS[view.state])
    if view.state is JobState.DONE and (view.progress.failed or view.progress.stopped):
        buttons.append(_RETRY)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for button in buttons:
            st.button(
                button.label,
                icon=button.icon,
                key=f"{key}-{button.label}-{view.id}",
                on_click=_act_on_job,
                args=(button.act, view.id),
            )
        for draw in extra:
            draw()
        if key != "jobs":
            page_link("jobs", "All jobs", icon=":material/work_history:")
    error = st.session_state.pop(_ERROR, None)
    if error is not None:
        show_error(error)


def job_failures(view: JobView, dataset: str | None) -> None:
    """Draw what failed, by reason, the most frequent one first.

    Args:
        view: one job, with its failures.
        dataset: where the items are; None if that is not known or it is gone.
    """
    if not view.failures:
        return
    groups: dict[str, list[FailedItem]] = {}
    for failure in view.failures:
        groups.setdefault(failure.reason, []).append(failure)
    ordered = sorted(groups.items(), key=lambda pair: -len(pair[1]))
    shown = len(view.failures)
    st.markdown(f"**{counted(shown, 'failure')}{' (the newest)' if shown >= 200 else ''}**")
    for reason, failures in ordered[:_REASONS]:
        _draw_failures(reason, failures, dataset)
    if len(ordered) > _REASONS:
        st.caption(f"{len(ordered) - _REASONS} more reasons")


def job_log(view: JobView) -> None:
    """Draw what workers noted on a job, the newest last."""
    if view.log:
        lines = [f"{line.at.astimezone():%H:%M:%S}  {line.text}" for line in view.log[-_LOG:]]
        st.code("\n".join(lines), language=None, wrap_lines=True)


def job_changed() -> bool:
    """Say whether a button has changed a job since this was last asked."""
    return bool(st.session_state.pop(_CHANGED, False))


def dataset_of(view: JobView, summaries: Iterable[DatasetSummary]) -> str | None:
    """Return the dataset that a job works on; None if that does not exist any more."""
    names = [summary.name for summary in summaries if view.title.endswith(f" on {summary.name}")]
    return max(names, key=len, default=None)


def latest_job(kind: str, dataset: str, summaries: Iterable[DatasetSummary]) -> JobView | None:
    """Return a dataset's newest job of a kind that goes on, else its newest one, if any."""
    return latest_jobs(kind, summaries).get(dataset)


def latest_jobs(kind: str, summaries: Iterable[DatasetSummary]) -> dict[str, JobView]:
    """Return what ``latest_job`` does for every dataset that has a job of this kind."""
    if not actor().may(Permission.ADMINISTER):
        return {}
    datasets = list(summaries)
    try:
        recent = Jobs(actor=actor()).list(_LOOK_BACK)
    except SpanlabError as error:
        show_error(error)
        return {}
    latest: dict[str, JobView] = {}
    for view in recent:
        dataset = dataset_of(view, datasets) if view.kind == kind else None
        if dataset is not None and (dataset not in latest or _goes_on(view, latest[dataset])):
            latest[dataset] = view
    return latest


def _goes_on(view: JobView, newer: JobView) -> bool:
    return newer.is_over and not view.is_over


def _share(view: JobView) -> float:
    if view.state is JobState.DONE and not view.progress.stopped:
        return 1.0
    return share(view.progress.done, view.progress.total)


def _draw_failures(reason: str, failures: Sequence[FailedItem], dataset: str | None) -> None:
    detectors = ", ".join(sorted({failure.detector for failure in failures}))
    with st.container(gap="small"):
        st.markdown(f"{len(failures):,} × {plain(reason)}")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(plain(detectors), width="content")
            ids = list(dict.fromkeys(failure.item_id for failure in failures))
            for item in ids[:_ITEMS]:
                if dataset is None:
                    st.caption(plain(item), width="content")
                else:
                    link_to_item(dataset, item, item)
            if len(ids) > _ITEMS:
                st.caption(f"and {len(ids) - _ITEMS:,} more", width="content")


def _act_on_job(act: Callable[[Jobs, str], object], job_id: str) -> None:
    st.session_state[_CHANGED] = True
    try:
        act(Jobs(actor=actor()), job_id)
    except SpanlabError as error:
        st.session_state[_ERROR] = error


_WATCHED = "spanlab.jobs.watched"
_STARTED = "spanlab.jobs.started"


def watch(job_id: str, *, over: bool = False) -> None:
    """Remember a job that was started or is running; ``over`` forgets it."""
    watched: set[str] = st.session_state.setdefault(_WATCHED, set())
    if over:
        watched.discard(job_id)
    else:
        watched.add(job_id)


def is_watched(job_id: str) -> bool:
    """Return whether the end of a job is still to be announced."""
    return job_id in st.session_state.get(_WATCHED, ())


def start_here(job_id: str) -> None:
    """Remember a job whose button was pressed on this page, so that it is shown beside it."""
    st.session_state[_STARTED] = job_id


def is_started_here(job_id: str) -> bool:
    """Return whether a job's button was the last one that was pressed in this session."""
    return bool(st.session_state.get(_STARTED) == job_id)
