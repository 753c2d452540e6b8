"""How figures are written for people; pages and commands write them alike."""

from __future__ import annotations


def figure(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """Return ``value`` with so many decimals; what rounds to zero has no minus sign.

    Args:
        value: any number.
        digits: decimals, at least 0.
        signed: write a plus sign, too, as for differences.
    """
    return f"{value:{'+' if signed else ''}z.{digits}f}"


def unsigned_zero(value: float | None, digits: int = 3) -> float | None:
    """Return ``value`` for a table that itself rounds to ``digits``: 0.0 in place of -0.000."""
    if value is not None and value < 0 and float(figure(value, digits)) == 0.0:
        return 0.0
    return value
