"""Names in backticks, in docstrings, messages and the guide, are names that there are."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from guide_parts import variables, variables_of_roles

from spanlab.base.guide import guide_pages

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for room in ("spanlab", "optimizers") for path in (ROOT / room).rglob("*.py"))
PAGES = [
    ROOT / "spanlab" / "README.md",
    *sorted(page.path for page in guide_pages()),
    *sorted((ROOT / "spanlab" / "developers").glob("*.md")),
    *sorted((ROOT / "design").glob("*.md")),
]
QUOTED = re.compile(r"(?<!`)``?([A-Za-z_][\w.]*)(?:\(\))?``?(?!`)")
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"`((?:\w+/)+\w+\.(?:py|js|toml|md)|(?:\w+/)+)`")
# Of other programs and of data: these alone are named without being in the code.
FOREIGN = {
    *("ConsoleSpanExporter", "PageHeader", "pydantic.Field", "pydantic.ValidationError"),
    *("process.Graph", "server.allowedHosts", "set_lm", "snapshots.raw_graph", "onnx.proto"),
    *("HF_TOKEN", "PROMPTFOO_PYTHON", "OPENAI_API_KEY", "OPENAI_HEADERS", "py_pickle"),
    "OPENAI_API_KEY_FILE",
    *("ip_hash", "span_start", "span_end"),
    *("annot_id", "custom_id", "expected_output", "implicit_true", "response_NAME"),
    *("LLM_output", "llmOutput", "Helsinki", "Yesterday", "Host", "promptfooconfig.yaml"),
    *("fabricated_reference", "unsupported_addition", "unsafe_allow_html"),
}


def strings(tree: ast.AST) -> Iterator[str]:
    """Yield all texts of a module, docstrings among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def identifiers(tree: ast.AST) -> Iterator[str]:
    """Yield what a module defines, imports and uses by name."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.AsyncFunctionDef(name=name) | ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name, asname=other):
                yield from (*name.split("."), other or name)


@cache
def parsed() -> dict[Path, ast.AST]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}


@cache
def names() -> frozenset[str]:
    """All names in the code."""
    found = {*dir(builtins), *variables(), *variables_of_roles()}
    found.update(path.stem for path in (ROOT / "tests" / "benchmarks").glob("*.py"))
    for path, tree in parsed().items():
        found.update(path.relative_to(ROOT).with_suffix("").parts)
        found.update(identifiers(tree))
    return frozenset(found)


@cache
def words() -> frozenset[str]:
    """All words of texts in the code: fields, values and columns are named there alone."""
    tables = [path.read_text("utf-8") for path in (ROOT / "spanlab" / "formats").rglob("*.toml")]
    found = {word for table in tables for word in re.findall(r"\w+", table)}
    for tree in parsed().values():
        said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in said:
                found.update(re.findall(r"\w+", re.sub(r"`[^`]*`", "", str(node.value))))
    return frozenset(found)


def exists(name: str) -> bool:
    """Whether the code knows a name, as one of its own or in its data."""
    known = names() | words()
    return name in FOREIGN or (ROOT / name).exists() or known.issuperset(name.split("."))


def is_name(text: str) -> bool:
    """Whether something in backticks is a name of code and no word."""
    return bool(re.search(r"^[A-Z][a-z]+$|[a-z][A-Z]|\w\.[A-Za-z]|\w_\w", text))


def unknown(text: str) -> list[str]:
    return [name for name in QUOTED.findall(text) if is_name(name) and not exists(name)]


@pytest.mark.parametrize(
    "text", ["See `ExtractClaim`.", "``claims.nowhere_at_all``", "`no_such_name()`"]
)
def test_a_name_that_there_is_not_is_found(text: str) -> None:
    assert unknown(text)
    assert (
        unknown("See `ExtractedClaim`, ``claims.keep``, `read_plan()` and `pyproject.toml`.") == []
    )


def test_names_in_docstrings_and_messages_exist() -> None:
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path, tree in parsed().items()
        for text in strings(tree)
        for name in unknown(text)
    }
    assert wrong == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_and_files_on_a_page_exist(page: Path) -> None:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    assert unknown(text) == []
    places = [place for place in PLACE.findall(text) if not (ROOT / place).exists()]
    assert [place for place in places if not any((ROOT / "spanlab").rglob(place))] == []
