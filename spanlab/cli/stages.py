"""`spanlab stages`: where in a process the errors came in."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spanlab.workflows.stages import ErrorStages


def stages(
    dataset: Annotated[str, typer.Argument(help="A dataset whose claims a detector has traced.")],
    annotators: Annotated[
        str | None,
        typer.Option(
            help="Annotators whose claims are counted, with commas between; by default all."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Say at which stages of their processes the errors of answers came in.

    For each detector: every stage's share of the claims that are not supported, with 95 %
    intervals; for every two, how much these shares differ. Where gold labels name the stage of an
    error, how often a detector names it, too.

    \b
    spanlab stages mine
    spanlab stages mine --annotators veritrail,veritrail-vt-rag
    """
    from spanlab.cli import progress
    from spanlab.storage import Store
    from spanlab.workflows.stages import error_stages

    names = [name for name in (annotators or "").split(",") if name]
    with Store.open() as store, progress.bar("reading", unit="items") as advance:
        found = error_stages(store, dataset, names, advance)
    typer.echo(_json(found) if as_json else _text(found))


def _json(found: ErrorStages) -> str:
    runs = [
        {**vars(run), "shares": {name: share.model_dump() for name, share in run.shares.items()}}
        | {"found": run.found and run.found.model_dump()}
        for run in found.runs
    ]
    pairs = [{"a": a, "b": b, **agreement._asdict()} for a, b, agreement in found.pairs]
    return json.dumps({**asdict(found), "runs": runs, "pairs": pairs}, indent=1)


def _text(found: ErrorStages) -> str:
    from spanlab.cli.tables import aligned
    from spanlab.workflows.wording import counted, figure

    lines: list[str] = []
    for run in found.runs:
        told = run.claims - run.undetermined
        lines.append(
            f"{run.annotator}: {counted(run.claims, 'claim')} not supported, "
            f"the stage of {told:,} known"
        )
        rows = [
            [stage, figure(share.mean), f"[{figure(share.low)}, {figure(share.high)}]"]
            for stage, share in run.shares.items()
        ]
        lines += [aligned([["stage", "share", "95 %"], *rows], left=1)] if rows else []
        lines += [run.scored] if run.scored else []
    lines += found.remarks
    for a, b, (divergence, correlation) in found.pairs:
        rank = "undefined" if correlation is None else figure(correlation, signed=True)
        lines.append(
            f"{a} and {b}: Jensen-Shannon divergence {figure(divergence)}, Spearman {rank}"
        )
    return "\n".join(lines)
