"""What of the passages a span or claim is to be read beside, as a rule the closest sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spanlab.extents import Extent
from spanlab.mappers import closest_sentence, sentences
from spanlab.schema import Annotation, Evidence, Item, Span, Stance, Verdict

CLOSE = 0.3  # similarity below which a sentence has nothing to do with the span
_STANCES: Final[dict[Verdict | None, Stance]] = {"supported": "supports", "refuted": "refutes"}


def explained(item: Item, annotation: Annotation, read: Sequence[int]) -> Annotation:
    """Put the closest sentence of the passages beside every span and every claim.

    Args:
        item: the item with its passages.
        annotation: what was said of it, without evidence.
        read: indices of the passages that the detector read.

    Returns:
        The annotation with evidence; as it is where no passage was read. A claim's evidence has
        the stance of its verdict, a span's is only the closest.
    """
    if not read:
        return annotation
    claims = tuple(
        claim.model_copy(
            update={"evidence": evidence(item, read, claim.text, stance=stance_of(claim.verdict))}
        )
        for claim in annotation.claims
    )
    spans = _beside(item, annotation.spans, read)
    return annotation.model_copy(update={"spans": spans, "claims": claims})


def _beside(item: Item, spans: Sequence[Span], read: Sequence[int]) -> tuple[Span, ...]:
    parts = sentences(item.answer, item.lang) if spans else ()
    near: dict[str, tuple[Evidence, ...]] = {}  # by sentence: most hold several spans
    beside = []
    for span in spans:
        around = _around(parts, span.start, span.end)
        text = item.answer[around.start : around.end]
        if text not in near:
            near[text] = evidence(item, read, text)
        beside.append(span.model_copy(update={"evidence": near[text]}))
    return tuple(beside)


def _around(parts: Sequence[Extent], start: int, end: int) -> Extent:
    """Return the characters of the sentences (``parts``) that ``[start, end)`` touches."""
    touched = [each for each in parts if each.start < end and start < each.end]
    if not touched:
        return Extent(start, end)
    return Extent(min(start, touched[0].start), max(end, touched[-1].end))


def evidence(
    item: Item, passages: Sequence[int], text: str, *, stance: Stance = "closest"
) -> tuple[Evidence, ...]:
    """Return the sentence of the passages that comes closest to ``text``.

    Args:
        item: the item with its passages.
        passages: indices of those that the detector read.
        text: the sentence of the answer, or the fact, that is in doubt.
        stance: what the sentence does to it.

    Returns:
        One piece of evidence; none if nothing comes close.
    """
    texts = [item.passages[index].text for index in passages]
    found = closest_sentence(texts, text, lang=item.lang)
    if found is None or found.score < CLOSE:
        return ()
    return (quote(item, passages[found.passage], Extent(found.start, found.end), stance),)


def quote(
    item: Item, passage: int, place: Extent, stance: Stance, note: str | None = None
) -> Evidence:
    """Return characters of a passage (its 0-based index) as evidence."""
    start, end = place
    text = item.passages[passage].text[start:end]
    return Evidence(passage=passage, start=start, end=end, text=text, stance=stance, note=note)


def stance_of(verdict: Verdict | None) -> Stance:
    """Return what evidence does to a claim that it led to this verdict on."""
    return _STANCES.get(verdict, "closest")
