"""The command that says what detectors there are."""

from __future__ import annotations

from typing import Annotated

import typer


def detectors(
    name: Annotated[
        str | None, typer.Argument(help="Print this one's configuration as JSON.")
    ] = None,
) -> None:
    """List the detectors: what each does and what it needs.

    With a name it prints the detector's configuration; an ensemble's can be changed and given to
    annotate with --config.

    \b
    spanlab detectors
    spanlab detectors ucsc > mine.json
    """
    from spanlab.workflows.specs import ABOUT, as_json, chosen

    if name is not None:
        typer.echo(as_json(chosen(name)))
        return
    for about in ABOUT:
        typer.echo(f"{about.name:<14}{about.what}\n{'':<14}needs {about.needs}")
