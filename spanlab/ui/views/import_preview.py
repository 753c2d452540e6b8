"""What an import would make: items as they would be, and samples of columns."""

from __future__ import annotations

from html import escape

import streamlit as st

from spanlab.results import counted
from spanlab.schema import Item
from spanlab.ui.common import plain
from spanlab.ui.counts import kind_beside
from spanlab.ui.views.import_form import FORMAT_NAMES
from spanlab.workflows.import_preview import ImportPreview

_LONGEST = 240  # characters of a text that are shown


_STYLE = """<style>
.import-preview { border-collapse: collapse; width: 100%; font-size: .875rem;
  table-layout: fixed; }
.import-preview th, .import-preview td { text-align: start; vertical-align: top;
  padding: .3rem .6rem .3rem 0; border-bottom: 1px solid rgba(128, 132, 149, .3);
  overflow-wrap: anywhere; }
.import-preview .none { font-style: italic; }
</style>"""


def show_preview(preview: ImportPreview) -> None:
    """Draw the recognised format, the first records, and what they have and lack."""
    formats = ", ".join(FORMAT_NAMES.get(name, name) for name in preview.formats)
    among = "" if preview.is_all else "the first "
    st.markdown(
        f"**Recognised as {plain(formats)}.** {plain(_annotators(preview))} Passages: in "
        f"{preview.with_passages:,} of {among}{counted(preview.read, 'item')}."
    )
    if preview.warning:
        st.warning(plain(preview.warning), icon=":material/warning:")
    if preview.rejects:
        more = "" if preview.is_all else " so far"
        st.warning(
            f"{counted(len(preview.rejects), 'bad record')}{more}; the first: "
            f"{plain(preview.rejects[0].reason)}",
            icon=":material/warning:",
        )
    if preview.items:
        head = "".join(
            f"<th scope='col' width='{wide}%'>{name}</th>" for name, wide in _HEAD.items()
        )
        rows = "".join(map(_row, preview.items))
        st.html(f"{_STYLE}<table class='import-preview'><tr>{head}</tr>{rows}</table>")


# What is shown of an item, and how wide, in per cent.
_HEAD = {"Id": 10, "Question": 22, "Answer": 28, "Passages": 26, "Further fields": 14}


def _annotators(preview: ImportPreview) -> str:
    if not preview.annotators:
        return "No annotations in them."
    shown = preview.annotators[:5]
    named = ", ".join(
        f"{name} ({', '.join(filter(None, (kind_beside(name, kind), f'{n:,}')))})"
        for name, kind, n in shown
    )
    rest = len(preview.annotators) - len(shown)
    return f"Annotated by {named}{f' and {rest:,} more' if rest else ''}."


def _row(item: Item) -> str:
    passages = f"{counted(len(item.passages), 'passage')}: " if item.passages else ""
    first = item.passages[0].text if item.passages else ""
    cells = (item.id, item.question, item.answer, passages + first, ", ".join(item.meta))
    return f"<tr>{''.join(map(_cell, cells))}</tr>"


def _cell(text: str) -> str:
    if not text:
        return "<td class='none'>none</td>"
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f"<td dir='auto'>{escape(short)}</td>"
