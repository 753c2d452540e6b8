"""Scores of detectors against verdicts: which answers are hallucinated, whatever the place.

Hallucinated answers are what is looked for. Intervals come from resampling answers. The baselines
call all answers hallucinated, none, or what most are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.base.fields import FrozenModel
from spanlab.output.tables import ITEMS, LANGUAGE, Cell, Column, MeanInterval, ResultTable, several
from spanlab.schema import AnnotatorKind, Record, Verdict
from spanlab.scoring.agreement import verdict_alpha
from spanlab.scoring.claims import areas, resampled_mean
from spanlab.scoring.report import RESAMPLES, Table, seeded
from spanlab.text.labels import AnswerVerdict

_MOST_LEVELS: Final = 400  # different probabilities that are resampled; more are put into as many
_TITLES: Final = {
    "precision": ("Precision", "Share of the answers called hallucinated that are."),
    "recall": ("Recall", "Share of the hallucinated answers that are called so."),
    "f1": ("F1", "Harmonic mean of precision and recall, in answers."),
    "balanced_accuracy": (
        "Balanced accuracy",
        "Mean of the shares of hallucinated and of other answers that are judged right. .5 is what "
        "chance gives.",
    ),
    "auroc": (
        "AUROC",
        "How often a hallucinated answer has a higher probability than another one, ties counting "
        "half. .5 is what chance gives.",
    ),
    "average_precision": (
        "Average precision",
        "Area under the curve of precision over recall. The share of hallucinated answers is what "
        "chance gives.",
    ),
}
ANSWER_SCORES: Final = {
    key: Column(key=key, title=title, unit="score", about=about)
    for key, (title, about) in _TITLES.items()
}
HALLUCINATED_ANSWERS: Final = Column(key="hallucinated", title="Hallucinated", unit="count")
BASELINES: Final = ("all hallucinated", "none hallucinated", "the majority")
AnswerPairs = Sequence[tuple[AnswerVerdict, AnswerVerdict]]


class AnswerScores(FrozenModel):
    """Scores over ``n`` answers of which ``hallucinated`` are so by the gold labels.

    Each is in [0, 1], and None where it is not defined: precision where no answer is called
    hallucinated, recall and average precision where none is, F1 where neither, balanced accuracy
    and AUROC where all answers are of one kind.
    """

    n: int
    hallucinated: int
    precision: MeanInterval | None
    recall: MeanInterval | None
    f1: MeanInterval | None
    balanced_accuracy: MeanInterval | None
    auroc: MeanInterval | None
    average_precision: MeanInterval | None

    def cells(self) -> tuple[Cell, ...]:
        """Return all scores as cells of a table."""
        return tuple(several(getattr(self, key), self.n) for key in ANSWER_SCORES)


@dataclass(frozen=True)
class AnswerEvaluation:
    """Scores of verdicts on whole answers: of all, by language, and of the baselines by name."""

    total: AnswerScores
    languages: Mapping[str, AnswerScores]
    baselines: Mapping[str, AnswerScores]

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the scores by language and of all answers, and the baselines."""
        groups = self.languages
        if len(groups) > 1:
            groups = {**groups, "all": self.total}
        scores = ResultTable(
            key="answers",
            title="Whole answers: hallucinated or not, with 95 % intervals",
            columns=(LANGUAGE, ITEMS, HALLUCINATED_ANSWERS, *ANSWER_SCORES.values()),
            rows=tuple((name, of.n, of.hallucinated, *of.cells()) for name, of in groups.items()),
        )
        baselines = ResultTable(
            key="answer-baselines",
            title="Baselines of whole answers",
            columns=(Column(key="called", title="Called"), *ANSWER_SCORES.values()),
            rows=tuple((name, *map(_mean, of.cells())) for name, of in self.baselines.items()),
        )
        return (scores, baselines)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        return {
            "all": self.total,
            "languages": dict(self.languages),
            "baselines": dict(self.baselines),
        }


