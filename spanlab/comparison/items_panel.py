"""One item with its marks, and lists of items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from html import escape

import streamlit as st

from spanlab.output.figures import counted, figure, percent
from spanlab.output.marked_text import mark_html, marked_html
from spanlab.output.wording import responses_in_words, unmarked_in_words
from spanlab.schema import Annotation, DatasetSummary, Item, Passage, QueueCursor, Record, Status
from spanlab.scoring.annotators import Order, list_items
from spanlab.scoring.spans import ItemScore
from spanlab.ui.common import page_buttons
from spanlab.ui.counts import kind_in_words
from spanlab.ui.session import seen_store
from spanlab.ui.tables import text_grid

_LISTED = 100  # spans named one by one under an answer


# A mark is readable without its colour: the line under it is dotted where the annotator only
# suggests, and solid, thicker with the probability, where it takes the text for hallucinated.
_STYLE = """<style>
.marked { --mark: 208, 104, 8; display: grid; gap: .9rem; margin-bottom: .5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(21rem, 100%), 1fr)); }
.marked article { border: 1px solid rgba(128, 132, 149, .35); border-radius: .5rem;
  padding: .8rem 1rem; min-width: 0; }
.marked article h2 { font-size: 1rem; font-weight: 600; margin: 0; padding: 0;
  overflow-wrap: anywhere; }
.marked .about { font-size: .8125rem; opacity: .75; margin: 0 0 .6rem; }
.marked .answer { white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.75; margin: 0;
  max-height: 26rem; overflow-y: auto; }
.marked mark, .legend mark { color: inherit; border-radius: 2px; padding: 1px 0;
  background: rgba(var(--mark), calc(.08 + .42 * var(--p)));
  border-bottom: 2px dotted rgb(var(--mark)); }
.marked mark.hard, .legend mark.hard {
  border-bottom: calc(1px + 2px * var(--p)) solid rgb(var(--mark)); }
