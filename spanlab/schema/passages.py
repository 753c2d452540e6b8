"""The passages of an item as they grow: found ones are appended, what stands there stays.

Evidence names a passage by its index. Passages are therefore only ever appended, and evidence
that was found beside other passages is renumbered when its item is stored.

An item that does not say how its answer came about has its passages as sources (``process_of``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from spanlab.schema.item import Item, Passage, Retrieval
from spanlab.schema.process import Process, ProcessGraph, ProcessNode
from spanlab.schema.record import Annotation, Claim, Evidence, Span
from spanlab.schema.shared_process import SharedProcess
from spanlab.schema.trace import TraceStep

BY_HAND: Final = "by hand"  # the retriever that passages are noted under which people add
_ANSWER: Final = "answer"  # id of the node that is the answer
_T = TypeVar("_T")


class MergedItem(NamedTuple):
    """An item with more passages; ``moved`` says where each passage of the newer one stands."""

    item: Item
    moved: dict[int, int]


def joined(item: Item, asked: Retrieval, passages: Sequence[Passage]) -> Item:
    """Note with an item what a retriever was asked for it and found.

    Args:
        item: the item so far, without such a retrieval.
        asked: who was asked for what, without passages.
        passages: what was found; those that the item has already are not appended again.

    Returns:
        The item with one more retrieval, also if nothing was found.
    """
    all_of = _Passages(item.passages)
    places = tuple(dict.fromkeys(all_of.add(passage) for passage in passages))
    retrieval = asked.model_copy(update={"passages": places})
    return item.model_copy(
        update={"passages": all_of.all(), "retrievals": (*item.retrievals, retrieval)}
    )


def merged(stored: Item, found: Item) -> MergedItem:
    """Give a stored item what another copy of it has more.

    Args:
        stored: the item as it is stored; its passages keep their indices.
        found: the same item as somebody enriched it, who may not have seen the same passages.

    Returns:
        ``stored`` itself if ``found`` has nothing more, and for every passage of ``found`` its
        index in the merged item.
    """
    all_of = _Passages(stored.passages)
    moved = {index: all_of.add(passage, index) for index, passage in enumerate(found.passages)}
    retrievals = {retrieval.key: retrieval for retrieval in stored.retrievals}
    for retrieval in found.retrievals:
        places = tuple(moved[index] for index in retrieval.passages)
        there = retrievals.get(retrieval.key)
        both = {
            "queries": _union(there.queries if there else (), retrieval.queries),
            "passages": _union(there.passages if there else (), places),
        }
        retrievals[retrieval.key] = retrieval.model_copy(update=both)
    now = {"passages": all_of.all(), "retrievals": tuple(retrievals.values())}
    same = now["passages"] == stored.passages and now["retrievals"] == stored.retrievals
    return MergedItem(stored if same else stored.model_copy(update=now), moved)


def is_same_case(stored: Item, judged: Item) -> bool:
    """Say whether an item is still what was judged: its answer, question and process.

    Passages do not count: others are found meanwhile, and where they were found is not always
    noted. Those that late spans of a trace bring change its process.
    """
    return all(
        getattr(stored, name) == getattr(judged, name) for name in ("answer", "question", "process")
    )


def renumbered(annotation: Annotation, moved: Mapping[int, int]) -> Annotation:
    """Return an annotation whose evidence follows passages that moved.

    Args:
        annotation: what was said beside the passages that ``moved`` starts from.
        moved: for every passage its new index, as ``merged`` returns it.

    Returns:
        The same annotation where nothing moved.

    Raises:
        ValueError: the evidence names a passage that ``moved`` does not have.
    """
    used = _uses(annotation)
    missing = used - moved.keys()
    if missing:
        raise ValueError(f"passage {min(missing)} does not exist, the item has {len(moved)}")
    if all(moved[index] == index for index in used):
        return annotation
    return annotation.model_copy(
        update={
            "spans": tuple(_span(span, moved) for span in annotation.spans),
            "rejected": tuple(_span(span, moved) for span in annotation.rejected),
            "claims": tuple(_claim(claim, moved) for claim in annotation.claims),
            "rejected_claims": tuple(
                _claim(rejected_claim, moved) for rejected_claim in annotation.rejected_claims
            ),
            "trace": tuple(
                step.renumbered(moved) if isinstance(step, TraceStep) else step
                for step in annotation.trace
            ),
        }
    )


def process_of(item: Item) -> ProcessGraph:
    """Return how an item's answer was made: as it says, else from its passages in one step."""
    if isinstance(item.process, SharedProcess):
        return item.process.opened()
    if item.process is not None:
        return item.process
    passages = [
        ProcessNode(id=passage_id(index), text=passage.text)
        for index, passage in enumerate(item.passages)
        if passage.text.strip()
    ]
    sources = tuple(node.id for node in passages)
    return Process(nodes=(*passages, ProcessNode(id=_ANSWER, text=item.answer, sources=sources)))


def passage_id(index: int) -> str:
    """Return the id of the node that a passage is."""
    return f"passage {index + 1}"


class _Passages:
    """Passages in order, and where each stands; the same text from the same page is the same."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._all = list(passages)
        self._place: dict[tuple[str, str | None], int] = {}
        for index, passage in enumerate(passages):
            self._place.setdefault(_key(passage), index)

    def add(self, passage: Passage, at: int | None = None) -> int:
        """Return the index of ``passage``, appending it if it is new; ``at`` is tried first."""
        if at is not None and at < len(self._all) and _key(self._all[at]) == _key(passage):
            return at
        place = self._place.setdefault(_key(passage), len(self._all))
        if place == len(self._all):
            self._all.append(passage)
        return place

    def all(self) -> tuple[Passage, ...]:
        return tuple(self._all)


def _key(passage: Passage) -> tuple[str, str | None]:
    return passage.text, passage.url


def _union(first: tuple[_T, ...], second: tuple[_T, ...]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _uses(annotation: Annotation) -> set[int]:
    """Return the indices of all passages that an annotation names."""
    used = {quote.passage for quote in _evidence(annotation)}
    for step in annotation.trace:
        if isinstance(step, TraceStep):
            used |= step.passages_read()
    return used


def _evidence(annotation: Annotation) -> Iterator[Evidence]:
    for span in (*annotation.spans, *annotation.rejected):
        yield from span.evidence
    for claim in (*annotation.claims, *annotation.rejected_claims):
        yield from claim.evidence
        if claim.source is not None:
            yield from claim.source.evidence


def _span(span: Span, moved: Mapping[int, int]) -> Span:
    return span.model_copy(update={"evidence": _quotes(span.evidence, moved)})


def _claim(claim: Claim, moved: Mapping[int, int]) -> Claim:
    source = None if claim.source is None else _span(claim.source, moved)
    return claim.model_copy(update={"source": source, "evidence": _quotes(claim.evidence, moved)})


def _quotes(quotes: tuple[Evidence, ...], moved: Mapping[int, int]) -> tuple[Evidence, ...]:
    return tuple(quote.model_copy(update={"passage": moved[quote.passage]}) for quote in quotes)
