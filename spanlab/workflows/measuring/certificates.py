"""Certificates: what a detector was measured to be worth, and what exactly was measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from spanlab.errors import UsageError
from spanlab.schema import DetectorSetup, MeasurementPlan
from spanlab.storage import Store
from spanlab.workflows.datasets import summary_of
from spanlab.workflows.detection.setup import changed_prompts, model_checks, option_hash
from spanlab.workflows.measuring.measurement import measure
from spanlab.workflows.measuring.quality import quality_of
from spanlab.workflows.measuring.sample import read_measured

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
        """Return the certificate as JSON has it."""
        return self.content


def certify(store: Store, dataset: str) -> Certificate:
    """Return the certificate of a dataset's measurement.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: it has no measurement, or nothing of its sample is reviewed.
    """
    measurement, items = measure(store, dataset), read_measured(store, dataset)
    if measurement.rate.finite is None:
        raise UsageError(f"nothing of the sample of {dataset!r} is reviewed: {measurement.line}")
    setups = summary_of(store, dataset).settings.setups
    own = [one for one in setups if one.annotator == measurement.plan.annotator]
    repeats = {one.annotator for one in setups if own and own[0].repeats(one)}
    content = {
        "certificate": 2,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "binding": _binding(store, dataset, measurement.plan),
        "checks": model_checks(own),
        **quality_of(store.records(dataset), items, sorted(repeats)),
        "measurement": measurement.figures(),
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return Certificate({**content, "sha256": sha256(text.encode()).hexdigest()})


def stale_because(store: Store, dataset: str, certificate: Certificate) -> tuple[str, ...]:
    """Say why a certificate does not hold for a dataset as it is now; nothing if it does.

    Raises:
        NotFoundError: there is no such dataset.
    """
    summary = summary_of(store, dataset)
    plan = summary.settings.measurement
    if plan is None:
        return ("the dataset has no measurement",)
    now, then = _binding(store, dataset, plan), certificate.content["binding"]
    changed = dict.fromkeys(_BOUND[key] for key in _BOUND if now[key] != then.get(key))
    reasons = [f"{what} changed" for what in changed]
    if now["prompts"] == then.get("prompts"):
        own = [one for one in summary.settings.setups if one.annotator in now["prompts"]]
        reasons += [f"{name} would be asked another prompt now" for name in changed_prompts(own)]
    return tuple(reasons)


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


def _binding(store: Store, dataset: str, plan: MeasurementPlan) -> dict[str, Any]:
    """Return what a certificate is bound to; what is long or private as a hash."""
    items, marks, voters = sha256(), sha256(), {plan.annotator}
    for record in store.records(dataset):
        items.update(json.dumps([record.item.id, record.item.answer]).encode())
        annotation = record.by(plan.annotator)
        spans = [] if annotation is None else [(s.start, s.end, s.prob) for s in annotation.spans]
        verdicts = [] if annotation is None else [(c.text, c.verdict) for c in annotation.claims]
        marks.update(json.dumps([record.item.id, spans, verdicts]).encode())
        voters.update(() if annotation is None else annotation.voters)
    setups = [s for s in summary_of(store, dataset).settings.setups if s.annotator in voters]

    def by_name(value: Callable[[DetectorSetup], Any]) -> dict[str, list[Any]]:
        names = sorted({one.annotator for one in setups})
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
