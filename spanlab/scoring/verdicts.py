"""Verdicts against verdicts: of files, and of a dataset's annotators."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spanlab.base.errors import InputError
from spanlab.formats import Role, read_placed_claims
from spanlab.formats.wrongs import Wrongs, repeated_id
from spanlab.output.figures import counted
from spanlab.output.tables import P_VALUE, Column, ResultTable, columns_of, figures_of
from spanlab.schema import (
    AnnotatorKind,
    Claim,
    RecallStep,
    Record,
    Step,
    TraceStep,
    Verdict,
)
from spanlab.scoring.agreement import verdict_alpha
from spanlab.scoring.claims import ClaimReport, JudgedClaim, compare_claims, decided, score_claims
from spanlab.scoring.comparison import MeanDifference
from spanlab.scoring.files import difference_cells


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

    @property
    def n_items(self) -> int:
        """How many items the claims are of."""
        return len({claim.item for claim in self.judged})

    def minus(self, reference: ScoredClaims) -> MeanDifference | None:
        """Return the accuracy minus the other's, paired by claim; None without common claims."""
        items = {claim.item for claim in self.judged} & {claim.item for claim in reference.judged}
        a, b = (
            [claim for claim in scored.judged if claim.item in items]
            for scored in (self, reference)
        )
        return compare_claims(a, b) if decided(a, b)[0] else None


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
        claims_by_annotator = {
            annotation.annotator: by_text(annotation.claims)
            for annotation in record.finished
            if annotation.claims and annotation.annotator in self._kinds
        }
        verdicts: dict[str, dict[str, Verdict]] = defaultdict(dict)
        for name, claims in claims_by_annotator.items():
            for text, claim in claims.items():
                if claim.verdict is not None:
                    verdicts[text][name] = claim.verdict
        self._verdicts += verdicts.values()
        gold = claims_by_annotator.pop(self._reference or "", {})
        for name, claims in claims_by_annotator.items():
            self._judged[name] += pair_verdicts(record.item.id, gold, claims)
        if gold:
            for annotation in record.annotations:
                self._searched[annotation.annotator].update(_count_searches(annotation.trace))

    def result(self) -> ClaimComparison:
        """Return the scores and the agreement of all that was added."""
        scores = (
            ScoredClaims(name, kind, score_claims(claims), tuple(claims), **self._searched[name])
            for name, kind in self._kinds.items()
            if decided(claims := self._judged[name])[0]
        )
        return ClaimComparison(
            n=len(self._verdicts),
            scores=tuple(scores),
            persons=self._agreement(AnnotatorKind.PERSON),
            independent=self._agreement(AnnotatorKind.PERSON, AnnotatorKind.DETECTOR),
        )

    def _agreement(self, *kinds: AnnotatorKind) -> VerdictAgreement:
        groups: list[Sequence[Verdict]] = [
            [verdict for name, verdict in verdicts.items() if self._kinds[name] in kinds]
            for verdicts in self._verdicts
        ]
        return VerdictAgreement(
            n=sum(len(verdicts) > 1 for verdicts in groups), alpha=verdict_alpha(groups)
        )


def _count_searches(trace: Sequence[Step]) -> Counter[str]:
    """Count the searches of a trace (calls of tools and questions), and the passages recalled."""
    recalled = {index for step in trace if isinstance(step, RecallStep) for index in step.passages}
    calls = sum(isinstance(step, TraceStep) and step.has_searched(recalled) for step in trace)
    return Counter(searches=calls, recalled=len(recalled))


_MEASURES: Final = {  # with what they mean
    "balanced_accuracy": (
        "Balanced accuracy",
        "Mean over the verdicts of the share of their claims that was found.",
    ),
    "accuracy": ("Accuracy", "Share of claims with the reference's verdict."),
    "macro_f1": ("Macro F1", "Mean over the reference's verdicts of their F1."),
    "macro_f1_all": (
        "Macro F1, all verdicts",
        "Mean over the verdicts that either side uses, as scikit-learn's: one that the reference "
        "lacks counts as 0.",
    ),
    "auroc": (
        "AUROC",
        "Chance that a supported claim has a higher soft score than another; .5 is chance. "
        "Unknown where a claim has no soft score.",
    ),
}
MEASURES: Final = {
    key: Column(key=key, title=title, unit="score", about=about)
    for key, (title, about) in _MEASURES.items()
}
_Claims = Mapping[str, Mapping[str, Claim]]  # by item and by text


