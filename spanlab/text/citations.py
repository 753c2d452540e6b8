"""Citation markers in an answer, and the stretch of it that each of them covers.

Understood are [1], [1, 2], [1–3], [^1], [doc 1], 【3†source】, superscripts (¹, ^1, <sup>1</sup>),
and Markdown links whose address is a passage's. Numbers are those of passages, from 1, unless a
line of the answer says what a number is ("[1]: https://…"), or a marker is 0. Code is not read.

A marker covers its sentence, back to the marker before. Behind a full stop it covers the sentence
that ended there; where a sentence begins with it, the sentence that follows. What follows the last
marker of a sentence behind a comma or the like is a clause that cites nothing.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from spanlab.schema import Item
from spanlab.text.extents import Extent
from spanlab.text.terms import UNSPACED
from spanlab.text.tokens import sentences

_NAMES: Final = (
    "doc(?:ument)?|source|passage|ref(?:erence)?|dokument|quelle|fuente|documento|fonte|"
    "出典|资料|文献|来源"
)
_LIST: Final = r"\d{1,3}(?:\s?(?:[,;，、،؛&]|[-–—~])\s?\d{1,3})*"
_MARKER: Final = re.compile(
    r"(?P<outer>\()?\[(?P<words>[^\[\]\n]{1,300})\]\((?P<url>[^()\s]+(?:\([^()\s]*\)[^()\s]*)*)"
    r"(?:\s\"[^\"\n]{0,300}\")?\)(?(outer)\))"
    r"|【\d+:(?P<at>\d{1,3})†[^】\n]{0,200}】"
    rf"|[\[［【](?:\^|(?:{_NAMES})\s?#?)?(?P<numbers>{_LIST})(?:†[^\]】\n]{{0,200}})?[\]］】](?!\()"
    rf"|<sup>\[?(?P<sup>{_LIST})\]?</sup>"
    r"|(?P<raised>[⁰¹²³⁴-⁹]+(?:[,˒][⁰¹²³⁴-⁹]+)*|\^\d{1,3}(?![\w^{]))",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"^([ \t]*)(`{3,}|~{3,}).*?(?:^[ \t]*\2|\Z)|(`+)[^`\n]+\3", re.M | re.S)
_DEFINED: Final = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?\[\^?(\d{1,3})\](:|[ \t]+(?=\S*://|.*\bhttps?://))[ \t]*(\S.*)$", re.M
)
_ADDRESS: Final = re.compile(r"https?://[^\s<>\])\"]+")
_WORDS_BEFORE: Final = 3  # of a sentence, up to which a marker is about what follows it
_CLAUSE: Final = tuple(",;:，；：、،؛—–")
_APART: Final = (";", "；", "؛")
_FEWEST: Final = 3  # words of a sentence that states something
_MOST: Final = 50  # passages that a range may name
_EDGES: Final = " \t\r\n,;:，；：、،؛—–-*•>#|()"


@dataclass(frozen=True)
class Marker:
    """Characters ``[start, end)`` of the answer that name passages.

    ``passages`` are 0-based indices, ``missing`` the numbers that no passage has.
    """

    start: int
    end: int
    passages: tuple[int, ...]
    missing: tuple[int, ...] = ()


class CitedStretch(NamedTuple):
    """Characters ``[start, end)`` of the answer, and what they cite; see ``Marker``."""

    start: int
    end: int
    passages: tuple[int, ...]
    missing: tuple[int, ...] = ()


@dataclass(frozen=True)
class ReadCitations:
    """The citations of an answer.

    Attributes:
        markers: in order; empty where an API said what cites what, and the text has none.
        stretches: what is cited, in order.
        sentences: those that state something, cited or not: neither lists of sources nor markers.
        plain: the answer with spaces in place of markers and of lists of sources.
        unread: numbers that the answer's own list of sources explains by none of the passages.
    """

    markers: tuple[Marker, ...]
    stretches: tuple[CitedStretch, ...]
    sentences: tuple[Extent, ...]
    plain: str
    unread: tuple[int, ...] = ()


def citations_of(item: Item) -> ReadCitations:
    """Return what an item's answer cites: as its API said, and by the markers in its text."""
    reader = _MarkerReader(item)
    markers = tuple(reader.markers())
    plain = _blanked(item.answer, [*reader.hidden, *reader.marked])
    parts = [part for part in sentences(plain, item.lang) if _words(plain[part.start : part.end])]
    said = sorted(CitedStretch(c.start, c.end, c.passages) for c in item.citations)
    is_said = _overlap(said)
    read = [each for each in _stretches(plain, parts, markers) if not is_said(*each[:2])]
    stretches = tuple(sorted([*said, *read]))
    is_cited = _overlap(stretches)
    stating = [part for part in parts if _states(plain, part) or is_cited(*part)]
    return ReadCitations(markers, stretches, tuple(stating), plain, tuple(reader.unread))


