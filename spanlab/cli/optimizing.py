"""The steps of `spanlab optimize` after its options are read."""

from __future__ import annotations

import typer

from optimizers.request import Optimisation
from spanlab import jobs
from spanlab.cli import progress, working
from spanlab.errors import UnderWayError, UsageError
from spanlab.jobs import JobState
from spanlab.settings import Settings
from spanlab.workflows.programs import registry, worth
from spanlab.workflows.programs import use as let_use


def estimate_search(request: Optimisation) -> None:
    """Print upper bounds for a search, without any call."""
    from optimizers import estimates
    from spanlab.storage import Store

    with Store.open(Settings.read()) as store:
        expected = estimates.estimate_search(store, request)
    effort = expected.effort
    cost = "no price known" if expected.cost is None else f"${expected.cost:,.2f}"
    rest = f"{effort.searches:,} searches, {cost}" if effort.searches else cost
    typer.echo(
        f"{expected.items} labelled {expected.unit}; at most {effort.trials:,} evaluations, "
        f"{effort.calls:,} calls ({effort.prompt_calls:,} of them of the prompt model), {rest}"
    )


def enqueue(request: Optimisation, *, again: bool) -> None:
    """Queue a search for any worker; ``again`` also if one under way is the same."""
    from spanlab.jobs import job_store, leases

    leases.requeue_abandoned(job_store.of(None))  # what nobody works on any more waits
    try:
        job_id = jobs.submit_optimisation(request, again=again)
    except UnderWayError as error:
        raise UnderWayError(f"{error}; --again starts it once more", error.job_id) from None
    progress.say(f"queued as {job_id}; see: spanlab jobs show {job_id}")


def run(request: Optimisation, *, use: bool, again: bool) -> None:
    """Search in this process until it is done, and print the scores on held-out items.

    Args:
        request: what to search.
        use: whether the detector is to use what is better beyond chance.
        again: whether to start it also if a search under way is the same.
    """
    from spanlab.jobs import optimisation

    settings = Settings.read()
    with working.at_work(settings, processes=0) as queue:
        job_id = working.begin(
            lambda: optimisation.submit(request, settings, queue, again=again), queue
        )
        view = working.follow(job_id, settings, None, task="optimising", unit="evaluations")
    working.sum_up(view)
    if view.state is not JobState.DONE:
        raise UsageError(f"job {job_id} is {view.state.value}")
    programs = registry(settings)
    if view.search is None or view.search.program is None:
        raise UsageError(f"job {job_id} has saved no program")
    program = programs.load(view.search.program)
    progress.say(worth(program.held_out))
    if use and program.held_out is not None and program.held_out.better:
        progress.say(f"{let_use(program.name)} uses {program.name}")
    progress.say(f"spanlab programs show {program.name}")
    typer.echo(program.name)
