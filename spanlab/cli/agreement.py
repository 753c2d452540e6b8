"""`spanlab agreement`: how far the annotators of a dataset agree."""

from __future__ import annotations

from typing import Annotated

import typer


def agreement(
    dataset: Annotated[str, typer.Argument(help="A dataset that several have annotated.")],
    as_json: Annotated[bool, typer.Option("--json", help="All figures and pairs as JSON.")] = False,
) -> None:
    """Say how far annotators agree on characters, and on verdicts on claims.

    Krippendorff's alpha of people, and of people and detectors: 1 is perfect agreement, 0 what
    chance would give.

    \b
    spanlab agreement mine
    """
    from spanlab.cli import output, progress
    from spanlab.storage import Store
    from spanlab.workflows.analysis.comparison import compare_dataset

    with Store.open() as store, progress.bar("reading", unit="items") as advance:
        found = compare_dataset(store, dataset, on_progress=advance)
    output.write_result(found, json=as_json, ascii_only=False)
