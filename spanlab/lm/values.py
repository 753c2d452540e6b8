"""The values in a text: JSON, JSON with small mistakes, or Python's own notation.

Nothing is guessed: of data that is cut off or cannot be read there is no value at all.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import json_repair

_DECODER = json.JSONDecoder(strict=False)  # models write line breaks into strings
_BEGINNING = re.compile(r"[\[{]|\b[A-Z]\w*\((?=\s*\w+\s*=)")  # the latter is a call of a class
_NAMES = {"true": True, "false": False, "null": None}
_PAIRS = {"]": "[", "}": "{", ")": "("}


class UnreadableError(ValueError):
    """There is data in a text that cannot be read for certain."""


def values_in(text: str) -> Iterator[Any]:
    """Yield the lists and objects in a text, in order, whatever words stand around them.

    Args:
        text: what a model wrote; a call of a class, ``Part(text='…')``, is an object.

    Raises:
        UnreadableError: what begins like data ends in the middle, or is in no known notation.
    """
    at = 0
    while found := _BEGINNING.search(text, at):
        value, at = _value(text, found.start())
        if value is not _NONE:
            yield value


_NONE = object()


def _value(text: str, start: int) -> tuple[Any, int]:
    """Return the value that begins at ``start`` and where it ends; no value for mere brackets."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        pass
    end = _closing(text, start)
    if end is not None:
        try:
            return _python(ast.parse(text[start:end], mode="eval").body), end
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            pass
        if not re.search("[\"'“”=]", text[start:end]):  # "[1]", "{a, b}"
            return _NONE, end
    return _repaired(text, start), len(text)


def _closing(text: str, start: int) -> int | None:
    """Return the end of what is bracketed from ``start``, strings aside; None if it is open."""
    open_brackets: list[str] = []
    quote = ""
    at = start
    while at < len(text):
        mark = text[at]
        if quote:
            if mark == "\\":
                at += 1
            elif mark == quote:
                quote = ""
        elif mark == '"' or (mark == "'" and not text[at - 1 : at].isalnum()):
            quote = mark
        elif mark in "[{(":
            open_brackets.append(mark)
        elif mark in _PAIRS:
            if not open_brackets or open_brackets.pop() != _PAIRS[mark]:
                return None
            if not open_brackets:
                return at + 1
        at += 1
    return None


def _python(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=str() | int() | float() | None as value):
            return value
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_python(part) for part in parts]
        case ast.Dict(keys=keys, values=parts) if all(isinstance(k, ast.Constant) for k in keys):
            pairs = zip(keys, parts, strict=True)
            return {str(key.value): _python(part) for key, part in pairs}  # type: ignore[union-attr]
        case ast.Call(args=[], keywords=given) if given and all(each.arg for each in given):
            return {str(each.arg): _python(each.value) for each in given}
        case _:
            raise ValueError(f"no data: {ast.unparse(node)[:50]}")


def _repaired(text: str, start: int) -> Any:
    """Read JSON with small mistakes, such as quotes in a text or no bracket at the end.

    Only objects are trusted: a list of texts may be made of what was never one.
    """
    end = max(text.rfind(closing) for closing in "]}") + 1
    if end <= start or text[end:].strip() not in {"", "```"}:
        raise UnreadableError(text[start : start + 50])
    try:
        value = json_repair.loads(text[start:end])
    except (ValueError, RecursionError):
        value = None
    found = value if isinstance(value, list) else [value]
    if not found or not all(isinstance(each, dict) and each for each in found):
        raise UnreadableError(text[start : start + 50])
    return value
