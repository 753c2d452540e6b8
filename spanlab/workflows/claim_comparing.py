"""Annotators' verdicts on the claims of a dataset: against a reference, and against each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spanlab.agreement import verdict_alpha
from spanlab.schema import Kind, Record, Status, Verdict
from spanlab.scorers import (
    ClaimReport,
    Difference,
    JudgedClaim,
    MeanInterval,
    compare_claims,
    score_claims,
)
from spanlab.workflows.claim_scores import by_text, judged

__all__ = [
    "ClaimComparison",
    "ClaimReport",
    "ClaimTally",
    "MeanInterval",
    "ScoredClaims",
    "VerdictAgreement",
]


@dataclass(frozen=True)
class ScoredClaims:
    """Verdicts of one annotator, scored against the reference."""

    name: str
    kind: Kind
    report: ClaimReport
    judged: tuple[JudgedClaim, ...]

    def minus(self, other: ScoredClaims) -> Difference | None:
        """Return the accuracy minus the other's, paired by claim; None without common items."""
        items = {each.item for each in self.judged} & {each.item for each in other.judged}
        mine, theirs = (
            [each for each in one.judged if each.item in items] for one in (self, other)
        )
        return compare_claims(mine, theirs) if items else None


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

    def __init__(self, kinds: Mapping[str, Kind], reference: str | None) -> None:
        self._kinds = kinds
        self._reference = reference
        self._judged: dict[str, list[JudgedClaim]] = defaultdict(list)
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

    def result(self) -> ClaimComparison:
        """Return what was gathered."""
        scores = (
            ScoredClaims(name, kind, score_claims(found), tuple(found))
            for name, kind in self._kinds.items()
            if (found := self._judged.get(name))
        )
        return ClaimComparison(
            n=len(self._verdicts),
            scores=tuple(scores),
            persons=self._agreement(Kind.PERSON),
            independent=self._agreement(Kind.PERSON, Kind.DETECTOR),
        )

    def _agreement(self, *wanted: Kind) -> VerdictAgreement:
        groups: list[Sequence[Verdict]] = [
            [verdict for name, verdict in each.items() if self._kinds[name] in wanted]
            for each in self._verdicts
        ]
        return VerdictAgreement(
            n=sum(len(verdicts) > 1 for verdicts in groups), alpha=verdict_alpha(groups)
        )
