"""A model that fails on a tenth of the items in each of nine ways, always on the same ones."""

from __future__ import annotations

import re

from spanlab.schema import Item, Record
from spanlab.testing import MODES, ModelRequest, ScriptedReply, fail, say_fields

FOR_GOOD = ("talk", "broken", "think-cut", "cut", "empty", "filtered")
ONCE = (fail(500, "restarting"), fail(429, "slow down", retry_after=0.1), ScriptedReply(drop=True))
_NUMBER = re.compile(r"Tower (\d+)\?")
_YEAR = {"text": "1989", "reason": "it was 1889", "probability": 0.9}


def towers(count: int) -> list[Record]:
    """Return items with numbers, of which the model finds the year wrong."""
    return [
        Record(
            item=Item(id=str(n), lang="en", question=f"Tower {n}?", answer=f"It is {n}, of 1989.")
        )
        for n in range(count)
    ]


def cause(number: int) -> str:
    """Return words of the failure that an item of this number ends in; "" if it is done."""
    kind = number % 10
    return MODES[FOR_GOOD[kind]].fails_with if kind < len(FOR_GOOD) else ""


class Failing:
    """Means that the year is wrong; six tenths fail for good, three tenths the first time.

    Args:
        at_all: whether it fails at all, for comparison.
    """

    def __init__(self, *, at_all: bool = True) -> None:
        self._at_all = at_all
        self._failed: set[int] = set()

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        """Answer, or fail in the item's way."""
        found = _NUMBER.search(ask.text)
        number = int(found[1]) if found else -1
        kind, meant = number % 10, say_fields(parts=[_YEAR])
        if not self._at_all or kind == 9:
            return meant
        if kind < len(FOR_GOOD):
            return MODES[FOR_GOOD[kind]].change(ask, meant)
        if number in self._failed:
            return meant
        self._failed.add(number)
        return ONCE[kind - len(FOR_GOOD)]
