"""Rivals: what passages say of the same kind, in the same place, where an answer says else.

A number rivals a number of the same unit, a name a name; in scripts without capitals, unknown
words rival others between the same words. The place is the same if words beside it are, and if
both sentences speak of the same: what the answer's says around stands in the passage's, and what
the passage's says around stands in answer or question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from rapidfuzz import fuzz

from spanlab.detectors.offline.features import Described
from spanlab.detectors.offline.normal import readings
from spanlab.detectors.offline.shape import year
from spanlab.detectors.offline.sides import Side, both_sides
from spanlab.detectors.offline.words import WordKind

_REACH = 20  # words on either side that say what a sentence is about
_STOP = 0.15  # weight of a passage's stop word, where others weigh 1
_SIGN = 0.5  # and of a sign, which is mostly a part of a word
_DATE = 3.0  # words beside: the other parts of a date agree
_MOST_BESIDE = 3.0  # words beside that count, a fifth each
_ASKED = 0.3  # part of the question's words in what a sentence is about
_SPELT = 0.8  # likeness in [0, 1] to a passage's word from which a word is a slip of it
_ALIKE = 60  # rapidfuzz ratio in [0, 100] from which names may be spellings of one
_LONGEST = 6  # signs, or words without capitals, of a rival


class _Bar(NamedTuple):
    """What a rival needs: both shares and the words beside together, each share, words beside."""

    fit: float
    share: float
    beside: float


# Set on Mu-SHROOM's validation set. Without capitals, little tells a name from a synonym.
_CASED, _UNCASED, _SAME_DATE = _Bar(1.6, 0.45, 0.0), _Bar(2.1, 0.75, 2.0), _Bar(1.6, 0.0, 0.0)


class Rival(NamedTuple):
    """Words of an answer, positions in its passages that say otherwise, and how well they fit."""

    said: range
    stands: range
    fit: float


class Rivals:
    """Finds the rivals of an answer's words.

    Args:
        described: the answer with its passages.
        nouns: whether the language writes every noun with a capital, as German does.
    """

    def __init__(self, described: Described, *, nouns: bool) -> None:
        self._described, self._places = described, described.links.places
        self._answer, self._passages = both_sides(described, nouns=nouns)

    def of(self, words: range) -> Iterator[Rival]:
        """Yield the best rival of each number and name among these words that has one."""
        done = words.start
        for at in words:
            if at < done or self._described.known[at]:
                continue
            unit = self._unit(at)
            done = unit.stop
            if max(self._described.links.ratio[unit.start : unit.stop]) >= _SPELT:
                continue
            best = max(self._rivals(unit), key=lambda rival: rival.fit, default=None)
            if best is not None:
                yield best

    def _unit(self, at: int) -> range:
        """Return the unknown words of one name, or of a script without capitals in a row."""
        answer, known = self._answer, self._described.known
        first = last = at
        if answer.number(at) or (answer.cased(at) and not answer.name(at)):
            return range(at, at + 1)
        following = answer.next_in_name if answer.cased(at) else answer.next_uncased
        while (more := following(last, 1)) is not None and not known[more]:
            last = more
        while (more := following(first, -1)) is not None and not known[more]:
            first = more
        return range(first, last + 1)

    def _rivals(self, unit: range) -> Iterator[Rival]:
        slot, at = self._described.slots.get(unit.start), unit.start
        if slot is not None and slot.date:
            said, stands = range(at, at + 1), range(slot.position, slot.position + 1)
            return self._rated(said, stands, self._beside(said, stands) + _DATE, _SAME_DATE)
        found: Iterator[Rival] = iter(())
        if self._answer.number(at):
            found = self._numbers(unit)
        elif not self._answer.cased(at):
            found = self._uncased(unit)
        elif self._answer.name(at):
            found = self._names(unit)
        return (each for each in found if not self._said.issuperset(each.stands))

    def _numbers(self, unit: range) -> Iterator[Rival]:
        answer, passages, at = self._answer, self._passages, unit.start
        places = set(self._described.passages.positions(int(self._described.best[at])))
        places |= {place + 1 for place in self._near(unit.start, -1)}
        places |= {place - 1 for place in self._near(unit[-1], 1)}
        for place in sorted(places):
            stands = range(place, place + 1)
            if not passages.number(place) or passages.forms[place] in answer.forms:
                continue
            beside = self._beside(unit, stands)
            if self._equal(at, place):
                continue
            if self._same_sort(at, place) and self._same_role(at, place, beside):
                yield from self._rated(unit, stands, beside, _CASED)

    def _equal(self, at: int, place: int) -> bool:
        """Return whether two numbers may be one in two spellings, as 10,000 and 10000."""
        answer, passages = self._described.answer, self._described.passages
        said, stands = answer.text[answer.starts[at] : answer.ends[at]], range(place, place + 1)
        return not readings(said).isdisjoint(readings(passages.words_at(stands)))

    def _same_sort(self, at: int, place: int) -> bool:
        """Return whether two numbers count the same: years, or what the words after them name."""
        answer, passages = self._answer, self._passages
        agree = self._agree(at - 1, place - 1)
        if not (answer.counts(at, known=agree) and passages.counts(place, known=agree)):
            return False
        if answer.symbols(at) != passages.symbols(place):
            return False
        if year(answer.forms[at]) or year(passages.forms[place]):
            return year(answer.forms[at]) and year(passages.forms[place])
        unit = answer.has_unit(at) or passages.has_unit(place)
        return not unit or self._agree(at + 1, place + 1)

    def _same_role(self, at: int, place: int, beside: float) -> bool:
        """Return whether words beside besides the unit agree, or no other number is meant."""
        answer, passages = self._answer, self._passages
        enough = beside > 0 if year(answer.forms[at]) else beside - answer.has_unit(at) >= 1
        return enough or (answer.only_number(at) and passages.only_number(place))

    def _names(self, unit: range) -> Iterator[Rival]:
        answer, passages = self._answer, self._passages
        runs = {self._run(place + 1, 1, unit.stop) for place in self._near(unit.start, -1)}
        runs |= {self._run(place - 1, -1, unit.start - 1) for place in self._near(unit[-1], 1)}
        for stands in sorted(runs - {range(0)}, key=lambda run: (run.start, run.stop)):
            said = unit
            while (more := answer.next_in_name(said[-1], 1)) is not None:
                if self._agree(said.stop, stands.stop):
                    break
                said = range(said.start, more + 1)
            beside = self._beside(said, stands)
            names = answer.names(said) and passages.names(stands)
            if names and beside > 0 and not self._spelling(said, stands):
                yield from self._rated(said, stands, beside, _CASED)

    def _spelling(self, said: range, stands: range) -> bool:
        """Return whether two names may be spellings of one."""
        answer, passages = self._answer.forms, self._passages.forms
        one, other = (
            tuple(forms[at] for at in run) for forms, run in ((answer, said), (passages, stands))
        )
        pairs = (("".join(one), "".join(other)), (one[0], other[0]))
        return any(fuzz.ratio(*pair) >= _ALIKE for pair in pairs)

    def _run(self, place: int, step: int, until: int) -> range:
        """Return the name from a position on, up to where the answer's word ``until`` stands."""
        last = place
        if not 0 <= place < len(self._passages.forms) or not self._passages.name(place):
            return range(0)
        while (more := self._passages.next_in_name(last, step)) is not None:
            if self._agree(until, more):
                break
            last = more
        return range(min(place, last), max(place, last) + 1)

    def _uncased(self, unit: range) -> Iterator[Rival]:
        answer, passages = self._answer, self._passages
        end = answer.beside(unit[-1], 1) is None
        for place in self._near(unit.start, -1):
            last: int | None = passages.beside(place, 1)
            while last is not None and last - place <= _LONGEST:
                if (
                    passages.kinds[last] != answer.kinds[unit.start]
                    or passages.stop(last)
                    or last in self._said
                ):
                    break
                stands = range(place + 1, last + 1)
                between = answer.gaps(unit) == passages.gaps(stands)
                last = passages.beside(last, 1)
                follows = end if last is None else self._agree(unit.stop, last)
                if between and follows:
                    yield from self._rated(unit, stands, self._beside(unit, stands), _UNCASED)

    def _near(self, at: int, step: int) -> tuple[int, ...]:
        """Return where the word before or after one stands in the passages."""
        other = self._answer.beside(at, step)
        return () if other is None else self._places[other]

    def _agree(self, at: int, place: int) -> bool:
        return 0 <= at < len(self._places) and place in self._places[at]

    @cached_property
    def _said(self) -> frozenset[int]:
        """Positions of words that answer or question say somewhere."""
        asked = self._described.passages.places
        return frozenset(place for places in self._places for place in places).union(
            *(asked.get(form, ()) for form in self._described.asked)
        )

    # How well it fits.

    def _rated(self, said: range, stands: range, beside: float, bar: _Bar) -> Iterator[Rival]:
        shares = self._shared(said, stands), self._shared_there(stands)
        fit = sum(shares) + min(beside, _MOST_BESIDE) / 5
        if fit >= bar.fit and min(shares) >= bar.share and beside >= bar.beside:
            yield Rival(said, stands, fit)

    def _beside(self, said: range, stands: range) -> float:
        """Count words beside that agree, up to three a side; stop words and ends count half."""
        left, _ = self._one_side(said.start, stands.start, -1)
        right, end = self._one_side(said[-1], stands[-1], 1)
        return left + right + 0.5 * end

    def _one_side(self, at: int, place: int, step: int) -> tuple[float, bool]:
        """Count words on one side, and say whether both sentences end there.

        Words of the same name count nothing: many have "Hamilton" or "de" in common.
        """
        answer, words = self._answer, 0.0
        inside = answer.name(at)
        while words < _MOST_BESIDE:
            here, there = answer.beside(at, step), self._passages.beside(place, step)
            if here is None or there is None:
                return words, here is there
            if not self._agree(here, there):
                break
            inside = inside and answer.next_in_name(at, step) in (here, here + step)
            if not inside:
                light = self._described.stop[here] or answer.kinds[here] == WordKind.SIGN
                words += 0.5 if light else 1.0
            at, place = here, there
        return words, False

    def _shared(self, said: range, stands: range) -> float:
        """Return the share of the words around that the passage's sentence has.

        Other numbers may be as wrong, and count only where they agree; unknown names count half.
        """
        described, answer = self._described, self._answer
        there = described.passages.positions(self._passages.sentence[stands.start])

        def weight(at: int) -> float:
            unknown = 0.0 if answer.number(at) else 0.5 if answer.name(at) else 1.0
            return float(described.weight[at]) * (1.0 if described.known[at] else unknown)

        def held(at: int) -> bool:
            return any(place in there for place in self._places[at])

        share, asked = _share(answer, said, weight, held, 4), self._topic
        if not asked:
            return share
        answers = sum(any(place in there for place in places) for places in asked) / len(asked)
        return (1 - _ASKED) * share + _ASKED * answers

    @cached_property
    def _topic(self) -> list[list[int]]:
        """Where the question's words stand, without stop words."""
        stops, places = self._described.stops, self._described.passages.places
        return [places.get(form, []) for form in sorted(self._described.asked) if form not in stops]

    def _shared_there(self, stands: range) -> float:
        """Return the share of the words around it in the passage that answer or question say."""
        passages = self._passages

        def weight(place: int) -> float:
            sign = _SIGN if passages.kinds[place] == WordKind.SIGN else 1.0
            unsaid = 0.0 if passages.number(place) else 0.5 if passages.name(place) else 1.0
            said = 1.0 if place in self._said else unsaid
            return sign * said * (_STOP if passages.stop(place) else 1.0)

        return _share(passages, stands, weight, self._said.__contains__, 1)


def _share(
    side: Side,
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
