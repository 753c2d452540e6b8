"""What the passages (or the question) contain, made ready to be asked word by word.

Every question costs a dictionary look-up; only a word that is not there is compared with the few
known words that share its rarest trigrams, by rapidfuzz. So an answer costs time in proportion to
its length, however long the passages are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz, process

from spanlab.detectors.offline.normal import fold, readings
from spanlab.detectors.offline.words import Kind, Reading, Word

MOST_PLACES = 64  # places kept per word: one that stands everywhere tells no places apart
GAP = 1000  # word positions between two texts, so that their words are never neighbours

_SIGN_SCORES = (0.0, 25.0, 70.0, 90.0, 100.0)  # by the longest known run of signs around a sign
_TRIGRAMS_ASKED = 5  # of a word's trigrams, the rarest
_CANDIDATES = 256  # known words taken per trigram
_SHORTEST_FUZZY = 4  # letters from which on a word may match a similar one
_FUZZY_FLOOR = 60.0


class Match(NamedTuple):
    """How alike in [0, 100] the closest known word is, and the positions where it stands."""

    score: float
    places: tuple[int, ...] = ()


class Place(NamedTuple):
    """A position resolved: the number of the text and of the word in it."""

    text: int
    word: int


class Index:
    """The words of some texts by what they are compared as.

    Args:
        texts: the readings of passages or of a question, in order.
    """

    def __init__(self, texts: Sequence[Reading]) -> None:
        self.texts = tuple(texts)
        self.numbers: list[int] = []  # positions of all numbers, in order
        self._origins: list[int] = []
        self._places: dict[str, list[int]] = defaultdict(list)
        origin = 0
        for text in self.texts:
            self._origins.append(origin)
            self._add(text.words, origin)
            origin += len(text.words) + GAP
        self._trigrams = _by_trigram(self._places)
        self._similar: dict[str, Match] = {}

    def matches(self, words: Sequence[Word]) -> list[Match]:
        """Say for each of the words of one text how well these texts know it.

        Args:
            words: all words of a text, in order: signs are looked up together with their
                neighbours.

        Returns:
            One match per word; score 0 and no places where nothing similar is known.
        """
        found = [self._match(word) for word in words]
        for start, grams in _sign_grams(words):
            for length, gram in enumerate(grams, start=1):
                places = self._places.get(gram)
                if places is None:
                    break
                for inside in range(length):
                    at = start + inside
                    if _SIGN_SCORES[length] > found[at].score:
                        shifted = tuple(place + inside for place in places)
                        found[at] = Match(_SIGN_SCORES[length], shifted)
        return found

    def word(self, position: int) -> Word:
        """Return the word that stands at a position."""
        place = self.resolve(position)
        return self.texts[place.text].words[place.word]

    def resolve(self, position: int) -> Place:
        """Say which text and which of its words stands at a position that a match gave."""
        text = bisect_right(self._origins, position) - 1
        return Place(text, position - self._origins[text])

    def _add(self, words: Sequence[Word], origin: int) -> None:
        for number, word in enumerate(words):
            if word.kind is Kind.NUMBER:
                self.numbers.append(origin + number)
            for term in _terms(word):
                self._keep(term, origin + number)
        for start, grams in _sign_grams(words):
            for gram in grams:
                self._keep(gram, origin + start)

    def _keep(self, term: str, position: int) -> None:
        places = self._places[term]
        if len(places) < MOST_PLACES:
            places.append(position)

    def _match(self, word: Word) -> Match:
        if word.kind is Kind.SIGN:
            return Match(0.0)
        places = [place for term in _terms(word) for place in self._places.get(term, ())]
        if places:
            return Match(100.0, tuple(places))
        if word.kind is Kind.NUMBER:
            return Match(0.0)
        term = fold(word.text)
        if term not in self._similar:
            self._similar[term] = self._closest(term)
        return self._similar[term]

    def _closest(self, term: str) -> Match:
        if len(term) < _SHORTEST_FUZZY:
            return Match(0.0)
        known = [self._trigrams[gram] for gram in set(_trigrams(term)) if gram in self._trigrams]
        known.sort(key=len)
        candidates = {word for words in known[:_TRIGRAMS_ASKED] for word in words[:_CANDIDATES]}
        best = process.extractOne(
            term, sorted(candidates), scorer=fuzz.ratio, score_cutoff=_FUZZY_FLOOR
        )
        return Match(best[1], tuple(self._places[best[0]])) if best else Match(0.0)


def _terms(word: Word) -> Iterable[str]:
    """Return what a word is looked up as by itself; a number goes by each of its readings."""
    if word.kind is Kind.NUMBER:
        return [f"#{reading}" for reading in readings(word.text)]
    return [fold(word.text)] if word.kind is Kind.LETTERS else []


def _sign_grams(words: Sequence[Word]) -> Iterator[tuple[int, list[str]]]:
    """Yield for every sign the runs of one to four signs that begin with it."""
    longest = len(_SIGN_SCORES) - 1
    for start, word in enumerate(words):
        if word.kind is not Kind.SIGN:
            continue
        grams = [fold(word.text)]
        for last in range(start + 1, min(start + longest, len(words))):
            if words[last].kind is not Kind.SIGN or words[last].start != words[last - 1].end:
                break
            grams.append(grams[-1] + fold(words[last].text))
        yield start, grams


def _by_trigram(terms: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for term in terms:
        if len(term) >= _SHORTEST_FUZZY and term[0] != "#":
            for gram in set(_trigrams(term)):
                found[gram].append(term)
    return found


def _trigrams(term: str) -> list[str]:
    padded = f" {term} "
    return [padded[at : at + 3] for at in range(len(padded) - 2)]
