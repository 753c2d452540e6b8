"""Jobs as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from spanlab.cli.tables import aligned
from spanlab.jobs.summary import progress_in_words, summary_of
from spanlab.workflows.wording import usage_in_words

if TYPE_CHECKING:
    from spanlab.jobs import JobView

_FAILURES = 20  # that `jobs show` names


def listed(jobs: Sequence[JobView]) -> str:
    """Return jobs as a table, one line each."""
    if not jobs:
        return "no jobs: spanlab annotate DATASET --detector NAME makes one"
    rows = [["job", "state", "done", "failed", "cost", "left", "created", "what", "model"]]
    for job in jobs:
        row = summary_of(job)
        what = job.title if job.error is None else f"{job.title}: {job.error}"
        state = job.state.value
        cells = [job.id, state, row.done, row.failed, row.cost, row.left, row.created]
        rows.append([*cells, what, row.models])
    lines = aligned(rows, left=len(rows[0])).split("\n")
    colours = [None, *(_colour(job) for job in jobs)]
    return "\n".join(
        typer.style(line, fg=colour) if colour else line
        for line, colour in zip(lines, colours, strict=True)
    )


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
        f"done: {progress_in_words(job)}",
        *([f"models: {', '.join(job.models)}"] if job.models else []),
        f"created: {_when(job.created)}",
    ]
    if job.error is not None:
        lines.append(f"error: {job.error}")
    if used := usage_in_words(progress.usage):
        lines.append(f"usage: {used}")
    lines += [f"failed: {f.item_id} ({f.detector}): {f.reason}" for f in job.failures[:_FAILURES]]
    if len(job.failures) > _FAILURES:
        lines.append(f"… and {len(job.failures) - _FAILURES:,} more")
    lines += [f"{_when(line.at)}  {line.text}" for line in job.log]
    return "\n".join(lines)


def _when(time: datetime) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M:%S")
