"""`spanlab stages`."""

from __future__ import annotations

from typing import Annotated

import typer

from spanlab.cli import console


def stages(
    dataset: Annotated[str, typer.Argument(help="A dataset whose claims a detector has traced.")],
    annotators: Annotated[
        str | None,
        typer.Option(
            help="Annotators whose claims are counted, separated by commas; by default all."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Report at which stage of its process each error arose.

    For each detector: every stage's share of the claims that are not supported, with 95 %
    intervals; for every two, how much these shares differ. Where gold labels name the stage of an
    error, how often a detector names it, too.

    \b
    spanlab stages mine
    spanlab stages mine --annotators veritrail,veritrail-vt-rag
    """
    from spanlab.storage import Store
    from spanlab.systems.veritrail.stages import error_stages

    names = [name for name in (annotators or "").split(",") if name]
    with Store.open() as store, console.bar("reading", unit="items") as advance:
        report = error_stages(store, dataset, names, on_progress=advance)
    console.write_result(report, json=as_json)
