"""Analyses in a sentence each: what is said before their tables; None where there is no result."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from spanlab.output.figures import counted, figure
from spanlab.output.tables import Column, MeanInterval, write_cell
from spanlab.schema import AnnotatorKind
from spanlab.schema.progress import FinishedItem
from spanlab.scoring.annotators import DatasetComparison
from spanlab.scoring.answer_scores import ScoredAnswers
from spanlab.scoring.verdicts import ClaimComparison

_SCORE = Column(key="score", title="Score", unit="score")


def score_finding(comparison: DatasetComparison, names: Collection[str]) -> str | None:
    """Say which of ``names`` is closest to the reference: of detectors, else of all annotators."""
    scores = [scored for scored in comparison.scores if scored.kind and scored.name in names]
    detectors = [scored for scored in scores if scored.kind is AnnotatorKind.DETECTOR]
    if not scores:
        return _answer_finding(comparison, names)
    best = max(detectors or scores, key=lambda scored: scored.report.macro.iou.mean)
    whose = "detectors" if detectors else "annotators"
    iou, n = best.report.macro.iou, best.report.macro.n
    return (
        f"Of {whose}, {best.name} is closest to {comparison.reference}: mean IoU "
        f"{write_cell(iou, _SCORE)} on {counted(n, 'item')}."
    )


def _answer_finding(comparison: DatasetComparison, names: Collection[str]) -> str | None:
    """Say whose verdicts on whole answers are closest, where nobody marks places."""
    chosen = [one for one in comparison.answers.scores if one.kind and one.name in names]
    detectors = [one for one in chosen if one.kind is AnnotatorKind.DETECTOR]
    scored = [one for one in detectors or chosen if one.scores.balanced_accuracy is not None]
    if not scored:
        return None

    def accuracy(one: ScoredAnswers) -> float:
        mean = one.scores.balanced_accuracy
        return 0.0 if mean is None else mean.mean

    best = max(scored, key=accuracy)
    return (
        f"Of {'detectors' if detectors else 'annotators'}, {best.name} is closest to "
        f"{comparison.reference} on whole answers: balanced accuracy "
        f"{write_cell(best.scores.balanced_accuracy, _SCORE)} on "
        f"{counted(best.scores.n, 'answer')}."
    )


def agreement_finding(comparison: DatasetComparison) -> str | None:
    """Say how far people agree, or they and detectors, or detectors, where there are no two."""
    for whose, agreed in (
        ("People", comparison.persons),
        (comparison.judges.capitalize(), comparison.independent),
    ):
        if agreed.alpha is not None:
            return (
                f"{whose} agree on characters with Krippendorff's alpha {figure(agreed.alpha)} "
                f"(1 is perfect, 0 is chance) on {counted(agreed.n, 'item')}."
            )
    return None


def claim_finding(comparison: ClaimComparison, reference: str | None) -> str | None:
    """Say whose verdicts are closest to the reference's, or how many claims are judged."""
    scores = [scored for scored in comparison.scores if scored.report.balanced_accuracy]
    if not scores or reference is None:
        return f"{counted(comparison.n, 'claim')} judged." if comparison.n else None

    def accuracy(at: int) -> MeanInterval:
        value = scores[at].report.balanced_accuracy
        assert value is not None
        return value

    best = max(range(len(scores)), key=lambda at: accuracy(at).mean)
    return (
        f"{scores[best].name} is closest to the verdicts of {reference}: balanced accuracy "
        f"{write_cell(accuracy(best), _SCORE)} on {counted(scores[best].report.n, 'claim')}."
    )


def progress_finding(finished: Sequence[FinishedItem]) -> str | None:
    """Say how many items were finished in Review, by how many people, and until when."""
    if not finished:
        return None
    people, items = ({item[at] for item in finished} for at in (0, 1))
    last = max(item.at for item in finished)
    who = "1 person" if len(people) == 1 else f"{len(people):,} people"
    return (
        f"{counted(len(items), 'item')} finished in Review by {who}, the last on {last:%Y-%m-%d}."
    )
