"""Certificates: the measured rate and the quality of a detector's marks, bound to its setup."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from spanlab.base.errors import UsageError, unreadable
from spanlab.detection.setup import changed_prompts, model_checks, option_hash
from spanlab.formats.files import check_file
from spanlab.measure.items import is_reviewer, words_that_count
from spanlab.measure.measurement import measure_items
from spanlab.measure.powered import METHOD, ReviewedSample, estimate_rate
from spanlab.measure.sample import (
    MeasuredItems,
    interval_of,
    read_measured,
)
from spanlab.schema import Annotation, DetectorSetup, MeasurementPlan, Record, Status
from spanlab.scoring.agreement import pairwise_ious
from spanlab.scoring.calibration import SampledCalibration
from spanlab.scoring.intervals import Array
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of
from spanlab.text.labels import hard_of

_UNITS: Final = ("answers", "characters")
_TP, _FP, _FN, _TN = range(4)
_SHARES: Final = {
    "sensitivity": ((_TP,), (_TP, _FN)),
    "specificity": ((_TN,), (_TN, _FP)),
    "iou": ((_TP,), (_TP, _FP, _FN)),
}


@dataclass
class MarkAgreement:
    """The agreement of annotations of the same items, pair by pair."""

    answers: list[bool] = field(default_factory=list)
    ious: list[float] = field(default_factory=list)

    def add(self, annotations: Sequence[Annotation]) -> None:
        """Add what several say of an item."""
        for a, b in combinations(annotations, 2):
            self.answers.append(a.hallucinated == b.hallucinated)
        marks = [hard_of(one) for one in annotations if not one.is_verdict_only]
        ious = pairwise_ious(marks)
        self.ious += [float(ious[a, b]) for a, b in combinations(range(len(marks)), 2)]

    def figures(self) -> dict[str, float | None] | None:
        """Return the shares of pairs that agree on the answer, and the mean IoU of their marks."""
        if not self.answers:
            return None
        iou = fmean(self.ious) if self.ious else None
        return {"pairs": len(self.answers), "answers": fmean(self.answers), "iou": iou}


class DetectorQuality:
    """Gathers a detector's quality on the sample of a measurement, item by item.

    It is that on answers which the detector did not learn from.

    Args:
        items: the sample.
        repeats: annotators that are the detector again.
    """

    def __init__(self, items: MeasuredItems, repeats: Sequence[str]) -> None:
        self._items, self._repeats = items, repeats
        self._place = {items.items[at].item_id: at for at in items.chosen().tolist()}
        self._counts = {unit: np.zeros((len(items.items), 4)) for unit in _UNITS}
        self._odds, self._calibration = items.odds, SampledCalibration()
        self._people, self._runs = MarkAgreement(), MarkAgreement()
        self._reviews: Counter[str] = Counter()

    def add(self, record: Record) -> None:
        """Add an item of the dataset; one outside the sample counts for repeats alone."""
        plan = self._items.plan
        finished = {annotation.annotator: annotation for annotation in record.finished}
        runs = [finished[name] for name in (plan.annotator, *self._repeats) if name in finished]
        if len(runs) > 1 and len(runs) == 1 + len(self._repeats):
            self._runs.add(runs)
        at = self._place.get(record.item.id)
        if at is None:
            return
        people = [annotation for annotation in record.finished if is_reviewer(annotation, plan)]
        self._reviews.update(person.annotator for person in people)
        self._people.add(people)
        if self._items.seen[at]:  # of which nothing follows for answers that it has not seen
            return
        detector = finished[plan.annotator]
        truths = [a for a in words_that_count(record, plan) if a.status is Status.DONE]
        self._count(at, detector, truths, len(record.item.answer))
        placed = tuple(truth for truth in truths if not truth.is_verdict_only)
        judged = record.model_copy(update={"annotations": placed})
        self._calibration.add(judged, detector, self._odds[at])

    def _count(
        self, at: int, detector: Annotation, people: Sequence[Annotation], length: int
    ) -> None:
        columns = {(True, True): _TP, (True, False): _FP, (False, True): _FN}
        for person in people:
            called = bool(detector.hallucinated), bool(person.hallucinated)
            self._counts["answers"][at, columns.get(called, _TN)] += 1 / len(people)
        placed = [person for person in people if not person.is_verdict_only]
        marks = _characters(detector)
        for person in [] if detector.is_verdict_only else placed:
            truth, weight = _characters(person), 1 / len(placed)
            n_common = len(marks & truth)
            counts = [
                n_common,
                len(marks) - n_common,
                len(truth) - n_common,
                length - len(marks | truth),
            ]
            self._counts["characters"][at] += np.multiply(counts, weight)

    def figures(self) -> dict[str, Any]:
        """Return all figures as JSON; shares are estimates for all items with 95 % intervals."""
        shares = {
            unit: {
                name: self._share(unit, part=part, whole=whole)
                for name, (part, whole) in _SHARES.items()
            }
            for unit in _UNITS
        }
        calibration = self._calibration.result()
        return {
            "reviewers": dict(self._reviews),
            "agreement": self._people.figures(),
            **shares,
            "calibration": calibration and calibration.model_dump(),
            "learnt_from": int(self._items.seen.sum()),
            "consistency": self._runs.figures()
            and {"runs": 1 + len(self._repeats), **(self._runs.figures() or {})},
        }

    def _share(
        self, unit: str, part: Sequence[int], whole: Sequence[int]
    ) -> dict[str, float] | None:
        """Estimate a share over all items from the sample.

        Args:
            unit: the unit that is counted.
            part: the columns of counts above the line.
            whole: the columns below it, which include those of ``part``.
        """
        items, counts = self._items, self._counts[unit]
        y, x = (counts[:, list(columns)].sum(1) for columns in (part, whole))
        values = {"y": y, "x": x, "f": np.zeros(len(y)), "size": x}
        sample = items.sample(items.chosen(), items.inside(), values)
        with_any = _with_any(sample)
        if not len(with_any.y):
            return None
        population = max(round(float((1 / with_any.pi).sum())), 1)
        # A detector's quality is always meant for other answers, also once all of these are known.
        quality = estimate_rate(with_any, None, items=population, superpopulation=True)
        interval = interval_of(quality)
        return None if interval is None else interval.model_dump()


def quality_of(
    records: Iterable[Record], items: MeasuredItems, repeats: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the quality of a measured detector's marks as JSON, see ``DetectorQuality``."""
    quality = DetectorQuality(items, repeats)
    for record in records:
        quality.add(record)
    return quality.figures()


