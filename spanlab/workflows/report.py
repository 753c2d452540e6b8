"""A report as one HTML file that can be mailed.

Every text of the data is escaped, links lead to web pages alone, and the file's own policy forbids
browsers to load or run anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import BinaryIO
from urllib.parse import urlsplit

from spanlab.figures import counted
from spanlab.labels import hard_of
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Evidence,
    Item,
    Passage,
    Record,
    Span,
    Status,
)
from spanlab.workflows.report_head import Overview, head_html
from spanlab.workflows.wording import responses_in_words

_OPEN = 3  # annotations of an item that are not folded away
_ORDER = (AnnotatorKind.GOLD, AnnotatorKind.VOTE, AnnotatorKind.DETECTOR, AnnotatorKind.PERSON)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_MARKS = """
mark { color: inherit; border-radius: 2px;
  background: rgba(var(--mark), calc(.08 + .42 * var(--p)));
  border-bottom: 2px dotted rgb(var(--mark)); }
mark.hard { border-bottom: calc(1px + 2px * var(--p)) solid rgb(var(--mark)); }
"""
_STYLE = """
:root { color-scheme: light dark; --mark: 208, 104, 8; --line: rgba(128, 132, 149, .4); }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem; }
h1, h2, h3, td, th, p, li, summary, dd { overflow-wrap: anywhere; }
article { border-top: 2px solid var(--line); padding: .5rem 0 1.5rem; content-visibility: auto;
  contain-intrinsic-size: auto 30rem; }
h2 { font-size: 1.1rem; } h3 { font-size: 1rem; margin: 1rem 0 .2rem; }
.question { font-weight: 600; white-space: pre-wrap; }
.answer, .passage { white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0; }
.about { font-size: .875rem; margin: .2rem 0; }
table { border-collapse: collapse; margin: 1.5rem 0; display: block; overflow-x: auto; }
caption { text-align: start; font-weight: 600; white-space: nowrap; }
td { font-variant-numeric: tabular-nums; }
td, th { text-align: start; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line); }
summary { cursor: pointer; }
blockquote { margin: .2rem 0 .4rem; padding-inline-start: .7rem;
  border-inline-start: 3px solid var(--line); }
