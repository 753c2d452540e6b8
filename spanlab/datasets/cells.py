"""Reading a record's mapped fields: answers, questions, passages, labels, and chats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json

from spanlab.datasets.quotes import find_quote, span_at
from spanlab.datasets.reader import input_error, parse_list, passages_of, text_of, within
from spanlab.errors import InputError
from spanlab.schema import Annotation, AnnotatorKind, Claim, Passage, Probability, Span


class _GivenSpan(BaseModel):
    model_config = ConfigDict(frozen=True)

    start: int
    end: int
    text: str | None = None
    prob: Probability = 1.0
    label: str | None = None
    note: str | None = None


def is_extent(value: object) -> bool:
    """Say whether a value is ``[start, end]`` or, as doccano writes it, with a label behind."""
    if not isinstance(value, list) or len(value) not in (2, 3):
        return False
    return all(isinstance(n, int) for n in value[:2]) and all(
        isinstance(label, str) for label in value[2:]
    )


def _as_extent(value: object) -> object:
    if isinstance(value, list) and len(value) in (2, 3):
        return dict(zip(("start", "end", "label"), value, strict=False))
    if not isinstance(value, dict):
        return value
    found = {
        ours: next((value[n] for n in names if n in value), None) for ours, names in _AS.items()
    }
    named = {**value, **{ours: known for ours, known in found.items() if known is not None}}
    start, text = named.get("start"), named.get("text")
    if "end" not in named and isinstance(start, int) and isinstance(text, str):  # factgenie
        named["end"] = start + len(text)
    return named


# What others call the fields of a span: RAGTruth, doccano, LettuceDetect, factgenie.
_AS: Final = {
    "label": ("label", "label_type", "type", "category", "entity"),
    "start": ("start", "start_offset"),
    "end": ("end", "end_offset"),
    "prob": ("prob", "probability", "confidence"),
    "note": ("note", "reason"),
}


def is_span(value: object) -> bool:
    """Say whether a value is an object with a span's place, by any of its names."""
    place = _as_extent(value)
    return isinstance(place, dict) and {"start", "end"} <= place.keys()


_Spans = tuple[Annotated[_GivenSpan, BeforeValidator(_as_extent)], ...]
_SPANS: TypeAdapter[_Spans] = TypeAdapter(_Spans)


def turn_in(theirs: Mapping[str, Any], names: Mapping[str, str], number: int) -> ChatTurn | None:
    """Return the turn of a chat that a record is; None if it has none.

    Args:
        theirs: our field → what stands in its column.
        names: our field → the column.
        number: the turn, from 1; 0 for the last one.
    """
    field = "question" if theirs.get("messages") is None else "messages"
    chat = asked_in(theirs.get(field))
    if field == "question" and not is_chat(chat):
        return None
    if theirs.get("answer") is not None and is_chat(chat) and _awaits_answer(chat):
        return turn_without_answer(chat)
    return turn_of(chat, names[field], number - 1 if number else None)


