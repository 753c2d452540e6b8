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
    from spanlab.detectors import BrokenDetector, installed, spec_of
    from spanlab.detectors.entry import options_of

    if name is not None:
        typer.echo(spec_of(name).model_dump_json(indent=2, exclude_unset=True))
        return
    for known, found in installed().items():
        if isinstance(found, BrokenDetector):
            lines = [f"cannot be used: {found.problem}", f"needs another {found.package}"]
        else:
            lines = [found.what, f"needs {found.needs}"]
            options = ", ".join(option.shown for option in options_of(known))
            lines += [f"options {options}"] if options else []
            lines += ["--config FILE replaces its members"] if found.members else []
        for label, line in zip((known, "", "", ""), lines, strict=False):
            typer.echo(f"{label:<18} {line}")
