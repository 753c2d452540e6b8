"""Items, passages and languages as other people write them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import to_json

from spanlab.datasets.problems import check_meta, input_error, within
from spanlab.schema import UNDETERMINED, Item, Passage


def _object(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


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
