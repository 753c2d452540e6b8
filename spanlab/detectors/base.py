"""What a detector is, what it is built with, and local ones that many items wait for."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pydantic import JsonValue

from spanlab.errors import ConfigurationError, SpanlabError
from spanlab.inbound import is_end
from spanlab.schema import Annotation, AnnotatorKind, Item, Status, storable

if TYPE_CHECKING:
    import dspy

    from spanlab.detectors.spec import DetectorSpec
    from spanlab.lm import Meter
    from spanlab.lm.model import LanguageModel
    from spanlab.mappers import ModelQuote
    from spanlab.memory import EvidenceMemory, MemoryChoice
    from spanlab.retrievers import Retriever
    from spanlab.retrievers.pages import PageReader
    from spanlab.schema import TunedPredictor
    from spanlab.tools.mcp_servers import ServerState


_REASON = 500  # characters of a reason that are kept with an item


@dataclass(frozen=True)
class DetectorResult:
    """What a detector found.

    ``item`` is the item with the passages that were retrieved for it, to which the annotations'
    evidence points. ``members`` are the annotations that ``annotation`` was voted from; empty for
    a detector that is no ensemble.
    """

    annotation: Annotation
    item: Item
    members: tuple[Annotation, ...] = ()

    @property
    def annotations(self) -> tuple[Annotation, ...]:
        """Everything to keep: the members' annotations, then the annotation itself."""
        return (*self.members, self.annotation)


class Detector(Protocol):
    """Finds hallucinated spans; it keeps no state between items, many of which may be under way."""

    @property
    def name(self) -> str:
        """The name that it signs its annotations with."""
        ...

    async def detect(self, item: Item) -> DetectorResult:
        """Mark what is likely hallucinated in the item's answer.

        Args:
            item: question, answer, passages and what was retrieved before.

        Returns:
            A done annotation (without spans if it found nothing), or a failed one that says why;
            its trace tells what was asked, read and decided until then. The item has what was
            retrieved meanwhile.

        Raises:
            BudgetError: the run's budget is used up.
            ConfigurationError: key, address or name of the model is wrong.
        """
        ...


@runtime_checkable
class LocalDetector(Protocol):
    """A detector that computes and asks nobody; ``spanlab.detectors.base`` makes it a Detector."""

    @property
    def name(self) -> str:
        """The name that it signs its annotations with."""
        ...

    def annotate(self, item: Item) -> Annotation:
        """Mark what is likely hallucinated in the item's answer; see ``Detector.detect``."""
        ...


@runtime_checkable
class BatchDetector(LocalDetector, Protocol):
    """A local detector that is quicker with many items at once; it uses all processors itself."""

    @property
    def batch(self) -> int:
        """How many items it takes at once."""
        ...

    def annotate_all(self, items: Sequence[Item]) -> Sequence[Annotation]:
        """Annotate items, in their order; what breaks on one may break on all of them."""
        ...


@runtime_checkable
class Tunable(Protocol):
    """A detector whose prompts an optimiser can tune.

    ``program`` are the model's steps alone, without retrieval and mapping: a module with named
    predictors. It is called with ``inputs(item)``, and ``mark(item, prediction)`` maps what it
    returned to the annotation that its metric scores.
    """

    @property
    def name(self) -> str:
        """The name that it signs its annotations with."""
        ...

    @property
    def program(self) -> dspy.Module:
        """The module to tune; the detector uses it as it is, so tune a copy."""
        ...

    def inputs(self, item: Item) -> Mapping[str, str]:
        """Return what the program is called with for an item; all values are text."""
        ...

    def mark(self, item: Item, prediction: dspy.Prediction) -> Annotation:
        """Return the annotation that what the program said of ``item`` amounts to."""
        ...

    def expected(self, item: Item, quotes: Sequence[ModelQuote]) -> Mapping[str, object]:
        """Return the output fields that a perfect program gives, for labelled demonstrations.

        Args:
            item: a labelled item.
            quotes: its gold spans in order, with their probability.

        Returns:
            Values by field name; empty where labels do not say what the fields should hold.
        """
        ...


def failed(name: str, error: BaseException) -> Annotation:
    """Return the annotation of a detector that broke on an item, with the reason."""
    reason = str(error) if isinstance(error, SpanlabError) else f"{type(error).__name__}: {error}"
    return Annotation(
        annotator=name,
        kind=AnnotatorKind.DETECTOR,
        status=Status.FAILED,
        note=storable((reason or type(error).__name__)[:_REASON]),
    )


@dataclass(frozen=True)
class DetectorKit:
    """What a detector works with: its choices, and what was built from them.

    ``models`` are language models by the roles of the detector's entry, the main one first; none
    for a detector without roles, or where the model counts that dspy is configured with.
    ``prompts`` are those of a tuned program; None keeps the detector's own. ``pages`` reads web
    pages, for detectors whose entry says that they do. ``memory`` opens the memory of evidence,
    ``tools`` asks the servers that are named for theirs.
    """

    spec: DetectorSpec
    retriever: Retriever
    models: Mapping[str, LanguageModel]
    meter: Meter
    prompts: Mapping[str, TunedPredictor] | None = None
    pages: PageReader | None = None
    memory: Callable[[MemoryChoice], EvidenceMemory] | None = None
    tools: Callable[[str], Awaitable[Sequence[ServerState]]] | None = None

    def lm(self, role: str | None = None) -> dspy.LM:
        """Return the language model of a role; that of the main role for None or any other."""
        if not self.models:
            import dspy

            return dspy.settings.lm
        main = next(iter(self.models.values()))
        return main if role is None else self.models.get(role, main)

    def window(self, role: str) -> int | None:
        """Return the tokens that a role's model takes, prompt and answer; None if not known."""
        return self.models[role].window if role in self.models else None

    def asked(self, model: str) -> dict[str, JsonValue]:
        """Return how a model of this name is asked; an option that only some roles have by role."""
        roles = {role: lm.options for role, lm in self.models.items() if lm.model == model}
        thinking: dict[str, JsonValue] = {"thinking": True} if self.spec.reasoning else {}
        shared_options: dict[str, JsonValue] = {}
        for role, options in roles.items():
            for name, value in options.items():
                shared = all(chosen.get(name) == value for chosen in roles.values())
                shared_options[name if shared else f"{role}.{name}"] = value
        return shared_options | (thinking if roles else {})

    def __deepcopy__(self, memo: object) -> DetectorKit:
        """Return itself: the copy of a detector asks the same model, under the same meter."""
        return self


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
