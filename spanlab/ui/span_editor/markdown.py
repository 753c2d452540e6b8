"""Markdown as a tree of the few elements that the editor builds: no HTML, no images, no scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from pydantic import JsonValue

# HTML in the text is text; so are entities of it that are none of Markdown's own.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_SAME = {"p", "ul", "li", "blockquote", "hr", "strong", "em", "s"} | {
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}


def markdown_tree(text: str) -> list[JsonValue]:
    """Return Markdown as nodes: a text, or ``[tag, attributes, nodes]``; empty for no text.

    Whoever wrote the text may be hostile: what is no element known here is shown as its text, a
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
