"""The span editor: one Streamlit component in JavaScript, and all that Python knows of it.

Two mounts make it up. The *editor* draws and edits; what it is given never changes while a
reviewer works, so Streamlit never sends it twice. The *wire* is a line of JavaScript inside a
fragment: it carries the outbox to Python and the answers back, so that a key press costs a few
hundred bytes however long the answer under review is.

Streamlit mounts a component from one script. It can serve a directory of files, too, but only of
packages that carry a second ``pyproject.toml`` inside, and with addresses that stay the same from
release to release: a page that loads while files are replaced mixes old modules with new ones,
and a page that stays open never gets the new ones. So all modules travel in one script, which
makes a blob of each and points its imports at the blobs of those before it.

Markdown becomes a tree of the few elements that the editor builds: no HTML, no images, no scripts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files

import streamlit as st
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from pydantic import JsonValue
from streamlit.components.v2.types import ComponentRenderer

from spanlab import doors
from spanlab.review.span_editor.exchange import EditorReply, ReviewQueue, exchange
from spanlab.review.span_editor.payload import EditorMessage
from spanlab.schema import DatasetSettings, SpanLabel
from spanlab.ui.common import has_page
from spanlab.ui.editor_keys import ADJUDICATION_KEYS, KEYS, PALETTE, EditorKey

_IMPORT = re.compile(r'^import .* from "\./(.+)";$', re.MULTILINE)
_LOADER = """\
const urls = {};
for (const [name, source] of %s) {
    const point = (line, module) => line.replace(`./${module}`, urls[module]);
    const linked = source.replace(/^import .* from "\\.\\/(.+)";$/gm, point);
    const named = [linked, `//# sourceURL=spanlab/${name}\\n`];
    urls[name] = URL.createObjectURL(new Blob(named, { type: "text/javascript" }));
}
const main = await import(urls[%s]);
for (const name of %s) {
    try {
        Object.assign(main.SECTIONS, (await import(urls[name])).SECTIONS);
    } catch (problem) {
        console.error(`The steps of ${name} cannot be drawn:`, problem);
    }
}
for (const url of Object.values(urls)) URL.revokeObjectURL(url);
export default main.default;
"""


@cache
def script(main: str = "mount.js") -> str:
    """Return a module whose default export is that of the module ``main``.

    The editor's gets the modules that draw the steps of systems, too.

    Raises:
        graphlib.CycleError: modules import each other in a circle.
    """
    folder = files(__package__).joinpath("js")
    drawn = _beside_steps("trace.js") if main == "mount.js" else {}
    sources: dict[str, str] = {}
    imports: dict[str, list[str]] = {}
    unread = [main, *drawn]
    while unread:
        name = unread.pop()
        sources[name] = drawn.get(name) or folder.joinpath(name).read_text(encoding="utf-8")
        imports[name] = _IMPORT.findall(sources[name])
        unread += [module for module in imports[name] if module not in sources]
    order = TopologicalSorter(imports).static_order()
    modules = json.dumps([[name, sources[name]] for name in order], ensure_ascii=False)
    return _LOADER % (modules, json.dumps(main), json.dumps([*drawn]))


def _beside_steps(file: str) -> dict[str, str]:
    """Return the texts of files that lie beside the steps of systems, by package and name."""
    packages = dict.fromkeys(
        offer.value.partition(":")[0].rpartition(".")[0] for offer in doors.offers("steps")
    )
    found = ((package, files(package).joinpath(file)) for package in packages)
    return {
        f"{package}.{file}": text.read_text(encoding="utf-8")
        for package, text in found
        if text.is_file()
    }


# HTML in the text is text; so are entities of it that are none of Markdown's own.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_SAME = {"p", "ul", "li", "blockquote", "hr", "strong", "em", "s"} | {
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}


def markdown_tree(text: str) -> list[JsonValue]:
    """Return Markdown as nodes: a text, or ``[tag, attributes, nodes]``; empty for no text.

    The author of the text may be hostile: what is no element known here is shown as its text, a
    link leads to http, https or mailto, and a picture is a link to it, so that nothing is fetched.
    """
    return _nodes(SyntaxTreeNode(_PARSER.parse(text)).children)


def _nodes(children: list[SyntaxTreeNode]) -> list[JsonValue]:
    return [node for child in children for node in _node(child)]


def _node(node: SyntaxTreeNode) -> list[JsonValue]:
    build = _BUILDERS.get(node.type)
    if build is not None:
        return build(node)
    inside = _nodes(node.children)
    return [[node.tag, {}, inside]] if node.tag in _SAME else inside


def _code(node: SyntaxTreeNode) -> list[JsonValue]:
    return [["code", {}, [node.content]]]


def _link(address: str, inside: list[JsonValue]) -> list[JsonValue]:
    if not address.lower().startswith(("http://", "https://", "mailto:")):
        return inside
    return [["a", {"href": address}, inside]]


_BUILDERS: Mapping[str, Callable[[SyntaxTreeNode], list[JsonValue]]] = {
    "text": lambda node: [node.content],
    "softbreak": lambda node: [" "],
    "hardbreak": lambda node: [["br", {}, []]],
    "code_inline": _code,
    "code_block": lambda node: [["pre", {}, _code(node)]],
    "fence": lambda node: [["pre", {}, _code(node)]],
    "ordered_list": lambda node: [
        ["ol", {"start": str(node.attrs.get("start", 1))}, _nodes(node.children)]
    ],
    "link": lambda node: _link(str(node.attrs["href"]), _nodes(node.children)),
    "image": lambda node: _link(str(node.attrs["src"]), [node.content or "picture"]),
}
__all__ = [
    "KEYS",
    "PALETTE",
    "EditorKey",
    "EditorMessage",
    "EditorReply",
    "ReviewQueue",
    "draw_unsaved",
    "exchange",
    "mount_editor",
    "mount_wire",
    "read_message",
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

// Until the browser is closed, people who have reviewed under a name are not asked again.
function remember(reviewer) {
    const cookie = /(?:^|; )spanlab_reviewers=([^;]*)/.exec(document.cookie);
    let names = [];
    try {
        names = JSON.parse(decodeURIComponent(cookie?.[1] ?? "[]"));
    } catch { /* somebody else's cookie: written again */ }
    if (!reviewer || names.includes(reviewer)) return;
    const value = encodeURIComponent(JSON.stringify([...names.slice(-9), reviewer]));
    document.cookie = `spanlab_reviewers=${value}; path=/; SameSite=Strict`;
}
"""