def evaluate_answers(pairs: Mapping[str, AnswerPairs]) -> AnswerEvaluation:
    """Return scores of verdicts by language, of which each has at least one answer.

    Args:
        pairs: by language, the gold verdict and the predicted one of each answer.
    """
    every = [pair for of_language in pairs.values() for pair in of_language]
    return AnswerEvaluation(
        score_answers(every),
        {lang: score_answers(pairs[lang]) for lang in sorted(pairs)},
        baselines([gold for gold, _ in every]),
    )


def baselines(golds: Sequence[AnswerVerdict]) -> dict[str, AnswerScores]:
    """Return the scores of calling all answers hallucinated, none, or what most are."""
    most = 2 * sum(gold.hallucinated for gold in golds) > len(golds)
    return {
        name: score_answers([(gold, AnswerVerdict(called, float(called))) for gold in golds])
        for name, called in zip(BASELINES, (True, False, most), strict=True)
    }


def score_answers(pairs: AnswerPairs) -> AnswerScores:
    """Score verdicts on whole answers, at least one."""
    sides = ((gold.hallucinated, said.hallucinated, said.prob) for gold, said in pairs)
    cells, counts = np.unique(np.array(list(sides), np.float64), axis=0, return_counts=True)
    observed = _scores(cells, counts[None].astype(np.float64))[0]
    samples = _scores(*_resampled(cells, counts))
    n_gold = int(counts @ cells[:, 0])
    n_of = {
        "precision": int(counts @ cells[:, 1]),
        "recall": n_gold,
        "average_precision": n_gold,
        "f1": int(counts @ cells[:, :2].max(axis=1)),
    }
    smaller = min(n_gold, len(pairs) - n_gold)
    scores = {
        key: None
        if np.isnan(value)
        else _interval(key, float(value), column[~np.isnan(column)], n_of.get(key, smaller))
        for key, value, column in zip(ANSWER_SCORES, observed, samples.T, strict=True)
    }
    return AnswerScores(n=len(pairs), hallucinated=n_gold, **scores)


def _interval(key: str, value: float, samples: Table, n: int) -> MeanInterval:
    """Return a score with its interval; F1's is that of a share, which it is a function of.

    Of ``n`` answers that either side calls hallucinated, a share s is so by both: 2s / (1 + s).
    """
    if key != "f1":
        return resampled_mean(value, samples, n)
    share = resampled_mean(value / (2 - value), samples / (2 - samples), n)
    low, high = (2 * end / (1 + end) for end in (share.low, share.high))
    return MeanInterval(mean=value, low=low, high=high)


def _mean(cell: Cell) -> Cell:
    return cell.mean if isinstance(cell, MeanInterval) else cell


