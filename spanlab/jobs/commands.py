"""Commands for jobs: list, show, pause, resume, cancel, retry, and a worker."""

from __future__ import annotations

import logging
import socket
from typing import Annotated

import typer

from spanlab.base.settings import Settings
from spanlab.cli import console
from spanlab.cli import servers as serving
from spanlab.cli.inputs import LogJson
from spanlab.jobs import Jobs, leases, working
from spanlab.jobs.summary import job_table, job_tables
from spanlab.jobs.worker import WorkerRole, work

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List, pause, resume, cancel and retry jobs."
)

JobId = Annotated[str, typer.Argument(help="The job's id, or how it begins.")]
Queue = Annotated[
    bool,
    typer.Option("--queue", help="Queue it for the app or a worker instead of running it here."),
]


@app.command("list")
def list_jobs(
    limit: Annotated[int, typer.Option(min=1, help="Jobs on a page.")] = 50,
    page: Annotated[int, typer.Option(min=1, help="Page 1 has the newest.")] = 1,
) -> None:
    """List the jobs, the newest first.

    \b
    spanlab jobs list
    """
    jobs = Jobs()
    leases.requeue_abandoned(jobs.store)  # what nobody works on any more is not running
    console.write_tables([job_table(jobs.list(limit, page - 1))])


@app.command()
def show(job_id: JobId) -> None:
    """Show how far a job is, what failed and why, and its log.

    \b
    spanlab jobs show 3f2a
    """
    console.write_tables(job_tables(Jobs().find(job_id)))


@app.command()
def pause(job_id: JobId) -> None:
    """Pause a job after the current model calls; `resume` continues it.

    \b
    spanlab jobs pause 3f2a
    """
    Jobs().pause(job_id)
    console.say(f"paused; continue with: spanlab jobs resume {job_id}")


@app.command()
def resume(job_id: JobId, queue: Queue = False) -> None:
    """Continue a paused or cancelled job, here or with --queue wherever a worker is.

    \b
    spanlab jobs resume 3f2a --queue
    """
    if queue:
        Jobs().resume(job_id)
        console.say("queued")
    else:
        working.take_up(job_id, Jobs.resume)


@app.command()
def cancel(job_id: JobId) -> None:
    """End a job after the model calls under way; what is saved stays.

    \b
    spanlab jobs cancel 3f2a
    """
    Jobs().cancel(job_id)
    console.say("cancelled")


@app.command()
def retry(job_id: JobId, queue: Queue = False) -> None:
    """Do again what a job failed on or left undone, as a new job.

    \b
    spanlab jobs retry 3f2a
    """
    if queue:
        console.say(f"queued as {Jobs().retry(job_id)}")
    else:
        working.take_up(job_id, Jobs.retry)


def worker(
    name: Annotated[
        str | None,
        typer.Option(help="Name of the worker (default: the machine's name and a number)."),
    ] = None,
    processes: Annotated[
        int, typer.Option(min=0, help="Processes for detectors that ask no model; 0: a thread.")
    ] = 0,
    log_json: LogJson = False,
) -> None:
    """Work on queued jobs until Ctrl+C; any number of workers share them.

    With PostgreSQL (SPANLAB_DATABASE_URL) they may be on any machines. One that dies or loses the
    network is noticed by the others, who take up what it was at.

    \b
    spanlab worker
    spanlab worker --name gpu-room-1
    """
    if log_json:
        serving.log_json()
    info = logging.getLogger("spanlab.worker").info
    role = WorkerRole(name or socket.gethostname(), processes=processes)
    work(Settings.read(), role, info if log_json else console.say)
