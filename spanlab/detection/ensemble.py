"""Multi-system combination: every member annotates, and their vote is one more annotation.

After Huang et al. 2025, "UCSC at SemEval-2025 Task 3", multi-system combination: the share of the
systems that mark a character is its soft label, and what more than half of them mark is hard.
Published scores on the English test set, the paper's and not of this code: IoU .61, Corr .65.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from spanlab.base.errors import BudgetError, ConfigurationError
from spanlab.base.inbound import is_end
from spanlab.base.runtime import shared_item
from spanlab.detection.base import Detector, DetectorResult, failed
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Status, merged, renumbered
from spanlab.text.labels import vote

_OPEN = {Status.NOT_ANNOTATED, Status.FAILED}
_ENDED = {Status.DONE, Status.FAILED}


class EnsembleVote(NamedTuple):
    """A vote that is cast on an item once all its voters have come to an end."""

    name: str
    voters: tuple[str, ...]


@dataclass(frozen=True)
class ItemOutcome:
    """What detectors say of one item; ``ended`` is the error that ends the run, if any."""

    findings: tuple[DetectorResult, ...] = ()
    ended: BudgetError | ConfigurationError | None = None

    def added_to(self, record: Record) -> Record:
        """Return the record with new passages, and with new annotations in place of old ones."""
        item = record.item
        latest = {annotation.annotator: annotation for annotation in record.annotations}
        for finding in self.findings:
            annotations = finding.annotations
            if finding.item is not record.item:
                # Detectors with different retrievers have each found passages of their own.
                item, moved = merged(item, finding.item)
                annotations = tuple(renumbered(annotation, moved) for annotation in annotations)
            for annotation in annotations:
                latest.pop(annotation.annotator, None)
                latest[annotation.annotator] = annotation
        return Record(item=item, annotations=tuple(latest.values()))


@dataclass
class Ensemble:
    """Detectors that annotate items together, and the votes among them.

    At most ``concurrency`` detectors are at work at once. ``report`` is told of every annotation.
    ``broken`` is an error that every other item would meet, too: no detector is asked after it.
    """

    detectors: Sequence[Detector]
    votes: Sequence[EnsembleVote] = ()
    concurrency: int = 1024
    report: Callable[[Item, Annotation], None] | None = None
    broken: ConfigurationError | None = None
    _slots: asyncio.Semaphore = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.concurrency)

    @property
    def names(self) -> tuple[str, ...]:
        """Everybody who signs an annotation: detectors, then votes."""
        return (
            *(detector.name for detector in self.detectors),
            *(member.name for member in self.votes),
        )

    @property
    def name(self) -> str:
        """The name of its vote, if it is used as a detector."""
        return self.names[-1]

    async def detect(self, item: Item) -> DetectorResult:
        """Let all annotate an item, and count their votes; see ``Detector``."""
        bare = Record(item=item)
        outcome = await self.annotate(bare)
        if outcome.ended is not None:
            raise outcome.ended
        record = outcome.added_to(bare)
        *members, voted = record.annotations
        return DetectorResult(voted, record.item, tuple(members))

    async def annotate(
        self, record: Record, *, retry_failed: bool = True, again: bool = False
    ) -> ItemOutcome:
        """Let the detectors that have not finished an item annotate it, and cast the votes.

        Args:
            record: the item with what has been said of it.
            retry_failed: whether a detector that failed on the item tries again.
            again: whether all detectors annotate the item, also those that have finished it.

        Returns:
            What to store; nothing of a detector whose error ends the run.
        """
        open_states = _OPEN if retry_failed else _OPEN - {Status.FAILED}
        work = [
            self._annotate_by(detector, record.item)
            for detector in self.detectors
            if again
            or (annotation := record.by(detector.name)) is None
            or annotation.status in open_states
        ]
        asking = [d for d in self.detectors if getattr(d, "program", None) is not None]
        with shared_item(is_shared=len(asking) > 1):
            results = [await work[0]] if len(work) == 1 else await asyncio.gather(*work)
        findings = [result for result in results if isinstance(result, DetectorResult)]
        errors = [result for result in results if not isinstance(result, DetectorResult)]
        # A wrong key outweighs a spent budget: the former has to be mended first.
        errors.sort(key=lambda error: isinstance(error, BudgetError))
        changed = {
            annotation.annotator for finding in findings for annotation in finding.annotations
        }
        votes = self._cast(record, findings, changed)
        if self.report is not None:
            for finding in (*findings, *votes):
                for annotation in finding.annotations:
                    self.report(finding.item, annotation)
        return ItemOutcome((*findings, *votes), errors[0] if errors else None)

    async def _annotate_by(
        self, detector: Detector, item: Item
    ) -> DetectorResult | BudgetError | ConfigurationError:
        async with self._slots:
            if self.broken is not None:
                return self.broken
            try:
                finding = await detector.detect(item)
                for annotation in finding.annotations:
                    annotation.check(finding.item)
                    # Copies are not validated: what could not be read again fails here, alone.
                    Annotation.model_validate_json(annotation.model_dump_json())
                return finding
            except BudgetError as error:
                return error
            except ConfigurationError as error:
                self.broken = error
                return error
            except BaseException as error:  # what breaks on one item ends no run, nor does a panic
                if is_end(error):
                    raise
                return DetectorResult(failed(detector.name, error), item)

    def _cast(
        self, record: Record, findings: Sequence[DetectorResult], changed: AbstractSet[str]
    ) -> list[DetectorResult]:
        """Return the votes whose voters have all come to an end, where there is something new."""
        latest = {annotation.annotator: annotation for annotation in record.annotations}
        latest |= {
            annotation.annotator: annotation
            for finding in findings
            for annotation in finding.annotations
        }
        cast = []
        for name, names in self.votes:
            voters = [latest.get(voter) for voter in names]
            ready = [voter for voter in voters if voter is not None and voter.status in _ENDED]
            new = name not in latest or not changed.isdisjoint(names)
            if new and len(ready) == len(voters):
                cast.append(DetectorResult(tally(name, record.item, ready), record.item))
        return cast


def tally(name: str, item: Item, members: Sequence[Annotation]) -> Annotation:
    """Return the vote of an ensemble's members on an item.

    Args:
        name: signs the vote.
        item: what they annotated.
        members: one annotation of each member, finished or not; one that failed does not vote.

    Returns:
        The vote; failed, with the reason, if fewer than half of the members have finished.
    """
    done = [member for member in members if member.status is Status.DONE]
    if 2 * len(done) >= len(members) and done:
        return vote(item, members, name=name)
    why = "; ".join(
        f"{member.annotator}: {member.note or member.status}"
        for member in members
        if member not in done
    )
    return Annotation(
        annotator=name,
        kind=AnnotatorKind.VOTE,
        status=Status.FAILED,
        voters=tuple(annotation.annotator for annotation in done),
        note=f"{len(done)} of {len(members)} members finished, fewer than half: no vote ({why})",
    )