def markers_of(item: Item) -> tuple[Marker, ...]:
    """Return the markers of an answer with what its API cites by offsets, in order.

    Unlike ``citations_of`` it reads no sentences, so that it is quick.
    """
    said = (Marker(c.start, c.end, c.passages) for c in item.citations)
    return tuple(sorted((*said, *_MarkerReader(item).markers()), key=lambda one: one.start))


def covered_by(answer: str, lang: str, markers: Sequence[Marker]) -> list[CitedStretch]:
    """Return what markers cover whose places somebody else has read; in the order of the answer."""
    plain = _blanked(answer, [Extent(marker.start, marker.end) for marker in markers])
    parts = [part for part in sentences(plain, lang) if _words(plain[part.start : part.end])]
    return list(_stretches(plain, parts, sorted(markers, key=lambda marker: marker.start)))


def may_cite(item: Item) -> bool:
    """Say whether anything in an item may be a citation; that is quick to tell."""
    return bool(item.citations) or _MARKER.search(item.answer) is not None


def covers(stretches: Sequence[CitedStretch], sentence: Extent) -> bool:
    """Say whether some of a sentence is cited; the stretches are in order."""
    return _overlap(stretches)(*sentence)


def _overlap(parts: Sequence[Extent | CitedStretch]) -> Callable[[int, int], bool]:
    """Return a function that says whether characters overlap some of these, which are in order."""
    starts = [part.start for part in parts]
    furthest = list(accumulate((part.end for part in parts), max, initial=0))  # of those before

    def overlaps(start: int, end: int) -> bool:
        return furthest[bisect_left(starts, end)] > start

    return overlaps


