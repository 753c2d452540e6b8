"""What an optimiser maximises: how right one answer's labels are, and in words what was wrong.

The targets are those of Huang et al. 2025, "UCSC at SemEval-2025 Task 3": IoU, Corr, MaxIoU, the
mean of the first two, and the mean of all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from spanlab.errors import UsageError
from spanlab.fields import Frozen
from spanlab.labels import Extent, Labels, overlap
from spanlab.scorers import score_item

TARGETS: Final = {
    "iou": ("iou",),
    "corr": ("corr",),
    "max-iou": ("max_iou",),
    "iou+corr": ("iou", "corr"),
    "all": ("iou", "corr", "max_iou"),
}
_MOST = 5  # mistakes of one kind that the feedback spells out
_LONGEST = 80  # characters of a quote in it


class ScoredAnswer(Frozen):
    """A score in [-1, 1] (below 0 only where Corr is), and what to do better next time."""

    score: float
    feedback: str


def check_target(target: str) -> str:
    """Return ``target`` if it is one of ``TARGETS``.

    Raises:
        UsageError: it is none; lists those there are.
    """
    if target not in TARGETS:
        raise UsageError(f"no metric is called {target!r} (known: {', '.join(TARGETS)})")
    return target


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
    metrics = TARGETS[check_target(target)]
    known = gold if gold.raters else replace(gold, raters=(gold.hard,))
    score = score_item(known, found)
    values = [getattr(score, metric) for metric in metrics]
    return ScoredAnswer(
        score=sum(values) / len(values), feedback=_feedback(gold.hard, found.hard, answer)
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
    text = answer[extent.start : extent.end]
    return f"“{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}”"


def _listed(what: str, mistakes: Sequence[str]) -> str:
    if not mistakes:
        return ""
    more = f" and {len(mistakes) - _MOST} more" if len(mistakes) > _MOST else ""
    return f"{what}: {', '.join(islice(mistakes, _MOST))}{more}."
