"""Detectors that ask models, over records in memory or on their way from file to file."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future

from spanlab.detectors import Finding, ModelDetector
from spanlab.detectors.blocking import submit
from spanlab.errors import BudgetError, ConfigurationError
from spanlab.schema import Record
from spanlab.workflows.crew import failed

CONCURRENCY = 32  # items under way at once, if nobody says how many
_AHEAD = 4  # so many times more are begun, so that a slow one holds up nobody behind it


def detect_records(
    records: Iterable[Record], worker: ModelDetector, *, concurrency: int = CONCURRENCY
) -> Iterator[Record]:
    """Run a detector over records, many at once, and yield them in order as they are done.

    Args:
        records: what to annotate; read as needed, so that memory stays flat.
        worker: the detector.
        concurrency: items under way at once, 1 or more.

    Yields:
        Each record with the passages that were found and the annotation, an ensemble's members'
        first; earlier ones of the same names are replaced.

    Raises:
        BudgetError: the budget is used up. What was paid for is in the cache of answers.
        ConfigurationError: key, address or name of the model is wrong.
    """
    slots = asyncio.Semaphore(concurrency)
    running: deque[tuple[Record, Future[Finding]]] = deque()
    try:
        for record in records:
            running.append((record, submit(_one(worker, record, slots))))
            if len(running) >= _AHEAD * concurrency:
                yield _result(*running.popleft())
        while running:
            yield _result(*running.popleft())
    finally:
        for _, future in running:
            future.cancel()


async def _one(worker: ModelDetector, record: Record, slots: asyncio.Semaphore) -> Finding:
    async with slots:
        try:
            return await worker.detect(record.item)
        except (BudgetError, ConfigurationError):
            raise
        except Exception as error:  # noqa: BLE001 - what breaks on one item ends no run
            return Finding(failed(worker.name, error), record.item)


def _result(record: Record, future: Future[Finding]) -> Record:
    try:
        found = future.result()
    except BaseException:
        future.cancel()  # Ctrl+C while waiting
        raise
    ours = {annotation.annotator for annotation in found.annotations}
    others = (each for each in record.annotations if each.annotator not in ours)
    return Record(item=found.item, annotations=(*others, *found.annotations))
