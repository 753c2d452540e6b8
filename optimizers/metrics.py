"""The metrics that an optimiser maximises on spans and verdicts, with feedback in words.

The targets are the metrics of spans; as in Huang et al. 2025, "UCSC at SemEval-2025 Task 3", also
the mean of IoU and Corr, and that of both and MaxIoU. ``optimizers.units`` has what else is tuned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from spanlab.base.errors import UsageError
from spanlab.base.fields import FrozenModel
from spanlab.scoring.claims import coarse
from spanlab.scoring.spans import METRICS as SPAN_METRICS
from spanlab.scoring.spans import score_item
from spanlab.text.extents import Extent, overlap
from spanlab.text.labels import AnswerVerdict, ItemLabels

TARGETS: Final = {key.replace("_", "-"): (key,) for key in SPAN_METRICS} | {
    "iou+corr": ("iou", "corr"),
    "all": ("iou", "corr", "max_iou"),
}
# Of verdicts on whole answers; by the name of the metric, what the score is.
ANSWER_TARGETS: Final = {
    "answer-accuracy": "answers judged right (hallucinated or not)",
    "answer-brier": "1 minus the Brier score of the answer's probability",
}
_MOST = 5  # mistakes of one kind that the feedback spells out
_LONGEST = 80  # characters of a quote in it
_REASON = 500  # and of the reason for a verdict


class ScoredAnswer(FrozenModel):
    """A score in [-1, 1] (below 0 only where Corr is), and feedback on what was wrong."""

    score: float
    feedback: str


def judge(gold: ItemLabels, predicted: ItemLabels, answer: str, target: str) -> ScoredAnswer:
    """Score a detector's spans; the feedback names spans missed, invented or cut wrongly.

    Args:
        gold: the gold labels. Where they have no single annotators, MaxIoU takes their hard labels
            for those of the only one, so that it equals IoU.
        predicted: the detector's labels.
        answer: the text that both mark.
        target: one of ``TARGETS`` or ``ANSWER_TARGETS``.

    Raises:
        UsageError: there is no such target.
    """
    if target in ANSWER_TARGETS:
        return _judge_answer(gold.verdict, predicted.verdict, target)
    metrics = TARGETS.get(target)
    if metrics is None:
        raise UsageError(f"no metric named {target!r}; available: {', '.join(TARGETS)}")
    gold_rated = gold if gold.raters else replace(gold, raters=(gold.hard,))
    score = score_item(gold_rated, predicted)
    values = [getattr(score, metric) for metric in metrics]
    return ScoredAnswer(
        score=sum(values) / len(values), feedback=_feedback(gold.hard, predicted.hard, answer)
    )


def _judge_answer(gold: AnswerVerdict, said: AnswerVerdict, target: str) -> ScoredAnswer:
    right = "is hallucinated" if gold.hallucinated else "is not hallucinated"
    is_right = gold.hallucinated == said.hallucinated
    score = float(is_right)
    if target == "answer-brier":
        score = 1.0 - (said.prob - gold.hallucinated) ** 2
    told = "Right" if is_right else "Wrong"
    return ScoredAnswer(score=score, feedback=f"{told}: this answer {right}.")


def judge_verdict(gold: str, predicted: str | None, reason: str = "") -> ScoredAnswer:
    """Score a verdict on a claim, 1 if it is right and 0 if not, and say what would be right.

    Where one of the two is "not-supported", the other is, too, if that covers it. Of a step the
    verdict is its type of error.

    Args:
        gold: the right verdict.
        predicted: a detector's verdict; None where it gave none, which is wrong.
        reason: the detector's reason for it.
    """
    if predicted is not None and coarse(gold, {gold, predicted}) == coarse(
        predicted, {gold, predicted}
    ):
        return ScoredAnswer(score=1.0, feedback=f"Right: the claim is {predicted}.")
    why = f" The reason given was: {shorten(reason)}" if reason else ""
    return ScoredAnswer(
        score=0.0, feedback=f"Wrong: the verdict was {predicted or 'none'}, right is {gold}.{why}"
    )


def _feedback(gold: Sequence[Extent], predicted: Sequence[Extent], answer: str) -> str:
    if list(gold) == list(predicted):
        return "All right." if gold else "Right: nothing in this answer is wrong."
    missed = [gold_extent for gold_extent in gold if not _overlapping(gold_extent, predicted)]
    invented = [marked for marked in predicted if not _overlapping(marked, gold)]
    cut = [
        (gold_extent, overlapping)
        for gold_extent in gold
        if (overlapping := _overlapping(gold_extent, predicted)) and overlapping != [gold_extent]
    ]
    parts = [
        _list_mistakes("Missed", [_quote(answer, extent) for extent in missed]),
        _list_mistakes(
            "Marked although it is right", [_quote(answer, extent) for extent in invented]
        ),
        _list_mistakes(
            "Boundaries off",
            [
                f"{_quote(answer, gold_extent)} was marked as "
                + " and ".join(_quote(answer, extent) for extent in overlapping)
                for gold_extent, overlapping in cut
            ],
        ),
    ]
    return " ".join(part for part in parts if part)


def _overlapping(extent: Extent, extents: Sequence[Extent]) -> list[Extent]:
    return [candidate for candidate in extents if overlap([extent], [candidate])]


def _quote(answer: str, extent: Extent) -> str:
    return f"“{shorten(answer[extent.start : extent.end], _LONGEST)}”"


def shorten(text: str, longest: int = _REASON) -> str:
    """Return at most so many characters of a text."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _list_mistakes(heading: str, mistakes: Sequence[str]) -> str:
    if not mistakes:
        return ""
    how_many = f" and {len(mistakes) - _MOST} more" if len(mistakes) > _MOST else ""
    return f"{heading}: {', '.join(islice(mistakes, _MOST))}{how_many}."