def mount_editor(
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
        "tour": has_page("tour"),
        "adds_evidence": adjudicating or settings.known is None,
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


def mount_wire(answer: Mapping[str, JsonValue]) -> None:
    """Mount the wire, inside a fragment, handing ``answer`` to the editor."""
    _component("spanlab_wire", _WIRE_JS, None)(
        key=_WIRE_KEY, data=dict(answer), on_outbox_change=_do_nothing
    )


def draw_unsaved(dataset: str, renamed: str | None = None, item: str | None = None) -> None:
    """Draw what this browser still keeps of a dataset that is gone or renamed, or of an item.

    Args:
        dataset: its name.
        renamed: what it is called now, where what was typed will be stored; None if it is gone.
        item: what the browser calls the one item that the reviewer may not open; None for all.
    """
    data = {"dataset": dataset, "renamed": renamed, "item": item}
    style = files(__package__).joinpath("unsaved.css").read_text(encoding="utf-8")
    _component("spanlab_unsaved", script("unsaved.js"), style)(key="span_unsaved", data=data)


def read_message() -> EditorMessage:
    """Return the last message of the editor; an empty one before it has sent any.

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
    ours = (sheet.read_text(encoding="utf-8") for sheet in sheets)
    return "".join((*ours, *_beside_steps("trace.css").values()))


def _do_nothing() -> None:
    """Let Streamlit know the state name; the fragment's body does the work."""
