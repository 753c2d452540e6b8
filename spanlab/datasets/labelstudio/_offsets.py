"""What the offsets of Label Studio's regions count: code points or UTF-16 units.

Its versions differ. Where the two ways of counting lead to different places, the quoted text
decides; where both places have that text, the other regions of the annotation decide, then those
of the file; and without any evidence they are code points, as current versions write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from spanlab.datasets.quotes import Utf16, check_offsets, misquoted, same_quote
from spanlab.extents import Extent


class Counting(Enum):
    """What offsets count."""

    CODE_POINTS = "code points"
    UTF16 = "UTF-16 units"


class RegionPlace(NamedTuple):
    """Where a region says it is; ``field`` names it in errors."""

    start: int
    end: int
    quoted: str | None
    field: str


class Ruler:
    """Reads places in one text either way."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._wide = Utf16(text)

    def evidence(self, places: Iterable[RegionPlace]) -> set[Counting]:
        """Return the ways of counting that places need; empty where either will do."""
        if not self._wide.differs:
            return set()
        found: set[Counting] = set()
        for place in places:
            fits = [counting for counting in Counting if self._reads(place, counting)]
            if place.quoted is not None and len(fits) == 1:
                found.update(fits)
        return found

    def fits(self, place: RegionPlace) -> bool:
        """Say whether the place is one, and quotes what stands there, in any way of counting."""
        return any(self._reads(place, counting) for counting in Counting)

    def extents(self, places: Sequence[RegionPlace], default: Counting) -> list[Extent]:
        """Return the places in code points.

        Args:
            places: those of one annotation.
            default: how the file counts.

        Raises:
            InputError: a place has its quoted text in neither way of counting, or lies outside.
        """
        evidence = self.evidence(places)
        likely = next(iter(evidence)) if len(evidence) == 1 else default
        order = sorted(Counting, key=lambda counting: counting is not likely)
        return [self._extent(place, order) for place in places]

    def _extent(self, place: RegionPlace, order: list[Counting]) -> Extent:
        for counting in order:
            extent = self._reads(place, counting)
            if extent is not None:
                return extent
        check_offsets(self._text, place.start, place.end, place.field)
        raise misquoted(self._text, place.start, place.end, place.quoted or "", place.field)

    def _reads(self, place: RegionPlace, counting: Counting) -> Extent | None:
        """Return the place counted so, or None if it is outside or quotes something else."""
        extent: Extent | None = Extent(place.start, place.end)
        if counting is Counting.UTF16:
            extent = self._wide.extent(place.start, place.end)
        if extent is None or not 0 <= extent.start < extent.end <= len(self._text):
            return None
        there = self._text[extent.start : extent.end]
        if place.quoted is not None and not same_quote(there, place.quoted):
            return None
        return extent
