"""The worst examples of a report: answers with most hallucinated text, and the evidence against."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from spanlab.measure.rate_tally import counted_annotations
from spanlab.output.figures import percent
from spanlab.output.marked_text import MarkedText, piece_html, pieces, quote_html, shorten
from spanlab.schema import HALLUCINATED, Annotation, Evidence, Item, Record
from spanlab.text.labels import hard_of

_EXAMPLES: Final = 5
_QUOTES: Final = 2  # of evidence in an example
_BESIDE: Final = 110  # characters of context that stay on each side of a mark
_TEXT: Final = 420  # characters of an answer
_SHORT: Final = 170  # characters of a question


@dataclass(frozen=True)
class WorstExample:
    """An answer with hallucinations: whose marks are shown, and quotes from its passages.

    ``share`` in (0, 1] is the share of the answer's characters that is hallucinated.
    """

    item: Item
    annotation: Annotation
    share: float
    evidence: tuple[Evidence, ...]

    @property
    def is_refuted(self) -> bool:
        """Whether a quote speaks against what is marked; one that is only closest does not."""
        return any(quote.stance == "refutes" for quote in self.evidence)


class WorstExamples:
    """Finds the worst answers, one record at a time.

    Answers with evidence against them come first, then those with the larger hallucinated share.

    Args:
        annotators: whose labels count, as ``counted_annotations`` has it.
    """

    def __init__(self, annotators: Sequence[str]) -> None:
        self._annotators = annotators
        self._worst: list[WorstExample] = []

    def add(self, record: Record) -> None:
        """Take an answer into account."""
        counted = counted_annotations(record, self._annotators)
        if not counted or not record.item.answer:
            return
        annotation = max(counted, key=_n_marked)
        if n_marked := _n_marked(annotation):
            share = n_marked / len(record.item.answer)
            evidence = tuple(_evidence(record, annotation))[:_QUOTES]
            self._worst.append(WorstExample(record.item, annotation, share, evidence))
            self._worst.sort(key=lambda example: (not example.is_refuted, -example.share))
            del self._worst[_EXAMPLES:]

    def result(self) -> tuple[WorstExample, ...]:
        """Return up to five examples, the worst first."""
        return tuple(self._worst)


def _n_marked(annotation: Annotation) -> int:
    return sum(end - start for start, end in hard_of(annotation))


def _evidence(record: Record, annotation: Annotation) -> Iterator[Evidence]:
    """Yield the quotes on what is marked, those against it first, each passage once."""
    quotes = sorted(_quotes(record, annotation), key=lambda quote: quote.stance != "refutes")
    passages = set[int]()
    for quote in quotes:
        if quote.stance != "supports" and quote.passage not in passages:
            passages.add(quote.passage)
            yield quote


def _quotes(record: Record, annotation: Annotation) -> Iterable[Evidence]:
    marked = hard_of(annotation)  # sorted, with gaps between
    ends = [extent.end for extent in marked]
    for source in (annotation, *(a for a in record.finished if a is not annotation)):
        for span in source.spans:
            at = bisect_right(ends, span.start)  # the first that ends behind the span's start
            if at < len(marked) and marked[at].start < span.end:
                yield from span.evidence
        for claim in source.claims:
            if claim.verdict in HALLUCINATED:
                yield from claim.evidence


def examples_html(examples: Sequence[WorstExample]) -> str:
    """Return the examples as HTML; every text of the data is escaped, "" where there are none."""
    if not examples:
        return ""
    shown = "".join(map(_example_html, examples))
    title = "The worst example" if len(examples) == 1 else f"The {len(examples)} worst examples"
    return (
        f"<section class='examples'><h2>{title}</h2>\n<p class='about'>Answers with evidence "
        "against them first, then by the share of their text that is hallucinated.</p>\n"
        f"<ol>{shown}</ol></section>\n"
    )


def _example_html(example: WorstExample) -> str:
    item = example.item
    text = "".join(map(piece_html, _excerpt(pieces(item.answer, example.annotation))))
    quotes = "".join(quote_html(quote, item) for quote in example.evidence)
    return (
        f"<li><p class='question' dir='auto' lang='{escape(item.lang)}'>"
        f"{escape(shorten(item.question, _SHORT) or item.id)}</p>"
        f"<p class='answer' dir='auto' lang='{escape(item.lang)}'>{text}</p>{quotes}"
        f"<p class='about'>{escape(item.id)} · {percent(example.share)} of the answer · marked by "
        f"{escape(example.annotation.annotator)}"
        f"{'' if quotes else ' · no evidence was quoted'}</p></li>\n"
    )


def _excerpt(parts: Sequence[MarkedText]) -> Iterator[MarkedText]:
    """Yield the marks with some text around each, up to a length in all."""
    left = _TEXT
    for at, part in enumerate(parts):
        text = part.text
        if not part.prob and not part.hard:
            text = _shorten_between(text, first=at == 0, last=at == len(parts) - 1)
        if len(text) > left:
            yield MarkedText(f"{text[:left]}…", part.prob, part.hard, part.labels)
            return
        left -= len(text)
        yield MarkedText(text, part.prob, part.hard, part.labels)


def _shorten_between(text: str, *, first: bool, last: bool) -> str:
    """Cut out the middle of a text between two marks, or what is far from the only one."""
    before, after = "" if first else text[:_BESIDE], "" if last else text[-_BESIDE:]
    is_short = len(text) <= len(before) + len(after)
    return text if is_short else f"{before} … {after}".strip()
