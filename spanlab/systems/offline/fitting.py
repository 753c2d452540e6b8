"""Learns from the reviews of a dataset how to correct the model, and says whether that gains.

1. The finished answers of people are read, of gold labels where no people have finished any.
2. Answers with the same question, the same answer or the same passages are one group.
3. Five times a fit of four fifths of the groups judges the rest, beside the model without a fit.
4. A fit of all answers is kept if the held-out answers gain (see ``gains``).

What is learnt is in ``fit``: two numbers (Platt 1999), and trees on top of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import UsageError
from spanlab.detection.fits import reviews_of
from spanlab.detection.mark_count import LEAST
from spanlab.output.figures import counted
from spanlab.schema import (
    AnnotatorKind,
    DatasetSummary,
    DetectorFit,
    Item,
    Record,
    Status,
    answer_hash,
    related,
)
from spanlab.schema.fits import FitReport
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of
from spanlab.systems.offline.detector import NAME, OfflineDetector, RatedPart
from spanlab.systems.offline.fit import SHIPPED_LOGIT, WordFit, logits, sigmoid, with_logits
from spanlab.systems.offline.fit_report import JudgedAnswer, judge, report_of
from spanlab.systems.offline.learners import BoostingSettings, export, fit
from spanlab.systems.offline.links import Column
from spanlab.systems.offline.model import installed
from spanlab.systems.offline.raters import TrainingRows
from spanlab.systems.offline.training import Progress, word_shares
from spanlab.text.labels import ItemLabels, SoftLabel, labels_in, vote

LEAST_GROUPS: Final = 5
MOST: Final = 1000  # answers that are learnt from: half a minute
_FOLDS = 5
_ROUNDS = 6  # of so many trees: after each, what is left to explain is computed again
_SMALL_TREES = BoostingSettings(
    trees=10, leaves=7, rate=0.1, least_words=20, ridge=1.0, features=0.5
)
_STEEPEST = 4.0  # a word moves a logit by no more in a round
_LEAST_CURVE = 0.02
_LEVELS = 64


def fit_dataset(
    store: Store,
    dataset: str,
    *,
    annotators: Sequence[str] = (),
    on_progress: Progress = lambda task, done, total: None,
) -> DetectorFit:
    """Learn from a dataset's finished answers; nothing is stored.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        annotators: whose labels; several vote. Empty for all people, or the gold labels if no
            person has finished an answer.
        on_progress: called with the task, and how many of how many steps of it are done.

    Returns:
        The fit with its report. ``in_use`` says whether it gains; if it does not, its ``numbers``
        are empty.

    Raises:
        NotFoundError: there is no such dataset or annotator.
        UsageError: there are fewer than 30 finished answers, or fewer than 5 groups of related
            ones.
    """
    summary = summary_of(store, dataset)
    names = _reviewers(summary, annotators)
    reviewed = [
        answer
        for record in store.records(dataset, annotators=names)
        if (answer := _reviewed(record, names))
    ]
    if len(reviewed) < LEAST:
        raise UsageError(
            f"fitting needs {LEAST} finished answers; {', '.join(names)} finished {len(reviewed)} "
            f"in {dataset!r}"
        )
    # By their hashes, not by how they come: that is as good as at random, and always the same.
    drawn = sorted(reviewed, key=lambda answer: answer_hash(answer.item))[:MOST]
    groups = related([answer.item for answer in drawn])
    if len(set(groups)) < LEAST_GROUPS:
        raise UsageError(
            f"fitting needs answers to {LEAST_GROUPS} questions or documents; the "
            f"{counted(len(drawn), 'answer')} in {dataset!r} are about {len(set(groups))}"
        )
    current = installed()
    detector = OfflineDetector(current.model)
    answers = list[_RatedAnswer]()
    for number, (answer, group) in enumerate(zip(drawn, groups, strict=True), start=1):
        parts = detector.rate(answer.item)
        answers.append(_RatedAnswer(answer.item, answer.labels, tuple(parts), group))
        on_progress("reading", number, len(drawn))
    report = cross_validate(answers, on_progress)
    is_better = gains(report)
    learnt = learn(answers)
    return DetectorFit(
        detector=NAME,
        name=dataset,
        base=current.digest,
        numbers=learnt.dump() if is_better else "",
        learnt_from=tuple(answer_hash(answer.item) for answer in answers),
        annotators=tuple(names),
        reviews=reviews_of(summary),
        made=datetime.now(UTC),
        report=report,
        in_use=is_better,
    )


def _reviewers(summary: DatasetSummary, asked_for: Sequence[str]) -> list[str]:
    """Return whose labels are learnt: of people, or else the gold labels, unless others are."""
    if asked_for:
        return list(dict.fromkeys(asked_for))
    finished = [who for who in summary.annotators if who.counts.get(Status.DONE)]
    people = [who.name for who in finished if who.kind is AnnotatorKind.PERSON]
    gold = [who.name for who in finished if who.kind is AnnotatorKind.GOLD]
    if not people and not gold:
        raise UsageError(
            f"fitting needs {LEAST} finished answers; nobody has finished one in {summary.name!r}"
        )
    return people or gold


@dataclass(frozen=True)
class _ReviewedAnswer:
    item: Item
    labels: ItemLabels


def _reviewed(record: Record, names: Sequence[str]) -> _ReviewedAnswer | None:
    """Return an answer with its labels, those of several people as a vote; None if none is done."""
    done = [a for a in record.annotations if a.annotator in names and a.status is Status.DONE]
    if not done or not record.item.answer.strip():
        return None
    label = done[0] if len(done) == 1 else vote(record.item, done)
    return _ReviewedAnswer(record.item, labels_in(record.item, label))


@dataclass(frozen=True)
class _RatedAnswer:
    """An answer with its labels, its words as the model rates them, and its group."""

    item: Item
    labels: ItemLabels
    parts: tuple[RatedPart, ...]
    group: int


def learn(answers: Sequence[_RatedAnswer]) -> WordFit:
    """Fit two numbers to the labels of answers, and trees on top.

    Each round of trees takes Newton's step towards the most likely logits (Friedman, Hastie and
    Tibshirani 2000, "Additive logistic regression", algorithm 3).
    """
    words = _Words.of(answers)
    intercept, slope = _two_numbers(words)
    before = logits(words.rated)
    table, names = _coarse(with_logits(words.table, before)), (*words.names, SHIPPED_LOGIT)
    reached, rounds = intercept + slope * before, []
    for number in range(_ROUNDS):
        said = sigmoid(reached)
        curve = np.maximum(said * (1 - said), _LEAST_CURVE)
        step = np.clip((words.share - said) / curve, -_STEEPEST, _STEEPEST)
        rows = TrainingRows(names, table, step, words.weight * curve, words.answer)
        rounds.append(fit(rows, _SMALL_TREES, number))
        reached = reached + export(rounds[-1:], names).predict(table, names)
    mean = export(rounds, names)
    trees = replace(mean, value=mean.value * _ROUNDS, base=mean.base * _ROUNDS)
    return WordFit(intercept, slope, trees)


def _coarse(table: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return features with at most 64 values each, a value as the nearest of its quantiles.

    Trees cut halfway between two values, so they part the features as they are in the same way.
    scikit-learn takes a second for the quantiles of weighted rows, and that for each round.
    """
    coarse = table.copy()
    for column in coarse.T:
        values = np.unique(column)
        if len(values) > _LEVELS:
            values = np.unique(np.quantile(column, np.linspace(0, 1, _LEVELS), method="nearest"))
            column[:] = values[np.searchsorted((values[1:] + values[:-1]) / 2, column)]
    return coarse