"""


def write_report(
    records: Iterable[Record],
    stream: BinaryIO,
    title: str,
    overview: Overview | None = None,
    *,
    limit: int | None = None,
) -> int:
    """Write records as a report.

    Args:
        records: taken one at a time.
        stream: where the HTML goes, as UTF-8.
        title: what it is headed with.
        overview: the figures of all records; None leaves them out.
        limit: bytes of the items after which no more are written, such as for a preview; None
            for all.

    Returns:
        The number of records written.
    """
    stream.write(_head(title, overview).encode("utf-8", "replace"))
    count = written = 0
    is_whole = True
    for record in records:
        article = _article(record).encode("utf-8", "replace")
        written += len(article)
        if limit is not None and written > limit:
            is_whole = False
            break
        stream.write(article)
        count += 1
    shown = counted(count, "item") if is_whole else f"The beginning: {counted(count, 'item')}"
    stream.write(f"<p class='about'>{shown}.</p>\n</main></body></html>\n".encode())
    return count


def page_head(title: str) -> str:
    """Return the beginning of an HTML page, up to its title; its policy forbids scripts."""
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{_MARKS}</style></head>\n"
        f"<body><main><h1 dir='auto'>{escape(title)}</h1>\n"
    )


def _head(title: str, overview: Overview | None) -> str:
    legend = " ".join(mark_html(f"{p}%", p / 100, hard=p > 50) for p in (20, 50, 70, 100))
    return (
        f"{page_head(title)}"
        f"{head_html(overview) if overview else ''}<p>{legend} The darker a highlight, the "
        "likelier it is hallucinated. Solid line: taken for hallucinated. Dotted line: only "
        "suggested.</p>\n"
    )


def _article(record: Record) -> str:
    item = record.item
    annotations = sorted(record.annotations, key=lambda annotation: _ORDER.index(annotation.kind))
    shown = "".join(
        _annotation(annotation, item, folded=number >= _OPEN)
        for number, annotation in enumerate(annotations)
    )
    if not annotations:
        shown = f"<p class='answer' dir='auto' {_lang(item)}>{escape(item.answer)}</p>"
    return (
        f"<article><h2 dir='auto'>{escape(item.id)}</h2>"
        f"<p class='question' dir='auto' {_lang(item)}>{escape(item.question)}</p>\n"
        f"{shown}{_passages(item)}</article>\n"
    )


def _annotation(annotation: Annotation, item: Item, *, folded: bool) -> str:
    name = escape(annotation.annotator)
    kind = "" if annotation.annotator == annotation.kind else f" ({annotation.kind})"
    text = f"<p class='answer' dir='auto' {_lang(item)}>{marked_html(item.answer, annotation)}</p>"
    if annotation.status is not Status.DONE:
        state = annotation.status.value.replace("-", " ")
        text = f"<p class='about'>{state}: {escape(annotation.note or 'no remark')}</p>" + (
            text if annotation.spans else ""
        )
    elif annotation.note:
        text += f"<p class='about' dir='auto'>{escape(annotation.note)}</p>"
    if responses := responses_in_words(annotation.responses):
        text += f"<p class='about' dir='auto'>{escape(responses)}</p>"
    items = "".join(_span(span, item) for span in annotation.spans)
    spans = f"<ol>{items}</ol>" if items else "<p class='about'>No spans.</p>"
    body = f"{text}\n{spans}{_claims(annotation.claims, item)}"
    if folded:
        return f"<details><summary>{name}{kind}</summary>{body}</details>\n"
    return f"<section><h3 dir='auto'>{name}{kind}</h3>{body}</section>\n"


def _span(span: Span, item: Item) -> str:
    attributes = responses_in_words(span.attributes)
    about = " · ".join(filter(None, (f"{span.prob:.0%}", span.label, attributes, span.note)))
    quotes = "".join(_quote(quote, item) for quote in span.evidence)
    return f"<li><q dir='auto'>{escape(span.text)}</q> {escape(about)}{quotes}</li>\n"


def _claims(claims: Sequence[Claim], item: Item) -> str:
    if not claims:
        return ""
    rows = "".join(_claim(claim, item) for claim in claims)
    return f"<p class='about'>{counted(len(claims), 'claim')}:</p><ul>{rows}</ul>"


def _claim(claim: Claim, item: Item) -> str:
    quotes = "".join(_quote(quote, item) for quote in claim.evidence)
    verdict, note = escape(claim.verdict or "no verdict"), escape(claim.note or "")
    return f"<li>{verdict}: <span dir='auto'>{escape(claim.text)}</span> {note}{quotes}</li>\n"


def _quote(quote: Evidence, item: Item) -> str:
    passage = item.passages[quote.passage]
    stance = {"supports": "Supports it", "refutes": "Refutes it", "closest": "Closest passage"}
    return (
        f"<blockquote dir='auto'>{escape(quote.text)}<br><span class='about'>"
        f"{stance[quote.stance]}: {_source(passage, quote.passage)} {escape(quote.note or '')}"
        "</span></blockquote>"
    )


def _passages(item: Item) -> str:
    if not item.passages:
        return "<p class='about'>This item has no passages.</p>"
    texts = "".join(
        f"<h3 dir='auto'>{_source(passage, number)}</h3>"
        f"<p class='passage' dir='auto' {_lang(item)}>{escape(passage.text)}</p>\n"
        for number, passage in enumerate(item.passages)
    )
    count = counted(len(item.passages), "passage")
    return f"<details><summary>{count}</summary>{texts}</details>"


def _source(passage: Passage, number: int) -> str:
    name = escape(passage.title or f"passage {number + 1}")
    if passage.url and _is_web(passage.url):
        name = f"<a href='{escape(passage.url)}' rel='noopener noreferrer'>{name}</a>"
    elif passage.url:
        name = f"{name} ({escape(passage.url)})"
    return f"{name}{escape(f', {passage.date}') if passage.date else ''}"


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)


def _lang(item: Item) -> str:
    return f"lang='{escape(item.lang)}'"


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
    return "".join(map(_piece, pieces(answer, annotation)))


def fragment_html(answer: str, annotation: Annotation) -> str:
    """Return an answer with its marks as HTML that stands for itself, inside another page."""
    style = f"<style>@scope {{ {_MARKS} }}</style>"
    return (
        f"<div dir='auto' style='white-space: pre-wrap; --mark: 208, 104, 8'>{style}"
        f"{marked_html(answer, annotation)}</div>"
    )


def marked_text(answer: str, annotation: Annotation) -> str:
    """Return an answer as text, with what is taken for hallucinated in brackets: ``⟦Rome⟧``."""
    return "".join(
        f"⟦{piece.text}⟧" if piece.hard else piece.text for piece in pieces(answer, annotation)
    )


def mark_html(text: str, prob: float, *, hard: bool, label: str = "") -> str:
    """Return a text as one mark: ``--p`` is its probability, the class ``hard`` a decision."""
    title = f"{prob:.0%}" + (f" · {label}" if label else "")
    css = " class='hard'" if hard else ""
    return f"<mark{css} style='--p:{prob:.3f}' title='{escape(title)}'>{escape(text)}</mark>"


def _piece(piece: MarkedText) -> str:
    if piece.prob <= 0 and not piece.hard:
        return escape(piece.text)
    return mark_html(piece.text, piece.prob, hard=piece.hard, label=", ".join(piece.labels))
