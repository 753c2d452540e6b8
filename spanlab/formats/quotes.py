"""Places in a text as other tools name them: by a quote, or by an offset in units of theirs.

Ours count code points. Others count UTF-16 units (what JavaScript calls the length of a string),
which differ after the first emoji; the text that a label quotes tells which was meant.

Its versions differ. Where the two ways of counting lead to different places, the quoted text
decides; where both places have that text, the other regions of the annotation decide, then those
of the file; and without any evidence they are code points, as current versions write.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from pydantic import ValidationError

from spanlab.base.errors import InputError
from spanlab.formats.reader import input_error, within
from spanlab.schema import Interval, Span
from spanlab.text.extents import Extent


class OffsetUnit(Enum):
    """What offsets count."""

    CODE_POINTS = "code points"
    UTF16 = "UTF-16 units"


class RegionPlace(NamedTuple):
    """The place that a region of another tool names; ``field`` names it in errors."""

    start: int
    end: int
    quoted: str | None
    field: str


class OffsetReader:
    """Reads places in one text, whether they count code points or UTF-16 units."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._wide = Utf16(text)

    def evidence(self, places: Iterable[RegionPlace]) -> set[OffsetUnit]:
        """Return the ways of counting that places need; empty where either will do."""
        if not self._wide.differs:
            return set()
        units: set[OffsetUnit] = set()
        for place in places:
            fits = [counting for counting in OffsetUnit if self._extent_in(place, counting)]
            if place.quoted is not None and len(fits) == 1:
                units.update(fits)
        return units

    def fits(self, place: RegionPlace) -> bool:
        """Say whether a place lies in the text and quotes it rightly, in any way of counting."""
        return any(self._extent_in(place, counting) for counting in OffsetUnit)

    def extents(self, places: Sequence[RegionPlace], default: OffsetUnit) -> list[Extent]:
        """Return the places in code points.

        Args:
            places: those of one annotation.
            default: how the file counts.

        Raises:
            InputError: a place has its quoted text in neither way of counting, or lies outside.
        """
        evidence = self.evidence(places)
        likely = next(iter(evidence)) if len(evidence) == 1 else default
        order = sorted(OffsetUnit, key=lambda counting: counting is not likely)
        return [self._extent(place, order) for place in places]

    def _extent(self, place: RegionPlace, order: list[OffsetUnit]) -> Extent:
        for counting in order:
            extent = self._extent_in(place, counting)
            if extent is not None:
                return extent
        check_offsets(self._text, place.start, place.end, place.field)
        quoted = place.quoted or ""
        raise misquoted(self._text, place.start, place.end, quoted=quoted, field=place.field)

    def _extent_in(self, place: RegionPlace, counting: OffsetUnit) -> Extent | None:
        """Return the place counted so, or None if it is outside or quotes something else."""
        extent: Extent | None = Extent(place.start, place.end)
        if counting is OffsetUnit.UTF16:
            extent = self._wide.extent(place.start, place.end)
        if extent is None or not 0 <= extent.start < extent.end <= len(self._text):
            return None
        standing = self._text[extent.start : extent.end]
        if place.quoted is not None and not same_quote(standing, place.quoted):
            return None
        return extent


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
        n_wide = bisect_left(self._starts, unit)
        if n_wide and self._starts[n_wide - 1] == unit - 1:
            return None
        return unit - n_wide

    def extent(self, start: int, end: int) -> Extent | None:
        """Return ``[start, end)`` in code points, or None if it splits a character."""
        first, last = self.code_point(start), self.code_point(end)
        return None if first is None or last is None else Extent(first, last)


def same_quote(standing: str, quoted: str) -> bool:
    """Say whether ``quoted`` is what stands there, however its white space is written.

    A page shows several spaces, tabs and line ends as one space, and so it quotes them.
    """
    return standing == quoted or _collapsed(standing) == _collapsed(quoted)


def _collapsed(text: str) -> str:
    return " ".join(_LINE_ENDS.sub(" ", text).split())


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


def span_at(text: str, start: int, end: int, field: str, **fields: Any) -> Span:
    """Return the span ``[start, end)`` of ``text``.

    Args:
        text: the answer.
        start: first character.
        end: one past the last character.
        field: named in errors.
        **fields: what else the span has (prob, label, note, evidence).

    Raises:
        InputError: the offsets are not a part of ``text``, or another field is not as it must be.
    """
    check_offsets(text, start, end, field)
    try:
        return Span(start=start, end=end, text=text[start:end], **fields)
    except ValidationError as error:
        raise within(input_error(error), field) from None


def interval_at(text: str, start: int, end: int, field: str) -> Interval:
    """Return the interval ``[start, end)`` of ``text``.

    Raises:
        InputError: the offsets are not a part of ``text``.
    """
    check_offsets(text, start, end, field)
    return Interval(start=start, end=end)


def find_quote(text: str, start: int, end: int, *, quoted: str, field: str) -> Extent:
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
    place = RegionPlace(start, end, quoted, field)
    return OffsetReader(text).extents([place], OffsetUnit.CODE_POINTS)[0]


def misquoted(text: str, start: int, end: int, *, quoted: str, field: str) -> InputError:
    """Return the error for a quote that is not where its offsets say."""
    return InputError(
        f"the quoted text is not at [{start}, {end}), where {text[start:end][:60]!r} stands",
        field=field,
        found=quoted,
        expected="the text at these offsets, counted in code points or in UTF-16 units",
    )
