"""A benchmark in the command's own process."""

from __future__ import annotations

import typer

from spanlab.cli import output, progress
from spanlab.errors import BudgetError
from spanlab.lm import Meter
from spanlab.results import counted, money
from spanlab.workflows.bench.plan import BenchPlan, BenchSystem, estimate_plan
from spanlab.workflows.bench.run import finish_table, run_dataset, write_plan
from spanlab.workflows.choosing import DetectorSelection, specifications


def systems(selection: DetectorSelection) -> list[BenchSystem]:
    """Return the detectors that were chosen as rows of a table; none is a table of controls."""
    specs = specifications(selection) if selection.detectors else ()
    return [BenchSystem(name=spec.signs, detector=spec) for spec in specs]


def run(plan: BenchPlan, *, dry_run: bool, json: bool) -> None:
    """Say what a plan comes to at most, run it, and write its table."""
    found = estimate_plan(plan)
    asked = found.run
    cost = "cost unknown: no price" if asked.cost is None else f"at most {money(asked.cost)}"
    about = f", about {counted(asked.calls, 'model call')}, {cost}" if asked.calls else ""
    progress.say(f"{counted(found.cells, 'cell')}{about}; answers in the cache cost nothing")
    if dry_run:
        return
    write_plan(plan)
    meter = Meter(plan.budget)
    done = 0
    stopped: BudgetError | None = None
    with progress.bar("benchmark", unit="cells", total=found.cells) as advance:

        def count(_row: str, _failed: int) -> None:
            nonlocal done
            done += 1
            advance(done)

        try:
            for number in range(len(plan.datasets)):
                run_dataset(plan, number, meter, on_cell=count)
        except BudgetError as error:
            stopped = error
    table = finish_table(plan)
    output.write_result(table, json=json)
    if stopped is not None or table.undone:
        progress.say(f"not done: {stopped or ', '.join(table.undone)}; run it again to go on")
        raise typer.Exit(1)
    progress.say(f"wrote {plan.output}")
