"""Which pieces of long passages a prompt shows: those that speak of question and answer.

Evidence may stand in any piece of any passage, also in the last one; an answer that it supports
must not look unsupported because the prompt was full before.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from spanlab.retrievers.splitting import split
from spanlab.text import terms

PIECE = 600  # characters of a piece at most: about four sentences
_GAP = "…"
_BETWEEN = len(f"\n{_GAP}\n")


class Piece(NamedTuple):
    """Piece number ``place`` of text number ``text``, both 0-based, as it stands there."""

    text: int
    place: int
    words: str


class PassageSelection(NamedTuple):
    """The pieces chosen, in the order of the texts, and how many there are of each text."""

    chosen: tuple[Piece, ...]
    counts: tuple[int, ...]


@lru_cache(maxsize=8)  # members of an ensemble read the same passages
def select(
    texts: tuple[str, ...], heads: tuple[int, ...], sought: str, room: int
) -> PassageSelection:
    """Choose the pieces that share most with a text; rare words count more than common ones.

    Args:
        texts: the passages.
        heads: characters that are shown before the first piece of each.
        sought: question and answer.
        room: characters that heads and pieces may have together, with the marks between them.

    Returns:
        At least one piece if there is any. Of pieces that share nothing, the first ones.
    """
    split_up = [list(split(text, PIECE)) for text in texts]
    pieces = [
        Piece(text, place, words)
        for text, parts in enumerate(split_up)
        for place, words in enumerate(parts)
    ]
    worth = _worth([piece.words for piece in pieces], sought)
    chosen: list[int] = []
    opened: set[int] = set()
    for number in sorted(range(len(pieces)), key=lambda number: (-worth[number], number)):
        piece = pieces[number]
        cost = len(piece.words) + _BETWEEN
        cost += 0 if piece.text in opened else heads[piece.text] + _BETWEEN
        if cost > room and chosen:
            continue
        room -= cost
        chosen.append(number)
        opened.add(piece.text)
    counts = tuple(len(parts) for parts in split_up)
    return PassageSelection(tuple(pieces[number] for number in sorted(chosen)), counts)


def joined(pieces: Sequence[Piece], count: int) -> str:
    """Show pieces of one text, of ``count`` there are, with a mark wherever some are left out."""
    parts: list[str] = []
    following = 0
    for piece in pieces:
        parts += [_GAP, piece.words] if piece.place > following else [piece.words]
        following = piece.place + 1
    return "\n".join([*parts, _GAP] if following < count else parts)


def ranked(texts: Sequence[str], sought: str) -> list[int]:
    """Return the indices of texts, those that share most with a text first.

    Rare words count more than common ones; texts that share equally much stay in their order.
    """
    worth = _worth(texts, sought)
    return sorted(range(len(texts)), key=lambda index: (-worth[index], index))


def _worth(texts: Sequence[str], sought: str) -> list[float]:
    wanted = frozenset(terms(sought, stems=True))
    shared = [wanted.intersection(terms(text, stems=True)) for text in texts]
    spread = Counter(term for found in shared for term in found)
    weight = {term: math.log1p(len(texts) / count) for term, count in spread.items()}
    return [math.fsum(weight[term] for term in found) for found in shared]
