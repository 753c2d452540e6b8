"""Runs a benchmark into its folder: dataset by dataset, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spanlab.errors import UsageError
from spanlab.lm import Meter
from spanlab.settings import Settings
from spanlab.workflows.bench.cells import CellRun
from spanlab.workflows.bench.plan import BenchPlan, cells_of
from spanlab.workflows.bench.table import BenchTable, build_table, write_table

_FILE = "plan.json"


def run_dataset(
    plan: BenchPlan,
    number: int,
    meter: Meter,
    *,
    settings: Settings | None = None,
    stopped: Callable[[], bool] = lambda: False,
    on_cell: Callable[[str, int], None] = lambda row, failed: None,
) -> bool:
    """Run the cells of one of a plan's datasets; what is there already is left as it is.

    Args:
        plan: the benchmark.
        number: of its datasets, from 0.
        meter: counts the calls of all cells, and stops them at the budget.
        settings: where answers of models are cached; None reads the environment.
        stopped: asked between items.
        on_cell: called after each cell with what the table calls it, and how many items failed.

    Returns:
        Whether it was done; False if it was stopped.

    Raises:
        BudgetError: the budget is used up.
        UsageError, ConfigurationError, InputError: a cell cannot be run.
    """
    one = plan.model_copy(update={"datasets": plan.datasets[number : number + 1]})
    (found,) = one.found()
    items = one.items(found)
    runner = CellRun(one, meter, settings, stopped)
    for cell in cells_of(one, found, items):
        content = runner.run(found, items, cell)
        if content is None and stopped():
            return False
        on_cell(f"{cell.row} on {cell.dataset}", 0 if content is None else content["failed"])
    return True


def count_cells(plan: BenchPlan) -> int:
    """Return how many cells a plan has.

    Raises:
        UsageError, InputError: a dataset is not there, or wrong.
    """
    return sum(len(cells_of(plan, found, plan.items(found))) for found in plan.found())


def finish_table(plan: BenchPlan) -> BenchTable:
    """Write the table of the cells that are there, and return it."""
    table = build_table(plan)
    write_table(table, plan.output)
    return table


def write_plan(plan: BenchPlan) -> None:
    """Make the folder of a plan and keep the plan in it.

    Raises:
        UsageError: the folder cannot be made.
    """
    try:
        plan.output.mkdir(parents=True, exist_ok=True)
        text = plan.model_dump_json(indent=1) + "\n"
        (plan.output / _FILE).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{plan.output} cannot be written to: {error}") from None


def plan_in(folder: Path, changes: Mapping[str, Any]) -> BenchPlan:
    """Return the plan of a folder that `spanlab bench` wrote, with changes that are not empty.

    Raises:
        UsageError: there is none.
    """
    try:
        plan = BenchPlan.model_validate_json((folder / _FILE).read_bytes())
    except (OSError, ValueError):
        raise UsageError(f"{folder} has no table of `spanlab bench`") from None
    given = {name: value for name, value in changes.items() if value}
    return plan.model_copy(update={"output": folder, **given})
