"""How figures are written: scores, shares, durations, dollars, and names in a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Final

_NAMED: Final = 3  # names in a sentence
_IDS: Final = 10  # ids in a remark


def figure(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """Return a score with so many decimals: ``.513``, ``1.000``, ``-.020``.

    Args:
        value: in [-1, 1]; below 1 without a digit before the point; what rounds to zero has no
            minus sign.
        digits: decimals, at least 1.
        signed: write a plus sign, too, as for differences.
    """
    return re.sub(r"^([+-]?)0\.", r"\1.", f"{value:{'+' if signed else ''}z.{digits}f}")


def percent(share: float) -> str:
    """Return a share in per cent with one decimal: ``2.1 %``."""
    return f"{100 * share:z.1f} %"


def counted(number: int, noun: str) -> str:
    """Return ``1 item``, ``2,000 items``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def field_in_words(field: str) -> str:
    """Return a field of items as people read it, such as ``model id`` for ``meta.model_id``."""
    return "language" if field == "lang" else field.removeprefix("meta.").replace("_", " ")


def duration(seconds: float) -> str:
    """Return ``12 s``, ``3 min 05 s``, ``2 h 10 min``."""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def rate_in_words(rate: float) -> str:
    """Return items per second, or per minute where that says more."""
    return f"{rate:,.1f} a second" if rate >= 1 else f"{rate * 60:,.1f} a minute"


def money(cost: float, *, up: bool = False) -> str:
    """Return US dollars: ``$0``, ``$0.0021``, ``$1,234.50``; ``up`` never says less than it is."""
    if cost == 0:
        return "$0"
    if up:
        step = 0.01 if cost >= 0.01 else 10.0 ** (floor(log10(cost)) - 1)
        cost = ceil(cost / step - 1e-9) * step
    return f"${cost:.2g}" if cost < 0.01 else f"${cost:,.2f}"


def named_ids(ids: Sequence[str], most: int = _IDS) -> str:
    """Return the first ids of many, with commas between."""
    return ", ".join(ids[:most]) + (", …" if len(ids) > most else "")


def sampling_alone(detectors: Sequence[str]) -> str:
    """Explain that the interval covers sampling error only, not the errors of these detectors."""
    names = [f"“{name}”" for name in detectors[:_NAMED]]
    if len(detectors) > _NAMED:
        names = [*names, f"{len(detectors) - _NAMED:,} more"]
    whose = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    makes = "makes" if len(detectors) == 1 else "make"
    return (
        f"Intervals cover sampling error only, not the errors that {whose} {makes}: the true "
        "shares may be outside."
    )
