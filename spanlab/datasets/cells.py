"""What stands in a record's mapped columns, as an answer, a question, passages or labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json

from spanlab.datasets.chat import (
    Turn,
    answers_in,
    asked_in,
    is_chat,
    is_message,
    text_of_message,
    turn_of,
)
from spanlab.datasets.given import listed, passages_of, text_of
from spanlab.datasets.problems import input_error, within
from spanlab.datasets.quotes import find_quote, span_at
from spanlab.errors import InputError
from spanlab.schema import Annotation, Kind, Passage, Probability, Span


class _GivenSpan(BaseModel):
    model_config = ConfigDict(frozen=True)

    start: int
    end: int
    text: str | None = None
    prob: Probability = 1.0
    label: str | None = None
    note: str | None = None


def _object(value: object) -> object:
    if isinstance(value, list) and len(value) == 2:
        return {"start": value[0], "end": value[1]}
    return value


_Spans = tuple[Annotated[_GivenSpan, BeforeValidator(_object)], ...]
_SPANS: TypeAdapter[_Spans] = TypeAdapter(_Spans)


def turn_in(theirs: Mapping[str, Any], names: Mapping[str, str], number: int) -> Turn | None:
    """Return the turn of a chat that a record is; None if it has none.

    Args:
        theirs: our field → what stands in its column.
        names: our field → the column.
        number: the turn, from 1; 0 for the last one.
    """
    if theirs.get("messages") is not None:
        chat = listed(theirs["messages"])
        if theirs.get("answer") is not None and is_chat(chat) and not answers_in(chat):
            return asked_in(chat)
        return turn_of(chat, names["messages"], number - 1 if number else None)
    chat = listed(theirs.get("question"))
    if not is_chat(chat):
        return None
    return asked_in(chat) if theirs.get("answer") is not None else turn_of(chat, names["question"])


def answer_in(value: Any, column: str) -> str | None:
    """Return a value as an answer: of messages the last one's, of a list its only element.

    Returns:
        The text; None if there is none.

    Raises:
        InputError: it is a list of several values.
    """
    if is_chat(value):
        return turn_of(value, column).answer
    if isinstance(value, list) and len(value) > 1:
        raise InputError(
            "the answer is a list",
            field=column,
            found=value,
            expected="one text; a mapping such as answer=texts.0 takes the first of a list",
        )
    if isinstance(value, list):
        return answer_in(value[0], column) if value else None
    if is_message(value):
        return text_of_message(value)
    return text_of(value)


def question_in(value: Any) -> str:
    """Return a value as a question, a message by its text; "" for none."""
    if isinstance(value, list) and len(value) == 1:
        return question_in(value[0])
    return (text_of_message(value) if is_message(value) else text_of(value)) or ""


def passages_in(value: Any, column: str) -> tuple[Passage, ...]:
    """Return the passages in a value: a text, an object, or a list of these, also as a text.

    Raises:
        InputError: it is something else; names the part of ``column``.
    """
    found = listed(value)
    if isinstance(found, str) and found.lstrip().startswith("["):
        return (Passage(text=found),)  # a text that begins with a bracket, such as [1]
    return passages_of(found, column)


def gold_in(value: Any, column: str, answer: str) -> Annotation | None:
    """Return the gold labels in a value: extents, or texts of the answer.

    Returns:
        The labels; None for texts that do not stand in the answer, or more than once.

    Raises:
        InputError: it is something else, or an extent is not where it says; names its part.
    """
    given = listed(value)
    if isinstance(given, str):
        given = _json(given, column)
    if isinstance(given, list) and given and all(isinstance(each, str) for each in given):
        if any(not text or answer.count(text) != 1 for text in given):
            return None
        begins = [(answer.index(text), text) for text in given]
        given = [[begin, begin + len(text)] for begin, text in begins]
    try:
        parts = _SPANS.validate_python(given)
    except ValidationError as error:
        raise within(input_error(error), column) from None
    spans = tuple(_span(answer, part, f"{column}.{index}") for index, part in enumerate(parts))
    return Annotation(annotator="gold", kind=Kind.GOLD, spans=spans)


def _span(answer: str, given: _GivenSpan, field: str) -> Span:
    start, end = given.start, given.end
    if given.text is not None:
        start, end = find_quote(answer, start, end, given.text, field)
    return span_at(answer, start, end, field, prob=given.prob, label=given.label, note=given.note)


def _json(value: str, column: str) -> Any:
    try:
        return from_json(value, allow_inf_nan=False)
    except ValueError as error:
        raise InputError(
            f"not valid JSON: {error}", field=column, found=value, expected="a JSON list"
        ) from None
