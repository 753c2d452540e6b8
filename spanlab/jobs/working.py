"""Working on a job in the command's own process, until it is over or Ctrl+C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import typer

from spanlab.base.errors import UnderWayError, UsageError
from spanlab.base.settings import Settings
from spanlab.cli import console
from spanlab.jobs import Jobs, JobState, JobView
from spanlab.jobs.views import described
from spanlab.output.figures import counted
from spanlab.output.wording import usage_in_words
from spanlab.schema.job_request import JobRequest

AGAIN = "; --again starts it once more"  # said where a job under way does the same
_NAME = "command"
_INTERRUPTED = 130  # the exit status of a command that Ctrl+C ended


def run_here(
    request: JobRequest,
    total: int | None,
    *,
    task: str = "annotating",
    again: bool | None = None,
    processes: int = 0,
) -> JobView:
    """Do a request as a job in this process, or one that does the same and waits for a worker.

    Args:
        request: what to do.
        total: how many items or the like it comes to; None if nobody knows.
        task: what is being done, for the bar.
        again: whether to start it also if a job under way does the same; None where nobody is
            asked that.
        processes: for detectors that ask no model; 0 takes a thread.

    Returns:
        The job once it is over; Ctrl+C pauses it and says how to go on.

    Raises:
        UnderWayError: somebody works on one that does the same, and ``again`` is not set.
    """
    settings = Settings.read()
    jobs = Jobs(settings)
    with _at_work(settings, processes) as queue:
        try:
            job_id = jobs.submit(request, queue, again=bool(again))
        except UnderWayError as error:
            job_id = _waiting(jobs, error, queue, "" if again is None else AGAIN)
        return _follow(jobs, job_id, total, task, request.kind)


def take_up(job_id: str, act: Callable[[Jobs, str, str], str]) -> None:
    """Resume or retry a job in this process: ``act`` puts it into the queue that it gets."""
    settings = Settings.read()
    jobs = Jobs(settings)
    view = jobs.find(job_id)
    with _at_work(settings) as queue:
        job_id, total = act(jobs, job_id, queue), view.progress.total or None
        view = _follow(jobs, job_id, total, "working", view.kind)
    done, noun = f"{view.progress.done:,}", described(view.kind).noun
    console.say(f"{view.title}: {done} of {counted(view.progress.total, noun)}")
    sum_up(view)


def _waiting(jobs: Jobs, error: UnderWayError, queue: str, hint: str) -> str:
    """Take up the job that does the same if it waits for a worker, and return its id."""
    view = jobs.find(error.job_id)
    if view.state is JobState.QUEUED:
        with suppress(UsageError):  # it waits for a process that has its key
            jobs.resume(view.id, queue)
            console.say(f"continuing job {view.id}, which asks for the same and has waited")
            return view.id
    raise UnderWayError(f"{error}{hint}", error.job_id) from None


@contextmanager
def _at_work(settings: Settings, processes: int = 0) -> Iterator[str]:
    """Be a worker for the jobs in the queue that is yielded, and no others."""
    from spanlab.jobs import worker

    role = worker.WorkerRole(_NAME, alone=True, processes=processes)
    me = worker.start(settings, role)
    try:
        yield me.jobs_queue
    finally:
        worker.stop()


def _follow(jobs: Jobs, job_id: str, total: int | None, task: str, kind: str) -> JobView:
    try:
        with console.bar(task, unit=f"{described(kind).noun}s", total=total) as advance:
            return jobs.store.wait(job_id, on_progress=lambda view: advance(view.progress.done))
    except KeyboardInterrupt:
        console.say("stopping after the calls under way (Ctrl+C again: at once)")
        jobs.pause(job_id)
        console.say(f"paused; continue with: spanlab jobs resume {job_id}")
        raise typer.Exit(_INTERRUPTED) from None


def sum_up(view: JobView) -> None:
    """Say what a job came to, and exit with 1 if it is not done, else as failures say.

    A budget that has ended it, or without which it is not done, comes to 3 all the same.
    """
    if used := usage_in_words(view.progress.usage):
        console.say(used)
    if view.progress.failed:
        failed = counted(view.progress.failed, described(view.kind).noun)
        console.say(f"{failed} failed: spanlab jobs show {view.id}")
    if view.progress.stopped:
        console.say(f"stopped early: {view.progress.stopped}")
    if view.error is not None:
        console.say(f"the job failed: {view.error}")
    if view.state is not JobState.DONE:
        verb = "resume" if view.state is JobState.PAUSED else "retry"
        console.say(f"job {view.id} is {view.state.value}; then: spanlab jobs {verb} {view.id}")
        raise typer.Exit(3 if view.is_out_of_budget else 1)
    if view.progress.failed or view.progress.stopped is not None:
        raise typer.Exit(1 if view.is_all_failed and view.progress.stopped is None else 3)
