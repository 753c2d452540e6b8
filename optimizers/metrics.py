"""What an optimiser maximises: how right one answer's labels are, and in words what was wrong.

The targets are those of Huang et al. 2025, "UCSC at SemEval-2025 Task 3": IoU, Corr, MaxIoU, the
mean of the first two, and the mean of all three. Verdicts on claims have ``verdict-f1``: one claim
is right or wrong, so that the score of a trial is the share of right verdicts (accuracy), and macro
F1 is what the held-out claims of both prompts are compared by (``optimizers.held_out``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from spanlab.detectors.entry import Entry
from spanlab.errors import UsageError
from spanlab.fields import Frozen
from spanlab.labels import Extent, Labels, overlap
from spanlab.schema import Verdict
from spanlab.scorers import coarse, score_item

TARGETS: Final = {
    "iou": ("iou",),
    "corr": ("corr",),
    "max-iou": ("max_iou",),
    "iou+corr": ("iou", "corr"),
    "all": ("iou", "corr", "max_iou"),
}
VERDICT_F1: Final = "verdict-f1"
METRICS: Final = {"spans": tuple(TARGETS), "claims": (VERDICT_F1,)}  # by what they score
_MOST = 5  # mistakes of one kind that the feedback spells out
_LONGEST = 80  # characters of a quote in it
_REASON = 500  # and of the reason for a verdict


class ScoredAnswer(Frozen):
    """A score in [-1, 1] (below 0 only where Corr is), and what to do better next time."""

    score: float
    feedback: str


def check_metric(metric: str, tuned: Entry | None = None) -> None:
    """Refuse what is no metric, or does not score what a detector is tuned on.

    Raises:
        UsageError: says which metrics would be right.
    """
    known = [name for names in METRICS.values() for name in names]
    if metric not in known:
        raise UsageError(f"no metric is called {metric!r} (known: {', '.join(known)})")
    if tuned is not None and metric not in METRICS[tuned.tuned_on]:
        what = {"spans": "the spans of answers", "claims": "verdicts on claims"}
        scored = "claims" if metric == VERDICT_F1 else "spans"
        raise UsageError(
            f"the metric {metric!r} scores {what[scored]}, and {tuned.name!r} is tuned on "
            f"{what[tuned.tuned_on]} (its metrics: {', '.join(METRICS[tuned.tuned_on])})"
        )


def judge(gold: Labels, found: Labels, answer: str, target: str) -> ScoredAnswer:
    """Score what was found in an answer, and name what was missed, invented or cut wrongly.

    Args:
        gold: what is right. Where it names no single annotators, MaxIoU takes its hard labels
            for those of the only one, so that it equals IoU.
        found: what a detector marked.
        answer: the text that both mark.
        target: one of ``TARGETS``.

    Raises:
        UsageError: there is no such target.
    """
    metrics = TARGETS.get(target)
    if metrics is None:
        raise UsageError(f"no metric is called {target!r} (known: {', '.join(TARGETS)})")
    known = gold if gold.raters else replace(gold, raters=(gold.hard,))
    score = score_item(known, found)
    values = [getattr(score, metric) for metric in metrics]
    return ScoredAnswer(
        score=sum(values) / len(values), feedback=_feedback(gold.hard, found.hard, answer)
    )


def judge_verdict(gold: Verdict, said: Verdict | None, reason: str = "") -> ScoredAnswer:
    """Score a verdict on a claim, 1 if it is right and 0 if not, and say what would be right.

    Where one of the two is "not-supported", the other is, too, if that covers it.

    Args:
        gold: what is right.
        said: a detector's verdict; None where it gave none, which is wrong.
        reason: why the detector said so.
    """
    if said is not None and coarse(gold, {gold, said}) == coarse(said, {gold, said}):
        return ScoredAnswer(score=1.0, feedback=f"Right: the claim is {said}.")
    why = f" The reason given was: {_shortened(reason)}" if reason else ""
    return ScoredAnswer(
        score=0.0, feedback=f"Wrong: the verdict was {said or 'none'}, right is {gold}.{why}"
    )


def _feedback(gold: Sequence[Extent], found: Sequence[Extent], answer: str) -> str:
    if list(gold) == list(found):
        return "All right." if gold else "Right: nothing in this answer is wrong."
    missed = [wanted for wanted in gold if not _meeting(wanted, found)]
    invented = [marked for marked in found if not _meeting(marked, gold)]
    cut = [
        (wanted, meeting)
        for wanted in gold
        if (meeting := _meeting(wanted, found)) and meeting != [wanted]
    ]
    parts = [
        _listed("Missed", [_quote(answer, each) for each in missed]),
        _listed("Marked although it is right", [_quote(answer, each) for each in invented]),
        _listed(
            "Boundaries off",
            [
                f"{_quote(answer, wanted)} was marked as "
                + " and ".join(_quote(answer, each) for each in meeting)
                for wanted, meeting in cut
            ],
        ),
    ]
    return " ".join(part for part in parts if part)


def _meeting(extent: Extent, others: Sequence[Extent]) -> list[Extent]:
    return [other for other in others if overlap([extent], [other])]


def _quote(answer: str, extent: Extent) -> str:
    return f"“{_shortened(answer[extent.start : extent.end], _LONGEST)}”"


def _shortened(text: str, most: int = _REASON) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _listed(what: str, mistakes: Sequence[str]) -> str:
    if not mistakes:
        return ""
    more = f" and {len(mistakes) - _MOST} more" if len(mistakes) > _MOST else ""
    return f"{what}: {', '.join(islice(mistakes, _MOST))}{more}."
