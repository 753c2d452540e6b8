"""An answer with the marks of one annotator: as pieces, as HTML and as text."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise
from typing import Final

from spanlab.output.figures import percent
from spanlab.schema import Annotation, Evidence, Item
from spanlab.text.labels import hard_of

MARK_STYLE: Final = """
mark { color: inherit; border-radius: 2px;
  background: rgba(var(--mark), calc(.08 + .42 * var(--p)));
  border-bottom: 2px dotted rgb(var(--mark)); }
mark.hard { border-bottom: calc(1px + 2px * var(--p)) solid rgb(var(--mark)); }
"""


@dataclass(frozen=True)
class MarkedText:
    """A part of the answer that one annotator marks in one way.

    ``prob`` in [0, 1] is the highest probability of the spans over it, 0 without one; ``hard``
    says whether the annotator decided that it is hallucinated; ``labels`` are the spans' labels.
    """

    text: str
    prob: float = 0.0
    hard: bool = False
    labels: tuple[str, ...] = ()


def pieces(answer: str, annotation: Annotation | None) -> list[MarkedText]:
    """Cut an answer where the marks of an annotation (None: no marks) change.

    Returns:
        Pieces whose texts together are the answer; none for an empty answer.
    """
    if annotation is None:
        return [MarkedText(answer)] if answer else []
    decided = hard_of(annotation)
    opening: dict[int, list[int]] = {}
    closing: dict[int, list[int]] = {}
    for index, span in enumerate(annotation.spans):
        opening.setdefault(span.start, []).append(index)
        closing.setdefault(span.end, []).append(index)
    starts = {extent.start for extent in decided}
    ends = {extent.end for extent in decided}
    cuts = sorted({0, len(answer), *opening, *closing, *starts, *ends})
    texts: list[MarkedText] = []
    covering: set[int] = set()
    hard = False
    for start, end in pairwise(cuts):
        covering.difference_update(closing.get(start, ()))
        covering.update(opening.get(start, ()))
        hard = (hard and start not in ends) or start in starts
        spans = [annotation.spans[index] for index in covering]
        prob = max((span.prob for span in spans), default=0.0)
        labels = tuple(sorted({span.label for span in spans if span.label}))
        text = answer[start:end]
        if texts and (texts[-1].prob, texts[-1].hard, texts[-1].labels) == (prob, hard, labels):
            text = texts.pop().text + text
        texts.append(MarkedText(text, prob, hard, labels))
    return texts


def marked_html(answer: str, annotation: Annotation | None) -> str:
    """Return an answer as HTML, its marks as ``mark`` elements; empty for an empty answer."""
    return "".join(map(piece_html, pieces(answer, annotation)))


def fragment_html(answer: str, annotation: Annotation) -> str:
    """Return an answer with its marks as HTML that needs nothing else, inside another page."""
    style = f"<style>@scope {{ {MARK_STYLE} }}</style>"
    return (
        f"<div dir='auto' style='white-space: pre-wrap; --mark: 208, 104, 8'>{style}"
        f"{marked_html(answer, annotation)}</div>"
    )


def marked_text(answer: str, annotation: Annotation) -> str:
    """Return an answer as text, with what is taken for hallucinated in brackets: ``⟦Rome⟧``."""
    stretches = groupby(pieces(answer, annotation), key=lambda piece: piece.hard)
    texts = ((hard, "".join(piece.text for piece in stretch)) for hard, stretch in stretches)
    return "".join(f"⟦{text}⟧" if hard else text for hard, text in texts)


def mark_html(text: str, prob: float, *, hard: bool, label: str = "") -> str:
    """Return a text as one mark: ``--p`` is its probability, the class ``hard`` a decision."""
    title = percent(prob) + (f" · {label}" if label else "")
    css = " class='hard'" if hard else ""
    return f"<mark{css} style='--p:{prob:.3f}' title='{escape(title)}'>{escape(text)}</mark>"


def piece_html(piece: MarkedText) -> str:
    """Return a piece as HTML: escaped, and as a mark where it is marked."""
    if piece.prob <= 0 and not piece.hard:
        return escape(piece.text)
    return mark_html(piece.text, piece.prob, hard=piece.hard, label=", ".join(piece.labels))


_STANCES: Final = {
    "refutes": "Evidence against it",
    "closest": "Closest passage",
    "supports": "Evidence for it",
}
_QUOTE: Final = 170  # characters
_TITLE: Final = 60  # of a passage's title


def quote_html(quote: Evidence, item: Item) -> str:
    """Return a quote from an item's passages as HTML: what it does to a mark, and where it is."""
    title = item.passages[quote.passage].title or f"passage {quote.passage + 1}"
    return (
        f"<blockquote><span class='about'>{_STANCES[quote.stance]}:</span> "
        f"<bdi>{escape(shorten(quote.text, _QUOTE))}</bdi> <span class='about'>"
        f"(<bdi>{escape(shorten(title, _TITLE))}</bdi>)</span></blockquote>"
    )


def shorten(text: str, length: int) -> str:
    """Return a text in one line of so many characters at most; one that is cut ends in "…"."""
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1]}…"
