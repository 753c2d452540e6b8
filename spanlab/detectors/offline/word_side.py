"""Words in a row, of an answer or its passages: which are names, which are numbers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spanlab.detectors.offline.features import AnswerFeatures
from spanlab.detectors.offline.neighbours import year
from spanlab.detectors.offline.passages import BREAK
from spanlab.detectors.offline.words import WordKind

NOUN_CAPITALS = frozenset({"de", "lb", "nds"})  # languages that write every noun with a capital
_JOINTS = frozenset({" ", "-", "’", "'", ".", ". "})  # between words of a name
_PARTICLES = frozenset({"de", "da", "do", "dos", "di", "del", "della", "du", "des", "la", "of"})
_PARTICLES |= {"von", "van", "al", "bin"}
_OPENING = frozenset("(（[")
_SYMBOLS = frozenset("°′:")  # between the numbers of a time or a coordinate


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
        is several words, or follows another noun ("der Sender VOX"). A name right after an opening
        bracket explains what stands before it.
        """
        before = self.beside(run.start, -1)
        if not (self.name(run.start) and self.name(run[-1])):
            return False
        if (self.gap(run.start - 1) or "")[-1:] in _OPENING:
            return False
        return len(run) > 1 or (before is not None and (not self.nouns or self.name(before)))

    def counts(self, at: int) -> bool:
        """Return whether a word is a number that is no part of a code, time or coordinate."""
        if not self.number(at):
            return False
        before, after = self.beside(at, -1), self.beside(at, 1)
        for other in (before, after):
            if other is not None and self.number(other) and self.gap(min(at, other)) in _SYMBOLS:
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

    def only_number(self, at: int) -> bool:
        """Return whether no other number of the sentence is a year, too, or has the same unit."""
        here = self.sentence[at]
        sentence = range(bisect_left(self.sentence, here), bisect_right(self.sentence, here))
        return not any(
            self.forms[at + 1 : at + 2] == self.forms[other + 1 : other + 2]
            or (year(self.forms[at]) and year(self.forms[other]))
            for other in sentence
            if self.number(other) and other != at
        )


def both_sides(described: AnswerFeatures, *, nouns: bool) -> tuple[WordSide, WordSide]:
    """Return an answer's words and those of its passages."""
    answer, passages = described.answer, described.passages
    capitals = [answer.capital(at) for at in range(len(answer))]
    return (
        WordSide(*answer.row(), answer.sentence, capitals, described.stops, nouns),
        WordSide(*passages.row(), passages.sentence, passages.capital, described.stops, nouns),
    )
