"""When a campaign is done, if the days to come are like the last ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import numpy as np

from spanlab.results import MeanInterval

WINDOW: Final = 14  # days that tell how many annotations a day may bring
_DRAWS: Final = 2000
_FURTHEST: Final = 730  # days ahead that a forecast looks


@dataclass(frozen=True)
class Forecast:
    """When a plan is done, if days go on to be like the last ones: half of the draws are by then.

    ``early`` and ``late`` are the ends of the middle eight tenths; ``days`` has the annotations
    on each day from tomorrow on, as mean and these ends.
    """

    early: date
    half: date
    late: date
    days: tuple[tuple[date, MeanInterval], ...]


def forecast(days: Mapping[date, int], left: int, today: date) -> Forecast | None:
    """Say when so many annotations more are done, if days go on to be like the last fourteen.

    Days to come are drawn from those (the first of the campaign at the earliest, today not among
    them unless it is the only one), 2,000 times.

    Returns:
        None where nothing was finished in these days, or the end is beyond two years.
    """
    counts = _last_days(days, today)
    mean = sum(counts) / len(counts)
    ahead = min(int(4 * left / mean) + WINDOW, _FURTHEST) if mean else 0
    if not ahead:
        return None
    drawn = np.random.default_rng(0).choice(counts, (_DRAWS, ahead)).cumsum(axis=1)
    reached = np.where(drawn[:, -1] >= left, (drawn < left).sum(axis=1), ahead)
    low, half, high = np.quantile(reached, (0.1, 0.5, 0.9), method="higher")
    if high >= ahead:
        return None
    shown = np.minimum(drawn, left)[:, : int(high) + 1]
    lows, highs = np.quantile(shown, (0.1, 0.9), axis=0)
    ends = zip(shown.mean(axis=0).tolist(), lows.tolist(), highs.tolist(), strict=True)
    return Forecast(
        early=today + timedelta(days=int(low) + 1),
        half=today + timedelta(days=int(half) + 1),
        late=today + timedelta(days=int(high) + 1),
        days=tuple(
            (today + timedelta(days=after + 1), MeanInterval(mean=mean, low=low, high=high))
            for after, (mean, low, high) in enumerate(ends)
        ),
    )


def _last_days(days: Mapping[date, int], today: date) -> list[int]:
    """Return how many annotations each of the last days brought."""
    first = max(min(days, default=today), today - timedelta(days=WINDOW))
    window = [first + timedelta(days=n) for n in range((today - first).days)] or [today]
    return [days.get(day, 0) for day in window]


def done_by(days: Mapping[date, int], left: int, today: date) -> date | None:
    """Return the day on which so much is done at the mean of the last days; None for none."""
    counts = _last_days(days, today)
    mean = sum(counts) / len(counts)
    if left <= 0 or not mean or left / mean > _FURTHEST:
        return None
    return today + timedelta(days=math.ceil(left / mean))
