"""Notes and quotes for a span: what the passages say where the answer says something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from spanlab.detectors.offline.features import Described
from spanlab.detectors.offline.rivals import Rivals
from spanlab.detectors.offline.spans import Stretch
from spanlab.detectors.offline.words import WordKind
from spanlab.schema import Evidence, Passage

_MOST_QUOTES = 2
_MOST_NAMED = 3
_LONGEST_QUOTE = 400  # characters
_LONGEST_STRETCH = 30  # words of a stretch that are looked up
_TELLING = 0.5  # weight from which a word is worth naming


class Explanation(NamedTuple):
    """The note on a span and the quotes that go with it."""

    note: str | None
    quotes: tuple[Evidence, ...]


class Explainer:
    """Explains stretches of an answer by its passages.

    Args:
        described: the answer.
        passages: the item's, as they are numbered in quotes.
        nouns: whether the language writes every noun with a capital.
    """

    def __init__(self, described: Described, passages: Sequence[Passage], *, nouns: bool) -> None:
        self._described, self._passages = described, passages
        self._rivals = Rivals(described, nouns=nouns)

    def explain(self, stretch: Stretch) -> Explanation:
        """Explain a stretch.

        A number or name with a rival in the passages is contradicted: that sentence refutes it,
        and the quote's note sets the two against each other. Otherwise nothing is said to refute:
        the note names the words of which nothing was found, and the sentence is the closest, the
        one that holds most of the words around.

        Returns:
            A note, None if a sentence refutes or every word is somewhere in the passages, and up
            to two quotes; none without passages, or if nothing in them comes near.
        """
        if self._described.passages.empty:
            return Explanation(None, ())
        refuting = self._refuting(stretch)
        if refuting:
            return Explanation(None, refuting)
        return Explanation(_missing(stretch, self._described), self._closest(stretch))

    def _refuting(self, stretch: Stretch) -> tuple[Evidence, ...]:
        """Quote the sentences that have rivals of a stretch's words."""
        answer, passages = self._described.answer, self._described.passages
        places: dict[tuple[int, int, int], tuple[int, list[str]]] = {}  # first position and notes
        for rival in self._rivals.of(_looked_at(stretch)):
            place = passages.sentence_of(rival.stands.start)
            said = answer.text[answer.starts[rival.said[0]] : answer.ends[rival.said[-1]]]
            stands = " ".join(passages.words_at(rival.stands).split())
            _, notes = places.setdefault(place, (rival.stands.start, []))
            notes.append(f"“{stands}” stands here instead of “{' '.join(said.split())}”")
        return tuple(
            self._quote(position, "; ".join(dict.fromkeys(notes)))
            for position, notes in list(places.values())[:_MOST_QUOTES]
        )

    def _closest(self, stretch: Stretch) -> tuple[Evidence, ...]:
        described = self._described
        near, weight = described.near, described.weight
        at = max(_looked_at(stretch), key=lambda at: near[at] * weight[at])
        if near[at] <= 0:
            return ()
        positions = described.passages.positions(int(described.best[at]))
        position = next((place for place in positions if described.passages.word[place] >= 0), None)
        return () if position is None else (self._quote(position, None),)

    def _quote(self, position: int, note: str | None) -> Evidence:
        """Quote the sentence around a position, or as much of it as a reader wants to read."""
        indexed = self._described.passages
        passage, start, end = indexed.sentence_of(position)
        text = self._passages[passage].text
        reading = indexed.readings[indexed.text[position]]
        at = indexed.word[position]
        if end - start > _LONGEST_QUOTE:
            start = max(start, min(reading.starts[at] - _LONGEST_QUOTE // 2, end - _LONGEST_QUOTE))
            end = max(min(end, start + _LONGEST_QUOTE), reading.ends[at])
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip())
        piece = piece.strip()
        return Evidence(
            passage=passage,
            start=start,
            end=start + len(piece),
            text=piece,
            stance="refutes" if note else "closest",
            note=note,
        )


def _looked_at(stretch: Stretch) -> range:
    return range(stretch.first, min(stretch.last + 1, stretch.first + _LONGEST_STRETCH))


def _missing(stretch: Stretch, described: Described) -> str | None:
    answer = described.answer
    named: dict[str, None] = {}
    end = -1  # of the last sign named: signs in a row are one word
    for at in _looked_at(stretch):
        sign = answer.kinds[at] is WordKind.SIGN
        if described.known[at] or not (sign or described.weight[at] >= _TELLING):
            continue
        word = answer.text[answer.starts[at] : answer.ends[at]]
        if sign and answer.starts[at] == end:
            word = named.popitem()[0] + word
        named[word] = None
        end = answer.ends[at] if sign else -1
    if not named:
        return None
    shown = ", ".join(f"“{word[:40]}”" for word in list(named)[:_MOST_NAMED])
    rest = len(named) - _MOST_NAMED
    return f"nothing found in the passages of {shown}" + (f" and {rest} more" if rest > 0 else "")
