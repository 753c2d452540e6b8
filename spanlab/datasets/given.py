"""Items, passages and languages as other people write them."""

from __future__ import annotations

import ast
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import from_json, to_json

from spanlab.datasets.problems import check_meta, input_error, within
from spanlab.schema import UNDETERMINED, Item, Passage

# Where a passage has its text, and what it is called, in other people's words.
_TEXTS = (
    "text",
    "content",
    "page_content",
    "pageContent",
    "passage",
    "document",
    "chunk",
    "snippet",
)
_TITLES = ("title", "name", "source", "file_name")
_LONGEST = 1 << 20  # characters of a list as Python prints it


def _object(value: object) -> object:
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict) or "text" in value or not has_text(value):
        return value
    inner = value.get("metadata")
    about = {**(inner if isinstance(inner, dict) else {}), **value}
    titles = (about[name] for name in _TITLES if isinstance(about.get(name), str))
    kept = {name: about[name] for name in ("url", "date") if isinstance(about.get(name), str)}
    text = next(value[name] for name in _TEXTS if isinstance(value.get(name), str))
    return {"text": text, "title": next(titles, None), **kept}


def has_text(value: object) -> bool:
    """Say whether a JSON value is a text, or an object with one where passages have theirs."""
    if isinstance(value, dict):
        return any(isinstance(value.get(name), str) for name in _TEXTS)
    return isinstance(value, str)


def listed(value: Any) -> Any:
    """Return a value, or the list that its text is in JSON, or as Python prints lists."""
    if not (isinstance(value, str) and value.lstrip().startswith("[")):
        return value
    try:
        return from_json(value)
    except ValueError:
        pass
    try:
        parsed = ast.literal_eval(value.strip()) if len(value) <= _LONGEST else value
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return parsed if isinstance(parsed, list) else value


class _GivenPassage(BaseModel):
    """A passage; what else is said of it (a rank, a score) is left alone."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str
    title: str | None = None
    url: str | None = None
    date: str | None = None


GivenPassages = tuple[Annotated[_GivenPassage, BeforeValidator(_object)], ...]
_PASSAGES: TypeAdapter[GivenPassages] = TypeAdapter(GivenPassages)


def ours(given: GivenPassages) -> tuple[Passage, ...]:
    """Return the passages as our own."""
    return tuple(Passage(**one.model_dump()) for one in given)


def passages_of(value: Any, field: str) -> tuple[Passage, ...]:
    """Return the passages in a JSON value: a text, an object or a list of these.

    None and a blank text have none.

    Raises:
        InputError: it is something else; names the part of ``field``.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    try:
        given = _PASSAGES.validate_python(value if isinstance(value, list) else [value])
    except ValidationError as error:
        raise within(input_error(error), field) from None
    return ours(given)


def text_of(value: JsonValue) -> str | None:
    """Return a JSON value as a text: what is no text as JSON, None as None."""
    return value if isinstance(value, str) or value is None else to_json(value).decode()


def language(written: str | None) -> str:
    """Return a language tag in our form: "EN" is "en", "zh_CN" is "zh-CN", none is "und"."""
    primary, *rest = (written or UNDETERMINED).replace("_", "-").split("-")
    return "-".join([primary.lower(), *rest])


def checked(item: Item) -> Item:
    """Return ``item`` if it can be written again.

    Raises:
        InputError: its meta holds something that JSON has no word for.
    """
    if item.meta:
        check_meta(item.meta, field="")
    return item
