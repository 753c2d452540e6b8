"""Step 1 of every UCSC detector: context for the question, as text for a prompt."""

from __future__ import annotations

from dataclasses import dataclass

from spanlab.schema import Item, Passage
from spanlab.trace import QueryStep

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

    What the retriever found for the item; all passages of the item if it has not been asked, as is
    so for the retriever that only gives what is there.
    """
    for retrieval in item.retrievals:
        if retrieval.retriever == retriever:
            return retrieval.passages
    return tuple(range(len(item.passages)))


def context(item: Item, retriever: str, budget: int) -> Context:
    """Show an item's passages as a prompt does: numbered, best first, within a budget.

    Args:
        item: the item with its passages.
        retriever: name of the retriever whose passages are read.
        budget: characters of all passages together; the passage that goes past it is cut between
            words, later ones are left out.

    Returns:
        The text; without passages it says so, and so does the remark.
    """
    indices = tuple(i for i in readable(item, retriever) if item.passages[i].text.strip())
    if not indices:
        return Context(NOTHING_FOUND, (), WITHOUT_CONTEXT)
    blocks: list[str] = []
    left = budget
    for number, index in enumerate(indices, start=1):
        block = _shown(item.passages[index], number)
        if len(block) > left:
            blocks.append(_cut(block, left))
            total = sum(len(item.passages[i].text) for i in indices)
            remark = (
                f"the passages have {total:,} characters and were cut to {budget:,}: "
                f"the model read {number - 1} of {len(indices)} in full and a part of the next"
            )
            return Context("\n\n".join(blocks), indices[:number], remark)
        blocks.append(block)
        left -= len(block)
    return Context("\n\n".join(blocks), indices)


def asked(item: Item, retriever: str) -> tuple[QueryStep, ...]:
    """Return what was asked for an item's context, as steps of a trace."""
    for retrieval in item.retrievals:
        if retrieval.retriever == retriever:
            return tuple(
                QueryStep(text=query, retriever=retriever, passages=retrieval.passages)
                for query in retrieval.queries
            )
    there = tuple(range(len(item.passages)))
    return (QueryStep(text=item.question, retriever=retriever, passages=there),) if there else ()


def _shown(passage: Passage, number: int) -> str:
    about = ", ".join(part for part in (passage.title, passage.date) if part)
    return f"[{number}] {about}\n{passage.text}" if about else f"[{number}] {passage.text}"


def _cut(block: str, length: int) -> str:
    space = block.rfind(" ", 0, length)
    return block[: space if space > 0 else length] + " …"
