"""Runs detectors over a dataset, many items at once, and saves results as they come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from spanlab.base.errors import BudgetError, ConfigurationError, InputError, StoreError
from spanlab.base.fields import storable
from spanlab.base.runtime import rarely_collected
from spanlab.detection.base import DetectorResult
from spanlab.detection.ensemble import Ensemble, ItemOutcome
from spanlab.detection.request import RunRequest
from spanlab.schema import USUAL_LABELS, Annotation, AnnotatorKind, QueueQuery, Record, Status
from spanlab.schema.progress import FailedItem
from spanlab.storage.datasets import summary_of
from spanlab.worklists import paging

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spanlab.storage import Store


_WINDOW = 200  # records read at once
_SAVE_EVERY = 200  # findings a transaction at most, and
_SAVE_SECONDS = 0.5  # how long a finished one waits at most: a kill loses no more than that
_BACKLOG = 4 * _SAVE_EVERY  # findings that wait for the database before new items have to


@dataclass(frozen=True)
class ItemBatch:
    """Some items of a dataset, by position.

    ``given_up`` are ids of items that failed when this work was begun before: they are not tried
    again, whatever ``retry_failed`` says of older failures. ``again`` does finished items again.
    """

    dataset: str
    positions: Sequence[int]
    retry_failed: bool = True
    given_up: Collection[str] = ()
    again: bool = False


@dataclass
class DatasetRun:
    """One run of detectors over some work; any number may share detectors and an event loop.

    At most ``concurrency`` items are under way at once, and no more than ``slots`` in all runs that
    share them: a run begins as the one before it ends, so that all slots are taken meanwhile.
    ``stop`` is asked before each item; the run ends after those under way once it gives a reason.
    Failures are in ``failures`` as they are saved, the newest last.
    """

    store: Store
    ensemble: Ensemble
    work: ItemBatch
    concurrency: int
    stop: Callable[[], str | None] = lambda: None
    slots: asyncio.Semaphore | None = None
    done: int = 0
    failed: int = 0
    stopped: str | None = None
    broken: ConfigurationError | None = None
    failures: list[FailedItem] = field(default_factory=list)
    _waiting: list[ItemOutcome] = field(default_factory=list)
    _due: asyncio.Event = field(default_factory=asyncio.Event)
    _room: asyncio.Event = field(default_factory=asyncio.Event)

    async def finish(self) -> None:
        """Run to the end; results are saved at most half a second after they came.

        Raises:
            StoreError: the database refuses; what was saved stays, and calls that were under way
                have ended, so that their answers are in the cache.
            ConfigurationError: key, address or name of a model is wrong; the results of what was
                under way are saved, and items not tried stay open.
        """
        self._room.set()
        records: asyncio.Queue[Record | None] = asyncio.Queue(max(_WINDOW, self.concurrency))
        tasks = min(self.concurrency, len(self.work.positions))
        try:
            with rarely_collected():
                await self._work_and_save(records, tasks)
        except BaseExceptionGroup as errors:
            raise _first_error(errors) from None
        if self._refused is not None:
            raise self._refused
        if self.broken is not None:
            raise self.broken

    async def _work_and_save(self, records: asyncio.Queue[Record | None], tasks: int) -> None:
        async with asyncio.TaskGroup() as group:
            saver = group.create_task(self._save())
            group.create_task(self._feed(records, tasks))
            async with asyncio.TaskGroup() as workers:
                for _ in range(tasks):
                    workers.create_task(self._annotate(records))
            self._over = True
            self._due.set()
            await saver

    _over: bool = False
    _refused: StoreError | None = None

    async def _feed(self, records: asyncio.Queue[Record | None], tasks: int) -> None:
        positions = iter(self.work.positions)
        while window := list(islice(positions, _WINDOW)):
            if self._stopping():
                break
            try:
                read = await asyncio.to_thread(self.store.records_at, self.work.dataset, window)
            except StoreError as error:
                self._refused = error
                break
            for record in read:
                await records.put(record)
        for _ in range(tasks):
            await records.put(None)

    async def _annotate(self, records: asyncio.Queue[Record | None]) -> None:
        async with self.slots or nullcontext():
            await self._annotate_all(records)

    async def _annotate_all(self, records: asyncio.Queue[Record | None]) -> None:
        while (record := await records.get()) is not None:
            if self._stopping():
                continue  # the feeder has to get rid of what it holds
            await self._room.wait()
            hopeful = record.item.id not in self.work.given_up
            outcome = await self.ensemble.annotate(
                record,
                retry_failed=self.work.retry_failed and hopeful,
                again=self.work.again and hopeful,
            )
            self._note_end(outcome.ended)
            self._hand_over(outcome)

    def _note_end(self, error: BudgetError | ConfigurationError | None) -> None:
        if isinstance(error, ConfigurationError):
            self.broken = self.broken or error
        if error is not None:
            self.stopped = self.stopped or str(error)

    def _stopping(self) -> bool:
        self.stopped = self.stopped or self.stop()
        return self.stopped is not None or self._refused is not None

    def _hand_over(self, outcome: ItemOutcome) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_later(_SAVE_SECONDS, self._due.set)
        self._waiting.append(outcome)
        if len(self._waiting) >= _SAVE_EVERY:
            self._due.set()
        if len(self._waiting) >= _BACKLOG:
            self._room.clear()

    async def _save(self) -> None:
        while not (self._over and not self._waiting):
            await self._due.wait()
            self._due.clear()
            batch, self._waiting = self._waiting, []
            self._room.set()
            findings = [finding for outcome in batch for finding in outcome.findings]
            try:
                if self._refused is None:
                    stored = await asyncio.to_thread(save, self.store, self.work.dataset, findings)
                    self.done += sum(outcome.ended is None for outcome in batch)
                    self._count_failures(stored)
            except StoreError as error:
                self._refused = error
            if self._over:
                self._due.set()

    def _count_failures(self, stored: Sequence[DetectorResult]) -> None:
        failures = [
            FailedItem(finding.item.id, annotation.annotator, annotation.note or "")
            for finding in stored
            for annotation in finding.annotations
            if annotation.status is Status.FAILED and annotation.kind is AnnotatorKind.DETECTOR
        ]
        self.failed += len({failure.item_id for failure in failures})
        self.failures += failures


def save(store: Store, dataset: str, findings: Sequence[DetectorResult]) -> list[DetectorResult]:
    """Store the results of detectors, in one transaction for every 200 of them.

    Returns:
        The results as stored: a failed annotation in place of one that cannot be stored, and
        without the usual labels where the dataset has a set of its own.
    """
    stored: list[DetectorResult] = []
    own = {label.name for label in store.settings(dataset).labels}
    unwanted = frozenset(label.name for label in USUAL_LABELS) - own
    if unwanted:
        findings = [_without(finding, unwanted) for finding in findings]
    for first in range(0, len(findings), _SAVE_EVERY):
        batch = findings[first : first + _SAVE_EVERY]
        try:
            store.save_findings(dataset, batch)
            stored += batch
        except InputError:
            stored += [_save_one(store, dataset, finding) for finding in batch]
    return stored


def _without(finding: DetectorResult, labels: frozenset[str]) -> DetectorResult:
    """Return a result whose spans have none of these labels."""

    def clear(annotation: Annotation) -> Annotation:
        spans = tuple(
            span.model_copy(update={"label": None}) if span.label in labels else span
            for span in annotation.spans
        )
        return annotation.model_copy(update={"spans": spans})

    return replace(
        finding,
        annotation=clear(finding.annotation),
        members=tuple(clear(member) for member in finding.members),
    )


def _save_one(store: Store, dataset: str, finding: DetectorResult) -> DetectorResult:
    try:
        store.save_findings(dataset, [finding])
    except InputError as error:
        annotation = finding.annotation
        failure = Annotation(
            annotator=annotation.annotator,
            kind=annotation.kind,
            status=Status.FAILED,
            note=storable(f"it cannot be stored: {error}"),
        )
        store.save_annotations(dataset, [(finding.item.id, failure)])  # without its passages
        return DetectorResult(failure, finding.item)
    return finding


def unfinished_positions(store: Store, request: RunRequest) -> NDArray[np.int64]:
    """Return the positions of the items that a request still has to annotate.

    Args:
        store: the annotation database.
        request: the request for the run.

    Returns:
        Positions in import order, at most ``request.limit``; empty if nothing is left to do.

    Raises:
        NotFoundError: there is no such dataset, or an item named in the request is not in it.
    """
    if request.again and request.items is None:
        all_positions = np.arange(summary_of(store, request.dataset).n_items, dtype=np.int64)
        return all_positions[: request.limit]
    todo = np.empty(0, dtype=np.int64)
    failed = np.empty(0, dtype=np.int64)
    for name in request.annotators:
        untouched = _positions(store, request.dataset, name, Status.NOT_ANNOTATED)
        todo = np.union1d(todo, untouched)
        failed = np.union1d(failed, _positions(store, request.dataset, name, Status.FAILED))
    # A vote waits for a member that failed: such an item is open only if that one tries again.
    todo = np.union1d(todo, failed) if request.retry_failed else np.setdiff1d(todo, failed)
    if request.items is not None:
        named = np.unique(
            np.asarray(store.positions_of(request.dataset, request.items), dtype=np.int64)
        )
        todo = named if request.again else np.intersect1d(todo, named)
    return todo[: request.limit]


def _positions(store: Store, dataset: str, name: str, status: Status) -> NDArray[np.int64]:
    query = QueueQuery(reviewer=name, status=status)
    return np.asarray(paging.positions(store, dataset, query), dtype=np.int64)


def _first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first_error(first) if isinstance(first, BaseExceptionGroup) else first
