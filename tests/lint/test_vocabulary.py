"""Words of the field on screen: pages, commands and errors say none of the words below.

What people read is taken from the sources: texts of the app (Python and JavaScript), helps and
messages of commands, and errors of workflows. Docstrings are read where they are a command's help.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
# What is not said, and what is said instead.
INSTEAD = {
    r"anew": "again, or rerun",
    r"for good": "permanently",
    r"persons": "people",
    r"odds": "sampling probability",
    r"whoever comes first": "first come, first served",
    r"opens nothing": "is no longer valid, or stops working",
    r"tak(e|es|en) back|gives? back": "undo, revoke, or reassign",
    r"steers?": "manage",
    r"hard labels are": "likely, or marked as hallucinated",
    r"taken for hallucinated": "marked as hallucinated",
    r"is no rate": "is not a hallucination rate",
    r"stale": "out of date",
    r"whose word counts": "reviewers counted",
    r"the one chosen beside": "the one selected",
    r"every beginning": "what has been reviewed so far",
    r"a dot leads inside": "use dots for nested fields",
    r"as the machine sees": "on the server",
    r"demonstrations?": "examples",
    r"came in at": "introduced at",
    r"but for": "except",
    r"stands? above already": "exists above",
    r"let(s|ting)? (somebody|people) in": "waive the test",
    r"not shown (to be )?worse": "not significantly worse",
    r"even odds": "uniform random sample",
    r"does (just )?that already": "is already doing this",
    r"(?<!there )is no (?!longer|more)": "is not a …",
    r"(?<=[;(] )there are|(?<=\()there are": "available:",
    r"(a|the|no|tuned|starting) programs?(?! of)": "tuned prompt",
    r"goes with (--|another)": "needs …",
    r"wants [A-Z]+=": "must be NAME=VALUE, got …",
    r"(?<!that )cannot be read": "cannot read this file: … (`unreadable`)",
    r"occurs? twice|(is|are) there already": "already exists (`repeated_id`)",
    r"known items?": "check items, or gold items",
    r"(not|un)known of": "unknown for",
    r"[Ss]tate$": "status",
    r"time left": "remaining",
}
FOLDERS = [
    *(REPOSITORY / "spanlab").glob("*[!_]/"),  # not of what is compiled
    REPOSITORY / "optimizers",
]
WORDS = re.compile("|".join(rf"\b(?:{words})\b" for words in INSTEAD), re.IGNORECASE)
JS_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`|\'((?:[^\'\\\n]|\\.)*)\'')
COMMAND = re.compile(r"`spanlab [a-z]|(?<![^\s`(])--[a-z]{2}[^:]*$")  # but how the app is started


def _docstrings(tree: ast.AST) -> set[int]:
    """The docstrings of a module, by the ids of their nodes."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }


def _python_texts(path: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    has_commands = any(isinstance(n, ast.Import) and n.names[0].name == "typer" for n in tree.body)
    unseen = set() if has_commands else _docstrings(tree)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in unseen
        ):
            yield node.lineno, node.value


def _js_texts(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.lstrip().startswith(("//", "*", "/*")):
            for match in JS_TEXT.finditer(line):
                yield number, "".join(filter(None, match.groups()))


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        read = {".py": _python_texts, ".js": _js_texts}.get(path.suffix)
        for number, text in read(path) if read else ():
            # What has no space is the name of a key, a class or a file, not a sentence.
            if " " in text.strip() or text.istitle():
                yield f"{path.relative_to(REPOSITORY)}:{number}", text


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_texts_on_screen_are_in_the_words_of_the_field(folder: Path) -> None:
    wrong = [
        f"{place}: {match.group()!r} in {text.strip()[:80]!r}"
        for place, text in _texts(folder)
        for match in WORDS.finditer(text)
    ]
    assert wrong == [], "\n".join(wrong)


def test_pages_say_what_to_click_not_what_to_type_in_a_terminal() -> None:
    wrong = [
        f"{place}: {text.strip()[:80]!r}"
        for folder in FOLDERS
        for place, text in _texts(folder)
        if re.search(r"(page|panel|form)\.py:", place)
        and COMMAND.search(text)
        and "spanlab serve" not in text
    ]
    assert wrong == [], "\n".join(wrong)
