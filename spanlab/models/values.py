"""Reading values in a reply leniently: nearly right JSON, Python's notation, loose wording.

Nothing is guessed: of data that is cut off or cannot be read there is no value at all. "90%" is a
probability, a missing one None.

A subclass of ``ReplyModel`` reaches the model as a JSON schema, docstring included, so that speaks
to the model.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import json_repair
from pydantic import BaseModel, BeforeValidator, model_validator

from spanlab.base.fields import storable
from spanlab.schema import Verdict

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
    while beginning := _BEGINNING.search(text, at):
        value, at = _value(text, beginning.start())
        if value is not _NONE:
            yield storable(value)  # half an emoji may stand there as an escape


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
    return _read_repaired(text, start), len(text)


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
            return {str(key.value): _python(part) for key, part in pairs}  # type: ignore[union-attr]  # the guard says so
        case ast.Call(args=[], keywords=given) if given and all(keyword.arg for keyword in given):
            return {str(keyword.arg): _python(keyword.value) for keyword in given}
        case _:
            raise ValueError(f"no data: {ast.unparse(node)[:50]}")


def _read_repaired(text: str, start: int) -> Any:
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
    rows = value if isinstance(value, list) else [value]
    if not rows or not all(isinstance(row, dict) and row for row in rows):
        raise UnreadableError(text[start : start + 50])
    return value


_SYNONYMS = {  # what models call a field instead
    "confidence": ("probability", "prob", "score"),
    "look_up": ("lookup", "queries", "query"),
    "text": ("quote", "span", "words", "part", "phrase", "segment", "excerpt", "substring"),
    "probability": ("prob", "confidence", "score"),
    "reason": ("explanation", "why", "rationale"),
    "subject": ("head", "source"),
    "relation": ("predicate", "property"),
    "object": ("tail", "target"),
    "fact": ("claim", "statement", "text"),
    "sentence": ("source", "quote"),
    "errors": ("error", "error_type", "error_types"),
}
_UNDECIDED: Verdict = "not-enough-evidence"
_VERDICTS: dict[Verdict, tuple[str, ...]] = {  # in this order: "not supported" holds "supported"
    "not-enough-evidence": (
        *("enough", "insufficient", "unsupported", "not support", "unverif", "not verif"),
        *("cannot", "unknown", "uncertain", "unclear", "undecided", "inconclusive", "neither"),
    ),
    "refuted": ("refut", "contradict", "false", "incorrect", "wrong", "inaccurate", "not true"),
    "supported": ("support", "true", "correct", "accurate", "confirmed", "verified", "entailed"),
}
_WORDS = {"certain": 1.0, "very high": 0.95, "high": 0.9, "medium": 0.6, "low": 0.3}


def probability(value: object) -> float | None:
    """Read a probability as models write it.

    Args:
        value: a number, or a text such as "0.9", "90%", "90 %" or "high". From 2 to 100 a number
            is taken for a percentage.

    Returns:
        A number in [0, 1]: what lies outside is moved to the nearer end. None if there is none.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        number = float(value)
    else:
        text = str(value).strip().casefold().replace(",", ".")
        if text in _WORDS:
            return _WORDS[text]
        try:
            number = float(text.removesuffix("%"))
        except ValueError:
            return None
        if text.endswith("%"):
            return min(max(number / 100, 0.0), 1.0) if math.isfinite(number) else None
    if 2 <= number <= 100:
        number /= 100
    return min(max(number, 0.0), 1.0) if math.isfinite(number) else None


def verdict(value: object) -> Verdict:
    """Read a verdict as models write it; nothing at all is not enough evidence.

    Raises:
        ValueError: it is none of the three.
    """
    text = "" if value is None else str(value).casefold()
    for read, words in _VERDICTS.items():
        if any(word in text for word in words):
            return read
    if text.strip(" .-/") in {"", "none", "null", "n a", "na"}:
        return _UNDECIDED
    raise ValueError(f"{text[:50]!r} is not a verdict: supported, refuted or not-enough-evidence")


def _text(value: object) -> str:
    if isinstance(value, Mapping | list | tuple):
        raise ValueError("no text")
    return "" if value is None else str(value)


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [text for inner in values if (text := _text(inner).strip())]


Prob = Annotated[float | None, BeforeValidator(probability)]
Text = Annotated[str, BeforeValidator(_text)]
Texts = Annotated[list[str], BeforeValidator(_texts)]
Judged = Annotated[Verdict, BeforeValidator(verdict)]


class ReplyModel(BaseModel):
    """An object in a model's reply; bare text is its first field, and others may be missing."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: object) -> object:
        """Take bare text for the first field, other names for ours, and fill what is missing."""
        fields = list(cls.model_fields)
        if not isinstance(data, Mapping):
            data = {fields[0]: data}
        by_name = {re.sub(r"\W+", "_", str(key).strip().casefold()): data[key] for key in data}
        if by_name and not cls.is_one(by_name):
            raise ValueError(f"it has nothing of {', '.join(fields)}")
        return storable({name: field_value(by_name, name) for name in fields})

    @classmethod
    def is_one(cls, fields: Mapping[str, object]) -> bool:
        """Say whether an object is of this kind: whether it has any of the fields."""
        return any(has_field(fields, name) for name in cls.model_fields)


def has_field(data: Mapping[str, object], name: str) -> bool:
    """Say whether an object has a field, under its name or what models call it instead."""
    return any(synonym in data for synonym in (name, *_SYNONYMS.get(name, ())))


def field_value(data: Mapping[str, object], name: str) -> object:
    """Return what an object has under a name or what models call it instead; None if nothing."""
    return next(
        (data[synonym] for synonym in (name, *_SYNONYMS.get(name, ())) if synonym in data), None
    )
