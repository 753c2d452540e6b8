"""What the browser gets beside data: the editor's ES modules as one script, and Markdown as a tree.

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
from collections.abc import Callable, Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from pydantic import JsonValue

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
for (const url of Object.values(urls)) URL.revokeObjectURL(url);
export default main.default;
"""


@cache
def script(main: str = "mount.js") -> str:
    """Return a module whose default export is that of the module ``main``.

    Raises:
        graphlib.CycleError: modules import each other in a circle.
    """
    folder = files(__package__).joinpath("js")
    sources: dict[str, str] = {}
    imports: dict[str, list[str]] = {}
    wanted = [main]
    while wanted:
        name = wanted.pop()
        sources[name] = folder.joinpath(name).read_text(encoding="utf-8")
        imports[name] = _IMPORT.findall(sources[name])
        wanted += [module for module in imports[name] if module not in sources]
    order = TopologicalSorter(imports).static_order()
    modules = json.dumps([[name, sources[name]] for name in order], ensure_ascii=False)
    return _LOADER % (modules, json.dumps(main))


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
