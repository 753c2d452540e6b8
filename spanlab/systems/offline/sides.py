"""Words in a row, of an answer or of its passages: names, numbers and what stands beside them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spanlab.systems.offline.passages import BREAK
from spanlab.systems.offline.words import WordKind

_JOINTS = frozenset({" ", "-", "’", "'", ".", ". "})  # between words of a name
_PARTICLES = frozenset({"de", "da", "do", "dos", "di", "del", "della", "du", "des", "la", "of"})
_PARTICLES |= {"von", "van", "al", "bin"}
DATE, NUMBER, NAME, OTHER = "wrong date", "wrong number", "wrong name", "other"  # usual labels
_OPENING = frozenset("(（[")
_SYMBOLS = frozenset("°′:=")  # between the numbers of a time, a coordinate or a sum
_COMPARES = 2  # words on either side of a number that may compare it: "more than 300"


@dataclass(frozen=True)
class WordSide:
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

    def light(self, at: int) -> bool:
        """Return whether a word carries no statement, or is a sign, mostly a part of a word."""
        return self.forms[at] in self.stops or self.kinds[at] == WordKind.SIGN

    def end_of_name(self, at: int, step: int, ends: Callable[[int], bool]) -> int:
        """Return the last word of a name in one direction, before the first that ``ends`` it."""
        while self.name(at):
            more = self._next_in_name(at, step)
            if more is None or ends(more):
                break
            at = more
        return at

    def _next_in_name(self, at: int, step: int) -> int | None:
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

    def names(self, run: range) -> bool:
        """Return whether a run of words is a name by itself.

        The first word of a sentence has a capital anyway, and in German, every noun: a name there
        is several words, or follows another noun ("der Sender VOX").
        """
        before = self.beside(run.start, -1)
        if not (self.name(run.start) and self.name(run[-1])):
            return False
        if self.bracketed(run.start):
            return False
        return len(run) > 1 or (before is not None and (not self.nouns or self.name(before)))

    def bracketed(self, at: int) -> bool:
        """Return whether an opening bracket stands before a word: it says again what was said."""
        return at > 0 and (self.gap(at - 1) or "")[-1:] in _OPENING

    def counts(self, at: int) -> bool:
        """Return whether a word is a number that is no part of a code, time or coordinate."""
        if not self.number(at) or self.bracketed(at):
            return False
        before, after = self.beside(at, -1), self.beside(at, 1)
        for other in (before, after):
            if (
                other is not None
                and self.number(other)
                and (self.gap(min(at, other)) or "").strip() in _SYMBOLS
            ):
                return False
        if before is None or self.kinds[before] != WordKind.LETTERS:
            return True
        return self.gap(before) not in ("", "-")

    def has_unit(self, at: int) -> bool:
        """Return whether the word after a number seems to say what it counts."""
        after, gap = self.beside(at, 1), self.gap(at)
        if after is None or gap is None:
            return False
        return gap == "" or (gap.isspace() and not self.light(after))

    def kind(self, at: int) -> str:
        """Return which label a wrong word gets: that of a number, with its unit, a name or other.

        The first word of a sentence is a name where it is one of several words, and in German
        where it follows another noun, too, as every noun has a capital.
        """
        before = self.beside(at, -1)
        if self.number(at) or (
            before is not None and self.number(before) and self.has_unit(before)
        ):
            return NUMBER
        run = range(
            self.end_of_name(at, -1, lambda _: False), self.end_of_name(at, 1, lambda _: False) + 1
        )
        return NAME if self.names(run) else OTHER

    def stating(self, at: int, step: int) -> int | None:
        """Return the closest word in one direction that carries a statement, if there is one."""
        other = self.beside(at, step)
        while other is not None and self.light(other):
            other = self.beside(other, step)
        return other

    def listed(self, run: range) -> bool:
        """Return whether a name is one of a list, where each may be right.

        It follows another after a comma, or what is said of it is said twice: "province of A and
        province of B".
        """
        before, role = self.beside(run.start, -1), self.stating(run.start, -1)
        if before is not None and self.name(before) and "," in (self.gap(before) or ""):
            return True
        said = [self.forms[at] for at in self.words_of(run.start)]
        return role is not None and said.count(self.forms[role]) > 1

    def around(self, at: int) -> list[str]:
        """Return the forms of the words of a sentence that may compare a number."""
        near = range(at - _COMPARES, at + _COMPARES + 1)
        return [self.forms[other] for other in self.words_of(at) if other in near]

    def words_of(self, at: int) -> range:
        """Return the words of the sentence that a word is in."""
        here = self.sentence[at]
        return range(bisect_left(self.sentence, here), bisect_right(self.sentence, here))
