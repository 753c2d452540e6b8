"""The kinds of value that the schema's fields hold, and the base of its types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import nan
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from spanlab.base.errors import UsageError

Offset = Annotated[int, Field(strict=True, ge=0)]
Count = Annotated[int, Field(strict=True, ge=0)]
Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0.0, le=1_000_000.0)]  # model calls a minute
_LONGEST_NAME = 200
_PLAIN = r"^[^\x00-\x1f\x7f]+$"
Name = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME, pattern=_PLAIN)]
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TAG = r"^[a-z]{2,8}(-[A-Za-z0-9]{1,8})*$"
Language = Annotated[str, Field(pattern=_TAG)]
_NAME: TypeAdapter[str] = TypeAdapter(Name)
_T = TypeVar("_T")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # half an emoji, which JSON can escape

# An escape in JSON; if it is half an emoji without its other half, as a group.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


class FrozenModel(BaseModel):
    """Immutable, and without fields that nobody knows, or texts that no store takes."""

    # Of a text with any constraint pydantic checks that it has no lone surrogate.
    model_config = ConfigDict(frozen=True, extra="forbid", str_min_length=0)


def check_name(name: str, owner: str) -> None:
    """Check that something may be called ``name``.

    Args:
        name: the name.
        owner: what would have it, such as "a dataset".

    Raises:
        UsageError: it is empty, too long, or has control characters.
    """
    try:
        _NAME.validate_python(name)
    except ValidationError:
        rule = "use 1 to 200 characters, without control characters"
        raise UsageError(f"{name!r} is not a valid name for {owner}: {rule}") from None


def check_share(name: str, value: object) -> float:
    """Return ``value`` as a share in [0, 1]; raises UsageError, with what was probably meant."""
    try:
        share = float(value)  # type: ignore[arg-type]  # what is no number is refused below
    except (TypeError, ValueError):
        share = nan
    if 0 <= share <= 1:
        return share
    meant = f": {share / 100:g} for {share:g} %" if 1 < share <= 100 else ""
    raise UsageError(f"{name} is a share from 0 to 1, not {value!r}{meant}")


_OWN_WORDS = {"missing": "it is missing", "extra_forbidden": "there is no such field"}
_SHOULD = re.compile(r"^(?:Input|String|Value|Tuple|List|Dictionary) should ")
_TYPES = {  # what pydantic calls them, and everybody
    r"a valid (?:dictionary|instance).*": "an object",
    r"a valid (?:tuple|list|array)": "a list",
    r"a valid string": "a text",
    r"a valid integer.*": "an integer",
    r"a valid (\w+).*": r"a \1",
    r" after validation": "",
}


def message_of(problem: Mapping[str, Any]) -> str:
    """Return what one of the errors of a ``ValidationError`` says is wrong, in our own words."""
    if problem["type"] == "string_pattern_mismatch" and problem["ctx"]["pattern"] == _TAG:
        return "it should be a language tag such as en or pt-BR"
    if problem["type"] == "string_pattern_mismatch" and problem["ctx"]["pattern"] == _PLAIN:
        return "it should have no control characters"
    words = str(problem["msg"]).removeprefix("Value error, ")
    if (should := _SHOULD.sub("it should ", words)) != words:
        for theirs, ours in _TYPES.items():
            should = re.sub(theirs, ours, should)
    return _OWN_WORDS.get(problem["type"], should)


def as_name(text: str) -> str | None:
    """Return a text of others as a ``Name``: in one line, cut with "…"; None if nothing is left."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return f"{line[: _LONGEST_NAME - 1]}…" if len(line) > _LONGEST_NAME else line or None


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
        new = [storable(inner, unwanted) for inner in value]
    elif isinstance(value, dict):
        new = {storable(key, unwanted): storable(inner, unwanted) for key, inner in value.items()}
    return cast(_T, new)


def storable_json(text: str | bytes, *, finite: bool = False) -> Any:
    """Return the value of JSON from outside, made ``storable``.

    Args:
        text: or its bytes in UTF-8.
        finite: whether to refuse NaN and infinity, which are no JSON, though servers send them.

    Raises:
        ValueError: it is no JSON, is nested more than 200 deep, or has a number of more than 4,300
            digits.
    """
    return from_json(storable_escapes(text), allow_inf_nan=not finite)


def storable_escapes(text: str | bytes) -> str:
    """Return JSON in which no half emoji is left, as itself or escaped.

    Raises:
        ValueError: it is not in UTF-8.
    """
    whole = text if isinstance(text, str) else str(text, "utf-8")
    if "\\ud" in whole or "\\uD" in whole:
        whole = _ESCAPE.sub(lambda escape: "\\ufffd" if escape[1] else escape[0], whole)
    return storable(whole)


def unique(names: Iterable[str], what: str) -> None:
    """Refuse a name that occurs twice.

    Raises:
        ValueError: says which, and what it names.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} already exists")
        seen.add(name)
