"""Errors of the validator, in the words of the file that was read."""

from __future__ import annotations

import math
import re
from typing import Any

from pydantic import JsonValue, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from spanlab.errors import InputError

_PLACED = re.compile(r"([a-z_]+(?:\.\w+)+): (.+)", re.DOTALL)
_BRANCH = re.compile(r"^process\.(?:own|shared)\b")  # the kind of process is in no file
_SHOULD = re.compile(r"^(?:Input|String|Value|Tuple|List|Dictionary) should (?:be )?")
_NOT_FINITE = (b"NaN", b"Infinity")


def input_error(error: ValidationError) -> InputError:
    """Return the first thing that ``error`` complains of as an ``InputError``.

    The field is the dotted path of the validated JSON; file and line are for the caller to add.
    """
    first = error.errors(include_url=False)[0]
    field = _BRANCH.sub("process", ".".join(str(part) for part in first["loc"])) or None
    match first["type"]:
        case "json_invalid":
            return InputError(first["msg"].replace("Invalid JSON", "not valid JSON"))
        case "missing":
            return InputError("the field is missing", field=field, found=_keys(first["input"]))
        case "extra_forbidden":
            return InputError(
                "there is no such field",
                field=field,
                found=first["input"],
                expected="other things go into meta",
            )
        case "value_error":
            return _complaint(str(first["ctx"]["error"]), field, first["input"])
        case _:
            return InputError(
                "the value is wrong",
                field=field,
                found=first["input"],
                expected=_SHOULD.sub("", first["msg"]),
            )


def within(problem: InputError, field: str) -> InputError:
    """Return ``problem`` with its field as a part of ``field``."""
    return InputError(
        problem.what,
        file=problem.file,
        line=problem.line,
        field=".".join(filter(None, (field, problem.field))),
        found=problem.found,
        expected=problem.expected,
    )


def check_meta(meta: dict[str, JsonValue], field: str = "meta") -> None:
    """Check that ``meta`` can be written as JSON, which has no NaN, infinity or lone surrogate.

    Args:
        meta: what was read.
        field: where it stands in the file; empty for its top.

    Raises:
        InputError: names the field.
    """
    try:
        data = to_json(meta)
    except PydanticSerializationError as error:
        raise InputError(
            f"cannot be written as JSON: {error}", field=field or None, expected="Unicode text"
        ) from error
    if any(word in data for word in _NOT_FINITE):
        _find_not_finite(meta, field)


def _find_not_finite(value: JsonValue, field: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError("the value is wrong", field=field, found=value, expected="a finite number")
    if isinstance(value, list):
        value = {str(index): inner for index, inner in enumerate(value)}
    for key, inner in value.items() if isinstance(value, dict) else ():
        _find_not_finite(inner, f"{field}.{key}" if field else key)


def _complaint(message: str, field: str | None, found: Any) -> InputError:
    """Split a message of our own validators, which may begin with a path, from its path."""
    placed = _PLACED.fullmatch(message)
    if placed and field is None:
        return InputError(placed[2], field=placed[1])
    return InputError(message, field=field, found=found if field else None)


def _keys(value: object) -> object:
    return f"the fields {', '.join(map(repr, value))}" if isinstance(value, dict) else value
