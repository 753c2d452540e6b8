"""`spanlab rates`: which model hallucinates more."""

from __future__ import annotations

from typing import Annotated

import typer


def rates(
    dataset: Annotated[str, typer.Argument(help="A dataset with finished annotations.")],
    by: Annotated[
        str, typer.Option(help="lang, label, or a path into the items' meta such as meta.model_id.")
    ],
    annotators: Annotated[
        str | None,
        typer.Option(
            help="Annotators whose labels are counted, with commas between; their mean. By "
            "default the gold labels, else all people, else the only vote or detector."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Say how often answers are hallucinated, by model or any other field of the items.

    For each value: the share of answers with a hallucination, of characters and of claims, and
    spans per 1,000 characters, with 95 % intervals; values that answered the same questions are
    compared pair by pair.

    \b
    spanlab rates mine --by meta.model_id
    spanlab rates mine --by lang --annotators offline
    """
    from spanlab.cli import output, progress
    from spanlab.storage import Store
    from spanlab.workflows.analysis import rates as workflow

    names = [name for name in (annotators or "").split(",") if name]
    with Store.open() as store, progress.bar("reading", unit="items") as advance:
        found = workflow.rates(store, dataset, by, names, advance)
    output.write_result(found, json=as_json)
