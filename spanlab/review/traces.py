"""Suggestions, traces and trails for the editor.

A process may have a hundred thousand nodes: of it come those on the path with what was quoted of
them, and numbers for the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final, Literal

from rapidfuzz.distance import Levenshtein

from spanlab.base.errors import NotFoundError, SpanlabError
from spanlab.schema import (
    Annotation,
    Claim,
    Evidence,
    Interval,
    Item,
    ProcessGraph,
    ProcessNode,
    Span,
    TrailStep,
    Verdict,
    process_of,
)
from spanlab.storage import Store
from spanlab.text.extents import trim_space
from spanlab.text.tokens import tokens


@dataclass(frozen=True)
class Suggestion:
    """A span to decide on; ``likely`` if its annotator takes all of it for hallucinated.

    ``graded`` are the spans of which it was put together, where they are not as probable all over.
    """

    span: Span
    likely: bool
    graded: tuple[Span, ...] = ()


def suggestions(annotation: Annotation, answer: str) -> list[Suggestion]:
    """Return an annotation's spans as suggestions that a reviewer decides on, in text order.

    Each piece of ``hard`` is one suggestion, with the highest probability and all evidence of the
    spans within; where some evidence refutes, spans with only closest passages add nothing.
    White space at the edges of a span is no part of its suggestion.
    """
    decisions = _decisions(annotation, answer)
    trimmed = [replace(suggestion, span=_trim(suggestion.span, answer)) for suggestion in decisions]
    return sorted(trimmed, key=lambda suggestion: (suggestion.span.start, suggestion.span.end))


def _trim(span: Span, answer: str) -> Span:
    start, end = trim_space(answer, span)
    if (start, end) == (span.start, span.end):
        return span
    return span.model_copy(update={"start": start, "end": end, "text": answer[start:end]})


def _decisions(annotation: Annotation, answer: str) -> list[Suggestion]:
    if annotation.hard is None:
        return [Suggestion(span, span.prob > 0.5) for span in annotation.spans]
    pieces = sorted(annotation.hard, key=lambda piece: piece.start)
    inside: list[list[Span]] = [[] for _ in pieces]
    suggested: list[Suggestion] = []
    for span in annotation.spans:
        at = bisect_right(pieces, span.start, key=lambda piece: piece.start) - 1
        if at >= 0 and span.end <= pieces[at].end:
            inside[at].append(span)
        else:
            suggested.append(Suggestion(span, likely=False))
    for piece, spans in zip(pieces, inside, strict=True):
        graded = tuple(spans) if _is_graded(spans, piece) else ()
        suggested.append(Suggestion(_join_spans(spans, piece, answer), likely=True, graded=graded))
    return suggested


def _is_graded(spans: Sequence[Span], piece: Interval) -> bool:
    """Return whether the characters of a piece have more than one probability."""
    covered = sum(span.end - span.start for span in spans)
    return bool(spans) and (
        len({span.prob for span in spans}) > 1 or covered < piece.end - piece.start
    )


def _join_spans(spans: Sequence[Span], piece: Interval, answer: str) -> Span:
    span_of_piece = Span.of(
        answer, piece.start, piece.end, prob=max((span.prob for span in spans), default=1.0)
    )
    refuted = any(quote.stance == "refutes" for span in spans for quote in span.evidence)
    telling = [span for span in spans if not (refuted and _only_closest(span))]
    return span_of_piece.model_copy(
        update={
            "label": next((span.label for span in spans if span.label), None),
            "attributes": next((span.attributes for span in spans if span.attributes), {}),
            "note": "; ".join(dict.fromkeys(span.note for span in telling if span.note)) or None,
            "evidence": tuple(dict.fromkeys(quote for span in telling for quote in span.evidence)),
        }
    )


def _only_closest(span: Span) -> bool:
    return all(quote.stance == "closest" for quote in span.evidence)


Tag = Literal["same", "deleted", "inserted"]


@dataclass(frozen=True)
class TracedAnnotation:
    """An annotation with its trace, and the item that it is of."""

    item: Item
    annotation: Annotation

    def evidence(self) -> tuple[Evidence, ...]:
        """Return all evidence of its spans and claims, each quote once."""
        annotation = self.annotation
        told: tuple[Span | Claim, ...] = (*annotation.spans, *annotation.claims)
        return tuple(dict.fromkeys(quote for part in told for quote in part.evidence))


@dataclass(frozen=True)
class DiffPiece:
    """A part of a revision: characters of the answer that stayed or went, or new ``text``.

    ``start`` and ``end`` are code points of the answer; an insertion stands between the
    characters before and at ``start``, and its ``end`` equals it.
    """

    tag: Tag
    start: int
    end: int
    text: str


def traced_annotation(
    store: Store, dataset: str, item_id: str, annotator: str
) -> TracedAnnotation | None:
    """Return an annotation with its trace; None if it or its item is gone."""
    try:
        record = store.record(dataset, item_id)
    except NotFoundError:
        return None
    annotation = record.by(annotator)
    return None if annotation is None else TracedAnnotation(record.item, annotation)


def revision_pieces(answer: str, revised: str, lang: str) -> tuple[DiffPiece, ...]:
    """Return the words that a revision kept, deleted and inserted.

    Words are those of the language (a BCP 47 tag), so single characters in Chinese. White space
    that both texts have before a changed word counts as kept.

    Returns:
        Pieces in reading order, no two neighbours of one kind: those that stayed or went make up
        the answer, those that stayed or came in the revision. A deletion precedes the insertion
        that replaces it. Empty if both texts are empty.
    """
    return tuple(_join_pieces(_pieces(answer, revised, lang)))


def _pieces(answer: str, revised: str, lang: str) -> Iterator[DiffPiece]:
    """Compare the words, and the white space before each of them."""
    old, new = tokens(answer, lang), tokens(revised, lang)
    words = Levenshtein.opcodes([answer[a:b] for a, b in old], [revised[a:b] for a, b in new])
    # Where the stretch of each word begins, white space before it included.
    olds, news = [0, *(end for _, end in old)], [0, *(end for _, end in new)]
    for change in words:
        a, b, c, d = change.src_start, change.src_end, change.dest_start, change.dest_end
        if change.tag == "equal":
            for old_at, new_at in zip(range(a, b), range(c, d), strict=True):
                word = revised[news[new_at] : news[new_at + 1]]
                yield from _compare_stretches(answer, olds[old_at], olds[old_at + 1], word)
        else:
            yield from _compare_stretches(answer, olds[a], olds[b], revised[news[c] : news[d]])
    yield from _compare_stretches(answer, olds[-1], len(answer), revised[news[-1] :])


def _compare_stretches(answer: str, start: int, end: int, new: str) -> Iterator[DiffPiece]:
    """Compare two stretches that begin with white space; the text around a change is kept."""
    old = answer[start:end]
    ahead = _common_space(old, new)
    word = old.lstrip()
    behind = len(word) if word and word == new.lstrip() else 0
    cut = end - behind
    yield DiffPiece("same", start, start + ahead, old[:ahead])
    yield DiffPiece("deleted", start + ahead, cut, answer[start + ahead : cut])
    yield DiffPiece("inserted", cut, cut, new[ahead : len(new) - behind])
    yield DiffPiece("same", cut, end, answer[cut:end])


def _common_space(old: str, new: str) -> int:
    """Return how many white characters both texts begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    apart = (at for at, (a, b) in pairs if a != b or not a.isspace())
    return next(apart, min(len(old), len(new)))


