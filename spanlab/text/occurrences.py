"""Finds every place of a quote in an answer, from word for word to nearly so."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Final

from rapidfuzz import fuzz

from spanlab.text.extents import Extent
from spanlab.text.terms import UNSPACED, FoldedText, dependents, fold, skeleton

PEELED, FOLDED, BARE, ELLIPSIS = 0.99, 0.98, 0.97, 0.96  # scores below 1.0 that need no measuring
_GAP: Final = 400  # characters that an ellipsis may stand for
_SHORTEST: Final = 5  # characters below which a quote with an edit could be anything
_SIMILAR: Final = 6  # places tried for one quote with edits
_PROBE: Final = 60  # characters; rapidfuzz compares up to 64 at the cost of one
_NEAR: Final = 4  # word edges tried to each side of an edge
_DOTS: Final = re.compile(r"\s*(?:\[\s*(?:…|\.{3,})\s*\]|\(\s*(?:…|\.{3,})\s*\)|…|\.{3,})\s*")
_LEAD: Final = re.compile(r"^(?:\s*(?:[-*+•‣·–—>]+|#+)\s+)+")  # no number: "12. Jahrhundert"
_WRAPS: Final = "*_`~\"'“”„‟«»‘’‚‹›「」『』＂＇"
_EDGES: Final = _WRAPS + ".,;:!?…()[]{}<>|/\\-–—、。，；：！？（）【】《》।؟،؛ \t\r\n"
_WORD: Final = re.compile(r"\w+|[^\w\s]")
_HARD: Final = re.compile(f"[{UNSPACED}]")
_UNIT: Final = re.compile(
    rf"[{UNSPACED}]|[^\W{UNSPACED}]+"
)  # a word, or a character of such a script
_STOPS: Final = ".。।۔"
_SENTENCE_ENDS: Final = ".!?…。！？।۔\n\r"
_INSIDE: Final = 0.9  # score of a quote that stands only inside a longer word, in other letters


@dataclass(frozen=True)
class QuotePlaces:
    """Places of one quote, sorted, and how alike they are to it; no places if there are none."""

    places: tuple[Extent, ...] = ()
    score: float = 0.0


@dataclass(frozen=True)
class QuoteFinder:
    """Finds quotes in one answer; ``floor`` is the lowest score that counts as found."""

    answer: str
    floor: float
    _known: dict[str, QuotePlaces] = field(default_factory=dict, init=False)

    def find(self, quote: str) -> QuotePlaces:
        """Return the places of ``quote`` on the first rung that has any.

        The rungs: word for word (1.0); without list marks, Markdown, quotation marks and
        punctuation around it (0.99); letter case, typography and whitespace aside (0.98);
        letters and digits alone (0.97); both ends of an ellipsis (0.96); small edits, with the
        similarity as score, if it has several words and all digits are the same; inside a longer
        word in other letters (0.9). Places that cut a word count only where there are no others.
        A full stop at the end belongs to a place only if that is a whole sentence.
        """
        if quote not in self._known:
            quote_places = next((o for o in self._rungs(quote) if o.places), QuotePlaces())
            places = tuple(map(self._without_stop, quote_places.places))
            kept = (
                QuotePlaces(places, quote_places.score)
                if quote_places.score >= self.floor
                else QuotePlaces()
            )
            self._known[quote] = kept
        return self._known[quote]

    def preceded(self, places: tuple[Extent, ...], before: str | None) -> tuple[Extent, ...]:
        """Return the places before which most words of ``before`` stand; all if nowhere any."""
        words = _UNIT.findall(fold(before).text) if before else []
        if not words or len(places) < 2:
            return places
        reach = 2 * len(before or "") + _PROBE
        agreeing = [
            _equal_at_end(words, _UNIT.findall(fold(self.answer[max(0, at - reach) : at]).text))
            for at, _ in places
        ]
        most = max(agreeing)
        return tuple(place for place, n in zip(places, agreeing, strict=True) if n == most)

    def _rungs(self, quote: str) -> Iterator[QuotePlaces]:
        plain = quote.strip()
        if not plain:
            return
        yield QuotePlaces(self._exact(plain), 1.0)
        forms = peeled(plain)
        for form in forms:
            yield QuotePlaces(self._exact(form), PEELED)
        if self.floor > FOLDED or not forms:
            return
        for form in (plain, *forms):
            yield QuotePlaces(self._within(self._folded, fold(form).text.strip()), FOLDED)
        bare = skeleton(fold(forms[-1])).text
        if len(bare) > 2:
            yield QuotePlaces(self._within(self._bare, bare), BARE)
        if _DOTS.search(forms[-1]):
            yield QuotePlaces(self._around(_DOTS.split(forms[-1])), ELLIPSIS)
        yield self._similar(fold(forms[-1]).text.strip())
        if len(forms[-1]) > 1:
            inside = self._within(self._folded, fold(forms[-1]).text.strip(), parts=True)
            yield QuotePlaces(inside, _INSIDE)

    def _without_stop(self, place: Extent) -> Extent:
        """Leave out the full stop that ends a place, unless the place is a whole sentence."""
        start, end = place
        text = self.answer[start:end]
        if len(text) < 2 or text[-1] not in _STOPS or text[-2] in _EDGES:
            return place
        before = self.answer[max(0, start - _PROBE) : start].rstrip(_WRAPS + " \t")
        begins = start == 0 or before[-1:] in _SENTENCE_ENDS
        if begins and (" " in text or _HARD.search(text)):
            return place
        inner = text.rpartition(" ")[2][:-1]  # the stop of "U.S." and "e.g." is its own
        return place if "." in inner and not inner[-1].isdecimal() else Extent(start, end - 1)

    @cached_property
    def _folded(self) -> FoldedText:
        return fold(self.answer)

    @cached_property
    def _bare(self) -> FoldedText:
        return skeleton(self._folded)

    @cached_property
    def _marks(self) -> frozenset[str]:
        return frozenset() if self.answer.isascii() else dependents(self.answer)

    def _exact(self, text: str) -> tuple[Extent, ...]:
        starts = occurrences(self.answer, text)
        return self._whole_words([Extent(start, start + len(text)) for start in starts])

    def _within(self, folded: FoldedText, text: str, *, parts: bool = False) -> tuple[Extent, ...]:
        if not text:
            return ()
        size = len(text)
        extents = [
            folded.origin(start, start + size)
            for start in occurrences(folded.text, text)
            if folded.parts_at(start) and folded.parts_at(start + size)
        ]
        places = self._whole_words(extents)
        # A short text in other letters inside a word may be another word: "art" in "START".
        return places if parts or size > 7 or not places or not self._cuts(places[0]) else ()

    def _around(self, parts: list[str]) -> tuple[Extent, ...]:
        """Find first and last part of a quote, and all between in order, near each other."""
        ends = [part for part in parts if part]
        lists = [self._within(self._folded, fold(part).text.strip()) for part in ends]
        if len(ends) < 2 or not all(lists):
            return ()
        extents: list[Extent] = []
        for head in lists[0]:
            end = head.end
            for places in lists[1:]:
                at = bisect_left(places, (end, end))
                if at == len(places) or places[at].start - end > _GAP:
                    break
                end = places[at].end
            else:
                extents.append(Extent(head.start, end))
        return tuple(extents)

    def _similar(self, text: str) -> QuotePlaces:
        """Find places that differ from ``text`` by small edits, the best and those as good."""
        one_word = len(text.split()) < 2 and not _HARD.search(text)
        if len(text) < _SHORTEST or one_word:  # "Hanna" is not "Anna" with an edit
            return QuotePlaces()
        scored: list[tuple[float, Extent]] = []
        whole = self._folded.text
        for start, end in self._near(text):
            score, best = self._snap(text, start, end)
            if score >= self.floor and _digits(text) == _digits(whole[best.start : best.end]):
                scored.append((score, self._folded.origin(best.start, best.end)))
        if not scored:
            return QuotePlaces()
        top = max(score for score, _ in scored)
        places = sorted({place for score, place in scored if score >= top - 0.01})
        return QuotePlaces(tuple(places), min(top, ELLIPSIS))

    def _near(self, text: str) -> Iterator[Extent]:
        """Find where ``text`` may be, by itself or, if it is long, by pieces of it."""
        whole, size = self._folded.text, len(text)
        offsets = (0, (size - _PROBE) // 2, size - _PROBE) if size > _PROBE else (0,)
        for offset in offsets:
            probe = text[offset : offset + _PROBE]
            waiting = [(0, len(whole))]
            for _ in range(_SIMILAR):
                if not waiting:
                    break
                low, high = waiting.pop(0)
                near = fuzz.partial_ratio_alignment(
                    probe, whole[low:high], score_cutoff=90 * self.floor
                )
                if near is None or high - low < len(probe) * self.floor:
                    continue
                start = max(0, low + near.dest_start - offset)
                end = min(len(whole), start + size if offsets[1:] else low + near.dest_end)
                yield Extent(start, end)
                waiting += [(low, low + near.dest_start), (low + near.dest_end, high)]

    def _snap(self, text: str, start: int, end: int) -> tuple[float, Extent]:
        """Move the edges of a similar place to edges of words, to where it is most alike."""
        whole = self._folded.text
        reach = 30 + len(text) // 4
        low, high = max(0, start - reach), min(len(whole), end + reach)
        words = [match.span() for match in _WORD.finditer(whole, low, high)]
        starts, ends = {a for a, _ in words}, {b for _, b in words}
        if _HARD.search(whole, start, end):
            starts |= set(range(max(low, start - _NEAR), start + _NEAR))
            ends |= set(range(max(low, end - _NEAR), min(high, end + _NEAR) + 1))
        first = sorted(starts, key=lambda at: (abs(at - start), at))[: 2 * _NEAR]
        last = sorted(ends, key=lambda at: (abs(at - end), at))[: 2 * _NEAR]
        pairs = [(a, b) for a in sorted(first) for b in sorted(last) if a < b]
        best = max(
            ((fuzz.ratio(text, whole[a:b]) / 100, -a, b) for a, b in pairs), default=(0.0, 0, 0)
        )
        return best[0], Extent(-best[1], best[2])

    def _whole_words(self, places: list[Extent]) -> tuple[Extent, ...]:
        """Keep places that cut no word, if there are any."""
        clean = [place for place in places if not self._cuts(place)]
        return tuple(clean or places)

    def _cuts(self, place: Extent) -> bool:
        return self._inside(place.start) or self._inside(place.end)

    def _inside(self, at: int) -> bool:
        """Return whether a cut before character ``at`` goes through a word or a letter."""
        if not 0 < at < len(self.answer):
            return False
        before, after = self.answer[at - 1], self.answer[at]
        if after in self._marks:
            return True
        wordy = before.isalnum() or before in self._marks
        return wordy and after.isalnum() and not (_HARD.match(before) or _HARD.match(after))


def occurrences(text: str, part: str) -> list[int]:
    """Return where ``part`` starts in ``text``, overlapping ones of a short part included."""
    starts: list[int] = []
    step = 1 if len(part) <= _PROBE else len(part)
    at = text.find(part)
    while at >= 0:
        starts.append(at)
        at = text.find(part, at + step)
    return starts


def peeled(quote: str) -> list[str]:
    """Return ``quote`` with less and less around it; empty if nothing remains.

    First without list marks, quotation marks and Markdown, then also without an ellipsis and
    punctuation at its edges. A bracket stays where its other half is inside.
    """
    forms: list[str] = []
    inner = _LEAD.sub("", quote).strip()
    for form in (inner.strip(_WRAPS).strip(), inner.strip(_EDGES)):
        if form and form != quote and form not in forms:
            forms.append(form)
    return forms or ([quote] if quote.strip(_EDGES) else [])


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isdecimal())


def _equal_at_end(words: list[str], others: list[str]) -> int:
    """Return how many words at the end of both are the same."""
    pairs = zip(reversed(words), reversed(others), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
