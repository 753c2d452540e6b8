"""Whether passages support a stretch of an answer, as a judge of whole answers says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spanlab.schema import Annotation, Evidence, Item, Span
from spanlab.text.citations import ReadCitations
from spanlab.text.extents import Extent
from spanlab.text.labels import hard_of

# Chosen on the half "tune" of data/citations.jsonl: 5 of 7 stretches without a number of another
# passage are then marked rightly, at .45 6 of 10.
_LIKELY: Final = 0.5


@dataclass(frozen=True)
class Judgement:
    """What a judge marks in a stretch, in offsets of the answer; evidence is the item's.

    ``marks`` are the spans that it takes for wrong; what only doubts a stretch is no verdict on it.
    """

    marks: tuple[Span, ...]

    @property
    def supported(self) -> bool:
        """Whether nothing is marked that is more likely wrong than right."""
        return all(span.prob < _LIKELY for span in self.marks)


Support = Callable[[Extent, Sequence[int]], Judgement]  # of a stretch by passages


def restricted(
    judge: Callable[[Item], Annotation], item: Item, citations: ReadCitations
) -> Support:
    """Return a judge of stretches of one answer by some of its passages.

    The judge reads the whole sentence, without markers, and those passages alone: not the question,
    as a question supports nothing. Of what it marks counts what lies in the stretch.
    """

    def support(stretch: Extent, passages: Sequence[int]) -> Judgement:
        begin, end = sentence_around(stretch, citations)
        part = Item(
            id=item.id,
            lang=item.lang,
            answer=citations.plain[begin:end],
            passages=tuple(item.passages[n] for n in passages),
        )
        found = judge(part)
        hard = hard_of(found)
        spans = (
            _moved(span, begin, item.answer, passages)
            for span in found.spans
            if any(h.start < span.end and span.start < h.end for h in hard)
        )
        inside = [s for s in spans if stretch.start <= s.start and s.end <= stretch.end]
        return Judgement(tuple(_joined(item.answer, inside)))

    return support


def sentence_around(stretch: Extent, citations: ReadCitations) -> Extent:
    """Return the sentence, or sentences, that a stretch of an answer lies in."""
    around = [s for s in citations.sentences if s.start < stretch.end and stretch.start < s.end]
    begin = min([stretch.start, *(s.start for s in around)])
    return Extent(begin, max([stretch.end, *(s.end for s in around)]))


def _joined(answer: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Yield spans in order; those with only spaces between become one, the likeliest of them."""
    group: list[Span] = []
    for span in (*sorted(spans, key=lambda one: one.start), *([None] if spans else [])):
        if span is not None and (not group or not answer[group[-1].end : span.start].strip()):
            group.append(span)
            continue
        start, end = group[0].start, group[-1].end
        while answer[start].isspace():
            start += 1
        while answer[end - 1].isspace():
            end -= 1
        likeliest = max(group, key=lambda one: one.prob)
        yield likeliest.model_copy(update={"start": start, "end": end, "text": answer[start:end]})
        group = [span] if span is not None else []


def _moved(span: Span, by: int, answer: str, passages: Sequence[int]) -> Span:
    start, end = span.start + by, span.end + by
    evidence = tuple(
        Evidence.model_validate({**dict(quote), "passage": passages[quote.passage]})
        for quote in span.evidence
    )
    return span.model_copy(
        update={"start": start, "end": end, "text": answer[start:end], "evidence": evidence}
    )