class _MarkerReader:
    """Reads the markers of an answer; ``marked`` and ``hidden`` are no words of it."""

    def __init__(self, item: Item) -> None:
        self._answer, self._count = item.answer, len(item.passages)
        code = [Extent(*match.span()) for match in _CODE.finditer(item.answer)]
        self._text = _blanked(item.answer, code)
        self._urls = {_address(p.url): n for n, p in enumerate(item.passages) if p.url}
        self._titles = {p.title: n for n, p in enumerate(item.passages) if p.title}
        self._defined = dict(self._definitions())
        self.hidden = [Extent(*match.span()) for match in _DEFINED.finditer(self._text)]
        self.marked: list[Extent] = []
        self.unread: list[int] = []

    def markers(self) -> Iterator[Marker]:
        """Yield the markers in order."""
        is_hidden = _overlap(self.hidden)
        matches = [
            match
            for match in _MARKER.finditer(self._text)
            if not is_hidden(match.start(), match.start() + 1)
            and (match["raised"] is None or self._is_raised(match))
        ]
        numbers = [_numbers(match, self._count) for match in matches]
        first = 0 if any(0 in named for named in numbers) else 1
        for match, named in zip(matches, numbers, strict=True):
            start, end = match.span()
            if match["url"]:
                yield from self._link(match, start, end)
                continue
            self.marked.append(Extent(start, end))
            if match["at"] is not None:  # counted from 0, behind the number of the message
                yield self._marker(start, end, (int(match["at"]),), 0)
            else:
                yield self._marker(start, end, named, first)

    def _marker(self, start: int, end: int, named: Sequence[int], first: int) -> Marker:
        places = {
            number: self._defined.get(number, number - first) for number in dict.fromkeys(named)
        }
        self.unread.extend(n for n, place in places.items() if place is None)
        return Marker(
            start,
            end,
            tuple(p for p in places.values() if p is not None and 0 <= p < self._count),
            tuple(n for n, p in places.items() if p is not None and not 0 <= p < self._count),
        )

    def _link(self, match: re.Match[str], start: int, end: int) -> Iterator[Marker]:
        """Yield a link as a marker: its number or site is no word, other words are the answer's."""
        words, place = match["words"].strip(), self._urls.get(_address(match["url"]))
        named = words.strip("[]^")
        if named.isdecimal():
            self.marked.append(Extent(start, end))
            there = (place,) if place is not None else ()
            number = int(named)
            yield (
                Marker(start, end, there) if there else self._marker(start, end, (number,), 1)
            )  # a number beside an address that is no passage's counts as a number
            return
        low, high = match.span("words")
        self.marked += (
            [Extent(start, end)]
            if "." in words and " " not in words
            else [Extent(start, low), Extent(high, end)]
        )
        if place is not None:
            yield Marker(start, end, (place,))

    def _definitions(self) -> Iterator[tuple[int, int | None]]:
        """Yield the numbers that a list of sources explains, and the passage; None for no one."""
        for match in _DEFINED.finditer(self._text):
            number, about = int(match[1]), match[3]
            urls = (self._urls.get(_address(url)) for url in _ADDRESS.findall(about))
            titles = (place for title, place in self._titles.items() if title in about)
            place = next((n for n in (*urls, *titles) if n is not None), None)
            if place is None and not self._urls and not self._titles:
                place = number - 1
            yield number, place

    def _is_raised(self, match: re.Match[str]) -> bool:
        """Return whether a small number is a marker, and no power or unit: x², km²."""
        before = self._text[max(0, match.start() - 4) : match.start()]
        if not before or before[-1].isspace():
            return False
        if re.match(f"[{UNSPACED}]", before[-1]) or not before[-1].isalnum():
            return True
        return len(before) == 4 and before.isalpha()


def _numbers(match: re.Match[str], count: int) -> tuple[int, ...]:
    """Return the numbers that a marker names, those of ranges one by one."""
    text = match["numbers"] or match["sup"] or match["raised"] or ""
    text = "".join(
        str(unicodedata.digit(c)) if unicodedata.digit(c, None) is not None else c for c in text
    )
    if match["raised"] and text.isdecimal() and int(text) > count:
        return tuple(map(int, text))  # ¹² is 1 and 2 where there is no 12
    named: list[int] = []
    for part in re.split(r"[,;，、،؛&˒]", text.strip("^")):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        named += range(ends[0], min(ends[-1], ends[0] + _MOST) + 1) if ends else ()
    return tuple(named)


def _stretches(
    plain: str, parts: Sequence[Extent], markers: Sequence[Marker]
) -> Iterator[CitedStretch]:
    """Yield what each group of neighbouring markers covers; ``parts`` are the sentences."""
    by_sentence: dict[int, list[list[Marker]]] = {}
    leads: dict[int, bool] = {}  # by line
    starts = [part.start for part in parts]
    ends = [-1, *(match.start() for match in re.finditer("\n", plain)), len(plain)]
    for group in _groups(plain, markers):
        number = bisect_left(ends, group[0].start)
        line = Extent(ends[number - 1] + 1, ends[number])
        if number not in leads:
            leads[number] = not _words(plain[line.start : group[0].start])
        at = _sentence_of(parts, starts, group[0], line, leads=leads[number])
        if at is not None:
            by_sentence.setdefault(at, []).append(group)
    for at, groups in sorted(by_sentence.items()):
        yield from _within(plain, parts[at], groups)


