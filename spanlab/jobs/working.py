"""Working on a job in the command's own process, until it is over or Ctrl+C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import typer

from spanlab import jobs
from spanlab.base.errors import UnderWayError, UsageError
from spanlab.base.settings import Settings
from spanlab.cli import console
from spanlab.jobs import JobState, JobView
from spanlab.output.figures import counted
from spanlab.output.wording import usage_in_words

_NAME = "command"
_INTERRUPTED = 130  # the exit status of a command that Ctrl+C ended


def begin(submit: Callable[[], str], queue: str) -> str:
    """Queue a job here, or in its place one that does the same and waits for a worker.

    Args:
        submit: queues it.
        queue: this process's.

    Returns:
        The job's id.

    Raises:
        UnderWayError: somebody works on one that does the same.
    """
    from spanlab.jobs import control, job_store

    try:
        return submit()
    except UnderWayError as error:
        view = jobs.job(error.job_id)
        if view.state is JobState.QUEUED:
            with suppress(UsageError):  # it waits for a process that has its key
                control.requeue(job_store.shared_job_store(None), view.id, queue, queue)
                console.say(f"continuing job {view.id}, which asks for the same and has waited")
                return view.id
        raise UnderWayError(f"{error}; --again starts it once more", error.job_id) from None


def take_up(job_id: str, requeue: Callable[[str], str], settings: Settings) -> None:
    """Let this process do a job that exists; ``requeue`` puts it into the queue that it gets."""
    total = jobs.job(job_id, settings).progress.total
    with at_work(settings, processes=0) as queue:
        view = follow(requeue(queue), settings, total or None)
    console.say(f"{view.title}: {view.progress.done:,} of {view.progress.total:,} items")
    sum_up(view)


@contextmanager
def at_work(settings: Settings, *, processes: int) -> Iterator[str]:
    """Be a worker for the jobs in the queue that is yielded, and no others."""
    from spanlab.jobs import worker

    role = worker.WorkerRole(_NAME, alone=True, processes=processes)
    me = worker.start(settings, role)
    try:
        yield me.jobs_queue
    finally:
        worker.stop()


def follow(
    job_id: str,
    settings: Settings,
    total: int | None,
    *,
    task: str = "annotating",
    unit: str = "items",
) -> JobView:
    """Show how far a job is until it is over; Ctrl+C pauses it and says how to go on."""
    try:
        with console.bar(task, unit=unit, total=total) as advance:
            view = jobs.wait(
                job_id, settings=settings, on_progress=lambda view: advance(view.progress.done)
            )
    except KeyboardInterrupt:
        console.say("stopping after the calls under way (Ctrl+C again: at once)")
        jobs.pause(job_id, settings)
        console.say(f"paused; continue with: spanlab jobs resume {job_id}")
        raise typer.Exit(_INTERRUPTED) from None
    return view


def sum_up(view: JobView) -> None:
    """Say what a job came to, and exit with 1 if it is not done, else as failures say."""
    if used := usage_in_words(view.progress.usage):
        console.say(used)
    if view.progress.failed:
        failed = counted(view.progress.failed, "item")
        console.say(f"{failed} failed: spanlab jobs show {view.id}")
    if view.progress.stopped:
        console.say(f"stopped early: {view.progress.stopped}")
    if view.error is not None:
        console.say(f"the job failed: {view.error}")
    if view.state is not JobState.DONE:
        verb = "resume" if view.state is JobState.PAUSED else "retry"
        console.say(f"job {view.id} is {view.state.value}; then: spanlab jobs {verb} {view.id}")
        raise typer.Exit(1)
    if view.is_all_failed:
        raise typer.Exit(1)
    if view.progress.failed or view.progress.stopped is not None:
        raise typer.Exit(3)
