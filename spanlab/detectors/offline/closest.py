"""The passage sentences that come closest to a stretch of the answer, quoted as they stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal, NamedTuple

from spanlab.detectors.offline.features import Features
from spanlab.detectors.offline.index import Index
from spanlab.detectors.offline.spans import Stretch
from spanlab.schema import Evidence, Passage

_CONTEXT = 6  # words on either side of the stretch that help to find the sentence
_OUTSIDE = 0.5  # weight of such a word
_LONGEST_STRETCH = 24  # words of a stretch that are looked up
_PLACES = 8  # occurrences looked at per word
_MOST_QUOTES = 3
_LONGEST_QUOTE = 400  # characters


class _Sentence(NamedTuple):
    passage: int
    sentence: int


def evidence(
    stretch: Stretch, features: Sequence[Features], index: Index, passages: Sequence[Passage]
) -> tuple[Evidence, ...]:
    """Quote what the passages say where the answer says this stretch.

    Sentences that give other numbers in the place of the stretch's refute it. Where there are
    none, the sentence that shares most words with the stretch and its surroundings, rare words
    counting more, is the closest.

    Args:
        stretch: the words to find evidence for.
        features: the description of all words of the answer.
        index: the passages, whose texts come first in it.
        passages: the same passages, to quote from.

    Returns:
        One to three quotes; none if the passages share no word with the stretch and what
        surrounds it.
    """
    refuting: dict[_Sentence, int] = {}
    notes: dict[_Sentence, list[str]] = defaultdict(list)
    for at in features[stretch.first : stretch.last + 1]:
        found = _sentence(at.rival.position, index) if at.rival else None
        if at.rival and found and found.passage < len(passages):
            refuting.setdefault(found, at.rival.position)
            notes[found].append(f"{at.rival.text} stands there instead of {at.word.text}")
    if refuting:
        return tuple(
            _quote(position, index, passages, "refutes", "; ".join(notes[found]))
            for found, position in list(refuting.items())[:_MOST_QUOTES]
        )
    position = _closest(stretch, features, index, len(passages))
    return () if position is None else (_quote(position, index, passages, "closest", None),)


def _closest(
    stretch: Stretch, features: Sequence[Features], index: Index, passages: int
) -> int | None:
    """Find a position in the passage sentence that shares most with the stretch, if any does."""
    last = min(stretch.last, stretch.first + _LONGEST_STRETCH)
    shared: dict[_Sentence, float] = defaultdict(float)
    example: dict[_Sentence, int] = {}
    for number in range(max(0, stretch.first - _CONTEXT), min(len(features), last + 1 + _CONTEXT)):
        at = features[number]
        if at.word.function or not at.places:
            continue
        weight = at.known / 100 / len(at.places)
        weight *= 1.0 if stretch.first <= number <= last else _OUTSIDE
        positions = {_sentence(place, index): place for place in at.places[:_PLACES]}
        for found, place in positions.items():
            if found.passage < passages:
                shared[found] += weight
                example.setdefault(found, place)
    if not shared:
        return None
    return example[max(shared, key=lambda found: (shared[found], -found.passage, -found.sentence))]


def _sentence(position: int, index: Index) -> _Sentence:
    place = index.resolve(position)
    return _Sentence(place.text, index.texts[place.text].words[place.word].sentence)


def _quote(
    position: int,
    index: Index,
    passages: Sequence[Passage],
    stance: Literal["refutes", "closest"],
    note: str | None,
) -> Evidence:
    """Quote the sentence around a position, or as much of it as a reader wants to read."""
    passage, sentence = _sentence(position, index)
    start, end = index.texts[passage].sentences[sentence]
    word = index.word(position)
    if end - start > _LONGEST_QUOTE:
        middle = (word.start + word.end) // 2
        start = max(start, min(middle - _LONGEST_QUOTE // 2, end - _LONGEST_QUOTE, word.start))
        end = max(min(end, start + _LONGEST_QUOTE), word.end)
    text = passages[passage].text[start:end]
    return Evidence(passage=passage, start=start, end=end, text=text, stance=stance, note=note)