.marked details { font-size: .8125rem; margin-top: .6rem; }
.marked summary { cursor: pointer; opacity: .75; }
.marked ul { margin: .3rem 0 0; padding-left: 1.1rem; }
.marked li { overflow-wrap: anywhere; }
.marked .none { font-style: italic; opacity: .75; margin: 0; }
.legend { --mark: 208, 104, 8; font-size: .8125rem; line-height: 2; margin: 0 0 .5rem; }
.legend mark { padding: 1px .35rem; margin-right: .2rem; }
.question, .passage { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
.question { font-weight: 600; font-size: 1.05rem; max-height: 9rem; overflow-y: auto; }
</style>"""


def legend_html() -> str:
    """Return what the marks mean."""
    samples = "".join(f"{mark_html(str(p), p / 100, hard=p > 50)} " for p in (20, 50, 70, 100))
    return (
        f"{_STYLE}<p class='legend'>{samples} percent probability; the darker, the likelier. "
        "Solid line: marked as hallucinated. Dotted line: suggestion only.</p>"
    )


def item_html(record: Record, shown: Iterable[str], scores: Mapping[str, ItemScore]) -> str:
    """Return the answer once per annotator, each with that annotator's marks.

    Args:
        record: the item with everything said of it.
        shown: the annotators to show, in order; one without an annotation is shown as such.
        scores: against the reference, for those who have one.
    """
    cards = [_card_html(record, name, scores.get(name)) for name in shown]
    return f"{_STYLE}<div class='marked'>{''.join(cards)}</div>"


def question_html(item: Item) -> str:
    """Return the question that the item answers."""
    return (
        f"{_STYLE}<p class='question' dir='auto' lang='{escape(item.lang)}'>"
        f"{escape(item.question)}</p>"
    )


def passage_html(passage: Passage, lang: str) -> str:
    """Return a passage with its title and date, in the language of its item."""
    about = " · ".join(filter(None, (passage.title, passage.date)))
    head = f"<p class='about' dir='auto'>{escape(about)}</p>" if about else ""
    return (
        f"{_STYLE}{head}<p class='passage' dir='auto' lang='{escape(lang)}'>"
        f"{escape(passage.text)}</p>"
    )


def _card_html(record: Record, name: str, score: ItemScore | None) -> str:
    annotation = record.by(name)
    about = [] if annotation is None else [kind_in_words(annotation.kind)]
    if score is not None:
        about += [
            f"IoU {figure(score.iou, 2)}",
            f"Corr {figure(score.corr, 2)}",
            f"F1 {figure(score.f1, 2)}",
        ]
    return (
        f"<article><h2>{escape(name)}</h2><p class='about'>{' · '.join(about) or '—'}</p>"
        f"{_body_html(record.item, annotation)}</article>"
    )


def _body_html(item: Item, annotation: Annotation | None) -> str:
    if annotation is None or (annotation.status is Status.NOT_ANNOTATED and not annotation.spans):
        return "<p class='none'>Not annotated yet.</p>"
    if annotation.status is Status.FAILED:
        return f"<p class='none'>Failed: {escape(annotation.note or 'no reason was given')}</p>"
    if annotation.status is Status.SKIPPED:
        return "<p class='none'>Skipped.</p>"
    draft = ""
    if annotation.status is Status.NOT_ANNOTATED:
        draft = "<p class='none'>Not finished: a draft.</p>"
    answer = marked_html(item.answer, annotation)
    text = (
        f"<p class='answer' dir='auto' lang='{escape(item.lang)}' tabindex='0'>{answer}</p>"
        if answer
        else "<p class='none'>The answer is empty.</p>"
    )
    responses = escape(responses_in_words(annotation.responses))
    responses_html = f"<p class='about' dir='auto'>{responses}</p>" if responses else ""
    return f"{draft}{text}{responses_html}{_spans_html(annotation)}"


def _spans_html(annotation: Annotation) -> str:
    if not annotation.spans:
        return f"<p class='none'>{unmarked_in_words(annotation)}</p>"
    rows = []
    for span in annotation.spans[:_LISTED]:
        responses = responses_in_words(span.attributes)
        details = " · ".join(filter(None, (percent(span.prob), span.label, responses, span.note)))
        quote = span.text if len(span.text) <= 80 else f"{span.text[:79]}…"
        rows.append(f"<li><q dir='auto'>{escape(quote)}</q> {escape(details)}</li>")
    n_more = len(annotation.spans) - _LISTED
    more_html = f"<li>and {n_more:,} more</li>" if n_more > 0 else ""
    count = counted(len(annotation.spans), "span")
    return f"<details><summary>{count}</summary><ul>{''.join(rows)}{more_html}</ul></details>"


ITEM = "item"  # the query parameter of deep links
_PLACE = "spanlab.item-list-place"
_IDS = "spanlab.item-list-ids"
_TABLE = "spanlab.item-list"


def open_item(item_id: str) -> None:
    """Make the item the one that the URL names."""
    st.query_params[ITEM] = item_id


def item_list(summary: DatasetSummary, order: Order, lang: str | None) -> None:
    """Draw a page of items; choosing a row opens its item.

    Args:
        summary: of an existing dataset.
        order: "disagreement" or "import".
        lang: only items of this language; None for all.
    """
    listing = (summary.name, order, lang)
    shown_listing, after, before = st.session_state.get(_PLACE, (listing, None, None))
    if shown_listing != listing:
        after = before = None
    shown = list_items(
        seen_store(summary), summary.name, order=order, lang=lang, after=after, before=before
    )
    st.session_state[_IDS] = [row.item_id for row in shown.rows]
    st.dataframe(
        text_grid(
            [
                {
                    "Disagreement": None if (part := row.disagreement) is None else 100 * part,
                    "Lang": row.lang,
                    "Answer": row.answer,
                    "Item": row.item_id,
                }
                for row in shown.rows
            ]
        ),
        hide_index=True,
        height=425,
        column_config={
            "Disagreement": st.column_config.ProgressColumn(
                min_value=0.0,
                max_value=100.0,
                format="%.1f %%",
                width=110,
                help="How much people and detectors disagree: 100 % minus their mean pairwise IoU.",
            ),
            "Lang": st.column_config.TextColumn(width=50),
        },
        on_select=_open_selected,
        selection_mode="single-row",
        key=_TABLE,
        alt="Items; choose one to see it under all annotators",
    )

    def turned(after: QueueCursor | None, before: QueueCursor | None) -> Callable[[], None] | None:
        place = (listing, after, before)
        return partial(st.session_state.update, {_PLACE: place}) if after or before else None

    page_buttons(turned(None, shown.previous), turned(shown.next, None), key="compare-items")


def _open_selected() -> None:
    rows = st.session_state[_TABLE].selection.rows
    if rows:
        open_item(st.session_state[_IDS][rows[0]])
