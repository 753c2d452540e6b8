"""Detectors over items of a file or in memory; over a dataset they are a job."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from itertools import islice
from typing import TypeVar

from spanlab.detectors import (
    Detector,
    DetectorSpec,
    EnsembleSpec,
    ModelDetector,
    Spec,
    build,
    detector,
    spec_of,
)
from spanlab.errors import SpanlabError
from spanlab.lm import Meter
from spanlab.schema import Annotation, Item, Kind, Record, Status
from spanlab.workflows.processes import Processes

__all__ = ["annotate_items", "annotate_records", "with_annotation"]

T = TypeVar("T")

_CHUNK = 16  # items that a worker process takes at once: enough to hide the hand-over


def annotate_items(
    pairs: Iterable[tuple[T, Item]],
    chosen: str | DetectorSpec | Detector,
    *,
    concurrency: int = 1,
) -> Iterator[tuple[T, Annotation]]:
    """Run a detector over items, in order, holding only a few of them in memory.

    Args:
        pairs: what to annotate, each with something of the caller's to know it by.
        chosen: an installed detector's name or specification, or a detector of your own; one that
            is to work in several processes must be picklable.
        concurrency: number of processes, 1 or more; 1 stays in this process.

    Yields:
        What came with the item, and its annotation; a detector's own error becomes a failed
        annotation with the reason.

    Raises:
        UsageError: no detector has this name.
    """
    worker = detector(chosen) if isinstance(chosen, str | DetectorSpec) else chosen
    if concurrency == 1:
        for key, item in pairs:
            yield key, _attempt(worker, item)
        return
    source = iter(pairs)
    running: deque[tuple[list[T], Future[list[Annotation]]]] = deque()
    with Processes(concurrency) as pool:
        while True:
            while len(running) < 2 * concurrency and (chunk := list(islice(source, _CHUNK))):
                items = [item for _, item in chunk]
                future = pool.submit(_attempt_all, chosen, items)
                running.append(([key for key, _ in chunk], future))
            if not running:
                return
            keys, future = running.popleft()
            yield from zip(keys, future.result(), strict=True)


def annotate_records(
    records: Iterable[Record],
    chosen: str | Spec | Detector | ModelDetector,
    *,
    concurrency: int | None = None,
    meter: Meter | None = None,
) -> Iterator[Record]:
    """Run a detector over records, in order; its annotation takes the place of its earlier one.

    Args:
        records: what to annotate; only a few are held in memory.
        chosen: a detector's name or specification, or a detector of your own.
        concurrency: items that models are asked for at once (None: 32); for detectors that ask no
            model the number of processes (None: 1).
        meter: counts the model calls and stops them at its budget.

    Yields:
        Each record with the annotation, of an ensemble with those of its members too, and with
        the passages that were retrieved.

    Raises:
        UsageError: no detector has this name, or something it needs is missing.
        BudgetError: the budget is used up.
        ConfigurationError: key, address or name of the model is wrong.
    """
    worker = _worker(chosen, meter)
    if isinstance(worker, ModelDetector):
        from spanlab.workflows.asking import CONCURRENCY, detect_records

        yield from detect_records(records, worker, concurrency=concurrency or CONCURRENCY)
        return
    pairs = ((record, record.item) for record in records)
    # A specification is cheaper to hand to another process than the detector itself.
    shipped = chosen if isinstance(chosen, str | DetectorSpec) else worker
    for record, annotation in annotate_items(pairs, shipped, concurrency=concurrency or 1):
        yield with_annotation(record, annotation)


def _worker(
    chosen: str | Spec | Detector | ModelDetector, meter: Meter | None
) -> Detector | ModelDetector:
    spec = spec_of(chosen) if isinstance(chosen, str) else chosen
    return build(spec, meter) if isinstance(spec, DetectorSpec | EnsembleSpec) else spec


def with_annotation(record: Record, annotation: Annotation) -> Record:
    """Return the record with this annotation instead of the same annotator's earlier one."""
    others = (a for a in record.annotations if a.annotator != annotation.annotator)
    return Record(item=record.item, annotations=(*others, annotation))


def _attempt(worker: Detector, item: Item) -> Annotation:
    try:
        return worker.annotate(item)
    except SpanlabError as error:
        return Annotation(
            annotator=worker.name,
            kind=Kind.DETECTOR,
            status=Status.FAILED,
            note=str(error) or type(error).__name__,
        )


def _attempt_all(chosen: str | DetectorSpec | Detector, items: list[Item]) -> list[Annotation]:
    worker = detector(chosen) if isinstance(chosen, str | DetectorSpec) else chosen
    return [_attempt(worker, item) for item in items]
