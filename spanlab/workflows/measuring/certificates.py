"""Certificates: what a detector was measured to be worth, and what exactly was measured."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spanlab.errors import UsageError
from spanlab.labels import hard_of
from spanlab.schema import Annotation, MeasurementPlan, Record, Status
from spanlab.storage import Store
from spanlab.workflows.datasets import summary_of
from spanlab.workflows.measuring.measurement import measure
from spanlab.workflows.measuring.sample import is_reviewer
from spanlab.workflows.measuring.tables import reliability_table

__all__ = ["Certificate", "certify", "read_certificate", "stale_because", "write_certificate"]


@dataclass(frozen=True)
class Certificate:
    """A certificate as data; ``figures`` is its JSON."""

    content: dict[str, Any]

    def figures(self) -> dict[str, Any]:
        """Return the certificate as JSON has it."""
        return self.content


class MarkCounts:
    """Counts how a detector's marks agree with people's, per character and per answer."""

    def __init__(self) -> None:
        self.answers, self.characters = [0] * 4, [0] * 4  # true, false positives; … negatives
        self.agreed = self.pairs = 0
        self.reviews: dict[str, int] = {}

    def add(self, detector: Annotation, people: list[Annotation], length: int) -> None:
        """Add an item that people have finished."""
        marks = _characters(detector)
        for person in people:
            self.reviews[person.annotator] = self.reviews.get(person.annotator, 0) + 1
            truth = _characters(person)
            both = len(marks & truth)
            counts = (both, len(marks) - both, len(truth) - both)
            for at, count in enumerate((*counts, length - sum(counts))):
                self.characters[at] += count
            self.answers[_quadrant(bool(marks), bool(truth))] += 1
        for at, person in enumerate(people):
            for other in people[:at]:
                self.pairs += 1
                self.agreed += bool(hard_of(person)) == bool(hard_of(other))


def certify(store: Store, dataset: str) -> Certificate:
    """Return the certificate of a dataset's measurement.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: it has no measurement, or nothing of its sample is reviewed.
    """
    found = measure(store, dataset)
    if found.rate.finite is None:
        raise UsageError(f"nothing of the sample of {dataset!r} is reviewed: {found.line}")
    plan = found.plan
    counts = MarkCounts()
    for record in store.records(dataset):
        detector = record.by(plan.annotator)
        people = _people(record, plan)
        if people and detector is not None and detector.status is Status.DONE:
            counts.add(detector, people, len(record.item.answer))
    tp, fp, fn, _ = counts.characters
    content = {
        "certificate": 1,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "spanlab": version("spanlab"),
        "binding": _binding(store, dataset, plan),
        "reviewers": counts.reviews,
        "agreement_on_answers": counts.agreed / counts.pairs if counts.pairs else None,
        "answers": _quality(counts.answers),
        "characters": {**_quality(counts.characters), "iou": _share(tp, tp + fp + fn)},
        "measurement": found.figures(),
        "reliability": [
            {"probability": probability, "share": share, "characters": characters}
            for _, probability, share, _, _, characters in reliability_table(
                store, dataset, plan
            ).rows
        ],
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return Certificate({**content, "sha256": sha256(text.encode()).hexdigest()})


def stale_because(store: Store, dataset: str, certificate: Certificate) -> tuple[str, ...]:
    """Say why a certificate does not hold for a dataset as it is now; nothing if it does.

    Raises:
        NotFoundError: there is no such dataset.
    """
    plan = summary_of(store, dataset).settings.measurement
    if plan is None:
        return ("the dataset has no measurement",)
    now, then = _binding(store, dataset, plan), certificate.content["binding"]
    names = {
        "annotator": "the detector",
        "model": "the model",
        "definition": "the definition of hallucinated",
        "marks": "what the detector marks (its model, prompt or options, or its version)",
        "dataset": "the dataset",
        "unit": "the unit",
    }
    return tuple(f"{names[key]} changed" for key in names if now[key] != then.get(key))


def write_certificate(certificate: Certificate, path: Path) -> None:
    """Write a certificate as JSON."""
    text = json.dumps(certificate.content, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def read_certificate(path: Path) -> Certificate:
    """Read a certificate from a file, as ``parse_certificate`` does."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
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
        raise UsageError(f"{path} is no certificate of spanlab") from error
    if sha256(plain.encode()).hexdigest() != stated:
        raise UsageError(f"{path} was changed after spanlab wrote it: its hash differs")
    return Certificate({**content, "sha256": stated})


def _binding(store: Store, dataset: str, plan: MeasurementPlan) -> dict[str, str]:
    """Return what a certificate is bound to; hashes of items, and of the detector's marks."""
    items, marks = sha256(), sha256()
    for record in store.records(dataset):
        items.update(json.dumps([record.item.id, record.item.answer]).encode())
        said = record.by(plan.annotator)
        spans = [] if said is None else [(s.start, s.end, s.prob) for s in said.spans]
        verdicts = [] if said is None else [(c.text, c.verdict) for c in said.claims]
        marks.update(json.dumps([record.item.id, spans, verdicts]).encode())
    return {
        "name": dataset,
        "annotator": plan.annotator,
        "model": plan.model,
        "definition": plan.definition,
        "unit": plan.unit,
        "dataset": items.hexdigest(),
        "marks": marks.hexdigest(),
    }


def _people(record: Record, plan: MeasurementPlan) -> list[Annotation]:
    done = (said for said in record.annotations if said.status is Status.DONE)
    return [said for said in done if is_reviewer(said, plan)]


def _characters(said: Annotation) -> set[int]:
    return {at for start, end in hard_of(said) for at in range(start, end)}


def _quadrant(marked: bool, true: bool) -> int:
    return {(True, True): 0, (True, False): 1, (False, True): 2, (False, False): 3}[marked, true]


def _quality(counts: Iterable[int]) -> dict[str, float | int | None]:
    tp, fp, fn, tn = counts
    return {
        "true_positives": tp,
        "false_positives": fp,
        "false_negatives": fn,
        "true_negatives": tn,
        "sensitivity": _share(tp, tp + fn),
        "specificity": _share(tn, tn + fp),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
