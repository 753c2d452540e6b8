"""Jobs as tables and sentences, the same for pages and commands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from spanlab.jobs.views import JobState, JobView, described
from spanlab.output.figures import counted, duration, rate_in_words
from spanlab.output.tables import ResultTable, columns_of, fact_table
from spanlab.output.wording import cost_in_words, usage_in_words

_FAILURES = 20  # that are named
_FIGURES = ("Done", "Failed", "Cost", "Remaining", "Created")
_STATES = {
    JobState.QUEUED: "Queued",
    JobState.RUNNING: "Running",
    JobState.PAUSED: "Paused",
    JobState.DONE: "Done",
    JobState.FAILED: "Failed",
    JobState.CANCELLED: "Cancelled",
}


def summary_of(view: JobView) -> dict[str, str]:
    """Return a job as a row of a table, by column; texts are empty where nothing is to be said."""
    progress, used = view.progress, view.progress.usage
    share = progress.failed / progress.done if progress.done else 0.0
    kind = "" if view.kind == "detect" else f"{described(view.kind).title}: "
    return {
        "Status": state_in_words(view),
        "Job": f"{kind}{view.title}",
        "Created": f"{view.created.astimezone():%Y-%m-%d %H:%M}",
        "Model": ", ".join(view.models),
        "Done": f"{progress.done:,} of {progress.total:,}" if progress.total else "",
        "Failed": f"{progress.failed:,} ({_percent(share)})" if progress.failed else "",
        "Cost": cost_in_words(used) if used.calls or used.searches else "",
        "Remaining": "" if progress.remaining is None else duration(progress.remaining),
    }


def job_table(jobs: Sequence[JobView]) -> ResultTable:
    """Return jobs as a table, one line each; what failed is red, what failed in part yellow."""
    rows = []
    for job in jobs:
        row = summary_of(job)
        title = job.title if job.error is None else f"{job.title}: {job.error}"
        figures = (row[name] or None for name in _FIGURES)
        rows.append((job.id, job.state.value, *figures, title, row["Model"] or None))
    return ResultTable(
        key="jobs",
        title="",
        columns=(
            *columns_of("text", "Job", "Status", *_FIGURES),
            *columns_of("text", "What", "Model"),
        ),
        rows=tuple(rows),
        empty="no jobs: spanlab annotate DATASET --detector NAME makes one",
        tones=tuple(map(_tone, jobs)),
    )


def _tone(job: JobView) -> Literal["", "red", "yellow"]:
    if job.state is JobState.FAILED or job.is_all_failed:
        return "red"
    return "yellow" if job.state is JobState.DONE and job.progress.failed else ""


def job_tables(job: JobView) -> tuple[ResultTable, ...]:
    """Return how far a job is, what failed of it, and its log."""
    progress = job.progress
    stopped = f" ({progress.stopped})" if progress.stopped else ""
    facts = {
        "state": f"{job.state.value}{stopped}",
        "done": progress_in_words(job),
        "models": ", ".join(job.models),
        "created": _moment(job.created),
        "error": job.error or "",
        "usage": usage_in_words(progress.usage),
    }
    shown = {name: fact for name, fact in facts.items() if fact}
    unnamed = len(job.failures) - _FAILURES
    failures = ResultTable(
        key="failures",
        title="Failed",
        columns=tuple(columns_of("text", "Item", "Detector", "Reason")),
        rows=tuple(
            (failure.item_id, failure.detector, failure.reason)
            for failure in job.failures[:_FAILURES]
        ),
        remarks=(f"… and {unnamed:,} more",) if unnamed > 0 else (),
    )
    log = fact_table("log", "Log", {})
    log = log.model_copy(update={"rows": tuple((_moment(line.at), line.text) for line in job.log)})
    facts_table = fact_table("job", f"{job.id}  {job.title}", shown)
    return (facts_table, *(table for table in (failures, log) if table.rows))


def _moment(time: datetime) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def state_in_words(view: JobView) -> str:
    """Return the state of a job; of one that is done with the number of items that failed."""
    failed = view.progress.failed
    if view.is_all_failed:
        return f"Failed on all {counted(view.progress.done, 'item')}"
    if view.state is JobState.DONE and failed:
        return f"Done, {failed:,} failed"
    return _STATES[view.state]


def progress_in_words(view: JobView) -> str:
    """Say how far a job is: items, failures, rate and the time left."""
    progress = view.progress
    if view.state is JobState.QUEUED and not progress.total:
        return "Waits for a worker"
    if not progress.total:
        return "Nothing to do" if view.is_over else "Begins"
    parts = [f"{progress.done:,} of {counted(progress.total, described(view.kind).noun)}"]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if view.state is JobState.RUNNING and progress.rate > 0:
        parts.append(rate_in_words(progress.rate))
    if view.state is JobState.RUNNING and progress.remaining is not None:
        parts.append(f"{duration(progress.remaining)} left")
    if view.is_over and view.started and view.ended:
        parts.append(f"took {duration((view.ended - view.started).total_seconds())}")
    return " · ".join(parts)


def _percent(share: float) -> str:
    return "< 1 %" if 0 < share < 0.01 else f"{share:.0%}".replace("%", " %")