@dataclass(frozen=True)
class ClaimEvaluation:
    """Scores of predicted verdicts.

    ``missing`` is the number of gold claims whose item the prediction lacks; they are not scored.
    ``against`` is the accuracy minus that of a second prediction, on the claims of both.
    """

    report: ClaimReport
    missing: int
    against: MeanDifference | None = None

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the measures, and the scores of each verdict."""
        report, partly = self.report, self.report.auroc and self.report.soft < self.report.n
        remarks = {
            f"{counted(report.unjudged, 'claim')} without a verdict: wrong.": report.unjudged,
            f"{counted(report.inconclusive, 'claim')} that one side calls inconclusive: left out "
            "(--keep-inconclusive).": report.inconclusive,
            f"AUROC is over the {counted(report.soft, 'claim')} with a soft score.": partly,
            f"{counted(self.missing, 'gold claim')} of items without a prediction: not "
            "scored.": self.missing,
        }
        measures = ResultTable(
            key="measures",
            title=f"Verdicts on {counted(report.n, 'claim')}, with 95 % bootstrap intervals",
            columns=tuple(MEASURES.values()),
            rows=(tuple(getattr(report, name) for name in MEASURES),),
            remarks=tuple(remark for remark, is_so in remarks.items() if is_so),
        )
        return (measures, verdict_table(self.report), *self._difference())

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        return figures_of(**dict(self.report), missing=self.missing, against=self.against)

    def _difference(self) -> tuple[ResultTable, ...]:
        if self.against is None:
            return ()
        accuracy = MEASURES["accuracy"].model_copy(update={"unit": "difference"})
        return (
            ResultTable(
                key="difference",
                title="PRED minus --against, paired",
                columns=(accuracy, P_VALUE),
                rows=(difference_cells(self.against),),
            ),
        )


def verdict_table(report: ClaimReport) -> ResultTable:
    """Return a row per verdict: claims of the reference and predicted, precision, recall, F1."""
    return ResultTable(
        key="verdicts",
        title="Scores by verdict",
        columns=(
            *columns_of("text", "Verdict"),
            *columns_of("count", "Reference", "Predicted"),
            *columns_of("score", "Precision", "Recall", "F1"),
        ),
        rows=tuple(tuple(score.model_dump().values()) for score in report.verdicts),
    )


def score_claim_files(
    predictions: Sequence[Path],
    golds: Sequence[Path],
    *,
    annotator: str | None = None,
    gold_annotator: str | None = None,
    against: Sequence[Path] = (),
    keep_inconclusive: bool = False,
) -> ClaimEvaluation:
    """Score predicted verdicts on claims that are joined by item id and text.

    A gold claim that the prediction's item lacks counts as wrong.

    Args:
        predictions: files of any readable format whose annotations have claims.
        golds: files with gold claims.
        annotator: whose annotation is the prediction, where a file has several.
        gold_annotator: whose annotation is the gold, where it is not "gold".
        against: files of a second system, for a paired test.
        keep_inconclusive: whether claims that one side calls inconclusive are scored, too.

    Raises:
        InputError: a file is wrong, an item occurs twice, or no item is common to both sides.
    """
    gold = _claims(golds, gold_annotator, "gold")
    predicted = _claims(predictions, annotator, "prediction")
    both_sides = _join(gold, predicted)
    second = _claims(against, annotator, "prediction") if against else {}
    common = {item: claims for item, claims in gold.items() if item in predicted and item in second}
    difference = None
    if against:
        a, b = _join(common, predicted), _join(common, second)
        difference = compare_claims(a, b, keep_inconclusive=keep_inconclusive)
    return ClaimEvaluation(
        report=score_claims(both_sides, keep_inconclusive=keep_inconclusive),
        missing=sum(len(claims) for item, claims in gold.items() if item not in predicted),
        against=difference,
    )


def by_text(claims: Iterable[Claim]) -> dict[str, Claim]:
    """Return claims by their text with plain white space: claims of one text are the same."""
    return {" ".join(claim.text.split()): claim for claim in claims}


def pair_verdicts(
    item: str, gold: Mapping[str, Claim], predicted: Mapping[str, Claim]
) -> list[JudgedClaim]:
    """Pair the gold verdicts on an item's claims with predicted ones, by the claims' text.

    Args:
        item: the item's id.
        gold: its gold claims, by text.
        predicted: the claims of a prediction, by text; a missing one has no verdict.
    """
    return [
        _pair_verdict(item, claim, predicted.get(text))
        for text, claim in gold.items()
        if claim.verdict is not None
    ]


def _join(gold: _Claims, predicted: _Claims) -> list[JudgedClaim]:
    claims_judged = [
        claim
        for item, claims in gold.items()
        if item in predicted
        for claim in pair_verdicts(item, claims, predicted[item])
    ]
    if not claims_judged:
        raise InputError(
            "no item with claims is in both files",
            found=f"{next(iter(predicted))!r}… and {next(iter(gold))!r}…",
            expected="predictions and gold claims of the same items, joined by their id",
        )
    return claims_judged


def _pair_verdict(item: str, gold: Claim, predicted: Claim | None) -> JudgedClaim:
    assert gold.verdict is not None
    if predicted is None or predicted.verdict is None:
        return JudgedClaim(item, gold.verdict, None)
    supported = predicted.verdict == "supported"
    support = predicted.prob if predicted.prob is None or supported else 1.0 - predicted.prob
    return JudgedClaim(item, gold.verdict, predicted.verdict, support)


def _claims(files: Sequence[Path], annotator: str | None, role: Role) -> _Claims:
    by_annotator: dict[str, dict[str, Claim]] = {}
    wrongs = Wrongs()
    for file in files:
        for item, claims, line, unit in read_placed_claims(
            file, annotator=annotator, role=role, on_wrong=wrongs.add
        ):
            if item in by_annotator:
                twice = repeated_id(item, "every id once over all files of one side")
                wrongs.add(twice.at(file=str(file), line=line, unit=unit))
            claims_by_text = by_text(claims)
            if role == "gold":
                claims_by_text = {text: c for text, c in claims_by_text.items() if c.verdict}
            if claims_by_text:
                by_annotator[item] = claims_by_text
    wrongs.check()
    if not by_annotator:
        named = ", ".join(map(str, files[:3]))
        raise InputError(
            f"{named}: there are no claims with verdicts",
            expected="annotations with claims; --annotator and --gold say whose",
        )
    return by_annotator
