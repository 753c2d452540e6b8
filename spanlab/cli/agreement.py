"""`spanlab agreement`: how far the annotators of a dataset agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spanlab.workflows.comparing import DatasetComparison


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
    from spanlab.cli import progress
    from spanlab.storage import Store
    from spanlab.workflows.comparing import compare_dataset

    with Store.open() as store, progress.bar("reading", unit="items") as advance:
        found = compare_dataset(store, dataset, on_progress=advance)
    typer.echo(_json(found) if as_json else _text(found))


def _json(found: DatasetComparison) -> str:
    groups = {
        name: {
            "characters": spans.model_dump(exclude={"pairs"}),
            "verdicts": {"n": verdicts.n, "alpha": verdicts.alpha},
        }
        for name, spans, verdicts in (
            ("people", found.persons, found.claims.persons),
            ("people and detectors", found.independent, found.claims.independent),
        )
    }
    pairs = [pair.model_dump() for pair in found.everybody.pairs]
    return json.dumps({"alpha": groups, "pairs": pairs}, ensure_ascii=False, indent=1)


def _text(found: DatasetComparison) -> str:
    from spanlab.cli.tables import aligned
    from spanlab.workflows.wording import figure

    def shown(alpha: float | None) -> str:
        return "-" if alpha is None else figure(alpha)

    rows = [["Krippendorff's alpha", "people", "on", "people and detectors", "on"]]
    persons = {each.lang: each for each in found.persons.languages}
    both = {each.lang: each for each in found.independent.languages}
    lines = [
        *((f"characters, {lang}", persons.get(lang), both.get(lang)) for lang in both),
        ("characters", found.persons, found.independent),
        ("verdicts on claims", found.claims.persons, found.claims.independent),
    ]
    for name, *groups in lines:
        cells = [(shown(each.alpha), f"{each.n:,}") if each else ("-", "0") for each in groups]
        rows.append([name, *(cell for pair in cells for cell in pair)])
    return aligned(rows)
