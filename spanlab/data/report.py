"""A report as one HTML file that can be mailed.

Every text of the data is escaped, links lead to web pages alone, and the file's own policy forbids
browsers to load or run anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import BinaryIO
from urllib.parse import urlsplit

from spanlab.data.report_figures import Overview
from spanlab.data.report_head import head_html
from spanlab.output.figures import counted, percent
from spanlab.output.html_page import page_head
from spanlab.output.marked_text import mark_html, marked_html
from spanlab.output.wording import responses_in_words, unmarked_in_words
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

_OPEN = 3  # annotations of an item that are not folded away
_ORDER = (AnnotatorKind.GOLD, AnnotatorKind.VOTE, AnnotatorKind.DETECTOR, AnnotatorKind.PERSON)


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
    shown = counted(count, "item") if is_whole else f"Preview: the first {counted(count, 'item')}"
    stream.write(f"<p class='about at-end'>{shown}.</p>\n</main></body></html>\n".encode())
    return count


def _head(title: str, overview: Overview | None) -> str:
    legend = " ".join(mark_html(percent(p / 100), p / 100, hard=p > 50) for p in (20, 50, 70, 100))
    explained = (
        f"<p class='about'>{legend} The darker a highlight, the likelier it is hallucinated. "
        "Solid line: marked as hallucinated. Dotted line: suggestion only.</p>\n"
    )
    if overview is None:
        return f"{page_head(title)}{explained}"
    return (
        f"{page_head(title, 'Hallucination report')}"
        f"<div class='figured'>{head_html(overview, explained)}"
        "<p class='about on-paper'>Longer tables and all items are in the HTML file.</p>\n"
        "<h2 class='details'>All items</h2></div>\n"
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
    is_done = annotation.status is Status.DONE
    nothing = f"<p class='about'>{unmarked_in_words(annotation)}</p>" if is_done else ""
    spans = f"<ol>{items}</ol>" if items else nothing
    body = f"{text}\n{spans}{_claims(annotation.claims, item)}"
    if folded:
        return f"<details><summary>{name}{kind}</summary>{body}</details>\n"
    return f"<section><h3 dir='auto'>{name}{kind}</h3>{body}</section>\n"


def _span(span: Span, item: Item) -> str:
    attributes = responses_in_words(span.attributes)
    about = " · ".join(filter(None, (percent(span.prob), span.label, attributes, span.note)))
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