@dataclass(frozen=True)
class _Words:
    """The words that may be marked, of all answers: features, rating, labels, weight, answer."""

    names: tuple[str, ...]
    table: NDArray[np.float32]
    rated: Column
    share: Column
    weight: Column
    answer: NDArray[np.int64]

    @classmethod
    def of(cls, answers: Sequence[_RatedAnswer]) -> _Words:
        tables, columns = [], []
        for number, answer in enumerate(answers):
            for part in answer.parts:
                free = ~part.exempt
                share = word_shares(part.described, _within(answer.labels, part))
                weight = np.full(len(share), max(len(share), 1) ** -0.5)
                place = np.full(len(share), float(number))
                tables.append(part.described.table[free])
                columns.append(np.stack([part.rated.share, share, weight, place])[:, free])
        rated, share, weight, place = np.concatenate(columns, axis=1)
        names = next(part.described.names for answer in answers for part in answer.parts)
        return cls(
            names, np.concatenate(tables), rated, share, weight / weight.mean(), place.astype(int)
        )


def _within(labels: ItemLabels, part: RatedPart) -> list[SoftLabel]:
    """Return the labels of a part of an answer, in characters of the part."""
    length = len(part.described.answer.text)
    moved = (
        SoftLabel(max(start - part.begin, 0), min(end - part.begin, length), prob)
        for start, end, prob in labels.soft
    )
    return [label for label in moved if label.start < label.end]


