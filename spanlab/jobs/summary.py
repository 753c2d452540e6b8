"""What a job comes to, in the words that pages and commands share."""

from __future__ import annotations

from dataclasses import dataclass

from spanlab.jobs.views import JobState, JobView
from spanlab.results import counted, duration, rate_in_words
from spanlab.workflows.wording import cost_in_words

_NOUNS = {"detect": "item", "optimise": "evaluation"}
_STATES = {
    JobState.QUEUED: "Queued",
    JobState.RUNNING: "Running",
    JobState.PAUSED: "Paused",
    JobState.DONE: "Done",
    JobState.FAILED: "Failed",
    JobState.CANCELLED: "Cancelled",
}


@dataclass(frozen=True)
class JobSummary:
    """A job as a row of a table; texts are empty where there is nothing to say."""

    created: str
    state: str
    models: str
    done: str
    failed: str
    cost: str
    left: str


def summary_of(view: JobView) -> JobSummary:
    """Return a job as a row of a table."""
    progress, used = view.progress, view.progress.usage
    share = progress.failed / progress.done if progress.done else 0.0
    return JobSummary(
        created=f"{view.created.astimezone():%Y-%m-%d %H:%M}",
        state=state_in_words(view),
        models=", ".join(view.models),
        done=f"{progress.done:,} of {progress.total:,}" if progress.total else "",
        failed=f"{progress.failed:,} ({_percent(share)})" if progress.failed else "",
        cost=cost_in_words(used) if used.calls or used.searches else "",
        left="" if progress.remaining is None else duration(progress.remaining),
    )


def state_in_words(view: JobView) -> str:
    """Return the state of a job; of one that is done with the number of items that failed."""
    failed = view.progress.failed
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
    parts = [f"{progress.done:,} of {counted(progress.total, _NOUNS[view.kind])}"]
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
