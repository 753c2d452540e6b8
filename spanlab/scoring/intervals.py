"""Wilson's interval of a rate, and quantiles of Student's t."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def wilson(rate: Array, n: Array, df: int | None = None) -> tuple[Array, Array]:
    """Return Wilson's interval for a rate of n reviews, its quantile that of t, or normal."""
    z2 = (NormalDist().inv_cdf(0.975) if df is None else t_quantile(df)) ** 2
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def t_quantile(df: int, p: float = 0.975) -> float:
    """Return a quantile of Student's t: Hill's expansion (Abramowitz & Stegun, 26.7.5)."""
    z, v = NormalDist().inv_cdf(p), max(df, 2)
    return float(
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )
