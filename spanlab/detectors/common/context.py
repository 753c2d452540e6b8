"""The passages of an item as text for a prompt, numbered and within a budget of characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spanlab.detectors.common.selection import Piece, joined, select
from spanlab.inbound import ABOUT, one_line
from spanlab.schema import Item, Passage, QueryStep, Retrieval

NOTHING_FOUND = "(none: judge by what you know for certain)"
WITHOUT_CONTEXT = "no passages: the model judged the answer by what it knows"


@dataclass(frozen=True)
class Context:
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
    found = _retrieval(item, retriever)
    return tuple(range(len(item.passages))) if found is None else found.passages


def context(item: Item, retriever: str, budget: int) -> Context:
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
        return Context(NOTHING_FOUND, (), WITHOUT_CONTEXT)
    passages = [item.passages[index] for index in indices]
    blocks = [
        passage_shown(each, number, each.text) for number, each in enumerate(passages, start=1)
    ]
    if sum(map(len, blocks)) <= budget:
        return Context("\n\n".join(blocks), indices)
    return _closest(item, indices, budget)


def _closest(item: Item, indices: Sequence[int], budget: int) -> Context:
    """Show the pieces of the passages that come closest to question and answer."""
    passages = [item.passages[index] for index in indices]
    texts = tuple(passage.text for passage in passages)
    heads = tuple(
        len(passage_shown(each, number, "")) for number, each in enumerate(passages, start=1)
    )
    found = select(texts, heads, f"{item.question}\n{item.answer}", budget)
    shown: dict[int, list[Piece]] = {}
    for piece in found.chosen:
        shown.setdefault(piece.text, []).append(piece)
    blocks = [
        passage_shown(passages[text], text + 1, joined(pieces, found.counts[text]))
        for text, pieces in shown.items()
    ]
    remark = (
        f"the passages have {sum(map(len, texts)):,} characters and the prompt takes {budget:,}: "
        f"the model read {len(found.chosen)} of {sum(found.counts)} pieces, those closest to "
        "question and answer"
    )
    return Context("\n\n".join(blocks), tuple(indices[text] for text in shown), remark)


def asked(item: Item, retriever: str) -> tuple[QueryStep, ...]:
    """Return what was asked for an item's context, as steps of a trace."""
    found = _retrieval(item, retriever)
    passages = readable(item, retriever)
    queries = found.queries if found else (item.question,) if passages else ()
    return tuple(QueryStep(text=text, retriever=retriever, passages=passages) for text in queries)


def _retrieval(item: Item, retriever: str) -> Retrieval | None:
    key = Retrieval(retriever=retriever).key
    return next((each for each in item.retrievals if each.key == key), None)


def passage_shown(passage: Passage, number: int, text: str) -> str:
    """Show a passage, or some text of it, as prompts do."""
    about = one_line(", ".join(filter(None, (passage.title, passage.date))), ABOUT)
    return f"[{number}] {about}\n{text}" if about else f"[{number}] {text}"
