"""Detectors over records in memory or from file to file: in order, and in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field

from spanlab.base.errors import BudgetError, ConfigurationError, UsageError
from spanlab.base.processes import executor_of
from spanlab.base.runtime import ahead
from spanlab.base.settings import Settings
from spanlab.detection import BatchDetector, Detector, LocalDetector, as_detector, asks_models
from spanlab.detection.ensemble import Ensemble, ItemOutcome
from spanlab.detection.request import AHEAD, CONCURRENCY, RunRequest, ensemble_of
from spanlab.models import Meter
from spanlab.output.notices import event_sender
from spanlab.schema import AnnotatorKind, Record, Status
from spanlab.schema.usage import Usage

_BEFORE_QUOTE = ": “"  # failures of one cause differ in what they quote
_UNGUARDED = (
    'what this script does must stand under `if __name__ == "__main__":`, as the processes that '
    "work with its detector import it; with concurrency=1 there are none"
)


@dataclass
class FileRunCounts:
    """Counts of the items of a stream, and of failures.

    On ``failed`` of the ``items`` every detector failed. ``causes`` counts failures by the
    beginning of their reason; ``examples`` has one whole reason for each.
    """

    items: int = 0
    failed: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, outcome: ItemOutcome) -> None:
        """Count the outcome of one item."""
        annotations = [a for finding in outcome.findings for a in finding.annotations]
        self.items += bool(annotations)
        self.failed += bool(annotations) and all(a.status is Status.FAILED for a in annotations)
        for annotation in annotations:
            if annotation.status is Status.FAILED and annotation.kind is AnnotatorKind.DETECTOR:
                reason = annotation.note or ""
                cause = reason.partition(_BEFORE_QUOTE)[0]
                self.causes[cause] += 1
                self.examples.setdefault(cause, reason)


class FileRun:
    """Detectors over one stream of records that are in no dataset.

    ``spent`` is the error by which the budget ended the run, if it did; ``outcomes`` counts the
    items so far.

    Args:
        ensemble: the detectors and their votes.
        executor: runs the detectors that ask no model; it is shut down with the stream.
        ahead: how many records are held at once, 1 or more.
        meter: counts the model calls.
    """

    def __init__(
        self, ensemble: Ensemble, executor: Executor, ahead: int, meter: Meter | None = None
    ) -> None:
        self._ensemble = ensemble
        self._executor = executor
        self._ahead = ahead
        self._meter = meter or Meter()
        self.spent: BudgetError | None = None
        self.outcomes = FileRunCounts()

    @classmethod
    def of(
        cls, request: RunRequest, settings: Settings | None = None, meter: Meter | None = None
    ) -> FileRun:
        """Build the detectors of a request.

        Args:
            request: which detectors, how many items at once, and the budget.
            settings: where answers of models are cached; None reads the environment.
            meter: counts the model calls of several runs; None makes one for this.

        Raises:
            UsageError: a detector cannot be built as it was asked for.
        """
        meter = meter or Meter(request, concurrency=request.at_once)
        executor = executor_of(processes_of(request))
        ensemble = ensemble_of(request, meter, settings or Settings.read(), executor)
        return cls(ensemble, executor, AHEAD * request.at_once, meter)

    @classmethod
    def own(
        cls,
        detector: Detector | LocalDetector,
        concurrency: int | None = None,
        *,
        events: bool = False,
    ) -> FileRun:
        """Run a detector object that is made already, such as one of a script.

        Args:
            detector: a local one that is to work in several processes must be picklable; if a
                script defines its class, that needs a main guard (``if __name__ == "__main__":``).
            concurrency: items under way at once (None: 32), of a local one processes (None: 1).
            events: send each result as an event, see ``events``.

        Raises:
            UsageError: this is such a process, which imports a script that has no main guard, or
                events have nowhere to go.
        """
        batches = isinstance(detector, BatchDetector)  # which uses all processors itself
        local = isinstance(detector, LocalDetector) and not batches
        count = concurrency or (1 if local else CONCURRENCY)
        processes = count if local and count > 1 else 0
        home = type(detector).__module__
        if processes and home == "__mp_main__":
            raise UsageError(_UNGUARDED)
        executor = executor_of(processes, with_script=home == "__main__")
        limit = AHEAD * count if local else count
        report = event_sender() if events else None
        ensemble = Ensemble([as_detector(detector, executor)], concurrency=limit, report=report)
        return cls(ensemble, executor, AHEAD * count)

    @property
    def usage(self) -> Usage:
        """What the model calls so far came to."""
        return self._meter.usage

    def annotate(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records in order, with new annotations by the detectors in place of old ones.

        Once the budget is spent (``spent`` says so) records come out as they went in.

        Raises:
            ConfigurationError: key, address or name of the model is wrong, or a process that did
                the work has ended by itself.
        """
        try:
            for future in ahead(map(self._annotate, records), self._ahead):
                record, outcome = future.result()
                if isinstance(outcome.ended, ConfigurationError):
                    raise outcome.ended
                self.spent = self.spent or outcome.ended
                self.outcomes.add(outcome)
                yield outcome.added_to(record)
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)

    async def _annotate(self, record: Record) -> tuple[Record, ItemOutcome]:
        names = self._ensemble.names
        by_others = tuple(a for a in record.annotations if a.annotator not in names)
        bare = record.model_copy(update={"annotations": by_others})
        return record, await self._ensemble.annotate(bare)


def processes_of(request: RunRequest) -> int:
    """Return how many processes a request's local detectors run in; 0 for a thread instead."""
    local = any(not asks_models(spec.detector) for spec in request.specs)
    return request.at_once if local and request.at_once > 1 else 0
