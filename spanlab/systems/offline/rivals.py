"""Rivals: what passages say of the same kind, in the same place, where an answer says else.

Two numbers are rivals if they have the same unit and contradict each other. Two names are rivals if
the text says the same about both and neither is in a list; in scripts without capitals, names are
not told from other words and have no rivals. The place is the same if words beside it are, and if
both sentences speak of the same: what the answer's says around stands in the passage's, and what
the passage's says around stands in answer or question.

A number contradicts another only where the words leave nothing open: "over 20" does not contradict
35, nor 1960 1963.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, partial
from math import inf
from typing import NamedTuple

from rapidfuzz import fuzz

from spanlab.systems.offline.features import AnswerFeatures
from spanlab.systems.offline.neighbours import folded, year
from spanlab.systems.offline.sides import WordSide
from spanlab.systems.offline.words import WordKind, readings

NOUN_CAPITALS = frozenset({"de", "lb", "nds"})  # languages that write every noun with a capital

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
        self.answer = WordSide(*answer.row(), answer.sentence, capitals, stops, nouns)
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
                self.answer.end_of_name(at, step, lambda other: bool(known[other]))
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
            last = self.answer.end_of_name(unit[-1], 1, follows)
            ours = range(unit.start, last + 1)
            beside = _MOST_BESIDE if date else min(self._beside(ours, stands), _MOST_BESIDE)
            same_kind = self._same_number if self.answer.number(unit.start) else self._same_name
            stated = self._stated_positions.issuperset(stands)
            if beside <= 0 or not (date or (same_kind(ours, stands) and not stated)):
                continue
            shares = self._shared(ours, stands), self._shared_there(stands)
            fit = sum(shares) + beside / 5
            if fit >= _FIT and (date or min(shares) >= _SHARE):
                yield RivalWords(ours, stands, fit)

    def _near(self, at: int, step: int) -> tuple[int, ...]:
        """Return where the word before or after one stands in the passages."""
        other = self.answer.beside(at, step)
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

    def _same_number(self, ours: range, stands: range) -> bool:
        """Return whether two runs are numbers that count the same: years, or things of a unit.

        Numbers of which one value fits both, as "over 20" and "35", are no rivals.
        """
        answer, passages, at, place = self.answer, self._passages, ours.start, stands.start
        if not (answer.counts(at) and passages.counts(place)):
            return False
        years = year(answer.forms[at])
        unit = not years and (answer.has_unit(at) or passages.has_unit(place))
        if years != year(passages.forms[place]) or (unit and not self._agree(at + 1, place + 1)):
            return False
        has_unit = answer.has_unit(at)
        if unit and WordKind.SIGN not in answer.kinds[at - 1 : at + 2]:
            ends = range(at, at + 1 + has_unit), range(place, place + 1 + has_unit)
            if not self._same_role(*ends):
                return False
        text = self._described.answer
        written = text.text[text.starts[at] : text.ends[at]]
        there = self._described.passages.words_at(stands)
        return contradict(written, answer.around(at), there, passages.around(place))

    def _same_name(self, ours: range, stands: range) -> bool:
        """Return whether two runs are names in one role, and no spellings of one."""
        answer, passages = self.answer, self._passages
        if not (answer.names(ours) and passages.names(stands)):
            return False
        if answer.listed(ours) or passages.listed(stands) or not self._same_role(ours, stands):
            return False
        name = answer.forms[ours.start : ours.stop]
        other = passages.forms[stands.start : stands.stop]
        if _initials(name) in "".join(other) or _initials(other) in "".join(name):
            return False
        return fuzz.ratio("".join(name), "".join(other)) < _ALIKE

    def _same_role(self, ours: range, stands: range) -> bool:
        """Return whether the same is said of two names or things, so that they are of one kind.

        The closest word before or after that states something ("province of", "played by") is the
        same; or both end their sentences after the same word ("The capital of France is …").
        """
        before, after = (
            (self.answer.stating(at, step), self._passages.stating(place, step))
            for at, place, step in ((ours.start, stands.start, -1), (ours[-1], stands[-1], 1))
        )
        if after == (None, None) and self._agree(ours.start - 1, stands.start - 1):
            return True
        return any(
            at is not None and place is not None and self._agree(at, place)
            for at, place in (before, after)
        )

    def _beside(self, ours: range, stands: range) -> float:
        """Count words beside that agree, up to three a side; stop words and ends count half."""
        left, _ = self._one_side(ours.start, stands.start, -1)
        right, end = self._one_side(ours[-1], stands[-1], 1)
        return left + right + 0.5 * end

    def _one_side(self, at: int, place: int, step: int) -> tuple[float, bool]:
        """Count words on one side, and say whether both sentences end there.

        Words of the same name count nothing: many have "Hamilton" or "de" in common.
        """
        answer, words = self.answer, 0.0
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
            return float(described.weight[at]) * _doubt(self.answer, at, described.known[at] > 0)

        share, topic = _share(self.answer, ours, weight, held, 4), self._topic
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


def _initials(name: Sequence[str]) -> str:
    """Return the first letters of a name's words; of one word, what no name holds."""
    return "".join(form[0] for form in name) if len(name) > 1 else " "


