"""`spanlab optimize` and `spanlab programs`: a detector's prompt tuned, and the prompts found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from optimizers import estimates
from optimizers.choosing import SearchOptions, optimisation_of
from optimizers.programs import (
    held_out_in_words,
    program_table,
    program_tables,
    registry,
    take,
    unuse,
)
from optimizers.programs import use as let_use
from optimizers.request import Optimisation
from spanlab.base.errors import UnderWayError, UsageError
from spanlab.base.settings import Settings
from spanlab.cli import console
from spanlab.cli.inputs import OptionsWithout, takes_options
from spanlab.jobs import Jobs, leases, working
from spanlab.output.figures import counted
from spanlab.schema import PromptChange
from spanlab.schema import compare as changes
from spanlab.storage import Store

Search = Annotated[SearchOptions, OptionsWithout("detector", "config", "program")]


@takes_options
def optimize(
    dataset: Annotated[str, typer.Argument(help="A dataset with labels.")],
    detector: Annotated[str, typer.Option(help="What to tune, e.g. ucsc-extract.")],
    options: Search,
    start: Annotated[
        str | None, typer.Option(help="A tuned prompt to begin from (default: the own prompt).")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Search even if a running job does the same.")
    ] = False,
    use: Annotated[
        bool, typer.Option("--use", help="Let the detector use it if it is significantly better.")
    ] = False,
    queue: Annotated[
        bool,
        typer.Option(
            "--queue", help="Queue it for the app or a worker instead of running it here."
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only print the most that it can take: evaluations, calls, cost."
        ),
    ] = False,
) -> None:
    """Tune a detector's prompt on labels that people made, and save the result.

    Instructions and examples are searched together (MIPROv2). Held-out items tell what the
    result is worth; one that is not better than the untuned prompt says so. Detectors that judge
    claims are tuned on claims with verdicts, safe on steps: trials are scored by accuracy, what is
    held out by macro F1. The search is a job: Ctrl+C pauses it, and no answer that was paid for is
    asked for again.

    \b
    spanlab optimize mine --detector ucsc-extract --metric iou --auto light
    spanlab optimize mine --detector ucsc-extract --labels reviewed --annotators anna,ben
    spanlab optimize mine --detector ucsc --member ucsc-4-gpt4o-extract-any --use
    spanlab optimize mine --detector veritrail --metric verdict-f1
    spanlab optimize mine --detector safe --metric type-f1 --labels reviewed
    spanlab optimize questions --detector safe --metric answer-f1
    spanlab optimize mine --detector ucsc-extract --target eu --transfer others --trials 10
    """
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
    with Store.open(Settings.read()) as store:
        expected = estimates.estimate_search(store, request)
    effort = expected.effort
    cost = "no price known" if expected.cost is None else f"${expected.cost:,.2f}"
    searches = f"{effort.searches:,} searches, " if effort.searches else ""
    typer.echo(
        f"{expected.items} labelled {expected.unit}; at most {effort.trials:,} evaluations, "
        f"{effort.calls:,} calls ({effort.prompt_calls:,} of them of the prompt model), "
        f"{searches}{cost}"
    )


def enqueue(request: Optimisation, *, again: bool) -> None:
    """Queue a search for any worker; ``again`` also if one under way is the same."""
    jobs = Jobs()
    leases.requeue_abandoned(jobs.store)  # what nobody works on any more waits
    try:
        job_id = jobs.submit(request, again=again)
    except UnderWayError as error:
        raise UnderWayError(f"{error}{working.AGAIN}", error.job_id) from None
    console.say(f"queued as {job_id}; see: spanlab jobs show {job_id}")


def run(request: Optimisation, *, use: bool, again: bool) -> None:
    """Search in this process until it is done, and print the scores on held-out items.

    Args:
        request: what to search.
        use: whether the detector is to use a significantly better prompt.
        again: whether to start it also if a search under way is the same.
    """
    view = working.run_here(request, None, task="optimising", again=again)
    working.sum_up(view)
    programs = registry()
    if view.search is None or view.search.program is None:
        raise UsageError(f"job {view.id} has saved no tuned prompt")
    program = programs.load(view.search.program)
    console.say(held_out_in_words(program.held_out))
    if use and program.held_out is not None and program.held_out.better:
        console.say(f"{let_use(program.name)} uses {program.name}")
    console.say(f"spanlab programs show {program.name}")
    typer.echo(program.name)


app = typer.Typer(
    no_args_is_help=True,
    help="""Tuned prompts: list, show, compare, use, export, import.

    They lie as JSON files in SPANLAB_HOME/programs, or where SPANLAB_PROGRAMS says.

    \b
    spanlab programs list
    spanlab programs show short-spans
    spanlab programs use short-spans
    """,
)

Known = Annotated[str, typer.Argument(metavar="NAME", help="A tuned prompt; see `programs list`.")]


@app.command("list")
def list_command() -> None:
    """List the tuned prompts, the newest first; a star marks the one its detector uses.

    \b
    spanlab programs list
    """
    console.write_tables([program_table(registry())])


@app.command()
def show(
    name: Known,
    as_json: Annotated[bool, typer.Option("--json", help="The whole file.")] = False,
) -> None:
    """Show where a tuned prompt comes from, what it is worth, and its prompts.

    \b
    spanlab programs show short-spans
    """
    program = registry().load(name)
    if as_json:
        typer.echo(program.model_dump_json(indent=2))
        return
    console.write_tables(program_tables(program))
    for key, predictor in program.predictors.items():
        demos = counted(len(predictor.demos), "example")
        typer.echo(f"\n{key}, {demos}:\n\n{predictor.instruction}")


@app.command()
def compare(before: Known, after: Annotated[str, typer.Argument(metavar="OTHER")]) -> None:
    """Show how two tuned prompts differ: instructions line by line, and examples.

    \b
    spanlab programs compare first-try short-spans
    """
    programs = registry()
    typer.echo(_describe_changes(changes(programs.load(before), programs.load(after))))


@app.command()
def use(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]")] = None,
    member: Annotated[
        str | None,
        typer.Option(help="A member of an ensemble (default: the one that it was tuned for)."),
    ] = None,
    untuned: Annotated[
        str | None,
        typer.Option(help="A detector or member that uses its own prompt again; in place of NAME."),
    ] = None,
) -> None:
    """Let a tuned prompt's detector use it from now on, wherever no other one is asked for.

    One that was tuned for a member of an ensemble is used by that member alone.

    \b
    spanlab programs use short-spans
    spanlab programs use short-spans --member ucsc-3-gpt4o-extract-overlap
    spanlab programs use --untuned ucsc-extract
    """
    if (name is None) == (untuned is None):
        raise UsageError("name a tuned prompt, or a detector with --untuned; one of the two")
    if name is not None:
        console.say(f"{let_use(name, member)} uses {name}")
    else:
        unuse(str(untuned))
        console.say(f"{untuned} uses its own prompt")


@app.command()
def export(
    name: Known,
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.")],
) -> None:
    """Write a tuned prompt to a file, to be imported elsewhere.

    \b
    spanlab programs export short-spans -o short-spans.json
    """
    registry().give(name, output)
    console.say(f"wrote {output}")


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(help="A file that `programs export` wrote.")],
    name: Annotated[str | None, typer.Option(help="What to call it here.")] = None,
) -> None:
    """Import a tuned prompt from a file; it is data alone, and anything else is refused.

    \b
    spanlab programs import short-spans.json
    """
    program = take(file, name)
    console.say(f"imported {program.name}, a tuned prompt for {program.detector}")


@app.command()
def remove(name: Known) -> None:
    """Delete a tuned prompt; a detector that used it goes back to its own prompt.

    \b
    spanlab programs remove short-spans
    """
    registry().remove(name)
    console.say(f"removed {name}")


def _describe_changes(changes: Sequence[PromptChange]) -> str:
    """Return the differences of two programs, predictor by predictor."""
    if not changes:
        return "the same prompts"
    parts = []
    for change in changes:
        lines = [change.predictor, *change.diff]
        lines += [f"- example {_shorten_demo(demo)}" for demo in change.removed]
        lines += [f"+ example {_shorten_demo(demo)}" for demo in change.added]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _shorten_demo(demo: object) -> str:
    text = json.dumps(demo, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:299]}…"
