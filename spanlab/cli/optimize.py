"""`spanlab optimize`: tune a detector's prompt on labelled items."""

from __future__ import annotations

from typing import Annotated

import typer

from optimizers.choosing import SearchOptions
from optimizers.request import Optimisation
from spanlab import jobs
from spanlab.cli import console, working
from spanlab.cli.inputs import OptionsWithout, takes_options
from spanlab.errors import UnderWayError, UsageError
from spanlab.jobs import JobState
from spanlab.settings import Settings
from spanlab.workflows.programs import registry, worth
from spanlab.workflows.programs import use as let_use

Search = Annotated[SearchOptions, OptionsWithout("detector", "config", "program")]


@takes_options
def optimize(
    dataset: Annotated[str, typer.Argument(help="A dataset with labels.")],
    detector: Annotated[str, typer.Option(help="What to tune, e.g. ucsc-extract.")],
    options: Search,
    start: Annotated[
        str | None, typer.Option(help="A program to begin from (default: the own prompt).")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also if a search under way is the same.")
    ] = False,
    use: Annotated[
        bool, typer.Option("--use", help="Let the detector use it, if it is better beyond chance.")
    ] = False,
    queue: Annotated[
        bool, typer.Option("--queue", help="Leave it to the app or a worker, do not work on it.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only print the most that it can take: evaluations, calls, cost."
        ),
    ] = False,
) -> None:
    """Tune a detector's prompt on labels that people made, and keep it as a program.

    Instructions and demonstrations are searched together (MIPROv2). Held-out items tell what the
    result is worth; one that is not better than the untuned prompt says so. Detectors that judge
    claims are tuned on claims with verdicts, safe on steps: trials are scored by accuracy, what is
    held out by macro F1. The search is a job: Ctrl+C pauses it, and no answer that was paid for is
    asked for again.

    \b
    spanlab optimize mine --detector ucsc-extract --metric iou --auto light
    spanlab optimize mine --detector ucsc-extract --labels reviewed --annotators Ada,Ben
    spanlab optimize mine --detector ucsc --member ucsc-4-gpt4o-extract-any --use
    spanlab optimize mine --detector veritrail --metric verdict-f1
    spanlab optimize mine --detector safe --metric type-f1 --labels reviewed
    spanlab optimize questions --detector safe --metric answer-f1
    spanlab optimize mine --detector ucsc-extract --target eu --transfer others --trials 10
    """
    from optimizers.choosing import optimisation_of

    if use and queue:
        raise UsageError("--use waits for the end of the search: leave --queue out")
    if use and options.folds == 0:
        raise UsageError("--use goes by scores on held-out items: take 2 folds or more")
    tuned = options.model_copy(update={"detectors": (detector,), "program": start or ""})
    request = optimisation_of(dataset, tuned)
    if dry_run:
        estimate_search(request)
    elif queue:
        enqueue(request, again=again)
    else:
        run(request, use=use, again=again)


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
    console.say(f"queued as {job_id}; see: spanlab jobs show {job_id}")


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
    console.say(worth(program.held_out))
    if use and program.held_out is not None and program.held_out.better:
        console.say(f"{let_use(program.name)} uses {program.name}")
    console.say(f"spanlab programs show {program.name}")
    typer.echo(program.name)
