"""Quotations in an answer, and what of them a source has.

Between quotation marks of any language, or in a blockquote, from 12 characters on. A quotation
stands in a source where one contiguous run of it has the same letters and digits: spaces, letter
case, typography, hyphens at line ends and ligatures aside. An ellipsis may leave out some of the
source, and what stands in square brackets is the writer's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from rapidfuzz import fuzz

from spanlab.text.corrections import changes
from spanlab.text.extents import Extent
from spanlab.text.occurrences import BARE, QuoteFinder
from spanlab.text.terms import UNSPACED, fold

SHORTEST: Final = 12  # characters between the marks
_PAIRS: Final = (
    *("“[^“”„\n]+”", "„[^„“”\n]+[“”]", "”[^“”\n]+”", "‘[^‘’\n]+’(?!\\w)", "‚[^‚‘’\n]+[‘’](?!\\w)"),
    *("«[^«»\n]+»", "»[^«»\n]+«", "‹[^‹›\n]+›", "「[^「」\n]+」", "『[^『』\n]+』", '"[^"\n]+"'),
)
_QUOTED: Final = re.compile("|".join(_PAIRS) + r"|(?:^[ \t]{0,3}>[^\n]*\n?)+", re.M)
_SIGN: Final = re.compile(r"(?<=\n)[ \t]{0,3}>+[ \t]?|^[ \t]{0,3}>+[ \t]?")  # of a blockquote
_LEFT_OUT: Final = re.compile(r"\[[^\[\]\n]{0,80}\]|[(]?(?:…|\.{3,})[)]?")
_INSERTED: Final = re.compile(r"[\[\]]")
_WORD: Final = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+(?:['’\-][^\W_{UNSPACED}]+)*")
_GAP: Final = 600  # characters that an ellipsis may leave out
ALIKE: Final = 0.85  # of a run of the source, from which a quotation is a changed one
_BESIDE: Final = 3  # words on either side of it that are looked at
_RUN: Final = 0.5  # of its words in a row, from which it is one, too


@dataclass(frozen=True)
class FoundQuotation:
    """Where a source has a quotation: word for word, or in other words.

    ``place`` are characters of the source; ``changed`` those of the quotation that it has not,
    from the quotation's start on: none if it stands there word for word.
    """

    place: Extent
    changed: tuple[Extent, ...] = ()


def quotations_in(answer: str) -> list[Extent]:
    """Return what is quoted, without its marks, in order; quotations that are long enough."""
    found = []
    for match in _QUOTED.finditer(answer):
        start, end = match.span()
        if match[0].lstrip()[0] != ">":
            start, end = start + 1, end - 1
        while start < end and (answer[start].isspace() or answer[start] == ">"):
            start += 1
        while start < end and answer[end - 1].isspace():
            end -= 1
        words = _WORD.findall(answer, start, end)
        if end - start >= SHORTEST and (len(words) > 1):
            found.append(Extent(start, end))
    return found


def find_quotation(quotation: str, source: str) -> FoundQuotation | None:
    """Return where a source has a quotation, or the run of it that was changed; None for neither.

    Args:
        quotation: the text between the marks.
        source: the text that it is looked for in.
    """
    quotation = _SIGN.sub(lambda sign: " " * len(sign[0]), quotation)
    place = _word_for_word(quotation, source)
    return FoundQuotation(place) if place else _changed(quotation, source)


def _word_for_word(quotation: str, source: str) -> Extent | None:
    finder = _finder(source)
    for text in dict.fromkeys((quotation, _INSERTED.sub("", quotation))):
        if (found := finder.find(text)).places:
            return found.places[0]
    parts = [part for part in _LEFT_OUT.split(quotation) if _WORD.search(part)]
    if len(parts) < 2 and not (parts and len(parts[0]) < len(quotation)):
        return None
    places = [finder.find(part.strip()).places for part in parts]
    if not all(places):
        return None
    for head in places[0]:
        end = head.end
        for more in places[1:]:
            end = next((p.end for p in more if end <= p.start <= end + _GAP), -1)
            if end < 0:
                break
        else:
            return Extent(head.start, end)
    return None


@lru_cache(maxsize=64)
def _finder(source: str) -> QuoteFinder:
    return QuoteFinder(source, BARE)


class _Word(NamedTuple):
    """A word as it is compared, and where it stands."""

    form: str
    place: Extent


def _changed(quotation: str, source: str) -> FoundQuotation | None:
    """Return the run of a source that a quotation changes."""
    words, others = list(_words(quotation)), _source_words(source)
    if not words or not others:
        return None
    text = " ".join(word.form for word in words)
    whole = " ".join(word.form for word in others)
    near = fuzz.partial_ratio_alignment(text, whole, score_cutoff=50)
    if near is None:
        return None
    first = whole.count(" ", 0, near.dest_start) - _BESIDE
    last = whole.count(" ", 0, max(near.dest_end - 1, near.dest_start)) + 1 + _BESIDE
    run = others[max(first, 0) : last]
    edits = changes([word.form for word in words], [word.form for word in run])
    if edits and edits[-1].old_start == len(words):  # the source goes on
        run = run[: edits.pop().new_start]
    if edits and edits[0].old_end == 0:
        run = run[edits.pop(0).new_end :]
    kept = len(words) - sum(edit.old_end - edit.old_start for edit in edits)
    alike = fuzz.ratio(text, " ".join(word.form for word in run)) / 100
    if alike < ALIKE and (alike < ALIKE - 0.2 or kept < _RUN * len(words)):
        return None
    changed = tuple(_characters(words, edit.old_start, edit.old_end) for edit in edits)
    return FoundQuotation(Extent(run[0].place.start, run[-1].place.end), changed)


def _characters(words: Sequence[_Word], first: int, last: int) -> Extent:
    """Return the characters of words; of none, the word where some were left out."""
    if first == last:
        first, last = (first, first + 1) if first < len(words) else (first - 1, first)
    return Extent(words[first].place.start, words[last - 1].place.end)


def _words(text: str) -> Iterator[_Word]:
    for match in _WORD.finditer(text):
        yield _Word(fold(match[0]).text, Extent(*match.span()))


@lru_cache(maxsize=64)
def _source_words(source: str) -> tuple[_Word, ...]:
    return tuple(_words(source))
