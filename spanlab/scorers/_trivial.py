"""The two predictions that need no look at the answer; a real one has to beat both."""

from __future__ import annotations

from dataclasses import replace

from spanlab.errors import InputError
from spanlab.labels import Extent, Labels, Soft


def mark_all(gold: Labels) -> Labels:
    """Return a prediction that marks every character with probability 1.

    For an answer without characters it is empty.

    Raises:
        InputError: ``gold`` does not know its answer's length.
    """
    if gold.length is None:
        raise InputError(
            f"item {gold.id!r}: the gold labels do not say how long the answer is",
            expected="gold labels together with their answer",
        )
    if gold.length == 0:
        return mark_none(gold)
    whole = Extent(0, gold.length)
    return replace(gold, soft=(Soft(*whole, 1.0),), hard=(whole,), raters=())


def mark_none(gold: Labels) -> Labels:
    """Return a prediction that marks nothing."""
    return replace(gold, soft=(), hard=(), raters=())
