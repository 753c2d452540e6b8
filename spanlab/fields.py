"""The kinds of value that the schema's fields hold, and the base of its types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field

Offset = Annotated[int, Field(strict=True, ge=0)]
Count = Annotated[int, Field(strict=True, ge=0)]
Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0.0, le=1_000_000.0)]  # model calls a minute
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Language = Annotated[str, Field(pattern=r"^[a-z]{2,8}(-[A-Za-z0-9]{1,8})*$")]


_T = TypeVar("_T")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # half an emoji, which JSON can escape


class Frozen(BaseModel):
    """Immutable, and without fields that nobody knows, or texts that no store takes."""

    # Of a text with any constraint pydantic checks that it has no lone surrogate.
    model_config = ConfigDict(frozen=True, extra="forbid", str_min_length=0)


def storable(value: _T, unwanted: re.Pattern[str] = _LONE_SURROGATE) -> _T:
    """Return a text, or JSON with texts in it, that can be stored and sent as UTF-8.

    What enters from outside goes through here: answers of models and searches, pages, files.

    Args:
        value: a text, or what JSON is made of.
        unwanted: the characters to replace; lone surrogates by default.

    Returns:
        The same with U+FFFD for every unwanted character, so that offsets stay.
    """
    new: object = value
    if isinstance(value, str):
        new = unwanted.sub("\ufffd", value)
    elif isinstance(value, list):
        new = [storable(each, unwanted) for each in value]
    elif isinstance(value, dict):
        new = {storable(key, unwanted): storable(each, unwanted) for key, each in value.items()}
    return cast(_T, new)


def storable_json(text: str) -> Any:
    """Return the value of JSON from outside, made ``storable``.

    Args:
        text: decoded from UTF-8, so that only escapes can stand for half an emoji.

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    value = json.loads(text)
    return storable(value) if "\\ud" in text or "\\uD" in text else value


def unique(names: Iterable[str], what: str) -> None:
    """Refuse a name that occurs twice.

    Raises:
        ValueError: says which, and what it names.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} occurs twice")
        seen.add(name)
