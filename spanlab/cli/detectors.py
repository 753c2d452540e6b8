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
    from spanlab.detectors import Broken, installed
    from spanlab.workflows.specs import as_json, chosen

    if name is not None:
        typer.echo(as_json(chosen(name)))
        return
    for known, found in installed().items():
        if isinstance(found, Broken):
            what, needs = f"cannot be used: {found.problem}", f"another {found.package}"
        else:
            what, needs = found.what, found.needs
        typer.echo(f"{known:<14}{what}\n{'':<14}needs {needs}")
