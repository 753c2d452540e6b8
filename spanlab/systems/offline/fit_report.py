"""How well answers are marked before and after a fit, with intervals of the differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spanlab.schema.fits import FitFigure, FitReport
from spanlab.scoring.report import interval, weights
from spanlab.systems.offline.detector import RatedPart
from spanlab.systems.offline.fit import WordFit
from spanlab.systems.offline.links import Column
from spanlab.systems.offline.spans import decided
from spanlab.text.labels import ItemLabels

_BINS = 10  # of probabilities, for the calibration error
Table = NDArray[np.float64]


@dataclass(frozen=True)
class JudgedAnswer:
    """What is counted of an answer, once it is marked.

    ``right`` and ``marked`` are characters; ``wrong`` says whether people marked any, ``score`` is
    the probability of the likeliest span. ``bins`` has for each tenth of the probabilities the sums
    over characters of probability, share of people and 1.
    """

    iou: float
    right: int
    marked: int
    wrong: bool
    score: float
    bins: Table


def judge(parts: Sequence[RatedPart], labels: ItemLabels, fit: WordFit | None) -> JudgedAnswer:
    """Mark an answer, with or without a fit, and compare that with its labels."""
    length = labels.length or 0
    hard, soft = np.zeros(length, dtype=bool), np.zeros(length)
    extents, score = [], 0.0
    for part in parts:
        marked, likeliest = part.marked(fit)
        score = max(score, likeliest)
        for stretch in marked:
            soft[part.begin + stretch.start : part.begin + stretch.end] = stretch.prob
        extents += [(part.begin + start, part.begin + end) for start, end in decided(marked)]
    for start, end in extents:
        hard[start:end] = True
    wanted, shares = np.zeros(length, dtype=bool), np.zeros(length)
    for start, end in labels.hard:
        wanted[start:end] = True
    for start, end, prob in labels.soft:
        shares[start:end] = prob
    right, either = int((hard & wanted).sum()), int((hard | wanted).sum())
    places = np.minimum((soft * _BINS).astype(int), _BINS - 1)
    sums = [np.bincount(places, values, _BINS) for values in (soft, shares, np.ones(length))]
    return JudgedAnswer(
        iou=right / either if either else 1.0,
        right=right,
        marked=int(hard.sum()),
        wrong=bool(labels.hard),
        score=score,
        bins=np.stack(sums),
    )


def report_of(
    before: Sequence[JudgedAnswer],
    after: Sequence[JudgedAnswer],
    groups: Sequence[int],
    folds: int,
) -> FitReport:
    """Compare answers before and after a fit; whole ``groups`` are drawn for the intervals.

    The bootstrap is that of ``spanlab.scoring.report``, over groups in place of items.
    """
    names, group = np.unique(groups, return_inverse=True)
    drawn = np.concatenate([np.ones((1, len(names))), *weights(len(names), "fit")])[:, group]

    def figure(measure: Callable[[Sequence[JudgedAnswer], Table], Column]) -> FitFigure:
        old, new = measure(before, drawn), measure(after, drawn)
        if np.isnan([old[0], new[0]]).any():
            return FitFigure()
        differences = (new - old)[1:]
        low, high = interval(differences[~np.isnan(differences)])
        return FitFigure(
            before=round(float(old[0]), 4), after=round(float(new[0]), 4),
            low=round(low, 4), high=round(high, 4),
        )  # fmt: skip

    return FitReport(
        answers=len(before),
        groups=len(names),
        folds=folds,
        iou=figure(_iou),
        precision=figure(_precision),
        auroc=figure(_auroc),
        right_marked=figure(_right_marked),
        calibration_error=figure(_calibration_error),
    )


# Each measure takes the answers and how often each is drawn (draws × answers), and returns its
# value for each draw; NaN where the draw does not define it.


def _iou(answers: Sequence[JudgedAnswer], drawn: Table) -> Column:
    return _share(drawn @ np.array([answer.iou for answer in answers]), drawn.sum(axis=1))


def _precision(answers: Sequence[JudgedAnswer], drawn: Table) -> Column:
    right, marked = (
        np.array([float(count) for count in counts])
        for counts in zip(*((answer.right, answer.marked) for answer in answers), strict=True)
    )
    return _share(drawn @ right, drawn @ marked)


def _right_marked(answers: Sequence[JudgedAnswer], drawn: Table) -> Column:
    right = np.array([not answer.wrong for answer in answers], dtype=float)
    marked = right * [answer.marked > 0 for answer in answers]
    return _share(drawn @ marked, drawn @ right)


def _auroc(answers: Sequence[JudgedAnswer], drawn: Table) -> Column:
    """Return how often a wrong answer has a higher score than a right one, equal ones half."""
    _, rank = np.unique([answer.score for answer in answers], return_inverse=True)
    wrong = np.array([answer.wrong for answer in answers])
    places = np.eye(rank.max() + 1)[rank]
    of_wrong, of_right = drawn[:, wrong] @ places[wrong], drawn[:, ~wrong] @ places[~wrong]
    below = np.cumsum(of_right, axis=1) - of_right / 2
    pairs = of_wrong.sum(axis=1) * of_right.sum(axis=1)
    return _share((of_wrong * below).sum(axis=1), pairs)


def _calibration_error(answers: Sequence[JudgedAnswer], drawn: Table) -> Column:
    sums = np.tensordot(drawn, np.array([answer.bins for answer in answers]), 1)
    return _share(np.abs(sums[:, 0] - sums[:, 1]).sum(axis=1), sums[:, 2].sum(axis=1))


def _share(part: Column, whole: Column) -> Column:
    shares: Column = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return shares
