"""`spanlab bench`: detectors × datasets in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanlab.base.errors import UsageError
from spanlab.base.settings import Settings
from spanlab.bench import cards as known
from spanlab.bench.files import plan_in, read_table
from spanlab.bench.plan import BenchPlan, BenchSystem, estimate_plan, make_plan, read_plan
from spanlab.bench.stored import write_datasets
from spanlab.bench.table import check_folder
from spanlab.cli import console
from spanlab.cli import console as out
from spanlab.cli.inputs import OptionsWithout, takes_options
from spanlab.detection.request import RunLimits
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications
from spanlab.formats.read_options import mapping_in
from spanlab.jobs import working
from spanlab.output.figures import counted, money
from spanlab.storage import Store


@takes_options
def bench(
    selection: DetectorSelection,
    limits: Annotated[RunLimits, OptionsWithout("vote")],
    dataset_or_plan: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATASET]",
            help="A dataset of the database, or a plan of TOML with detectors and datasets.",
        ),
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(help="A folder with datasets (default: SPANLAB_SHARED, if it is set)."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Only this dataset, by its card's name. Repeatable."),
    ] = None,
    predictions: Annotated[
        list[str] | None,
        typer.Option(help="Somebody else's system: NAME=FILE. Repeatable."),
    ] = None,
    cards: Annotated[
        list[Path] | None, typer.Option(help="A file of further cards. Repeatable.")
    ] = None,
    certificate: Annotated[
        list[Path] | None, typer.Option(help="A certificate of a detector. Repeatable.")
    ] = None,
    controls: Annotated[
        str | None,
        typer.Option(
            help="Baselines, separated by commas: everything,nothing,annotator,shuffled,"
            "no-passages (default: all; the last two run every detector again)."
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100,
            help="How often detectors that ask models are run, with different seeds.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the first repeat.")] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run cells again in which items failed.")
    ] = False,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the table.")] = Path(
        "bench"
    ),
    list_only: Annotated[
        bool,
        typer.Option("--list", help="Only say which datasets are found, and where others are."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only estimate what it comes to.")
    ] = False,
    check: Annotated[
        Path | None, typer.Option(help="Compute the figures of this folder again.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Compare detectors on datasets: one table with baselines, intervals and paired tests.

    The same command resumes an interrupted run: finished cells stay as they are, and answers in the
    cache are not paid for again.

    \b
    spanlab bench --detector offline -o table
    spanlab bench mine --detector offline -o mine
    spanlab bench --detector offline --detector ucsc-extract --max-calls 5000 -o models
    spanlab bench plan.toml -o table
    spanlab bench --list --data data
    spanlab bench --check table
    """
    shared = Settings.read().shared
    roots = [path.resolve() for path in data or ([shared] if shared else [])]
    if list_only:
        all_cards = known.cards(cards or ()).values()
        out.write_tables([known.list_cards(all_cards, roots)])
        return
    if check is not None:
        checked = check_folder(plan_in(check.resolve(), {"data": tuple(roots)}))
        out.write_result(checked, json=as_json)
        if checked.undone:
            raise typer.Exit(1)
        return
    limits.refuse({"events": "sends the results of `spanlab annotate`, and none of a benchmark"})
    fields = dict(limits) | {
        "data": roots,
        "cards": cards,
        "certificates": certificate,
        "controls": [control.strip() for control in controls.split(",")] if controls else None,
        "repeats": repeats,
        "seed": seed,
        "retry_failed": retry_failed,
        "predictions": [
            {"name": name, "file": Path(file).resolve()}
            for name, file in mapping_in(
                predictions or (), "--predictions must be NAME=FILE"
            ).items()
        ],
    }
    filled = {name: value for name, value in fields.items() if value}
    if dataset_or_plan is not None and dataset_or_plan.endswith(".toml"):
        if selection != DetectorSelection() or dataset:
            raise UsageError("a plan names its detectors and datasets: leave these options out")
        bench_plan = read_plan(Path(dataset_or_plan), output.resolve(), filled)
    else:
        filled |= {"systems": systems(selection), "output": output.resolve()}
        filled["datasets"] = [{"name": name} for name in dataset or ()]
        if dataset_or_plan is not None:
            if dataset or data or cards:
                raise UsageError(
                    "a dataset of the database goes without --dataset, --data, --cards"
                )
            with Store.open() as store:
                filled |= write_datasets(store, [dataset_or_plan], output.resolve())
        bench_plan = make_plan(filled)
    run(bench_plan, dry_run=dry_run, json=as_json)


def systems(selection: DetectorSelection) -> list[BenchSystem]:
    """Return the detectors that were chosen as rows of a table; none is a table of controls."""
    specs = specifications(selection) if selection.detectors else ()
    return [BenchSystem(name=spec.signs, detector=spec) for spec in specs]


def run(plan: BenchPlan, *, dry_run: bool, json: bool) -> None:
    """Say what a plan comes to at most, run it as a job, and show its table."""
    estimate = estimate_plan(plan)
    run_estimate = estimate.run
    cost = (
        "cost unknown: no price"
        if run_estimate.cost is None
        else f"at most {money(run_estimate.cost)}"
    )
    about = (
        f", about {counted(run_estimate.calls, 'model call')}, {cost}" if run_estimate.calls else ""
    )
    console.say(f"{counted(estimate.cells, 'cell')}{about}; answers in the cache cost nothing")
    if dry_run:
        return
    view = working.run_here(plan, estimate.cells, task="benchmark")
    if view.error is None:
        table = read_table(plan.output)
        console.write_result(table, json=json)
        console.say(f"wrote {plan.output}")
    if view.progress.stopped:
        console.say("the same command continues with what is not done")
    working.sum_up(view)
    if view.progress.stopped:
        raise typer.Exit(1)
