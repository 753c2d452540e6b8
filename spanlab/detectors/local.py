"""A detector that computes, as one that is awaited: an executor does its work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from spanlab.detectors.base import BatchDetector, Detector, Finding, LocalDetector, failed
from spanlab.errors import ConfigurationError
from spanlab.inbound import is_end
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
        """Annotate an item; see ``Detector``. The detector's error becomes a failed annotation.

        Raises:
            ConfigurationError: a process that did the work has ended by itself.
        """
        work = asyncio.get_running_loop().run_in_executor(
            self.executor, _attempt, self.name, self.annotate, item
        )
        try:
            return Finding(await work, item)
        except BrokenExecutor:
            raise ConfigurationError(_ENDED) from None


_ENDED = (
    "a process that annotates items has ended by itself: it lacked memory, or could not import the "
    "detector's class, which must stand in a file, and if that is the script itself, what it does "
    'under `if __name__ == "__main__":`; with concurrency=1 this process does the work'
)


@dataclass
class Gathered:
    """A detector that takes many items at once: what is asked for meanwhile is its next batch."""

    name: str
    detector: BatchDetector
    _waiting: list[tuple[Item, Future[Annotation]]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _working: bool = False
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="spanlab-batches")
    )

    @property
    def batch(self) -> int:
        """How many items it takes at once."""
        return self.detector.batch

    async def detect(self, item: Item) -> Finding:
        """Annotate an item; see ``Detector``. The detector's error becomes a failed annotation."""
        future = Future[Annotation]()
        with self._lock:
            self._waiting.append((item, future))
            begins, self._working = not self._working, True
        if begins:
            self._thread.submit(self._work)
        said = await asyncio.wrap_future(future)
        return Finding(said.model_copy(update={"annotator": self.name}), item)

    def _work(self) -> None:
        while True:
            with self._lock:
                batch, self._waiting = self._waiting[: self.batch], self._waiting[self.batch :]
                self._working = bool(batch)
            if not batch:
                return
            wanted = [each for each in batch if each[1].set_running_or_notify_cancel()]
            said = self._attempt([item for item, _ in wanted])
            for (_, future), annotation in zip(wanted, said, strict=True):
                future.set_result(annotation)

    def _attempt(self, items: Sequence[Item]) -> Sequence[Annotation]:
        try:
            return self.detector.annotate_all(items)
        except BaseException as error:  # what breaks on one item ends no run, nor does a panic
            if is_end(error):
                raise
            if len(items) == 1:
                return [failed(self.name, error)]
            return [said for item in items for said in self._attempt([item])]


def as_detector(given: Detector | LocalDetector, executor: Executor | None = None) -> Detector:
    """Return a detector that is awaited.

    Args:
        given: any detector; a local one must be picklable if processes do its work.
        executor: does the work of a local one; None takes a thread of the event loop's.
    """
    if isinstance(given, BatchDetector):
        return Gathered(given.name, given)
    if isinstance(given, LocalDetector):
        return Awaited(given.name, partial(_annotate, given), executor)
    return given


def _annotate(detector: LocalDetector, item: Item) -> Annotation:
    return detector.annotate(item)


def _attempt(name: str, annotate: Callable[[Item], Annotation], item: Item) -> Annotation:
    # Here and not where it is awaited: not every error survives the way from another process.
    try:
        return annotate(item)
    except BaseException as error:  # as above
        if is_end(error):
            raise
        return failed(name, error)
