"""Differences of rates: of two groups of a dataset or of two datasets, on common questions."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from spanlab.results import MeanInterval
from spanlab.scorers.powered import difference_interval, paired_interval
from spanlab.workflows.measuring.sample import MeasuredItems

_COMMON: Final = 30  # reviewed questions from which a paired comparison is made
_CHANGED: Final = 10  # … that differ


class MeasuredSide(NamedTuple):
    """One side of a comparison: measured items, or one group of them."""

    items: MeasuredItems
    group: str | None = None


class RateChange(NamedTuple):
    """A rate minus another one, and on how many common questions; 0 for all items of both."""

    difference: MeanInterval
    questions: int = 0

    @property
    def how(self) -> str:
        """How the two were compared, in words."""
        return (
            f"paired on {self.questions:,} common questions" if self.questions else "of all items"
        )


def compare_rates(
    new: MeasuredSide, old: MeasuredSide, *, comparisons: int = 1
) -> RateChange | None:
    """Return the difference of two rates, with a 95 % interval.

    Args:
        new: the rate that the other one is taken from.
        old: the other one, which may be another group of the same items.
        comparisons: how many are made together; their intervals hold together (Bonferroni).

    Returns:
        On common questions where enough of these are reviewed; None without reviews of both.
    """
    paired = _paired(new, old, comparisons)
    if paired is not None:
        return paired
    rates = [side.items.estimate(side.group) for side in (new, old)]
    if rates[0] is None or rates[1] is None:
        return None
    df = max(min(len(side.items.chosen(side.group)) for side in (new, old)) - 1, 2)
    mean, low, high = difference_interval(rates[0], rates[1], comparisons=comparisons, df=df)
    return RateChange(MeanInterval(mean=mean, low=low, high=high))


def _paired(new: MeasuredSide, old: MeasuredSide, comparisons: int) -> RateChange | None:
    """Compare on the questions that both have.

    Samples of one seed have the same questions first; which ones are reviewed in both is chance.
    """
    plans = new.items.plan, old.items.plan
    if plans[0].seed != plans[1].seed or any(plan.design == "uncertainty" for plan in plans):
        return None
    places = [_places(side) for side in (new, old)]
    common = [key for key in places[0] if key in places[1]]
    if not common:
        return None
    a, b = (
        {name: column[[its[key] for key in common]] for name, column in side.items.columns.items()}
        for side, its in zip((new, old), places, strict=True)
    )
    counted = [
        np.isin([its[key] for key in common], side.items.chosen(side.group))
        for side, its in zip((new, old), places, strict=True)
    ]
    both = counted[0] & counted[1]
    if both.sum() < _COMMON or np.count_nonzero((a["y"] != b["y"])[both]) < _CHANGED:
        return None
    mean, low, high = paired_interval(a, b, both, comparisons=comparisons)
    return RateChange(MeanInterval(mean=mean, low=low, high=high), int(both.sum()))


def _places(side: MeasuredSide) -> dict[str, int]:
    """Return where each question stands that the side has one answer to."""
    by_question: dict[str, list[int]] = {}
    for at in np.flatnonzero(side.items.inside(side.group)).tolist():
        by_question.setdefault(side.items.items[at].key, []).append(at)
    return {key: at[0] for key, at in by_question.items() if len(at) == 1}
