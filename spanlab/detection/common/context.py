"""Passages in a prompt: which of them, numbered and bounded.

Evidence may stand in any piece of any passage, also in the last one; an answer that it supports
must not look unsupported because the prompt was full before.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from spanlab.base.inbound import ABOUT, one_line
from spanlab.schema import Item, Passage, QueryStep, Retrieval
from spanlab.search.corpus import split
from spanlab.text.terms import terms

NOTHING_FOUND = "(none: judge by what you know for certain)"
WITHOUT_CONTEXT = "no passages: the model judged the answer by what it knows"


@dataclass(frozen=True)
class PromptContext:
    """The passages that a detector reads.

    ``text`` is how the prompt shows them, the same for every detector, so that a provider's cache
    of the prompt's beginning serves them all. ``passages`` are their 0-based indices in the item.
    ``remark`` says what was left out or missing; None if nothing was.
    """

    text: str
    passages: tuple[int, ...]
    remark: str | None = None


def readable(item: Item, retriever: str) -> tuple[int, ...]:
    """Return the indices of the passages that a detector with this retriever reads.

    What the retriever found for the item itself, not for queries of other detectors; all passages
    if it has not been asked, as is so for the retriever that only gives what is there.
    """
    retrieval = _retrieval(item, retriever)
    return tuple(range(len(item.passages))) if retrieval is None else retrieval.passages


def context(item: Item, retriever: str, budget: int) -> PromptContext:
    """Show an item's passages as a prompt does: numbered, best first, within a budget.

    Args:
        item: the item with its passages.
        retriever: name of the retriever whose passages are read.
        budget: characters of all passages together. Where they have more, the pieces of them are
            shown that come closest to question and answer, in their order.

    Returns:
        The text; without passages it says so, and so does the remark.
    """
    indices = tuple(i for i in readable(item, retriever) if item.passages[i].text.strip())
    if not indices:
        return PromptContext(NOTHING_FOUND, (), WITHOUT_CONTEXT)
    passages = [item.passages[index] for index in indices]
    blocks = [
        passage_shown(passage, number, passage.text)
        for number, passage in enumerate(passages, start=1)
    ]
    if sum(map(len, blocks)) <= budget:
        return PromptContext("\n\n".join(blocks), indices)
    return _closest(item, indices, budget)


def _closest(item: Item, indices: Sequence[int], budget: int) -> PromptContext:
    """Show the pieces of the passages that come closest to question and answer."""
    passages = [item.passages[index] for index in indices]
    texts = tuple(passage.text for passage in passages)
    heads = tuple(
        len(passage_shown(passage, number, "")) for number, passage in enumerate(passages, start=1)
    )
    choice = select(texts, heads, f"{item.question}\n{item.answer}", budget)
    shown: dict[int, list[PassagePiece]] = {}
    for piece in choice.chosen:
        shown.setdefault(piece.text, []).append(piece)
    blocks = [
        passage_shown(passages[text], text + 1, joined(pieces, choice.counts[text]))
        for text, pieces in shown.items()
    ]
    remark = (
        f"the passages have {sum(map(len, texts)):,} characters and the prompt takes {budget:,}: "
        f"the model read {len(choice.chosen)} of {sum(choice.counts)} pieces, those closest to "
        "question and answer"
    )
    return PromptContext("\n\n".join(blocks), tuple(indices[text] for text in shown), remark)


def query_steps(item: Item, retriever: str) -> tuple[QueryStep, ...]:
    """Return what was asked for an item's context, as steps of a trace."""
    retrieval = _retrieval(item, retriever)
    passages = readable(item, retriever)
    queries = retrieval.queries if retrieval else (item.question,) if passages else ()
    return tuple(QueryStep(text=text, retriever=retriever, passages=passages) for text in queries)


def _retrieval(item: Item, retriever: str) -> Retrieval | None:
    key = Retrieval(retriever=retriever).key
    return next((retrieval for retrieval in item.retrievals if retrieval.key == key), None)


def passage_shown(passage: Passage, number: int, text: str) -> str:
    """Show a passage, or some text of it, as prompts do."""
    about = one_line(", ".join(filter(None, (passage.title, passage.date))), ABOUT)
    return f"[{number}] {about}\n{text}" if about else f"[{number}] {text}"


PIECE = 600  # characters of a piece at most: about four sentences
_GAP = "…"
_BETWEEN = len(f"\n{_GAP}\n")


class PassagePiece(NamedTuple):
    """Piece number ``place`` of text number ``text``, both 0-based, unchanged."""

    text: int
    place: int
    words: str


class PassageSelection(NamedTuple):
    """The pieces chosen, in the order of the texts, and how many there are of each text."""

    chosen: tuple[PassagePiece, ...]
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
        PassagePiece(text, place, words)
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


def joined(pieces: Sequence[PassagePiece], count: int) -> str:
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
    spread = Counter(term for matched in shared for term in matched)
    weight = {term: math.log1p(len(texts) / count) for term, count in spread.items()}
    return [math.fsum(weight[term] for term in matched) for matched in shared]
