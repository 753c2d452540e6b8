"""The span editor: one Streamlit component in JavaScript, and all that Python knows of it.

Two mounts make it up. The *editor* draws and edits; what it is given never changes while a
reviewer works, so Streamlit never sends it twice. The *wire* is a line of JavaScript inside a
fragment: it carries the outbox to Python and the answers back, so that a key press costs a few
hundred bytes however long the answer under review is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files

import streamlit as st
from pydantic import JsonValue
from streamlit.components.v2.types import ComponentRenderer

from spanlab.schema import DatasetSettings, SpanLabel
from spanlab.ui.span_editor.exchange import EditorMessage, EditorReply, ReviewQueue, exchange
from spanlab.ui.span_editor.keys import ADJUDICATION_KEYS, KEYS, EditorKey
from spanlab.ui.span_editor.modules import markdown_tree, script
from spanlab.ui.span_editor.payload import PALETTE

__all__ = [
    "KEYS",
    "PALETTE",
    "EditorKey",
    "EditorMessage",
    "EditorReply",
    "ReviewQueue",
    "editor",
    "exchange",
    "sent",
    "unsaved",
    "wire",
]

_WIRE_KEY = "span_editor_wire"
_WIRE_JS = """
export default (component) => {
    const wire = (globalThis.spanlab ??= {});
    wire.component = component;
    const place = component.data?.place;
    remember(place?.author ?? place?.reviewer);
    wire.receive?.(component);
};

// Until the browser is closed, whoever has reviewed under a name is not asked again who they are.
function remember(reviewer) {
    const cookie = /(?:^|; )spanlab_reviewers=([^;]*)/.exec(document.cookie);
    let names = [];
    try {
        names = JSON.parse(decodeURIComponent(cookie?.[1] ?? "[]"));
    } catch { /* somebody else's cookie: written anew */ }
    if (!reviewer || names.includes(reviewer)) return;
    const value = encodeURIComponent(JSON.stringify([...names.slice(-9), reviewer]));
    document.cookie = `spanlab_reviewers=${value}; path=/; SameSite=Strict`;
}
"""


def editor(
    labels: Sequence[SpanLabel], settings: DatasetSettings, *, adjudicating: bool = False
) -> None:
    """Mount the editor.

    Args:
        labels: what spans can be labelled with.
        settings: those of the dataset under review.
        adjudicating: show a lane for every annotator, with keys to take what is in it.
    """
    data = {
        "keys": [asdict(key) for key in (ADJUDICATION_KEYS if adjudicating else KEYS)],
        "adjudicating": adjudicating,
        "labels": [label.model_dump() for label in labels],
        "palette": list(PALETTE),
        "label_required": settings.label_required,
        "undecided": settings.undecided.value,
        "asked": settings.model_dump(
            include={"attributes", "questions", "unanswered"}, mode="json"
        ),
        "guidelines": {
            "version": len(settings.guidelines),
            "tree": markdown_tree(settings.guidelines_now),
        },
    }
    _component("spanlab_editor", script(), _style())(
        key="span_adjudicator" if adjudicating else "span_editor", data=data
    )


def wire(answer: Mapping[str, JsonValue]) -> None:
    """Mount the wire, inside a fragment, handing ``answer`` to the editor."""
    _component("spanlab_wire", _WIRE_JS, None)(
        key=_WIRE_KEY, data=dict(answer), on_outbox_change=_nothing
    )


def unsaved(dataset: str, renamed: str | None) -> None:
    """Show what this browser keeps of a dataset that is not there any more.

    Args:
        dataset: its name.
        renamed: what it is called now, where what was typed will be stored; None if it is gone.
    """
    data = {"dataset": dataset, "renamed": renamed}
    style = files(__package__).joinpath("unsaved.css").read_text(encoding="utf-8")
    _component("spanlab_unsaved", script("unsaved.js"), style)(key="span_unsaved", data=data)


def sent() -> EditorMessage:
    """Return what the editor last sent over the wire; nothing before it has said anything.

    Raises:
        UsageError: it cannot be read.
    """
    state = st.session_state.get(_WIRE_KEY)
    outbox = state.get("outbox") if isinstance(state, Mapping) else None
    return EditorMessage.read(outbox or {})


def _component(name: str, js: str, css: str | None) -> ComponentRenderer:
    return st.components.v2.component(name, js=js, css=css, isolate_styles=False)


@cache
def _style() -> str:
    folder = files(__package__)
    sheets = (folder.joinpath(name) for name in ("span_editor.css", "trace.css", "claims.css"))
    return "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def _nothing() -> None:
    """Let Streamlit know the state name; the fragment's body does the work."""
