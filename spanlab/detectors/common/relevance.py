"""Which sentences of what was observed speak of a claim: they are quoted, and kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from spanlab.extents import Extent
from spanlab.mappers import sentences
from spanlab.text import terms

MOST: Final = 3  # sentences of a passage
_SHARE: Final = 0.5  # of a name's words, that many of which a sentence must hold
_SHORT: Final = 3  # letters of the shortest word that tells one name from another


def relevant(
    text: str, claim: str, entities: Sequence[str], lang: str, most: int = MOST
) -> tuple[Extent, ...]:
    """Return the sentences of a text that speak of a claim.

    They name one of its entities, by half of its words at least, and share another word with the
    claim; without entities they share two words with it.

    Args:
        text: what was observed.
        claim: the claim.
        entities: its subjects and objects.
        lang: BCP 47 tag of the text.
        most: how many sentences at most.

    Returns:
        Those that share most with the claim, rare words counting more, in the order of the text;
        empty if the text has nothing to do with it.
    """
    wanted = _words(claim)
    names = [name for name in map(_words, entities) if name]
    places = sentences(text, lang)
    held = [_words(text[slice(*place)]) for place in places]
    spread = Counter(word for words in held for word in words & wanted)
    worth: dict[int, float] = {}
    for number, words in enumerate(held):
        shared = words & wanted
        named = any(len(words & name) >= _SHARE * len(name) for name in names) or not names
        if named and len(shared) >= min(2, len(wanted)):
            worth[number] = math.fsum(math.log1p(len(held) / spread[each]) for each in shared)
    best = sorted(worth, key=lambda number: (-worth[number], number))[:most]
    return tuple(places[number] for number in sorted(best))


def _words(text: str) -> frozenset[str]:
    found = terms(text)
    return frozenset(word for word in found if len(word) >= _SHORT or not word.isascii()) or (
        frozenset(found)
    )
