"""Detectors that ask models over a stream of records, in order and in bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future

from spanlab.detectors.base import Finding
from spanlab.detectors.blocking import submit
from spanlab.errors import ConfigurationError
from spanlab.lm import Meter, Usage
from spanlab.passages import merged, renumbered
from spanlab.schema import Record
from spanlab.settings import Settings
from spanlab.workflows.crew import Crew, Outcome
from spanlab.workflows.runs import RunRequest


class Stream:
    """The detectors of a request, for records that are in no dataset.

    Args:
        request: which detectors, how many items at once, and the budget.
        settings: where answers of models are cached; None reads the environment.

    Raises:
        UsageError: a detector cannot be built as it was asked for.
    """

    def __init__(self, request: RunRequest, settings: Settings | None = None) -> None:
        self._meter = Meter(request.budget)
        self._crew = Crew.of(request, self._meter, settings or Settings.read())
        self._names = set(request.annotators)
        self._slots = asyncio.Semaphore(request.concurrency)
        self._ahead = 2 * request.concurrency
        self.spent: str | None = None

    @property
    def usage(self) -> Usage:
        """What the model calls so far came to."""
        return self._meter.usage

    def annotated(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records in order with what the detectors say now in place of before.

        Once the budget is spent (``spent`` says so) records come out as they went in.

        Raises:
            ConfigurationError: key, address or name of the model is wrong.
        """
        under_way: deque[tuple[Record, Future[Outcome]]] = deque()
        source = iter(records)
        try:
            while True:
                while len(under_way) < self._ahead and (record := next(source, None)) is not None:
                    bare = record.model_copy(
                        update={
                            "annotations": tuple(
                                said
                                for said in record.annotations
                                if said.annotator not in self._names
                            )
                        }
                    )
                    future = submit(self._crew.annotate(bare, self._slots))
                    under_way.append((record, future))
                if not under_way:
                    return
                record, future = under_way.popleft()
                outcome = future.result()
                if isinstance(outcome.ended, ConfigurationError):
                    raise outcome.ended
                if outcome.ended is not None:
                    self.spent = self.spent or str(outcome.ended)
                yield with_findings(record, outcome.findings)
        finally:
            for _, future in under_way:
                future.cancel()


def with_findings(record: Record, findings: Iterable[Finding]) -> Record:
    """Return a record with what was found: new passages, and new annotations for old ones."""
    item, said = record.item, {each.annotator: each for each in record.annotations}
    for finding in findings:
        item, moved = merged(item, finding.item)
        for annotation in finding.annotations:
            said.pop(annotation.annotator, None)
            said[annotation.annotator] = renumbered(annotation, moved)
    return Record(item=item, annotations=tuple(said.values()))
