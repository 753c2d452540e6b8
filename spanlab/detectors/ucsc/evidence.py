"""What of the passages a span is to be read beside: the sentence that comes closest."""

from __future__ import annotations

from collections.abc import Sequence

from spanlab.labels import Extent
from spanlab.mappers import closest_sentence
from spanlab.schema import Evidence, Item, Stance

CLOSE = 0.3  # similarity below which a sentence has nothing to do with the span


def around_of(parts: Sequence[Extent], start: int, end: int) -> Extent:
    """Return the characters of the sentences (``parts``) that ``[start, end)`` touches."""
    touched = [each for each in parts if each.start < end and start < each.end]
    if not touched:
        return Extent(start, end)
    return Extent(min(start, touched[0].start), max(end, touched[-1].end))


def evidence(
    item: Item,
    passages: Sequence[int],
    text: str,
    *,
    stance: Stance = "closest",
    note: str | None = None,
) -> tuple[Evidence, ...]:
    """Return the sentence of the passages that comes closest to ``text``.

    Args:
        item: the item with its passages.
        passages: indices of those that the detector read.
        text: the sentence of the answer, or the fact, that is in doubt.
        stance: what the sentence does to it.
        note: a remark on it.

    Returns:
        One piece of evidence; none if nothing comes close.
    """
    texts = [item.passages[index].text for index in passages]
    found = closest_sentence(texts, text, lang=item.lang)
    if found is None or found.score < CLOSE:
        return ()
    quoted = texts[found.passage][found.start : found.end]
    return (
        Evidence(
            start=found.start,
            end=found.end,
            text=quoted,
            passage=passages[found.passage],
            stance=stance,
            note=note,
        ),
    )
