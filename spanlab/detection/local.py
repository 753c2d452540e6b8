"""Local detectors made to be awaited: by threads, by processes, or many items at once."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from spanlab.base.errors import ConfigurationError
from spanlab.base.inbound import is_end
from spanlab.detection.base import BatchDetector, Detector, DetectorResult, LocalDetector, failed
from spanlab.schema import Annotation, Item


@dataclass(frozen=True)
class AwaitedDetector:
    """A local detector whose work is done by an executor.

    ``annotate`` is picklable where the executor's workers are processes: it can look the detector
    up there, which is quicker than to send it.
    """

    name: str
    annotate: Callable[[Item], Annotation]
    executor: Executor | None = None

    async def detect(self, item: Item) -> DetectorResult:
        """Annotate an item; see ``Detector``. The detector's error becomes a failed annotation.

        Raises:
            ConfigurationError: a process that did the work has ended by itself.
        """
        work = asyncio.get_running_loop().run_in_executor(
            self.executor, _attempt, self.name, self.annotate, item
        )
        try:
            return DetectorResult(await work, item)
        except BrokenExecutor:
            raise ConfigurationError(_ENDED) from None


_ENDED = (
    "a process that annotates items has ended by itself: it lacked memory, or could not import the "
    "detector's class, which must stand in a file, and if that is the script itself, what it does "
    'under `if __name__ == "__main__":`; with concurrency=1 this process does the work'
)
_TELL_SECONDS = 0.01  # for which a thread keeps results before it wakes the event loop


@dataclass
class BatchCollector:
    """A detector that computes in a thread: what is asked for meanwhile is its next batch.

    Results of a hundredth of a second come back together: to wake an event loop takes longer than
    a quick detector does for an item. None waits for more than the batch after its own.
    """

    name: str
    detector: BatchDetector
    thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="spanlab-batches")
    )
    _waiting: list[tuple[Item, asyncio.Future[Annotation]]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _working: bool = False

    @property
    def batch(self) -> int:
        """How many items it takes at once."""
        return self.detector.batch

    async def detect(self, item: Item) -> DetectorResult:
        """Annotate an item; see ``Detector``. The detector's error becomes a failed annotation."""
        future: asyncio.Future[Annotation] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.append((item, future))
            begins, self._working = not self._working, True
        if begins:
            self.thread.submit(self._work)
        annotation = await future
        if annotation.annotator != self.name:
            annotation = annotation.model_copy(update={"annotator": self.name})
        return DetectorResult(annotation, item)

    def _work(self) -> None:
        results: list[_Answered] = []
        told = time.monotonic()
        while True:
            with self._lock:
                batch, self._waiting = self._waiting[: self.batch], self._waiting[self.batch :]
                self._working = bool(batch)
            if not batch:
                break
            wanted = [(item, future) for item, future in batch if not future.cancelled()]
            answers: Sequence[Annotation | BaseException]
            try:
                answers = self._attempt([item for item, _ in wanted])
            except BaseException as error:  # noqa: BLE001 - raised where it is awaited
                answers = [error] * len(wanted)
            results += zip((future for _, future in wanted), answers, strict=True)
            if time.monotonic() - told > _TELL_SECONDS:
                _tell(results)
                results, told = [], time.monotonic()
        _tell(results)

    def _attempt(self, items: Sequence[Item]) -> Sequence[Annotation]:
        try:
            return self.detector.annotate_all(items)
        except BaseException as error:  # what breaks on one item ends no run, nor does a panic
            if is_end(error):
                raise
            if len(items) == 1:
                return [failed(self.name, error)]
            return [annotation for item in items for annotation in self._attempt([item])]


_Answered = tuple[asyncio.Future[Annotation], Annotation | BaseException]


def _tell(results: Sequence[_Answered]) -> None:
    """Hand answers over to the event loops that wait for them, from another thread."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[_Answered]] = defaultdict(list)
    for future, answer in results:
        by_loop[future.get_loop()].append((future, answer))
    for loop, ready in by_loop.items():
        with suppress(RuntimeError):  # it is closed: nobody waits any more
            loop.call_soon_threadsafe(_hand_over, ready)


def _hand_over(ready: Sequence[_Answered]) -> None:
    for future, answer in ready:
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)


@dataclass(frozen=True)
class OneByOne:
    """A local detector that takes one item at a time, as one that takes batches."""

    name: str
    annotate: Callable[[Item], Annotation]
    batch: int = 1

    def annotate_all(self, items: Sequence[Item]) -> Sequence[Annotation]:
        """Annotate items, in their order."""
        return [self.annotate(item) for item in items]


def in_executor(
    name: str, annotate: Callable[[Item], Annotation], executor: Executor | None
) -> Detector:
    """Return a local detector whose work is done by an executor: see ``AwaitedDetector``."""
    if isinstance(executor, ThreadPoolExecutor):
        return BatchCollector(name, OneByOne(name, annotate), executor)
    return AwaitedDetector(name, annotate, executor)


def as_detector(given: Detector | LocalDetector, executor: Executor | None = None) -> Detector:
    """Return a detector that is awaited.

    Args:
        given: any detector; a local one must be picklable if processes do its work.
        executor: does the work of a local one; None takes a thread of the event loop's.
    """
    if isinstance(given, BatchDetector):
        return BatchCollector(given.name, given)
    if isinstance(given, LocalDetector):
        return in_executor(given.name, partial(_annotate, given), executor)
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
