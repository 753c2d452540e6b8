"""A detector that computes, as one that is awaited: an executor does its work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from spanlab.detectors.base import Detector, Finding, LocalDetector, failed
from spanlab.schema import Annotation, Item


@dataclass(frozen=True)
class Awaited:
    """A local detector whose work is done by an executor.

    ``annotate`` is picklable where the executor's workers are processes: it can look the detector
    up there, which is quicker than to send it.
    """

    name: str
    annotate: Callable[[Item], Annotation]
    executor: Executor | None = None

    async def detect(self, item: Item) -> Finding:
        """Annotate an item; see ``Detector``. The detector's error becomes a failed annotation."""
        work = asyncio.get_running_loop().run_in_executor(
            self.executor, _attempt, self.name, self.annotate, item
        )
        return Finding(await work, item)


def as_detector(given: Detector | LocalDetector, executor: Executor | None = None) -> Detector:
    """Return a detector that is awaited.

    Args:
        given: any detector; a local one must be picklable if processes do its work.
        executor: does the work of a local one; None takes a thread of the event loop's.
    """
    if isinstance(given, LocalDetector):
        return Awaited(given.name, partial(_annotate, given), executor)
    return given


def _annotate(detector: LocalDetector, item: Item) -> Annotation:
    return detector.annotate(item)


def _attempt(name: str, annotate: Callable[[Item], Annotation], item: Item) -> Annotation:
    # Here and not where it is awaited: not every error survives the way from another process.
    try:
        return annotate(item)
    except Exception as error:  # noqa: BLE001 - what breaks on one item ends no run
        return failed(name, error)
