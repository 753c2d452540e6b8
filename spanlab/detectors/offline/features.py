"""What is known of every word of an answer before anything is concluded from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from spanlab.detectors.offline.index import Index, Match
from spanlab.detectors.offline.rivals import Rival, rivals
from spanlab.detectors.offline.words import Kind, Reading, Word

_NEIGHBOURS = 6  # words looked at on either side
_BUCKET = 8  # positions; two places in the same or adjoining buckets are near each other


class Features(NamedTuple):
    """One word of an answer, as the passages and the question see it.

    ``known`` and ``asked`` say in [0, 100] how alike the closest word of the passages and of the
    question is, ``places`` where in the passages it stands; ``near`` in [0, 1] which share of the
    content words around it stands near it there as well; ``position`` in [0, 1] where in the
    answer it begins. ``name`` is a capital inside a sentence. ``rival`` is a number that the
    passages give in its place.
    """

    word: Word
    known: float
    asked: float
    places: tuple[int, ...]
    near: float
    position: float
    name: bool
    rival: Rival | None


def features(answer: Reading, passages: Index, question: Index) -> list[Features]:
    """Describe every word of an answer.

    Args:
        answer: the answer's words and sentences.
        passages: what the passages contain; may be empty.
        question: what the question contains; may be empty.

    Returns:
        One description per word, in order.
    """
    words = answer.words
    known, asked = passages.matches, question.matches
    found = rivals(words, known, asked, passages)
    near = _near(words, known, found)
    end = max(1, words[-1].end if words else 1)
    return [
        Features(
            word=word,
            known=known[number].score,
            asked=asked[number].score,
            places=known[number].places,
            near=near[number],
            position=word.start / end,
            name=_is_name(word, answer),
            rival=found.get(number),
        )
        for number, word in enumerate(words)
    ]


def _is_name(word: Word, answer: Reading) -> bool:
    inside = answer.sentences[word.sentence][0] != word.start
    return inside and word.kind is Kind.LETTERS and word.text[0].isupper()


def _near(words: Sequence[Word], known: Sequence[Match], found: Mapping[int, Rival]) -> list[float]:
    """Find the share of the content words around each that stand near it in the passages too.

    A contradicted number counts as standing where its rival stands: its unit is in its place.
    """
    own = [frozenset(place // _BUCKET for place in match.places) for match in known]
    for number, rival in found.items():
        own[number] = frozenset({rival.position // _BUCKET})
    shares = []
    for number, word in enumerate(words):
        low, high = max(0, number - _NEIGHBOURS), min(len(words), number + _NEIGHBOURS + 1)
        around = [at for at in range(low, high) if at != number and not words[at].function]
        if not own[number] or not around:
            shares.append(0.0)
            continue
        wide = {bucket + step for bucket in own[number] for step in (-1, 0, 1)}
        others = (at for at in around if words[at].text != word.text)
        shares.append(sum(not wide.isdisjoint(own[at]) for at in others) / len(around))
    return shares
