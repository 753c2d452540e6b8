"""`spanlab optimize`: tune a detector's prompt on labelled items."""

from __future__ import annotations

from typing import Annotated

import typer

from optimizers.choosing import SearchOptions
from spanlab.cli.options import OptionsWithout, takes_options
from spanlab.errors import UsageError

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
    from spanlab.cli import optimizing

    if use and queue:
        raise UsageError("--use waits for the end of the search: leave --queue out")
    if use and options.folds == 0:
        raise UsageError("--use goes by scores on held-out items: take 2 folds or more")
    tuned = options.model_copy(update={"detectors": (detector,), "program": start or ""})
    request = optimisation_of(dataset, tuned)
    if dry_run:
        optimizing.estimate_search(request)
    elif queue:
        optimizing.enqueue(request, again=again)
    else:
        optimizing.run(request, use=use, again=again)
