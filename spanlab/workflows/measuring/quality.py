"""How good a measured detector's marks are on the reviewed sample, and how far people agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Any, Final

import numpy as np

from spanlab.extents import Extent
from spanlab.labels import hard_of
from spanlab.schema import Annotation, AnnotatorKind, Record, Status
from spanlab.scorers.agreement import pairwise_ious
from spanlab.scorers.powered import Array, ReviewedSample, estimate_rate
from spanlab.workflows.analysis.calibration import CalibrationTally
from spanlab.workflows.measuring.sample import MeasuredItems, interval_of, is_reviewer

_UNITS: Final = ("answers", "characters")
_TP, _FP, _FN, _TN = range(4)
_SHARES: Final = {
    "sensitivity": ((_TP,), (_TP, _FN)),
    "specificity": ((_TN,), (_TN, _FP)),
    "iou": ((_TP,), (_TP, _FP, _FN)),
}


@dataclass
class MarkAgreement:
    """How alike marks of the same items are, pair by pair."""

    answers: list[bool] = field(default_factory=list)
    ious: list[float] = field(default_factory=list)

    def add(self, marks: Sequence[Sequence[Extent]]) -> None:
        """Add an item that several have marked."""
        ious = pairwise_ious(marks)
        for a, b in combinations(range(len(marks)), 2):
            self.answers.append(bool(marks[a]) == bool(marks[b]))
            self.ious.append(float(ious[a, b]))

    def figures(self) -> dict[str, float] | None:
        """Return the shares of pairs that agree on the answer, and their mean IoU."""
        if not self.ious:
            return None
        return {"pairs": len(self.ious), "answers": fmean(self.answers), "iou": fmean(self.ious)}


class DetectorQuality:
    """Gathers a detector's quality on the sample of a measurement, item by item.

    Args:
        items: the sample.
        repeats: annotators that are the detector again.
    """

    def __init__(self, items: MeasuredItems, repeats: Sequence[str]) -> None:
        self._items, self._repeats = items, repeats
        self._place = {items.items[at].item_id: at for at in items.chosen().tolist()}
        self._counts = {unit: np.zeros((len(items.items), 4)) for unit in _UNITS}
        self._calibration = CalibrationTally({items.plan.annotator: AnnotatorKind.DETECTOR})
        self._people, self._runs = MarkAgreement(), MarkAgreement()
        self._reviews: Counter[str] = Counter()

    def add(self, record: Record) -> None:
        """Add an item of the dataset; those that are not of the sample tell of repeats alone."""
        plan = self._items.plan
        done = {
            annotation.annotator: annotation
            for annotation in record.annotations
            if annotation.status is Status.DONE
        }
        runs = [done[name] for name in (plan.annotator, *self._repeats) if name in done]
        if len(runs) > 1 and len(runs) == 1 + len(self._repeats):
            self._runs.add([hard_of(run) for run in runs])
        at = self._place.get(record.item.id)
        if at is None:
            return
        detector = done[plan.annotator]
        people = [annotation for annotation in done.values() if is_reviewer(annotation, plan)]
        self._reviews.update(person.annotator for person in people)
        self._people.add([hard_of(person) for person in people])
        self._count(at, detector, people, len(record.item.answer))
        machine = detector.model_copy(update={"kind": AnnotatorKind.DETECTOR})
        self._calibration.add(record.model_copy(update={"annotations": (machine, *people)}))

    def _count(
        self, at: int, detector: Annotation, people: Sequence[Annotation], length: int
    ) -> None:
        marks = _characters(detector)
        for person in people:
            truth, weight = _characters(person), 1 / len(people)
            both = len(marks & truth)
            counts = [both, len(marks) - both, len(truth) - both, length - len(marks | truth)]
            self._counts["characters"][at] += np.multiply(counts, weight)
            which = {(True, True): _TP, (True, False): _FP, (False, True): _FN}
            self._counts["answers"][at, which.get((bool(marks), bool(truth)), _TN)] += weight

    def figures(self) -> dict[str, Any]:
        """Return all figures; shares with 95 % intervals for all items, None of nothing."""
        found = {
            unit: {name: self._share(unit, *parts) for name, parts in _SHARES.items()}
            for unit in _UNITS
        }
        calibration = next(iter(self._calibration.result()), None)
        return {
            "reviewers": dict(self._reviews),
            "agreement": self._people.figures(),
            **found,
            "calibration": calibration and calibration.calibration.model_dump(),
            "consistency": self._runs.figures()
            and {"runs": 1 + len(self._repeats), **(self._runs.figures() or {})},
        }

    def _share(
        self, unit: str, part: Sequence[int], whole: Sequence[int]
    ) -> dict[str, float] | None:
        """Return a share of what the whole population has, from the sample with its odds."""
        items, counts = self._items, self._counts[unit]
        y, x = (counts[:, list(columns)].sum(1) for columns in (part, whole))
        values = {"y": y, "x": x, "f": np.zeros(len(y)), "size": x}
        sample = items.sampled(items.chosen(), items.inside(), values)
        with_any = _where(sample)
        if not len(with_any.y):
            return None
        population = round(float((1 / with_any.pi).sum()))
        interval = interval_of(estimate_rate(with_any, None, items=max(population, 1)))
        return None if interval is None else interval.model_dump()


def quality_of(
    records: Iterable[Record], items: MeasuredItems, repeats: Sequence[str] = ()
) -> dict[str, Any]:
    """Return how good the marks of a measured detector are; see ``DetectorQuality``."""
    gathered = DetectorQuality(items, repeats)
    for record in records:
        gathered.add(record)
    return gathered.figures()


def _where(sample: ReviewedSample) -> ReviewedSample:
    """Return those of a sample's units that have any of what is asked for."""
    x: Array = np.ones_like(sample.y) if sample.x is None else sample.x
    kept = x > 0
    strata = None if sample.strata is None else sample.strata[kept]
    return ReviewedSample(sample.y[kept], sample.f[kept], sample.pi[kept], x[kept], x[kept], strata)


def _characters(annotation: Annotation) -> set[int]:
    return {at for start, end in hard_of(annotation) for at in range(start, end)}
