"""Foreign offsets made into our spans, checked against the text they point into.

Ours count code points. Others count UTF-16 units (what JavaScript calls the length of a string),
which differ after the first emoji; the text that a label quotes tells which was meant.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any

from pydantic import ValidationError

from spanlab.datasets.problems import input_error, within
from spanlab.errors import InputError
from spanlab.extents import Extent
from spanlab.schema import Interval, Span

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
# Browsers quote line ends in several ways: as they are, as "\n", or as a backslash and an n.
_LINE_ENDS = re.compile(r"(?:\\n|[\r\n])+")


class Utf16:
    """Turns offsets in UTF-16 units of a text into offsets in code points."""

    def __init__(self, text: str) -> None:
        # An astral character takes two units, so the i-th one starts i units further on.
        self._starts = [match.start() + i for i, match in enumerate(_ASTRAL.finditer(text))]

    @property
    def differs(self) -> bool:
        """Whether the two ways of counting differ at all in this text."""
        return bool(self._starts)

    def code_point(self, unit: int) -> int | None:
        """Return the code point at ``unit``, or None in the middle of a surrogate pair."""
        before = bisect_left(self._starts, unit)
        if before and self._starts[before - 1] == unit - 1:
            return None
        return unit - before

    def extent(self, start: int, end: int) -> Extent | None:
        """Return ``[start, end)`` in code points, or None if it splits a character."""
        first, last = self.code_point(start), self.code_point(end)
        return None if first is None or last is None else Extent(first, last)


def same_quote(there: str, quoted: str) -> bool:
    """Say whether ``quoted`` is ``there``, however its line ends are written."""
    return there == quoted or _LINE_ENDS.sub("\n", there) == _LINE_ENDS.sub("\n", quoted)


def check_offsets(text: str, start: int, end: int, field: str) -> None:
    """Check that ``[start, end)`` is a non-empty part of ``text``.

    Raises:
        InputError: names ``field``, the offsets and what they may be.
    """
    if not 0 <= start < end <= len(text):
        raise InputError(
            "the offsets are not a part of the answer",
            field=field,
            found=[start, end],
            expected=f"0 <= start < end <= {len(text)}",
        )


def span_at(text: str, start: int, end: int, field: str, **said: Any) -> Span:
    """Return the span ``[start, end)`` of ``text``.

    Args:
        text: the answer.
        start: first character.
        end: one past the last character.
        field: named in errors.
        said: what else is said of the span (prob, label, note, evidence).

    Raises:
        InputError: the offsets are not a part of ``text``, or something said is not as it must be.
    """
    check_offsets(text, start, end, field)
    try:
        return Span(start=start, end=end, text=text[start:end], **said)
    except ValidationError as error:
        raise within(input_error(error), field) from None


def interval_at(text: str, start: int, end: int, field: str) -> Interval:
    """Return the interval ``[start, end)`` of ``text``.

    Raises:
        InputError: the offsets are not a part of ``text``.
    """
    check_offsets(text, start, end, field)
    return Interval(start=start, end=end)


def find_quote(text: str, start: int, end: int, quoted: str, field: str) -> Extent:
    """Return where ``quoted`` stands in ``text``, in code points.

    Args:
        text: the whole.
        start: offset in code points or else in UTF-16 units.
        end: the same, exclusive.
        quoted: what should stand there.
        field: named in the error.

    Raises:
        InputError: it stands at these offsets in neither way of counting.
    """
    if 0 <= start < end and text[start:end] == quoted:
        return Extent(start, end)
    wide = Utf16(text).extent(start, end)
    if wide is not None and 0 <= wide.start < wide.end and text[wide.start : wide.end] == quoted:
        return wide
    raise misquoted(text, start, end, quoted, field)


def misquoted(text: str, start: int, end: int, quoted: str, field: str) -> InputError:
    """Return the error for a quote that is not where its offsets say."""
    return InputError(
        f"the quoted text is not at [{start}, {end}), where {text[start:end][:60]!r} stands",
        field=field,
        found=quoted,
        expected="the text at these offsets, counted in code points or in UTF-16 units",
    )