def _join_pieces(pieces: Iterator[DiffPiece]) -> Iterator[DiffPiece]:
    """Join neighbours of one kind; between two kept pieces, deletions precede insertions."""
    filled = (piece for piece in pieces if piece.text)
    for is_same, group in groupby(filled, key=lambda piece: piece.tag == "same"):
        run = list(group)
        order: tuple[Tag, ...] = ("same",) if is_same else ("deleted", "inserted")
        for tag in order:
            parts = [piece for piece in run if piece.tag == tag]
            if parts:
                text = "".join(piece.text for piece in parts)
                start = run[-1].end if tag == "inserted" else parts[0].start
                yield DiffPiece(tag, start, parts[-1].end if tag != "inserted" else start, text)


_BEGINNING: Final = 400  # characters shown of a node's text that nothing was quoted of
_MOST_READERS: Final = 2000  # nodes of a round that are looked through for those that were read on


@dataclass(frozen=True)
class TrailStage:
    """A stage with the number of its nodes and how many of them were read for this claim."""

    name: str
    nodes: int
    read: int
    error: bool


@dataclass(frozen=True)
class TrailQuote:
    """A sentence of a node that was chosen, and in which round, counted from 1."""

    text: str
    round: int


@dataclass(frozen=True)
class TrailNode:
    """A node on the path; ``sources`` are those of its sources that are on it, too."""

    id: str
    stage: str
    beginning: str
    sources: tuple[str, ...]
    quotes: tuple[TrailQuote, ...]


