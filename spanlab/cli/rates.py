"""`spanlab rates`: which model hallucinates more."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spanlab.scorers import MeanInterval
    from spanlab.workflows.rates import Rates


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
    from spanlab.cli import progress
    from spanlab.storage import Store
    from spanlab.workflows import rates as workflow

    names = [name for name in (annotators or "").split(",") if name]
    with Store.open() as store, progress.bar("reading", unit="items") as advance:
        found = workflow.rates(store, dataset, by, names, advance)
    typer.echo(_json(found) if as_json else _text(found))


def _json(found: Rates) -> str:
    groups = [
        {
            "value": group.value,
            "n": group.n,
            **{name: rate and rate.model_dump() for name, rate in group.rates._asdict().items()},
            "labels": dict(group.labels),
        }
        for group in found.groups
    ]
    pairs = [{**pair._asdict(), "characters": pair.characters.model_dump()} for pair in found.pairs]
    return json.dumps({**asdict(found), "groups": groups, "pairs": pairs}, indent=1)


def _text(found: Rates) -> str:
    from spanlab.cli.tables import aligned
    from spanlab.workflows.wording import figure

    def shown(rate: MeanInterval | None, n: int, digits: int = 3) -> str:
        if rate is None:
            return "-"
        mean, low, high = (figure(value, digits) for value in (rate.mean, rate.low, rate.high))
        return mean if n == 1 else f"{mean} [{low}, {high}]"

    rows = [[found.field, "n", "answers", "characters", "spans/1,000", "claims"]]
    for group in found.groups:
        digits = {"spans": 2}
        rates = [
            shown(rate, group.n, digits.get(name, 3))
            for name, rate in group.rates._asdict().items()
        ]
        rows.append([group.value, f"{group.n:,}", *rates])
    lines = [
        aligned(rows),
        f"Shares with hallucinations according to {', '.join(found.annotators[:5])}"
        f"{', …' if len(found.annotators) > 5 else ''}, with 95 % bootstrap intervals.",
        *found.remarks,
    ]
    if found.unlabelled:
        lines.append(f"{found.unlabelled:,} items that nobody of these has finished are left out.")
    for a, b, n, difference in found.pairs:
        mean, low, high = (
            figure(value, signed=True)
            for value in (difference.difference, difference.low, difference.high)
        )
        lines.append(
            f"{a} minus {b} on {n:,} common questions: characters {mean} [{low}, {high}], "
            f"p {figure(difference.p)}"
        )
    return "\n".join(lines)