def _groups(plain: str, markers: Sequence[Marker]) -> Iterator[list[Marker]]:
    """Yield markers in groups: only spaces and commas lie between those of one."""
    group = list(markers[:1])
    for before, marker in pairwise(markers):
        between = plain[before.end : marker.start]
        if between.strip(" \t,;、，") or len(between) > 3:
            yield group
            group = []
        group.append(marker)
    if group:
        yield group


def _sentence_of(
    parts: Sequence[Extent], starts: Sequence[int], marker: Marker, line: Extent, *, leads: bool
) -> int | None:
    """Return the number of the sentence that a marker belongs to.

    Args:
        parts: the sentences.
        starts: where they begin.
        marker: in the answer.
        line: its line.
        leads: whether the line begins with a marker: then each is before what it is about.
    """
    earlier, later = bisect_right(starts, marker.start) - 1, bisect_left(starts, marker.end)
    before = earlier if earlier >= 0 else None
    after = later if later < len(parts) and starts[later] < line.end else None
    if before is not None and parts[before].end > marker.start:
        return before
    on_line = before is not None and starts[before] >= line.start
    return after if after is not None and (leads or not on_line) else before


def _within(
    plain: str, sentence: Extent, groups: Sequence[Sequence[Marker]]
) -> Iterator[CitedStretch]:
    """Yield what the groups of markers of one sentence cover."""
    begin, covered = sentence.start, list[CitedStretch]()
    for number, group in enumerate(groups):
        start, end = group[0].start, group[-1].end
        follows = groups[number + 1][0].start if number + 1 < len(groups) else sentence.end
        stop = min(max(start, sentence.start), sentence.end)
        after = plain[min(end, sentence.end) : min(follows, sentence.end)]
        if len(_words(plain[begin:stop])) <= _WORDS_BEFORE and begin == sentence.start:
            about_next = _words(after) and not after.lstrip().startswith(_APART)
            stop = max(follows, stop) if about_next else stop  # "According to [1], …"
        elif follows == sentence.end and _words(after) and not after.lstrip().startswith(_CLAUSE):
            stop = sentence.end
        place = _trimmed(plain, begin, min(stop, sentence.end))
        passages = tuple(dict.fromkeys(p for marker in group for p in marker.passages))
        missing = tuple(dict.fromkeys(n for marker in group for n in marker.missing))
        begin = max(stop, min(end, sentence.end))
        if not passages and not missing:
            continue
        if place is None and covered:  # "… [1]. [2]"
            last = covered.pop()
            place, passages = Extent(last.start, last.end), (*last.passages, *passages)
            missing = (*last.missing, *missing)
        if place is not None:
            covered.append(CitedStretch(*place, passages, missing))
    yield from covered


def _trimmed(plain: str, start: int, end: int) -> Extent | None:
    """Return characters without the punctuation around them; None if no word is left."""
    if not _words(plain[start:end]):
        return None
    while plain[start] in _EDGES:
        start += 1
    while plain[end - 1] in _EDGES.replace(")", ""):
        end -= 1
    return Extent(start, end)


def _words(text: str) -> list[str]:
    return re.findall(rf"[{UNSPACED}]{{1,2}}|[^\W_{UNSPACED}]+", text)


def _states(plain: str, part: Extent) -> bool:
    """Return whether a sentence that cites nothing may state something: no heading, no label."""
    text = plain[part.start : part.end]
    return len(_words(text)) >= _FEWEST and not text.startswith("#") and text[-1] not in ":："


def _blanked(text: str, extents: Sequence[Extent]) -> str:
    """Return a text with these characters overwritten by spaces; offsets stay."""
    characters = list(text)
    for start, end in extents:
        characters[start:end] = [c if c in "\r\n" else " " for c in text[start:end]]
    return "".join(characters)


def _address(url: str) -> str:
    """Return an address as it is compared: without scheme, fragment and what tracks readers."""
    bare = re.sub(r"^https?://(?:www\.)?|#.*$|[?&]utm_[^&#]*", "", url.strip(), flags=re.I)
    return bare.rstrip("/?.,").casefold()