@dataclass(frozen=True)
class TrailRound:
    """What one round read, how it summed that up, and its verdict."""

    read: int
    verdict: Verdict
    reason: str | None
    summaries: tuple[str, ...]


@dataclass(frozen=True)
class ClaimTrail:
    """The way of the claim with this 0-based number; stages are earliest first."""

    claim: int
    stages: tuple[TrailStage, ...]
    nodes: tuple[TrailNode, ...]
    rounds: tuple[TrailRound, ...]


def trails(item: Item, annotation: Annotation) -> list[ClaimTrail]:
    """Read the trails of claims from an annotation's trace.

    Args:
        item: the item as ``Store.record`` returns it.
        annotation: an annotation of this item.

    Returns:
        A trail for each claim that has one, in order; none whose nodes do not exist any more.
    """
    steps = [step for step in annotation.trace if isinstance(step, TrailStep)]
    claim_trails = []
    for claim, group in groupby(steps, key=lambda step: step.claim):
        if claim is not None and claim < len(annotation.claims):
            try:
                errors = annotation.claims[claim].error_stages
                claim_trails.append(_trail(process_of(item), claim, list(group), errors))
            except (SpanlabError, KeyError):
                continue
    return claim_trails


def _trail(
    process: ProcessGraph, claim: int, steps: Sequence[TrailStep], errors: Sequence[str]
) -> ClaimTrail:
    read = process.read([node for step in steps for node in step.checked])
    path = _path(process, steps)
    sizes, reads = process.sizes(), Counter(process.stage_of(node.id) for node in read)
    return ClaimTrail(
        claim=claim,
        stages=tuple(
            TrailStage(stage, sizes.get(stage, 0), reads[stage], stage in errors)
            for stage in process.stages
        ),
        nodes=tuple(
            TrailNode(
                id=node.id,
                stage=process.stage_of(node.id),
                beginning=node.text[:_BEGINNING],
                sources=tuple(source for source in node.sources if source in path),
                quotes=tuple(
                    TrailQuote(quote.text, number)
                    for number, step in enumerate(steps, start=1)
                    for quote in step.quotes
                    if quote.node == node.id
                ),
            )
            for node in path.values()
        ),
        rounds=tuple(
            TrailRound(len(step.checked), step.verdict, step.reason, step.summaries)
            for step in steps
        ),
    )


def _path(process: ProcessGraph, steps: Sequence[TrailStep]) -> Mapping[str, ProcessNode]:
    """Return the answer, the nodes that gave evidence, and those that led to them."""
    quoted = dict.fromkeys(quote.node for step in steps for quote in step.quotes)
    quoted |= dict.fromkeys(node for step in steps for node in step.judged)
    path = {process.terminal.id: process.terminal}
    path |= {node.id: node for node in process.read(list(quoted))}
    rounds = [(process.terminal.id,), *(step.checked for step in steps)]
    for later, earlier in pairwise(rounds[::-1]):
        reached = {source for node in earlier if node in path for source in path[node].sources}
        missing = {node for node in later if node in path} - reached
        for node in process.read(earlier[:_MOST_READERS]) if missing else ():
            if missing & set(node.sources):
                path[node.id] = node
                missing -= set(node.sources)
    return path
