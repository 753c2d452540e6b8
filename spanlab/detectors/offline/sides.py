"""One side of a comparison: an answer's words or its passages', with numbers, names and units."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spanlab.detectors.offline.features import Described
from spanlab.detectors.offline.passages import BREAK
from spanlab.detectors.offline.shape import year
from spanlab.detectors.offline.words import WordKind

NOUN_CAPITALS = frozenset({"de", "lb", "nds"})  # languages that write every noun with a capital
_JOINTS = frozenset({" ", "-", "’", "'", ".", ". "})  # between words of a name
_PARTICLES = frozenset(
    {
        "de",
        "da",
        "do",
        "dos",
        "di",
        "del",
        "della",
        "du",
        "des",
        "la",
        "of",
        "von",
        "van",
        "al",
        "bin",
    }
)
_ARTICLES = frozenset({"der", "die", "das", "den", "dem", "des", "ein", "eine"})
_OPENING = frozenset("(（[")
_SYMBOLS = frozenset("%‰°′″€$£¥:")  # beside a number, as good as a unit
_LIST = frozenset(".)、")  # after a number that begins a sentence


@dataclass(frozen=True)
class Side:
    """Words in a row, by number; ``gap`` is the text after a word.

    ``nouns`` says that every noun begins with a capital, as in German.
    """

    forms: Sequence[str]
    kinds: Sequence[int]
    gap: Callable[[int], str | None]
    sentence: Sequence[int]
    capitals: Sequence[bool]
    stops: frozenset[str]
    nouns: bool

    def beside(self, at: int, step: int) -> int | None:
        """Return the word before or after one in its sentence, if there is one."""
        other = at + step
        there = 0 <= other < len(self.forms) and self.kinds[other] != BREAK
        return other if there and self.sentence[other] == self.sentence[at] else None

    def name(self, at: int) -> bool:
        """Return whether a word may be of a name."""
        return self.kinds[at] == WordKind.LETTERS and self.capitals[at]

    def number(self, at: int) -> bool:
        """Return whether a word is a number."""
        return self.kinds[at] == WordKind.NUMBER

    def cased(self, at: int) -> bool:
        """Return whether a word is of a script with capitals."""
        return self.forms[at].upper() != self.forms[at]

    def stop(self, at: int) -> bool:
        """Return whether a word carries no statement."""
        return self.forms[at] in self.stops

    def next_in_name(self, at: int, step: int) -> int | None:
        """Return the next or previous word of a name, across a particle."""
        for other in (at + step, at + 2 * step):
            if self.beside(other - step, step) is None:
                return None
            if self.gap(min(other, other - step)) not in _JOINTS:
                return None
            if self.name(other):
                return other
            if self.forms[other] not in _PARTICLES:
                return None
        return None

    def next_uncased(self, at: int, step: int) -> int | None:
        """Return the neighbour if it is of the same script without capitals, with no pause."""
        other = self.beside(at, step)
        if other is None or self.kinds[other] != self.kinds[at] or self.cased(other):
            return None
        between = "" if self.kinds[at] == WordKind.SIGN else " "
        return other if self.gap(min(at, other)) == between else None

    def gaps(self, run: range) -> tuple[str, str]:
        """Return the punctuation before and after a run, nothing at an end of its sentence."""
        before, after = self.beside(run.start, -1), self.beside(run[-1], 1)
        return (
            "" if before is None else (self.gap(before) or "").strip(),
            "" if after is None else (self.gap(run[-1]) or "").strip(),
        )

    def names(self, run: range) -> bool:
        """Return whether a run of capital words is a name by itself.

        The first word of a sentence has a capital anyway, and in German, every noun: a name there
        is several words, or follows another noun ("der Sender VOX"). A name right after an opening
        bracket explains what stands before it.
        """
        before = self.beside(run.start, -1)
        if not self.name(run.start) or (self.gap(run.start - 1) or "")[-1:] in _OPENING:
            return False
        if len(run) > 1:
            return True
        noun = before is not None and self.name(before) and self.forms[before] not in _ARTICLES
        return noun if self.nouns else before is not None

    def symbols(self, at: int) -> frozenset[str]:
        """Return the symbols right before and after a number."""
        before = (self.gap(at - 1) or "") if at else ""
        return _SYMBOLS & {*before.strip()[-1:], *(self.gap(at) or "").strip()[:1]}

    def counts(self, at: int, *, known: bool) -> bool:
        """Return whether a number counts something: it is no part of a name, code or list.

        ``known`` says that the word before is the same on the other side: "October 13", "§ 5".
        """
        before, after = self.beside(at, -1), self.beside(at, 1)
        if after is not None and self.number(after) and self.gap(at) in _SYMBOLS:
            return False  # a time or a coordinate
        if before is None:
            return (self.gap(at) or " ")[0] not in _LIST
        gap = self.gap(before)
        if self.number(before):
            return gap not in _SYMBOLS
        if self.kinds[before] == WordKind.SIGN:
            return True
        named = gap == " " and self.name(before) and not self.nouns and not known
        return not named and gap not in ("", "-")

    def has_unit(self, at: int) -> bool:
        """Return whether the word after a number seems to say what it counts."""
        after, gap = self.beside(at, 1), self.gap(at)
        if after is None or gap is None:
            return False
        return gap == "" or (gap.isspace() and not self.stop(after))

    def only_number(self, at: int) -> bool:
        """Return whether no other number of the sentence is a year, too, or has the same unit."""
        here = self.sentence[at]
        sentence = range(bisect_left(self.sentence, here), bisect_right(self.sentence, here))
        numbers = [other for other in sentence if self.number(other) and other != at]
        return not any(
            self.forms[at + 1 : at + 2] == self.forms[other + 1 : other + 2]
            or (year(self.forms[at]) and year(self.forms[other]))
            for other in numbers
        )


def both_sides(described: Described, *, nouns: bool) -> tuple[Side, Side]:
    """Return an answer's words and those of its passages."""
    answer, passages = described.answer, described.passages
    capitals = [answer.capital(at) for at in range(len(answer))]
    return (
        Side(*answer.row(), answer.sentence, capitals, described.stops, nouns),
        Side(*passages.row(), passages.sentence, passages.capital, described.stops, nouns),
    )
