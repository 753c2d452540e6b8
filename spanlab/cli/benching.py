"""A benchmark in the command's own process."""

from __future__ import annotations

import typer

from spanlab.cli import output, progress, working
from spanlab.results import counted, money
from spanlab.settings import Settings
from spanlab.workflows.bench.files import read_table
from spanlab.workflows.bench.plan import BenchPlan, BenchSystem, estimate_plan
from spanlab.workflows.detection.selection import DetectorSelection, specifications


def systems(selection: DetectorSelection) -> list[BenchSystem]:
    """Return the detectors that were chosen as rows of a table; none is a table of controls."""
    specs = specifications(selection) if selection.detectors else ()
    return [BenchSystem(name=spec.signs, detector=spec) for spec in specs]


def run(plan: BenchPlan, *, dry_run: bool, json: bool) -> None:
    """Say what a plan comes to at most, run it as a job, and show its table."""
    from spanlab.jobs import benchmark

    found = estimate_plan(plan)
    asked = found.run
    cost = "cost unknown: no price" if asked.cost is None else f"at most {money(asked.cost)}"
    about = f", about {counted(asked.calls, 'model call')}, {cost}" if asked.calls else ""
    progress.say(f"{counted(found.cells, 'cell')}{about}; answers in the cache cost nothing")
    if dry_run:
        return
    settings = Settings.read()
    with working.at_work(settings, processes=0) as queue:
        job_id = working.begin(lambda: benchmark.submit(plan, settings, queue), queue)
        view = working.follow(job_id, settings, found.cells, task="benchmark", unit="cells")
    if view.error is None:
        table = read_table(plan.output)
        output.write_result(table, json=json)
        progress.say(f"wrote {plan.output}")
    working.sum_up(view)
    if view.progress.stopped:
        progress.say("the same command goes on with what is not done")
        raise typer.Exit(1)
