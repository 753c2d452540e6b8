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

_MOST_PLACES = 64  # places kept per word: one that stands everywhere tells no places apart
_GAP = 1000  # word positions between two texts, so that their words are never neighbours

_SIGN_SCORES = (0.0, 25.0, 70.0, 90.0, 100.0)  # by the longest known run of signs around a sign
_ANY_NUMBER = "#"
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
    """Where the words of one answer stand in some texts.

    ``matches`` has one match per word of the answer; score 0 and no places where nothing similar
    is known. ``numbers`` are the positions of all numbers of the texts, in order.

    Args:
        texts: the readings of passages or of a question, in order.
        words: the answer's words, in order.
    """

    def __init__(self, texts: Sequence[Reading], words: Sequence[Word]) -> None:
        self.texts = tuple(texts)
        self.numbers: list[int] = []
        self._origins: list[int] = []
        self._asked = {gram for at in _signs(words) for gram in _grams(words, at)}
        self._places: dict[str, list[int]] = defaultdict(list)
        origin = 0
        for text in self.texts:
            self._origins.append(origin)
            self._add(text.words, origin)
            origin += len(text.words) + _GAP
        self._trigrams = _by_trigram(self._vocabulary())
        self._similar: dict[str, Match] = {}
        self.matches = self._matches(words)

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
        for start in _signs(words):
            for gram in _grams(words, start):
                if gram not in self._asked:
                    break  # then no longer one that begins here is asked for either
                self._keep(gram, origin + start)

    def _vocabulary(self) -> set[str]:
        """Return the words that a similar one may be compared with."""
        letters = (word for text in self.texts for word in text.words if word.kind is Kind.LETTERS)
        folded = {fold(word.text) for word in letters}
        return {term for term in folded if len(term) >= _SHORTEST_FUZZY}

    def _keep(self, term: str, position: int) -> None:
        places = self._places[term]
        if len(places) < _MOST_PLACES:
            places.append(position)

    def _matches(self, words: Sequence[Word]) -> list[Match]:
        found = [self._match(word) for word in words]
        for start in _signs(words):
            for length, gram in enumerate(_grams(words, start), start=1):
                if gram not in self._places:
                    break
                for inside in range(length):
                    at = start + inside
                    if words[at].kind is Kind.SIGN and _SIGN_SCORES[length] > found[at].score:
                        shifted = tuple(place + inside for place in self._places[gram])
                        found[at] = Match(_SIGN_SCORES[length], shifted)
        return found

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
        return [f"={reading}" for reading in readings(word.text)]
    return [fold(word.text)] if word.kind is Kind.LETTERS else []


def _signs(words: Sequence[Word]) -> Iterator[int]:
    """Yield where runs of signs may begin: at each sign, and at a number that one follows."""
    for at, word in enumerate(words):
        follows = word.kind is Kind.NUMBER and at + 1 < len(words) and _adjoin(words, at)
        if word.kind is Kind.SIGN or (follows and words[at + 1].kind is Kind.SIGN):
            yield at


def _grams(words: Sequence[Word], start: int) -> Iterator[str]:
    """Yield the runs of one to four adjoining signs from one on; any number counts as a sign."""
    gram = ""
    for at in range(start, min(start + len(_SIGN_SCORES) - 1, len(words))):
        if words[at].kind is Kind.LETTERS or (at > start and not _adjoin(words, at - 1)):
            return
        gram += fold(words[at].text) if words[at].kind is Kind.SIGN else _ANY_NUMBER
        yield gram


def _adjoin(words: Sequence[Word], at: int) -> bool:
    return words[at].end == words[at + 1].start


def _by_trigram(terms: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for term in terms:
        for gram in set(_trigrams(term)):
            found[gram].append(term)
    return found


def _trigrams(term: str) -> list[str]:
    padded = f" {term} "
    return [padded[at : at + 3] for at in range(len(padded) - 2)]