_PRIOR = 3.0  # how much evidence it takes to leave the model's own probabilities
_WORDS = 5.0  # an answer counts as so many independent words
_STEPS = 50  # of Newton's method, which needs about 6
_LEAST_SLOPE = 0.05


def _two_numbers(words: _Words) -> tuple[float, float]:
    """Return intercept and slope of the most likely logits, which stay near 0 and 1 for few words.

    Found by Newton's method.
    """
    seen = np.stack([np.ones(len(words.rated)), logits(words.rated)])
    answers = len(np.unique(words.answer))
    weight = words.weight / words.weight.sum() * answers * _WORDS
    plain = np.array([0.0, 1.0])
    fitted = plain
    for _ in range(_STEPS):
        said = sigmoid(fitted @ seen)
        slope = seen @ (weight * (said - words.share)) + _PRIOR * (fitted - plain)
        curve = (seen * weight * said * (1 - said)) @ seen.T + _PRIOR * np.eye(2)
        step = np.linalg.solve(curve, slope)
        fitted = fitted - step
        if np.abs(step).max() < 1e-9:
            break
    return float(fitted[0]), max(float(fitted[1]), _LEAST_SLOPE)


def cross_validate(
    answers: Sequence[_RatedAnswer],
    on_progress: Progress = lambda task, done, total: None,
) -> FitReport:
    """Judge every answer by a fit on other groups, and without a fit.

    Groups are dealt to five folds by a hash of their answers, the largest first, so that the same
    reviews give the same report.
    """
    folds = _deal(answers)
    count = max(folds) + 1
    before = [judge(answer.parts, answer.labels, None) for answer in answers]
    after: dict[int, JudgedAnswer] = {}
    for fold in range(count):
        seen = [answer for answer, own in zip(answers, folds, strict=True) if own != fold]
        learnt = learn(seen)
        for number, answer in enumerate(answers):
            if folds[number] == fold:
                after[number] = judge(answer.parts, answer.labels, learnt)
        on_progress("checking", fold + 1, count)
    groups = [answer.group for answer in answers]
    return report_of(before, [after[n] for n in range(len(answers))], groups, count)


def _deal(answers: Sequence[_RatedAnswer]) -> list[int]:
    """Return the fold of each answer: each group goes to the fold that has fewest answers."""
    sizes = Counter(answer.group for answer in answers)
    first = {answer.group: answer_hash(answer.item) for answer in reversed(answers)}
    filled, fold_of = [0] * _FOLDS, dict[int, int]()
    for group in sorted(sizes, key=lambda group: (-sizes[group], first[group])):
        fold_of[group] = filled.index(min(filled))
        filled[fold_of[group]] += sizes[group]
    return [fold_of[answer.group] for answer in answers]


def gains(report: FitReport) -> bool:
    """Say whether a fit is worth using: the interval of the difference in IoU is above 0.

    Or IoU is not lower, and the interval of the calibration error is below 0, or that of the AUROC
    of answers above 0. It must not tell wrong answers from right ones clearly worse: marking
    nothing is no skill.
    """
    iou, error, order = report.iou, report.calibration_error, report.auroc
    if order.high is not None and order.high < 0:
        return False
    if iou.low is not None and iou.low > 0:
        return True
    is_calibrated = error.high is not None and error.high < 0
    tells_apart = order.low is not None and order.low > 0
    return (is_calibrated or tells_apart) and (iou.after or 0.0) >= (iou.before or 0.0)