def _resampled(cells: Table, counts: NDArray[np.intp]) -> tuple[Table, Table]:
    """Return cells, and how many answers of each are in samples of all answers.

    Where there are many probabilities, neighbours share one: the interval hardly changes.
    """
    levels, level = np.unique(cells[:, 2], return_inverse=True)
    if len(levels) > _MOST_LEVELS:
        coarse = np.column_stack([cells[:, :2], level * _MOST_LEVELS // len(levels)])
        cells, place = np.unique(coarse, axis=0, return_inverse=True)
        counts = np.bincount(place.ravel(), weights=counts).astype(np.intp)
    n = int(counts.sum())
    drawn = seeded("answers", "bootstrap").multinomial(n, counts / n, size=RESAMPLES)
    return cells, drawn.astype(np.float64)


def _scores(cells: Table, weight: Table) -> Table:
    """Return the scores in the order of ``ANSWER_SCORES``, a row for each row of weights.

    Args:
        cells: gold verdict, predicted verdict and probability; 1 is hallucinated.
        weight: samples × cells, how many answers each cell has.
    """
    order = np.argsort(cells[:, 2], kind="stable")
    gold, called, prob = cells[order].T
    weight = weight[:, order]
    right, n_gold, n_called = weight @ (gold * called), weight @ gold, weight @ called
    others, right_others = weight @ (1 - gold), weight @ ((1 - gold) * (1 - called))
    levels = np.flatnonzero(np.diff(prob, prepend=-1.0))  # where each probability begins
    recall = _ratio(right, n_gold)
    columns = (
        _ratio(right, n_called),
        recall,
        _ratio(2 * right, n_gold + n_called),
        (recall + _ratio(right_others, others)) / 2,
        areas(weight, gold > 0, levels),
        _average_precision(weight, gold, levels),
    )
    return np.stack(columns, axis=1)


def _average_precision(weight: Table, gold: Table, levels: NDArray[np.intp]) -> Table:
    """Return the sum of precisions at each probability, weighted by the recall that it adds."""
    found = np.add.reduceat(weight * gold, levels, axis=1)[:, ::-1]  # the likeliest first
    called = np.add.reduceat(weight, levels, axis=1)[:, ::-1]
    precision = _ratio(np.cumsum(found, axis=1), np.cumsum(called, axis=1))
    total = found.sum(axis=1)
    return _ratio(np.nansum(precision * found, axis=1), total)


def _ratio(part: Table, whole: Table) -> Table:
    shares: Table = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares


class AnswerAgreement(NamedTuple):
    """Krippendorff's alpha on the verdicts of the ``n`` answers that two or more have judged."""

    n: int
    alpha: float | None


@dataclass(frozen=True)
class ScoredAnswers:
    """Scores of one annotator's verdicts; ``kind`` is None for the baselines."""

    name: str
    kind: AnnotatorKind | None
    scores: AnswerScores


@dataclass(frozen=True)
class AnswerComparison:
    """The verdicts of a dataset's annotators: against a reference, and their agreement."""

    scores: tuple[ScoredAnswers, ...]
    persons: AnswerAgreement
    independent: AnswerAgreement


class AnswerTally:
    """Gathers verdicts on whole answers item by item, also those that follow from spans.

    Args:
        kinds: the annotators to compare.
        reference: whose verdicts are right; None for nobody's.
    """

    def __init__(self, kinds: Mapping[str, AnnotatorKind], reference: str | None) -> None:
        self._kinds, self._reference = kinds, reference
        self._is_judged = False  # as a whole, by somebody
        self._verdicts: list[dict[str, Verdict]] = []
        self._golds: list[AnswerVerdict] = []
        self._pairs: dict[str, list[tuple[AnswerVerdict, AnswerVerdict]]] = {}

    def add(self, record: Record) -> None:
        """Count one item."""
        said = {
            one.annotator: AnswerVerdict(bool(one.hallucinated), one.hallucination_prob or 0.0)
            for one in record.finished
            if one.annotator in self._kinds
        }
        self._is_judged |= any(
            one.answer_hallucinated is not None
            for one in record.finished
            if one.annotator in self._kinds
        )
        self._verdicts.append(
            {name: "refuted" if one.hallucinated else "supported" for name, one in said.items()}
        )
        gold = said.pop(self._reference or "", None)
        if gold is not None:
            self._golds.append(gold)
            for name, verdict in said.items():
                self._pairs.setdefault(name, []).append((gold, verdict))

    def result(self) -> AnswerComparison:
        """Return scores in the order of the annotators, the baselines last, and agreement.

        There are none where nobody judges an answer as a whole.
        """
        if not self._is_judged:
            nothing = AnswerAgreement(0, None)
            return AnswerComparison((), nothing, nothing)
        scores = [
            ScoredAnswers(name, kind, score_answers(self._pairs[name]))
            for name, kind in self._kinds.items()
            if name in self._pairs
        ]
        if scores:
            chance = baselines(self._golds).items()
            scores += [ScoredAnswers(name, None, of) for name, of in chance]
        return AnswerComparison(
            tuple(scores),
            persons=self._agreement(AnnotatorKind.PERSON),
            independent=self._agreement(AnnotatorKind.PERSON, AnnotatorKind.DETECTOR),
        )

    def _agreement(self, *kinds: AnnotatorKind) -> AnswerAgreement:
        groups = [
            [verdict for name, verdict in verdicts.items() if self._kinds[name] in kinds]
            for verdicts in self._verdicts
        ]
        return AnswerAgreement(sum(len(group) > 1 for group in groups), verdict_alpha(groups))
