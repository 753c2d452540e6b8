"""At which stages of a process errors came in, and whether two runs say the same of that.

After Metropolitansky et al. 2025, "VeriTrail", appendix H.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spanlab.results import MeanInterval
from spanlab.scorers._report import mean_of
from spanlab.scorers._resample import Table


class StageAgreement(NamedTuple):
    """How much two distributions over stages resemble each other.

    ``divergence`` is Jensen and Shannon's with logarithms of base 2: 0 for equal distributions, 1
    for such that share no stage. ``correlation`` is Spearman's over the stages, ties with their
    mean rank; None for fewer than two stages, or where one distribution has all of them equal.
    """

    divergence: float
    correlation: float | None


def stage_shares(
    claims: Sequence[Sequence[str]], stages: Sequence[str]
) -> Mapping[str, MeanInterval]:
    """Return each stage's share of the errors, with a 95 % bootstrap interval over the claims.

    A claim with several error stages counts for each of them by an equal part, so that the shares
    sum to 1.

    Args:
        claims: the error stages of every claim, at least one each.
        stages: the stages in the order of the process; those without errors have the share 0.

    Raises:
        InputError: there is no claim.
    """
    return {
        stage: mean_of([(stage in claim) / len(claim) for claim in map(set, claims)])
        for stage in stages
    }


def stage_agreement(one: Sequence[float], other: Sequence[float]) -> StageAgreement:
    """Compare two distributions over the same stages, each at least one and summing to 1."""
    p, q = np.array(one), np.array(other)
    middle = (p + q) / 2
    divergence = (_relative(p, middle) + _relative(q, middle)) / 2
    x, y = _ranks(p), _ranks(q)
    spread = float(np.sqrt((x**2).sum() * (y**2).sum()))
    correlation = float((x * y).sum()) / spread if spread else None
    return StageAgreement(min(max(divergence, 0.0), 1.0), correlation)


def _relative(p: Table, q: Table) -> float:
    there = p > 0
    return float((p[there] * np.log2(p[there] / q[there])).sum())


def _ranks(values: Table) -> Table:
    """Return ranks around their mean; equal values (but for rounding) share theirs."""
    rounded = values.round(12)
    below = (rounded[:, None] > rounded).sum(axis=1)
    equal = (rounded[:, None] == rounded).sum(axis=1)
    ranks: Table = below + (equal - 1) / 2 - (len(values) - 1) / 2
    return ranks
