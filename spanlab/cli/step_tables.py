"""Scores of steps as a text table and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from spanlab.cli.tables import aligned
from spanlab.workflows.step_scores import StepEvaluation
from spanlab.workflows.wording import counted, figure


def as_text(evaluation: StepEvaluation) -> str:
    """Return the scores with types of error as rows, and which types were taken for which."""
    rows = [["", "gold", "found", "P", "R", "F1"]]
    rows += [
        [
            each.name,
            f"{each.gold:,}",
            f"{each.found:,}",
            *(figure(value) for value in (each.precision, each.recall, each.f1)),
        ]
        for each in evaluation.types
    ]
    wrong = [
        f"{gold} taken for {said}: {count:,}"
        for gold, others in evaluation.confusion.items()
        for said, count in others.items()
        if gold != said
    ]
    parts = [
        aligned(rows),
        f"{counted(evaluation.steps, 'step')} of {counted(evaluation.items, 'item')}: accuracy "
        f"{figure(evaluation.accuracy)}, macro F1 over types {figure(evaluation.macro_f1)}",
        *wrong,
    ]
    if evaluation.missing:
        parts.append(f"{counted(evaluation.missing, 'gold item')} without a prediction")
    return "\n".join(parts)


def as_json(evaluation: StepEvaluation) -> str:
    """Return all figures as JSON."""
    return json.dumps(asdict(evaluation), indent=1)
