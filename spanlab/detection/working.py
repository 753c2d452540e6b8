"""Detection as a job in the command's own process."""

from __future__ import annotations

from spanlab.base.settings import Settings
from spanlab.cli import console
from spanlab.detection.earlier import other_settings
from spanlab.detection.file_run import processes_of
from spanlab.detection.fits import marked_remarks
from spanlab.detection.request import RunRequest, check
from spanlab.detection.setup import earlier_versions
from spanlab.jobs import JobView
from spanlab.jobs.working import run_here, sum_up
from spanlab.output.figures import counted
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of


def annotate(request: RunRequest, *, again: bool = False) -> None:
    """Do what a request asks for, as a job, and show how far it is.

    Args:
        request: what to do.
        again: whether to start it also if a job under way does the same.
    """
    from spanlab.detection.run import unfinished_positions

    settings = Settings.read()
    with Store.open(settings) as store:
        check(store, request)
        n_left = len(unfinished_positions(store, request))
        created = summary_of(store, request.dataset).created
        for remark in earlier_versions(store, request):
            console.say(remark)
    names = ", ".join(spec.signs for spec in request.detectors)
    other_runs = () if request.again else other_settings(request, created, settings)
    for run in other_runs:
        console.say(
            f"{run.annotator} was last run here with other settings: now "
            f"{'; '.join(run.differences)}: spanlab jobs show {run.job_id}"
        )
    if n_left == 0:
        rerun = "--again annotates them again"
        console.say(f"{names} annotated 0 items of {request.dataset!r}: all are done; {rerun}")
        return
    if other_runs:
        console.say("what is done stays as it is; --again reruns it, too")
    view = detect(request, n_left, again=again)
    done = view.progress.done - view.progress.failed
    console.say(f"{names} annotated {counted(done, 'item')} of {request.dataset!r}")
    with Store.open(settings) as store:
        for remark in marked_remarks(store, request.dataset, request.annotators):
            console.say(remark)
    sum_up(view)


def detect(request: RunRequest, n_left: int, *, again: bool = False) -> JobView:
    """Do a request as a job in this process; ``n_left`` is how many items it leaves to be done.

    Raises:
        UnderWayError: a job that somebody works on does the same, and ``again`` is not set.
    """
    return run_here(request, n_left, again=again, processes=processes_of(request))
