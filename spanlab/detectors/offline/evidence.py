"""Notes and quotes for a span: what the passages say where the answer says something else."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spanlab.detectors.offline.alignment import Slot
from spanlab.detectors.offline.features import Described
from spanlab.detectors.offline.shape import year
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


class _Rival(NamedTuple):
    said: str
    position: int


def finding(stretch: Stretch, described: Described, passages: Sequence[Passage]) -> Explanation:
    """Explain a stretch by the passages.

    A word whose place in the passages another word takes (a number for a number, a name for a
    name) is contradicted: the sentence refutes it, and the note sets the two against each other.
    Otherwise the note names the words of which nothing was found, and the sentence is the closest:
    the one that holds most of the words around.

    Returns:
        A note, None if every word is somewhere in the passages, and up to two quotes; none
        without passages, or if nothing in them comes near.
    """
    if described.passages.empty:
        return Explanation(None, ())
    places: dict[tuple[int, int, int], tuple[int, list[str]]] = {}  # first position and notes
    for rival in _rivals(stretch, described):
        place = described.passages.sentence_of(rival.position)
        instead = described.passages.word_at(rival.position)
        _, notes = places.setdefault(place, (rival.position, []))
        notes.append(f"“{instead}” stands here instead of “{rival.said}”")
    quotes = tuple(
        _quote(position, described, passages, "; ".join(dict.fromkeys(notes)))
        for position, notes in list(places.values())[:_MOST_QUOTES]
    )
    return Explanation(
        _missing(stretch, described), quotes or _closest(stretch, described, passages)
    )


def _rivals(stretch: Stretch, described: Described) -> Iterator[_Rival]:
    answer = described.answer
    for at in _looked_at(stretch):
        if described.known[at]:
            continue
        said = answer.text[answer.starts[at] : answer.ends[at]]
        slot = described.slots.get(at)
        if slot is not None and slot.alike and (slot.date or _same_sort(at, slot, described)):
            yield _Rival(said, slot.position)
        elif answer.kinds[at] is WordKind.NUMBER:
            other = _other_number(at, described)
            if other is not None:
                yield _Rival(said, other)


def _looked_at(stretch: Stretch) -> range:
    return range(stretch.first, min(stretch.last + 1, stretch.first + _LONGEST_STRETCH))


def _same_sort(at: int, slot: Slot, described: Described) -> bool:
    """Return whether both are numbers of one sort, or both names; other words only differ."""
    one, other = described.answer.forms[at], described.passages.forms[slot.position]
    if described.answer.kinds[at] is WordKind.NUMBER:
        return year(one) == year(other)
    return described.answer.capital(at)


def _other_number(at: int, described: Described) -> int | None:
    """Find the only number of the same sort that the closest sentence has and the answer not."""
    passages, form = described.passages, described.answer.forms[at]
    where = _positions(int(described.best[at]), described)
    unsaid = set(passages.forms[where.start : where.stop]).difference(described.answer.forms)
    found = [other for other in unsaid if other[0] == "#" and year(other) == year(form)]
    if len(found) != 1 or described.near[at] <= 0:
        return None
    return max(position for position in where if passages.forms[position] == found[0])


def _positions(sentence: int, described: Described) -> range:
    numbers = described.passages.sentence
    return range(bisect_left(numbers, sentence), bisect_right(numbers, sentence))


def _missing(stretch: Stretch, described: Described) -> str | None:
    answer = described.answer
    words = [
        answer.text[answer.starts[at] : answer.ends[at]]
        for at in _looked_at(stretch)
        if not described.known[at]
        and (described.weight[at] >= _TELLING or answer.kinds[at] is WordKind.SIGN)
    ]
    named = list(dict.fromkeys(words))
    if not named:
        return None
    shown = ", ".join(f"“{word[:40]}”" for word in named[:_MOST_NAMED])
    rest = len(named) - _MOST_NAMED
    return f"nothing found in the passages of {shown}" + (f" and {rest} more" if rest > 0 else "")


def _closest(
    stretch: Stretch, described: Described, passages: Sequence[Passage]
) -> tuple[Evidence, ...]:
    near, weight = described.near, described.weight
    at = max(_looked_at(stretch), key=lambda at: near[at] * weight[at])
    if near[at] <= 0:
        return ()
    positions = _positions(int(described.best[at]), described)
    position = next((place for place in positions if described.passages.word[place] >= 0), None)
    return () if position is None else (_quote(position, described, passages, None),)


def _quote(
    position: int, described: Described, passages: Sequence[Passage], note: str | None
) -> Evidence:
    """Quote the sentence around a position, or as much of it as a reader wants to read."""
    passage, start, end = described.passages.sentence_of(position)
    text = passages[passage].text
    reading = described.passages.readings[described.passages.text[position]]
    at = described.passages.word[position]
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
