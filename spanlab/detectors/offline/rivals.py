"""Rivals: what passages say of the same kind, in the same place, where an answer says else.

A number rivals a number of the same unit, a name a name; in scripts without capitals, names are
not told from other words and have no rivals. The place is the same if words beside it are, and if
both sentences speak of the same: what the answer's says around stands in the passage's, and what
the passage's says around stands in answer or question.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

from rapidfuzz import fuzz

from spanlab.detectors.offline.features import AnswerFeatures
from spanlab.detectors.offline.neighbours import year
from spanlab.detectors.offline.passages import BREAK
from spanlab.detectors.offline.words import WordKind, readings

NOUN_CAPITALS = frozenset({"de", "lb", "nds"})  # languages that write every noun with a capital
_JOINTS = frozenset({" ", "-", "’", "'", ".", ". "})  # between words of a name
_PARTICLES = frozenset({"de", "da", "do", "dos", "di", "del", "della", "du", "des", "la", "of"})
_PARTICLES |= {"von", "van", "al", "bin"}
_OPENING = frozenset("(（[")
_SYMBOLS = frozenset("°′:")  # between the numbers of a time or a coordinate

# Set on Mu-SHROOM's validation set.
_FIT = 1.6  # both shares and a fifth of the words beside together, that a rival needs
_SHARE = 0.45  # each share that it needs
_REACH = 20  # words on either side that say what a sentence is about
_LIGHT = 0.15  # weight of a passage's stop words and signs, where others weigh 1
_MOST_BESIDE = 3.0  # words beside that count
_ASKED = 0.3  # part of the question's words in what a sentence is about
_SPELT = 0.8  # likeness in [0, 1] to a passage's word from which a word is a slip of it
_ALIKE = 60  # rapidfuzz ratio in [0, 100] from which names may be spellings of one


class RivalWords(NamedTuple):
    """Words of an answer, positions in its passages that say otherwise, and how well they fit."""

    said: range
    stands: range
    fit: float


class RivalFinder:
    """Finds the rivals of an answer's words.

    Args:
        described: the answer with its passages.
        nouns: whether the language writes every noun with a capital, as German does.
    """

    def __init__(self, described: AnswerFeatures, *, nouns: bool) -> None:
        self._described, self._places = described, described.links.places
        answer, passages, stops = described.answer, described.passages, described.stops
        capitals = [answer.capital(at) for at in range(len(answer))]
        self._answer = WordSide(*answer.row(), answer.sentence, capitals, stops, nouns)
        self._passages = WordSide(
            *passages.row(), passages.sentence, passages.capital, stops, nouns
        )

    def of(self, words: range) -> Iterator[RivalWords]:
        """Yield the best rival of each number and name among these words that has one."""
        known, done = self._described.known, words.start
        for at in words:
            if at < done or known[at]:
                continue
            first, last = (
                self._answer.end_of_name(at, step, lambda other: bool(known[other]))
                for step in (-1, 1)
            )
            unit = range(first, last + 1)
            done = unit.stop
            if max(self._described.links.ratio[unit.start : unit.stop]) >= _SPELT:
                continue
            best = max(self._rivals(unit), key=lambda rival: rival.fit, default=None)
            if best is not None:
                yield best

    def _rivals(self, unit: range) -> Iterator[RivalWords]:
        slot = self._described.slots.get(unit.start)
        if date := slot is not None and slot.date:  # the other parts of the date agree
            runs = {range(slot.position, slot.position + 1)}
        else:
            before, after = self._near(unit.start, -1), self._near(unit[-1], 1)
            runs = {self._run(place + 1, 1, unit.stop) for place in before}
            runs |= {self._run(place - 1, -1, unit.start - 1) for place in after}
        for stands in sorted(runs - {range(0)}, key=lambda run: (run.start, run.stop)):
            follows = partial(self._agree, place=stands.stop)
            last = self._answer.end_of_name(unit[-1], 1, follows)
            ours = range(unit.start, last + 1)
            beside = _MOST_BESIDE if date else min(self._beside(ours, stands), _MOST_BESIDE)
            same_kind = self._same_number if self._answer.number(unit.start) else self._same_name
            if not date and (
                self._stated_positions.issuperset(stands) or not same_kind(ours, stands, beside)
            ):
                continue
            shares = self._shared(ours, stands), self._shared_there(stands)
            fit = sum(shares) + beside / 5
            if fit >= _FIT and (date or min(shares) >= _SHARE):
                yield RivalWords(ours, stands, fit)

    def _near(self, at: int, step: int) -> tuple[int, ...]:
        """Return where the word before or after one stands in the passages."""
        other = self._answer.beside(at, step)
        return () if other is None else self._places[other]

    def _run(self, place: int, step: int, until: int) -> range:
        """Return the name from a position on, up to where the answer's word ``until`` stands."""
        if not 0 <= place < len(self._passages.forms):
            return range(0)
        last = self._passages.end_of_name(place, step, partial(self._agree, until))
        return range(min(place, last), max(place, last) + 1)

    def _agree(self, at: int, place: int) -> bool:
        return 0 <= at < len(self._places) and place in self._places[at]

    @cached_property
    def _stated_positions(self) -> frozenset[int]:
        """Positions of words that answer or question say somewhere."""
        by_form = self._described.passages.places
        return frozenset(place for places in self._places for place in places).union(
            *(by_form.get(form, ()) for form in self._described.asked)
        )

    def _same_number(self, ours: range, stands: range, beside: float) -> bool:
        """Return whether two runs are numbers that count the same: years, or things of a unit.

        Words beside besides the unit agree, or no other number is meant. Numbers that may be one
        in two spellings, as 10,000 and 10000, are not two.
        """
        answer, passages, at, place = self._answer, self._passages, ours.start, stands.start
        if not (answer.counts(at) and passages.counts(place)):
            return False
        years = year(answer.forms[at])
        unit = not years and (answer.has_unit(at) or passages.has_unit(place))
        if years != year(passages.forms[place]) or (unit and not self._agree(at + 1, place + 1)):
            return False
        enough = beside > 0 if years else beside - answer.has_unit(at) >= 1
        if not enough and not passages.only_number(place):
            return False
        text = self._described.answer
        written = text.text[text.starts[at] : text.ends[at]]
        there = self._described.passages.words_at(stands)
        return readings(written).isdisjoint(readings(there))

    def _same_name(self, ours: range, stands: range, beside: float) -> bool:
        """Return whether two runs are names, and no spellings of one."""
        answer, passages = self._answer, self._passages
        if beside <= 0 or not (answer.names(ours) and passages.names(stands)):
            return False
        name = "".join(answer.forms[ours.start : ours.stop])
        other = "".join(passages.forms[stands.start : stands.stop])
        return fuzz.ratio(name, other) < _ALIKE

    def _beside(self, ours: range, stands: range) -> float:
        """Count words beside that agree, up to three a side; stop words and ends count half."""
        left, _ = self._one_side(ours.start, stands.start, -1)
        right, end = self._one_side(ours[-1], stands[-1], 1)
        return left + right + 0.5 * end

    def _one_side(self, at: int, place: int, step: int) -> tuple[float, bool]:
        """Count words on one side, and say whether both sentences end there.

        Words of the same name count nothing: many have "Hamilton" or "de" in common.
        """
        answer, words = self._answer, 0.0
        name_end = answer.end_of_name(at, step, lambda _: False)
        while words < _MOST_BESIDE:
            here, there = answer.beside(at, step), self._passages.beside(place, step)
            if here is None or there is None:
                return words, here is there
            if not self._agree(here, there):
                break
            if (here - name_end) * step > 0:
                words += 0.5 if answer.light(here) else 1.0
            at, place = here, there
        return words, False

    def _shared(self, ours: range, stands: range) -> float:
        """Return the share of the words around that the passage's sentence has.

        Other numbers may be as wrong, and count only where they agree; unknown names count half.
        """
        described = self._described
        there = described.passages.positions(self._passages.sentence[stands.start])

        def held(at: int) -> bool:
            return any(place in there for place in self._places[at])

        def weight(at: int) -> float:
            return float(described.weight[at]) * _doubt(self._answer, at, described.known[at] > 0)

        share, topic = _share(self._answer, ours, weight, held, 4), self._topic
        if not topic:
            return share
        answers = sum(any(place in there for place in places) for places in topic) / len(topic)
        return (1 - _ASKED) * share + _ASKED * answers

    @cached_property
    def _topic(self) -> list[list[int]]:
        """Where the question's words stand, without stop words."""
        stops, places = self._described.stops, self._described.passages.places
        return [places.get(form, []) for form in sorted(self._described.asked) if form not in stops]

    def _shared_there(self, stands: range) -> float:
        """Return the share of the words around it in the passage that answer or question say."""
        passages, said = self._passages, self._stated_positions

        def weight(place: int) -> float:
            light = _LIGHT if passages.light(place) else 1.0
            return light * _doubt(passages, place, place in said)

        return _share(passages, stands, weight, said.__contains__, 1)


def _doubt(side: WordSide, at: int, is_known: bool) -> float:
    """Return how much a word counts that the other side may not know."""
    return 1.0 if is_known else 0.0 if side.number(at) else 0.5 if side.name(at) else 1.0


def _share(
    side: WordSide,
    run: range,
    weight: Callable[[int], float],
    held: Callable[[int], bool],
    reach: int,
) -> float:
    """Return the weighted share of the words around that are held, near ones counting more.

    A word ``reach`` words away counts half.
    """
    total = shared = 1e-6
    for first, step in ((run.start, -1), (run[-1], 1)):
        at, distance = side.beside(first, step), 1
        while at is not None and distance <= _REACH:
            counts = weight(at) / (1 + distance / reach)
            total += counts
            shared += counts * held(at)
            at, distance = side.beside(at, step), distance + 1
    return shared / total


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
