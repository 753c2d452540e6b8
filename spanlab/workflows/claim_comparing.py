"""Annotators' verdicts on the claims of a dataset: against a reference, and against each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spanlab.schema import (
    AnnotatorKind,
    PairStep,
    RecallStep,
    Record,
    Status,
    Step,
    ThoughtStep,
    Verdict,
)
from spanlab.scorers import (
    ClaimReport,
    JudgedClaim,
    MeanDifference,
    compare_claims,
    decided,
    score_claims,
)
from spanlab.scorers.agreement import verdict_alpha
from spanlab.workflows.claim_scores import by_text, judged

__all__ = [
    "ClaimComparison",
    "ClaimReport",
    "ClaimTally",
    "ScoredClaims",
    "VerdictAgreement",
]


@dataclass(frozen=True)
class ScoredClaims:
    """Verdicts of one annotator, scored against the reference.

    ``searches`` are its calls of tools and searches for the items that are scored, ``recalled`` the
    passages that its memory had for them.
    """

    name: str
    kind: AnnotatorKind
    report: ClaimReport
    judged: tuple[JudgedClaim, ...]
    searches: int = 0
    recalled: int = 0

    def minus(self, other: ScoredClaims) -> MeanDifference | None:
        """Return the accuracy minus the other's, paired by claim; None without common claims."""
        items = {each.item for each in self.judged} & {each.item for each in other.judged}
        mine, theirs = (
            [each for each in one.judged if each.item in items] for one in (self, other)
        )
        return compare_claims(mine, theirs) if decided(mine, theirs)[0] else None


@dataclass(frozen=True)
class VerdictAgreement:
    """Krippendorff's alpha on the ``n`` claims that two or more of a group have judged."""

    n: int
    alpha: float | None


@dataclass(frozen=True)
class ClaimComparison:
    """Verdicts compared; ``n`` claims of the dataset have one by anybody.

    ``scores`` is empty without a reference that has judged claims.
    """

    n: int
    scores: tuple[ScoredClaims, ...]
    persons: VerdictAgreement
    independent: VerdictAgreement


class ClaimTally:
    """Gathers verdicts item by item. Claims are the same if their text is, but for white space."""

    def __init__(self, kinds: Mapping[str, AnnotatorKind], reference: str | None) -> None:
        self._kinds = kinds
        self._reference = reference
        self._judged: dict[str, list[JudgedClaim]] = defaultdict(list)
        self._searched: dict[str, Counter[str]] = defaultdict(Counter)
        self._verdicts: list[Mapping[str, Verdict]] = []  # of each claim, by annotator

    def add(self, record: Record) -> None:
        """Add the claims of all who finished an item."""
        said = {
            one.annotator: by_text(one.claims)
            for one in record.annotations
            if one.status is Status.DONE and one.claims and one.annotator in self._kinds
        }
        verdicts: dict[str, dict[str, Verdict]] = defaultdict(dict)
        for name, claims in said.items():
            for text, claim in claims.items():
                if claim.verdict is not None:
                    verdicts[text][name] = claim.verdict
        self._verdicts += verdicts.values()
        gold = said.pop(self._reference or "", {})
        for name, claims in said.items():
            self._judged[name] += judged(record.item.id, gold, claims)
        if gold:
            for one in record.annotations:
                self._searched[one.annotator].update(_searched(one.trace))

    def result(self) -> ClaimComparison:
        """Return what was gathered."""
        scores = (
            ScoredClaims(name, kind, score_claims(found), tuple(found), **self._searched[name])
            for name, kind in self._kinds.items()
            if decided(found := self._judged[name])[0]
        )
        return ClaimComparison(
            n=len(self._verdicts),
            scores=tuple(scores),
            persons=self._agreement(AnnotatorKind.PERSON),
            independent=self._agreement(AnnotatorKind.PERSON, AnnotatorKind.DETECTOR),
        )

    def _agreement(self, *wanted: AnnotatorKind) -> VerdictAgreement:
        groups: list[Sequence[Verdict]] = [
            [verdict for name, verdict in each.items() if self._kinds[name] in wanted]
            for each in self._verdicts
        ]
        return VerdictAgreement(
            n=sum(len(verdicts) > 1 for verdicts in groups), alpha=verdict_alpha(groups)
        )


def _searched(trace: Sequence[Step]) -> Counter[str]:
    """Count the calls of tools, the questions that were searched for, and what was recalled."""
    recalled = {index for step in trace if isinstance(step, RecallStep) for index in step.passages}
    calls = 0
    for step in trace:
        if isinstance(step, ThoughtStep):
            calls += step.tool is not None and step.repeats is None
        elif isinstance(step, PairStep):  # one that rests on the memory alone was not searched for
            calls += not step.passages or not recalled.issuperset(step.passages)
    return Counter(searches=calls, recalled=len(recalled))