def _awaits_answer(chat: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether somebody other than the model has the last word in a chat."""
    last = max(answers_in(chat), default=-1)
    return last < 0 or any(line.text for turn in chat[last + 1 :] for line in _chat_messages(turn))


_ASKS: Final = ("messages", "contents", "input", "prompt")  # where a model's API is asked


def asked_in(value: Any) -> Any:
    """Return the chat or text that a model's API is asked in a request, possibly JSON as a text.

    Any other value is returned as it is, a list as a text parsed.
    """
    value = parse_list(value)
    request = value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            request = from_json(value)
        except ValueError:
            return value
    if not isinstance(request, Mapping) or is_message(request):
        return value
    return next((request[name] for name in _ASKS if request.get(name)), value)


def answer_in(value: Any, column: str) -> str | None:
    """Return a value as an answer: of messages the last one's, of a list its only element.

    Returns:
        The text; None if there is none.

    Raises:
        InputError: it is a list of several values.
    """
    value = _parse_object(value)
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
    return text_of_reply(value) or text_of(value)


def _parse_object(value: Any) -> Any:
    """Return the message or reply that a text is in JSON; any other value as it is."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            parsed = from_json(value)
        except ValueError:
            return value
        if is_message(parsed) or is_chat(parsed) or is_reply(parsed):
            return parsed
    return value


# Where a reply of a model's API, or of a program around one, has its text: OpenAI, Anthropic,
# Google, LangChain, and what wraps their replies in files of batches.
_REPLIES: Final = (
    *("choices", "message", "content", "candidates", "generations", "delta", "body", "response"),
    *("result", "output", "text", "completion", "parts"),
)
_OF_REPLIES: Final = frozenset(
    ("choices", "candidates", "generations", "body", "message", "finish_reason", "completion")
)


def is_reply(value: Any) -> bool:
    """Say whether a value is the object that a model's API answers with, and has a text."""
    if isinstance(value, list):
        return bool(value) and is_reply(value[0])
    if not isinstance(value, Mapping):
        return False
    if not (_OF_REPLIES & value.keys() or isinstance(value.get("content"), list)):
        return False
    return bool(text_of_reply(value))


def text_of_reply(value: Any) -> str:
    """Return the text in a reply of a model's API, of its first choice; "" for none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = [text for part in value if (text := text_of_reply(part))]
        parts = all(isinstance(part, Mapping) and part.keys() & _OF_PARTS for part in value)
        return "".join(texts) if parts else next(iter(texts), "")
    if not isinstance(value, Mapping) or value.get("type") in _ASIDE_PARTS:
        return ""
    texts = [text_of_reply(value[name]) for name in _REPLIES if name in value]
    return next(filter(None, texts), "")


_SAID: Final = ("model", "usage", "finish_reason", "stop_reason")  # of a reply, beside its text


def about_reply(value: Any) -> dict[str, Any]:
    """Return what a reply of a model's API says of itself: the model, tokens, why it ended."""
    if isinstance(value, list):
        value = next(iter(value), None)
    if not isinstance(value, Mapping):
        return {}
    about = {name: value[name] for name in _SAID if value.get(name) is not None}
    about |= {"model": value["modelVersion"]} if value.get("modelVersion") else {}  # Google's
    for name in ("body", "response", "message", "choices", "result", "output"):
        about = about_reply(value.get(name)) | about
    return about


_OF_PARTS: Final = frozenset(("type", "text"))  # the fields of a part of a message
_ASIDE_PARTS: Final = frozenset(("tool_use", "tool_call", "reasoning", "thinking", "function_call"))


def question_in(value: Any) -> str:
    """Return a value as a question, a message by its text; "" for none."""
    value = _parse_object(asked_in(value))
    if isinstance(value, list) and len(value) == 1:
        return question_in(value[0])
    return (text_of_message(value) if is_message(value) else text_of(value)) or ""


def passages_in(value: Any, column: str) -> tuple[Passage, ...]:
    """Return the passages in a value: a text, an object, or a list of these, also as a text.

    A text with bars between words and no other sign of a sentence's end beside them is a list, as
    DeepEval writes one into a table.

    Raises:
        InputError: it is something else; names the part of ``column``.
    """
    texts = parse_list(value)
    if isinstance(texts, str) and texts.lstrip().startswith("["):
        return (Passage(text=texts),)  # a text that begins with a bracket, such as [1]
    if isinstance(texts, str) and _JOINED.search(texts) and "\n" not in texts:
        texts = [text.strip() for text in texts.split("|")]
    return passages_of(texts, column)


_JOINED: Final = re.compile(r"[.!?。]\s?\|\s?\w")  # a bar between sentences


def predicted_in(value: Any, column: str, answer: str) -> Annotation | None:
    """Return what a detector marked, as LettuceDetect's ``predictions``; None for no labels."""
    marked = gold_in(value, column, answer)
    kind = {"annotator": "predictions", "kind": AnnotatorKind.DETECTOR}
    return None if marked is None else marked.model_copy(update=kind)


def gold_in(value: Any, column: str, answer: str) -> Annotation | None:
    """Return the gold labels in a value: extents, or texts of the answer.

    A text that does not stand in the answer, or more than once, has no place; that something is
    wrong there is kept as a claim that is not supported.

    Returns:
        The labels; None for a value that holds no labels (such as classes of the whole text).

    Raises:
        InputError: it is something else, or an extent is not where it says; names its part.
    """
    labels = parse_list(value)
    if isinstance(labels, str):
        labels = _json(labels, column)
    claims: tuple[Claim, ...] = ()
    if isinstance(labels, list) and labels and all(isinstance(text, str) for text in labels):
        placed = [text for text in labels if text and answer.count(text) == 1]
        claims = tuple(
            Claim(text=text, verdict="not-supported")
            for text in labels
            if text.strip() and text not in placed
        )
        labels = [[answer.index(text), answer.index(text) + len(text)] for text in placed]
    try:
        parts = _SPANS.validate_python(labels)
    except ValidationError as error:
        raise within(input_error(error), column) from None
    spans = tuple(_span(answer, part, f"{column}.{index}") for index, part in enumerate(parts))
    return Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=spans, claims=claims)


def _span(answer: str, labelled: _GivenSpan, field: str) -> Span:
    start, end = labelled.start, labelled.end
    if labelled.text is not None:
        start, end = find_quote(answer, start, end, quoted=labelled.text, field=field)
    return span_at(
        answer, start, end, field, prob=labelled.prob, label=labelled.label, note=labelled.note
    )


