"""The detectors of a run at work on one item after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from spanlab.detectors import (
    Detector,
    DetectorSpec,
    Finding,
    ModelDetector,
    asks_models,
    build,
    detector,
)
from spanlab.detectors.ensemble import tally
from spanlab.errors import BudgetError, ConfigurationError, SpanlabError
from spanlab.lm import Meter
from spanlab.schema import Annotation, Item, Kind, Record, Status
from spanlab.settings import Settings
from spanlab.workflows.runs import Ballot, Failure, RunRequest

_REASON = 500  # characters of a reason that are kept with an item


@dataclass(frozen=True)
class Outcome:
    """What a crew has to say of one item; ``ended`` is the error that ends the run, if any."""

    findings: tuple[Finding, ...] = ()
    failures: tuple[Failure, ...] = ()
    ended: BudgetError | ConfigurationError | None = None


@dataclass
class Crew:
    """Detectors that annotate items together, and the votes that they cast.

    ``hands`` runs detectors that ask no model (None: a thread of the event loop's own); ``local``
    are their specifications by name, from which another process builds its own copies. ``broken``
    is the error of a detector that every other item would meet, too: nothing is asked after it.
    """

    detectors: Sequence[Detector | ModelDetector]
    ballots: Sequence[Ballot] = ()
    hands: Executor | None = field(default=None, compare=False)
    local: Mapping[str, DetectorSpec] = field(default_factory=dict)
    broken: ConfigurationError | None = None

    @classmethod
    def of(
        cls,
        request: RunRequest,
        meter: Meter,
        settings: Settings,
        hands: Executor | None = None,
    ) -> Crew:
        """Build the detectors of a request; this may load models and take seconds.

        Raises:
            UsageError: a detector cannot be built as it was asked for.
        """
        built = [build(spec, meter, settings) for spec in request.specs]
        local = {spec.signs: spec for spec in request.specs if not asks_models(spec.detector)}
        return cls(built, request.ballots, hands, local)

    def wanted(self, record: Record, *, retry_failed: bool) -> list[Detector | ModelDetector]:
        """Return the detectors that have not finished an item."""
        open_states = {Status.NOT_ANNOTATED, Status.FAILED} if retry_failed else _UNTOUCHED
        return [
            each
            for each in self.detectors
            if (said := record.by(each.name)) is None or said.status in open_states
        ]

    async def annotate(
        self, record: Record, slots: asyncio.Semaphore, *, retry_failed: bool = True
    ) -> Outcome:
        """Let the detectors that have not finished an item annotate it, and cast the votes.

        Args:
            record: the item with what has been said of it.
            slots: one is held by each detector that is at work.
            retry_failed: whether a detector that failed on the item tries again.

        Returns:
            What to store; nothing of a detector whose error ends the run.
        """
        wanted = self.wanted(record, retry_failed=retry_failed)
        work = [self._one(each, record.item, slots) for each in wanted]
        results = [await work[0]] if len(work) == 1 else await asyncio.gather(*work)
        found = [result for result in results if isinstance(result, Finding)]
        errors = [result for result in results if not isinstance(result, Finding)]
        # A wrong key outweighs a spent budget: the former has to be mended first.
        errors.sort(key=lambda error: isinstance(error, BudgetError))
        failures = tuple(
            Failure(record.item.id, said.annotator, said.note or "")
            for finding in found
            for said in finding.annotations
            if said.status is Status.FAILED
        )
        changed = {said.annotator for finding in found for said in finding.annotations}
        votes = _votes(self.ballots, record, found, changed)
        return Outcome((*found, *votes), failures, errors[0] if errors else None)

    @cached_property
    def _asking(self) -> dict[str, ModelDetector]:
        """The detectors that ask models, by name; to look at each again for each item is slow."""
        return {each.name: each for each in self.detectors if isinstance(each, ModelDetector)}

    async def _one(
        self, worker: Detector | ModelDetector, item: Item, slots: asyncio.Semaphore
    ) -> Finding | BudgetError | ConfigurationError:
        async with slots:
            if self.broken is not None:
                return self.broken
            try:
                asking = self._asking.get(worker.name)
                if asking is not None:
                    return await asking.detect(item)
                loop = asyncio.get_running_loop()
                # Another process has a copy of its own: a specification is quicker sent.
                chosen = self.local.get(worker.name) or cast(Detector, worker)
                said = await loop.run_in_executor(self.hands, attempt, chosen, item)
                return Finding(said, item)
            except BudgetError as error:
                return error
            except ConfigurationError as error:
                self.broken = error
                return error
            except Exception as error:  # noqa: BLE001 - what breaks on one item ends no run
                return Finding(failed(worker.name, error), item)


_UNTOUCHED = {Status.NOT_ANNOTATED}
_ENDED = {Status.DONE, Status.FAILED}


def failed(name: str, error: Exception) -> Annotation:
    """Return the annotation of a detector that broke on an item."""
    reason = str(error) if isinstance(error, SpanlabError) else f"{type(error).__name__}: {error}"
    return Annotation(
        annotator=name,
        kind=Kind.DETECTOR,
        status=Status.FAILED,
        note=(reason or type(error).__name__)[:_REASON],
    )


def attempt(chosen: DetectorSpec | Detector, item: Item) -> Annotation:
    """Let a detector that asks no model annotate an item; its error becomes a failed annotation."""
    worker = detector(chosen) if isinstance(chosen, DetectorSpec) else chosen
    try:
        return worker.annotate(item)
    except SpanlabError as error:
        return failed(worker.name, error)


def _votes(
    ballots: Sequence[Ballot], record: Record, found: Sequence[Finding], changed: AbstractSet[str]
) -> list[Finding]:
    """Cast the votes whose voters have all come to an end, where there is something new to count.

    A voter that failed does not vote; with fewer than half the vote itself fails.
    """
    said = {each.annotator: each for each in record.annotations}
    said |= {each.annotator: each for finding in found for each in finding.annotations}
    cast = []
    for ballot in ballots:
        voters = [said.get(name) for name in ballot.voters]
        ready = [each for each in voters if each is not None and each.status in _ENDED]
        new = ballot.name not in said or not changed.isdisjoint(ballot.voters)
        if new and len(ready) == len(voters):
            cast.append(Finding(tally(ballot.name, record.item, ready), record.item))
    return cast
