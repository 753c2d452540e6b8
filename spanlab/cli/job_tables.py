"""Jobs, and what model calls came to, as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from spanlab.cli.tables import aligned
from spanlab.lm import Usage
from spanlab.workflows.wording import duration

if TYPE_CHECKING:
    from spanlab.jobs import JobView

_FAILURES = 20  # that `jobs show` names


def usage_text(usage: Usage) -> str:
    """Return what model calls came to, in one line."""
    cached = f" ({usage.cached_tokens:,} of them cached)" if usage.cached_tokens else ""
    cost = "cost unknown: no price is set" if usage.cost is None else f"${usage.cost:,.4f}"
    if usage.uncounted:
        cost += f" (counted here for {usage.uncounted:,} calls: the endpoint gave no usage)"
    again = f" and {usage.from_cache:,} answers kept from before" if usage.from_cache else ""
    return (
        f"{usage.calls:,} model calls{again}, {usage.input_tokens:,} tokens in{cached}, "
        f"{usage.output_tokens:,} out, {cost}"
    )


def listed(jobs: Sequence[JobView]) -> str:
    """Return jobs as a table, one line each."""
    if not jobs:
        return "no jobs: spanlab annotate DATASET --detector NAME makes one"
    rows = [["job", "state", "done", "left", "created", "what"]]
    rows += [
        [
            job.id,
            _state(job),
            f"{job.progress.done:,} of {job.progress.total:,}",
            "" if job.progress.remaining is None else duration(job.progress.remaining),
            _when(job.created),
            job.title if job.error is None else f"{job.title}: {job.error}",
        ]
        for job in jobs
    ]
    lines = aligned(rows, left=len(rows[0])).split("\n")
    colours = [None, *(_colour(job) for job in jobs)]
    return "\n".join(
        typer.style(line, fg=colour) if colour else line
        for line, colour in zip(lines, colours, strict=True)
    )


def _state(job: JobView) -> str:
    failed = f", {job.progress.failed:,} failed" if job.progress.failed else ""
    return f"{job.state.value}{failed}"


def _colour(job: JobView) -> str | None:
    """Return red for a job that failed, yellow for one that is done but for some items."""
    if job.state.value == "failed":
        return typer.colors.RED
    return typer.colors.YELLOW if job.state.value == "done" and job.progress.failed else None


def shown(job: JobView) -> str:
    """Return all details of one job."""
    progress = job.progress
    lines = [
        f"{job.id}  {job.title}",
        f"state: {job.state.value}" + (f" ({progress.stopped})" if progress.stopped else ""),
        f"items: {progress.done:,} of {progress.total:,}, {progress.failed:,} failed",
        f"created: {_when(job.created)}",
    ]
    if job.error is not None:
        lines.append(f"error: {job.error}")
    if progress.rate > 0:
        left = "" if progress.remaining is None else f", {duration(progress.remaining)} left"
        lines.append(f"rate: {progress.rate:.1f} items/s{left}")
    if progress.usage != Usage():
        lines.append(f"usage: {usage_text(progress.usage)}")
    lines += [f"failed: {f.item_id} ({f.detector}): {f.reason}" for f in job.failures[:_FAILURES]]
    if len(job.failures) > _FAILURES:
        lines.append(f"… and {len(job.failures) - _FAILURES:,} more")
    lines += [f"{_when(line.at)}  {line.text}" for line in job.log]
    return "\n".join(lines)


def _when(time: datetime) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M:%S")