_ABOVE = folded(
    "over above more least exceeding uber mehr mindestens plus moins superieur mas menos superior "
    "piu oltre almeno superiore mes almenys mer over minst yli enemman vahintaan pres vice nejmene "
    "gehiago gutxienez 超 逾 अधिक ज्यादा أكثر الأقل بیش حداقل"
)  # "moins", "menos" and the like stand in "at least" and in "less": neither refutes then
_BELOW = folded(
    "under below less fewer most up unter weniger hochstens moins inferieur jusqu menos inferior "
    "hasta meno fino fins menys mindre hogst upp alle mene nejvyse gutxiago कम أقل کمتر"
)
_ABOUT = folded(
    "about around approximately nearly almost roughly some circa ca etwa rund ungefahr fast env "
    "environ presque pres aproximadamente alrededor unos casi quasi cirka ungefar nastan noin "
    "lahes zhruba asi temer aproximadament gairebe inguru 约 近 लगभग करीब حوالي نحو تقريبا حدود"
)
_ABOUT_REACH = 0.04  # share of a number that "about" leaves open
_ROUND_FROM = 3  # digits of a number that may be rounded to its last digit that is not zero
_DECADE = 9  # years that 1960 may stand for besides itself


class Amount(NamedTuple):
    """The lowest and the highest value that a stated number may mean."""

    low: float
    high: float


def contradict(written: str, around: Collection[str], other: str, beside: Collection[str]) -> bool:
    """Return whether no value fits two numbers as they are written.

    ``around`` and ``beside`` are the forms of the words around the one and the other, which may
    compare them.
    """
    return all(
        mine.high < its.low or its.high < mine.low
        for mine in _amounts(written, around)
        for its in _amounts(other, beside)
    )


def _amounts(written: str, around: Collection[str]) -> list[Amount]:
    """Return what a number may state, one amount for each way to read it."""
    above, below = not _ABOVE.isdisjoint(around), not _BELOW.isdisjoint(around)
    about = 0.0 if _ABOUT.isdisjoint(around) else _ABOUT_REACH
    amounts = []
    for digits in readings(written):
        value = float(digits)
        if year(f"#{digits}"):
            amounts.append(Amount(value, value + (0 if value % 10 else _DECADE)))
        elif above or below:
            amounts.append(Amount(-inf if below else value, inf if above else value))
        else:
            whole = len(digits) >= _ROUND_FROM and "." not in digits
            rounded = 10 ** (len(digits) - len(digits.rstrip("0"))) / 2 if whole else 0.0
            reach = max(rounded, about * value)
            amounts.append(Amount(value - reach, value + reach))
    return amounts