def _with_any(sample: ReviewedSample) -> ReviewedSample:
    """Return the units of a sample whose ``x``, the size of the whole, is above 0."""
    x: Array = np.ones_like(sample.y) if sample.x is None else sample.x
    has_any = x > 0
    strata = None if sample.strata is None else sample.strata[has_any]
    return ReviewedSample(
        y=sample.y[has_any],
        f=sample.f[has_any],
        pi=sample.pi[has_any],
        x=x[has_any],
        x_detector=x[has_any],
        strata=strata,
        clusters=None if sample.clusters is None else sample.clusters[has_any],
    )


def _characters(annotation: Annotation) -> set[int]:
    return {at for start, end in hard_of(annotation) for at in range(start, end)}


_BOUND: Final = {
    "annotator": "the detector",
    "version": "the version of spanlab that the detector ran in",
    "model": "the model",
    "models": "the model",
    "prompts": "the prompts",
    "options": "the options",
    "definition": "the definition of hallucinated",
    "marks": "what the detector marks",
    "dataset": "the dataset",
    "unit": "the unit",
}


@dataclass(frozen=True)
class Certificate:
    """A certificate as data; ``figures`` is its JSON."""

    content: dict[str, Any]

    def figures(self) -> dict[str, Any]:
        """Return the certificate as JSON."""
        return self.content


