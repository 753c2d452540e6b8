"""AVeriTeC's own scores: labels, and how well questions and answers match the gold ones.

As in Schlichtkrull et al. 2023, "AVeriTeC", and the shared task of FEVER 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from spanlab.schema import Frozen
from spanlab.scorers._meteor import meteor

LABELS: Final = (
    "Supported",
    "Refuted",
    "Not Enough Evidence",
    "Conflicting Evidence/Cherrypicking",
)
LEVELS: Final = (0.2, 0.25, 0.3)  # that the match of the evidence must exceed
MOST_PAIRS: Final = 10  # of a prediction; further ones are not looked at


class PredictedClaim(Frozen):
    """A system's label and its pairs of a question and an answer."""

    id: str
    label: str
    pairs: tuple[tuple[str, str], ...] = ()


class GoldClaim(Frozen):
    """A claim's label, its questions, and every question with each of its answers as one text."""

    label: str
    questions: tuple[str, ...]
    answered: tuple[str, ...]


class AveritecItem(Frozen):
    """One claim's scores: matches in [0, 1], of questions alone and with answers."""

    id: str
    questions: float
    evidence: float
    correct: bool


class AveritecReport(Frozen):
    """Scores over all claims, in [0, 1].

    ``f1`` is by label, 0 for one that neither side has; ``score`` by level the share of claims
    whose label is right and whose evidence matches better than the level.
    """

    items: tuple[AveritecItem, ...]
    questions: float
    evidence: float
    accuracy: float
    f1: Mapping[str, float]
    macro_f1: float
    score: Mapping[float, float]


def averitec(
    sides: Sequence[tuple[PredictedClaim, GoldClaim]],
    alike: Callable[[str, str], float] = meteor,
) -> AveritecReport:
    """Score predictions against gold claims.

    Args:
        sides: prediction and gold of every claim, at least one.
        alike: how alike a predicted text is to a gold one, in [0, 1].

    Raises:
        UsageError: METEOR needs something that is not installed.
    """
    items = tuple(_item(predicted, gold, alike) for predicted, gold in sides)
    f1 = {label: _f1(sides, label) for label in LABELS}
    return AveritecReport(
        items=items,
        questions=float(np.mean([item.questions for item in items])),
        evidence=float(np.mean([item.evidence for item in items])),
        accuracy=float(np.mean([item.correct for item in items])),
        f1=f1,
        macro_f1=sum(f1.values()) / len(f1),
        score={
            level: float(np.mean([item.correct and item.evidence > level for item in items]))
            for level in LEVELS
        },
    )


def _item(
    predicted: PredictedClaim, gold: GoldClaim, alike: Callable[[str, str], float]
) -> AveritecItem:
    pairs = predicted.pairs[:MOST_PAIRS]
    return AveritecItem(
        id=predicted.id,
        questions=_match([question for question, _ in pairs], gold.questions, alike),
        evidence=_match(
            [f"{question} {answer}" for question, answer in pairs], gold.answered, alike
        ),
        correct=predicted.label == gold.label,
    )


def _match(said: Sequence[str], gold: Sequence[str], alike: Callable[[str, str], float]) -> float:
    """Assign each gold text a text of its own; those that are left without count as 0."""
    from scipy.optimize import linear_sum_assignment

    if not said or not gold:
        return 0.0
    table = np.array([[alike(one, other) for other in gold] for one in said])
    return float(table[linear_sum_assignment(table, maximize=True)].sum()) / len(gold)


def _f1(sides: Sequence[tuple[PredictedClaim, GoldClaim]], label: str) -> float:
    both = sum(predicted.label == gold.label == label for predicted, gold in sides)
    either = sum((predicted.label == label) + (gold.label == label) for predicted, gold in sides)
    return 2 * both / either if either else 0.0