def _json(value: str, column: str) -> Any:
    try:
        return from_json(value, allow_inf_nan=False)
    except ValueError as error:
        raise InputError(
            f"not valid JSON: {error}", field=column, found=value, expected="a JSON list"
        ) from None


_USER, _MODEL, _TOOL = "User", "Assistant", "Tool"

_ROLES: Final = {
    **dict.fromkeys(("user", "human"), _USER),
    **dict.fromkeys(("assistant", "gpt", "model", "ai", "chatbot", "bot"), _MODEL),
    **dict.fromkeys(("tool", "function", "function_response", "observation", "ipython"), _TOOL),
}

_SAYS: Final = ("role", "from", "type", "sender", "speaker")  # the fields that may hold the role
_HOLDS: Final = ("content", "value", "text", "message", "parts")  # … and the text


class ChatTurn(NamedTuple):
    """An answer in a chat, what it was asked, and what tools had found by then.

    The question is the user's last message before it ("" if there is none); where the chat was
    under way by then, all that both had said, with who said it before each. ``is_whole`` says that
    the chat has nothing else.
    """

    question: str
    answer: str
    passages: tuple[str, ...]
    is_whole: bool


class _ChatMessage(NamedTuple):
    role: str  # "" for one that is none of ours, such as the system's
    text: str


def is_message(value: Any) -> bool:
    """Say whether a value is a message with a text: ``{"role", "content"}`` and the like."""
    return isinstance(value, Mapping) and bool(_role(value)) and bool(text_of_message(value))


def is_chat(value: Any) -> bool:
    """Say whether a value is a list of messages, of which at least one has a role of a chat."""
    if not isinstance(value, list) or not all(isinstance(turn, Mapping) for turn in value):
        return False
    return any(map(_role, value)) and all(any(name in turn for name in _SAYS) for turn in value)


def answers_in(chat: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the messages in which the model says something, counted from 0."""
    return [n for n, turn in enumerate(chat) if _role(turn) == _MODEL and text_of_message(turn)]


def turn_of(value: Any, field: str, number: int | None = None) -> ChatTurn:
    """Return a turn of a chat, by default its last.

    Args:
        value: a list of ``{"role", "content"}`` as OpenAI writes them, of ``{"from", "value"}``, or
            of ``{"type", "content"}``; contents that are lists of parts have their texts joined.
        field: where it stands, for messages.
        number: the turn, counted from 0, among those of ``answers_in``.

    Raises:
        InputError: it is no chat, or the model says nothing in it.
    """
    if not isinstance(value, list) or not all(isinstance(turn, Mapping) for turn in value):
        raise InputError(
            "this is no chat", field=field, found=value, expected="a list of messages with roles"
        )
    answers = answers_in(value)
    if not answers:
        raise InputError(
            "the model says nothing in this chat",
            field=field,
            found=f"the roles {', '.join(map(_role_of, value))}",
            expected="a message of the role assistant",
        )
    at = answers[-1 if number is None else number]
    earlier = [line for turn in value[:at] for line in _chat_messages(turn)]
    talk = [line for line in earlier if line.role in (_USER, _MODEL) and line.text]
    passages = tuple(line.text for line in earlier if line.role == _TOOL and line.text.strip())
    is_whole = len(value) == 1 + len(talk) <= 2
    return ChatTurn(_question(talk), text_of_message(value[at]), passages, is_whole)


def turn_without_answer(value: Any) -> ChatTurn:
    """Return the last turn of a chat whose answer stands elsewhere; its own answer is empty."""
    return turn_of([*value, {"role": "assistant", "content": "…"}], "")._replace(answer="")


def text_of_message(message: Mapping[str, Any]) -> str:
    """Return the text of a message; empty if it has none, as one that only calls tools."""
    return "".join(line.text for line in _chat_messages(message) if line.role == _role(message))


def _question(talk: Sequence[_ChatMessage]) -> str:
    """Return what was said before an answer: one message alone, or a talk with its speakers."""
    if len(talk) == 1:
        return talk[0].text if talk[0].role == _USER else ""
    return "\n\n".join(f"{line.role}: {line.text}" for line in talk)


def _chat_messages(message: Mapping[str, Any]) -> Iterator[_ChatMessage]:
    """Yield what a message says, and what tools say in it, which some put into the user's."""
    role = _role(message)
    content = next((message[name] for name in _HOLDS if message.get(name) is not None), None)
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield _ChatMessage(role, part)
        elif isinstance(part, Mapping) and part.get("type") == "tool_result":
            inner = {"role": "tool", "content": part.get("content")}
            yield _ChatMessage(_TOOL, text_of_message(inner))
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield _ChatMessage(role, part["text"])


def _role(message: Mapping[str, Any]) -> str:
    return _ROLES.get(_role_of(message).lower(), "")


def _role_of(message: Mapping[str, Any]) -> str:
    return str(next((message[name] for name in _SAYS if message.get(name)), None))