def certify(store: Store, dataset: str) -> Certificate:
    """Make the certificate of a dataset's measurement.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: it has no measurement, or nothing of its sample is reviewed.
    """
    items = read_measured(store, dataset)
    measurement = measure_items(store, dataset, items)
    if measurement.rate.finite is None:
        raise UsageError(f"nothing of the sample of {dataset!r} is reviewed: {measurement.line}")
    setups = summary_of(store, dataset).settings.setups
    own_setups = [setup for setup in setups if setup.annotator == measurement.plan.annotator]
    repeats = {setup.annotator for setup in setups if own_setups and own_setups[0].repeats(setup)}
    content = {
        "certificate": 2,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "binding": {
            **_binding(store, dataset, measurement.plan),
            "reviews": [items.reviewed, _reviews_hash(store, dataset, items, items.reviewed)],
        },
        "checks": model_checks(own_setups),
        **quality_of(store.records(dataset), items, sorted(repeats)),
        "measurement": measurement.figures(),
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return Certificate({**content, "sha256": sha256(text.encode()).hexdigest()})


def stale_because(store: Store, dataset: str, certificate: Certificate) -> tuple[str, ...]:
    """Return the reasons why a certificate does not hold for a dataset as it is now.

    Returns:
        A sentence each; empty if the certificate holds.

    Raises:
        NotFoundError: there is no such dataset.
    """
    summary = summary_of(store, dataset)
    plan = summary.settings.measurement
    if plan is None:
        return ("the dataset has no measurement",)
    binding, bound = _binding(store, dataset, plan), certificate.content["binding"]
    changed = dict.fromkeys(_BOUND[key] for key in _BOUND if binding[key] != bound.get(key))
    reasons = [f"{part} changed" for part in changed]
    if not changed and (reviews := bound.get("reviews")):  # earlier versions did not bind them
        n, then = reviews
        if _reviews_hash(store, dataset, read_measured(store, dataset), n) != then:
            reasons.append("reviews that it counts changed")
    if binding["prompts"] == bound.get("prompts"):
        own_setups = [
            setup for setup in summary.settings.setups if setup.annotator in binding["prompts"]
        ]
        reasons += [
            f"the prompts or the training of {name} changed; annotate again (spanlab annotate "
            f"{dataset} --detector {name} --again) and write another certificate"
            for name in changed_prompts(own_setups)
        ]
    return tuple(reasons)


def method_change(certificate: Certificate) -> str | None:
    """Return that a certificate's figures were estimated in another way than now; None if not."""
    before = certificate.content["measurement"]["method"]
    if before == METHOD:
        return None
    return f"its figures were estimated otherwise ({before}); now: {METHOD}"


def write_certificate(certificate: Certificate, path: Path) -> None:
    """Write a certificate as JSON."""
    text = json.dumps(certificate.content, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def read_certificate(path: Path) -> Certificate:
    """Read a certificate from a file, as ``parse_certificate`` does."""
    check_file(path)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    return parse_certificate(text, str(path))


def parse_certificate(text: bytes, path: str) -> Certificate:
    """Return the certificate that JSON holds; ``path`` names it in errors.

    Raises:
        UsageError: it is none, or it was changed after it was written.
    """
    try:
        content = json.loads(text)
        stated = content.pop("sha256")
        plain = json.dumps(content, sort_keys=True, ensure_ascii=False)
    except (RecursionError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise UsageError(f"{path} is not a certificate of spanlab") from error
    if sha256(plain.encode()).hexdigest() != stated:
        raise UsageError(f"{path} was changed after spanlab wrote it: its hash differs")
    return Certificate({**content, "sha256": stated})


def _verdicts(annotation: Annotation) -> list[tuple[str, str | None]]:
    return [(claim.text, claim.verdict) for claim in annotation.claims]


def _reviews_hash(store: Store, dataset: str, items: MeasuredItems, n: int) -> str:
    """Return a hash of what people say of the first n items of the sample, not of who says it."""
    sample = store.positions_of(dataset, [item.item_id for item in items.items[:n]])
    said = {
        record.item.id: sorted(
            json.dumps([a.status, a.hallucinated, list(hard_of(a)), _verdicts(a)])
            for a in words_that_count(record, items.plan)
            if a.status is not Status.NOT_ANNOTATED
        )
        for record in store.records_at(dataset, sample)
    }
    return sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _binding(store: Store, dataset: str, plan: MeasurementPlan) -> dict[str, Any]:
    """Return what a certificate is bound to, as JSON; long or private values as a hash."""
    items, marks, voters = sha256(), sha256(), {plan.annotator}
    for record in store.records(dataset):
        items.update(json.dumps([record.item.id, record.item.answer]).encode())
        annotation = record.by(plan.annotator)
        spans = [] if annotation is None else [(s.start, s.end, s.prob) for s in annotation.spans]
        verdicts = [] if annotation is None else _verdicts(annotation)
        marks.update(json.dumps([record.item.id, spans, verdicts]).encode())
        voters.update(() if annotation is None else annotation.voters)
    setups = [s for s in summary_of(store, dataset).settings.setups if s.annotator in voters]

    def by_name(value: Callable[[DetectorSetup], Any]) -> dict[str, list[Any]]:
        names = sorted({setup.annotator for setup in setups})
        return {name: [value(s) for s in setups if s.annotator == name] for name in names}

    return {
        "name": dataset,
        "annotator": plan.annotator,
        "version": by_name(lambda setup: setup.version),
        "model": plan.model,
        "models": by_name(lambda setup: setup.models),
        "prompts": by_name(lambda setup: setup.prompts),
        "options": by_name(option_hash),
        "definition": plan.definition,
        "unit": plan.unit,
        "dataset": items.hexdigest(),
        "marks": marks.hexdigest(),
    }
