"""Chats: lists of messages with roles, as programs and training data write them, and their turns.

A message is ``{"role", "content"}`` as OpenAI writes it, ``{"from", "value"}`` as ShareGPT, with
contents that are texts or parts, or one of LangChain's objects; ``{"user", "assistant"}`` are two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from spanlab.base.errors import InputError
from spanlab.formats.reader import NoAnswer, as_passage, has_text, parse_list, passages_of
from spanlab.formats.vocabulary import named_by, words_in

USER, MODEL, TOOL = "User", "Assistant", "Tool"

_ROLES: Final = named_by("roles")
_SPEAKERS: Final = {*_ROLES, "system", "developer"}

_SPEAKER: Final = re.compile(r"\n(Human|User|Assistant|AI|Bot): ?")
# The fields that may hold the role, …
SAYS: Final = ("role", "from", "type", "sender", "speaker", "author", "event")
# … and the text
HOLDS: Final = ("content", "value", "text", "message", "parts", "utterance", "output", "prompt")


class ChatTurn(NamedTuple):
    """An answer in a chat, what it was asked, and what was found for it in its turn.

    The question is the user's last message before it ("" if there is none); where the chat was
    under way by then, all that both had said, with who said it before each. ``is_whole`` says that
    the chat has nothing else.
    """

    question: str
    answer: str
    passages: tuple[str, ...]
    is_whole: bool


class ChatMessage(NamedTuple):
    """What somebody said in a message."""

    role: str  # "" for one that is none of ours, such as the system's
    text: str


def plain_chat(value: Any) -> Any:
    """Return a list of messages with each as one object with its role; any other value as it is.

    LangChain's objects are unpacked, the two sides of a turn become messages of their own, and what
    a function returned becomes a tool's. Of ChatGPT's export, a tree, it is the branch that ends
    last.
    """
    if isinstance(value, Mapping) and value and all(map(_is_node, value.values())):
        value = _branch(value)
    if not isinstance(value, list) or not all(isinstance(turn, Mapping) for turn in value):
        return value
    turns = map(without_classes, map(_unwrapped, value))
    chat = [message for turn in turns for message in _messages_in(turn)]
    times = [message["created_at"] for message in chat if "created_at" in message]
    return chat[::-1] if len(times) == len(chat) > 1 and times[0] > times[-1] else chat


def _unwrapped(turn: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message that is the one thing in an object, as of Grok; others as they are."""
    inner = next(iter(turn.values())) if len(turn) == 1 else None
    return inner if isinstance(inner, Mapping) and is_message(inner) else turn


def _messages_in(turn: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if isinstance(versions := turn.get("versions"), list) and versions:
        turn = _version(versions, turn.get("currentlySelected"))
    sides = [name for name in turn if name.lower() in _ROLES and isinstance(turn[name], str)]
    if len(sides) == 1 and isinstance(turn.get("system"), str):  # that of a dialogue: the model
        turn = {**turn, "model": turn["system"]}
        sides.append("model")
    if _role(turn):
        yield turn
    elif turn.get("type") == "function_call_output":
        yield {"role": "tool", "content": turn.get("output")}
    elif len(sides) > 1:
        retrieved = {name: turn[name] for name in _RETRIEVED if name in turn}
        yield from ({"role": name, "content": turn[name]} | retrieved for name in sides)
    else:
        yield turn


def _version(versions: list[Any], selected: Any) -> Mapping[str, Any]:
    """Return the version of a message that somebody chose, in LM Studio, without what led to it."""
    at = selected if isinstance(selected, int) and selected < len(versions) else 0
    version: Mapping[str, Any] = versions[at] if isinstance(versions[at], Mapping) else {}
    steps = [step for step in version.get("steps") or () if step.get("type") == "contentBlock"]
    said = [step for step in steps if (step.get("style") or {}).get("type") != "thinking"]
    content = [part for step in said for part in step.get("content") or ()]
    return {**version, "content": content} if content else version


def _is_node(value: Any) -> bool:
    return isinstance(value, Mapping) and {"message", "parent", "children"} <= value.keys()


def _branch(nodes: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages from the root of a tree to its last leaf."""
    branch: list[Mapping[str, Any]] = []
    node = next((node for node in reversed(list(nodes.values())) if not node["children"]), None)
    while node is not None and len(branch) <= len(nodes):
        branch.append(node)
        node = nodes.get(node["parent"])
    return [node["message"] for node in reversed(branch) if node["message"]]


def transcript(text: str) -> list[dict[str, str]]:
    """Return the messages of a talk in one text, "Human: …", "Assistant: …"; none of another."""
    parts = _SPEAKER.split(f"\n{text.strip()}")
    if parts[0].strip() or len(parts) < 5:
        return []
    said = zip(parts[1::2], parts[2::2], strict=True)
    return [{"role": role, "content": words.strip()} for role, words in said]


def without_classes(value: Any) -> Any:
    """Return a value with LangChain's objects, in either form that it writes, as plain ones."""
    if isinstance(value, list):
        return [without_classes(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    if {"lc", "kwargs"} <= value.keys():
        return without_classes(value["kwargs"])
    if value.keys() == {"type", "data"} and isinstance(value["data"], Mapping):
        return without_classes({"type": value["type"], **value["data"]})
    return {name: without_classes(inner) for name, inner in value.items()}


class MessagePlaces(NamedTuple):
    """The fields in which a message has who says it, and what."""

    role: str
    text: str


def places_in(message: Mapping[str, Any]) -> MessagePlaces | None:
    """Return where a message has its role and text; None for what is no message."""
    role = next((name for name in SAYS if message.get(name)), None)
    text = next((name for name in HOLDS if name in message), None)
    is_one = role and text and _role_of(message) in _SPEAKERS
    return MessagePlaces(role, text) if is_one and role and text else None


def is_user(message: Mapping[str, Any]) -> bool:
    """Say whether a message is the user's."""
    return _role(message) == USER


def is_said_by_model(message: Mapping[str, Any]) -> bool:
    """Say whether a message is the model's, and has a text."""
    return _role(message) == MODEL and bool(text_of_message(message))


def pairs_apart(value: Any) -> Any:
    """Return a talk as pairs, ``[["Hello", "Hi."], …]``, as its messages; others as they are."""
    are_pairs = isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(t, str | None) for t in pair)
        for pair in value
    )
    if not are_pairs:
        return value
    said = (zip(("user", "assistant"), pair, strict=True) for pair in value)
    return [{"role": role, "content": text} for pair in said for role, text in pair if text]


def alternating(value: Any, last: str = "user") -> list[dict[str, str]]:
    """Return texts of two who take turns as messages; ``last`` says whose the last is."""
    value = parse_list(value)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        return []
    roles = (last, "assistant" if last == "user" else "user")
    said = enumerate(reversed(value))
    return [{"role": roles[back % 2], "content": text} for back, text in said][::-1]


def is_message(value: Any) -> bool:
    """Say whether a value is a message with a text: ``{"role", "content"}`` and the like."""
    return isinstance(value, Mapping) and bool(_role(value)) and bool(text_of_message(value))


def is_chat(value: Any) -> bool:
    """Say whether a value is a list of messages, of which at least one has a role of a chat."""
    if not isinstance(value, list) or not all(isinstance(turn, Mapping) for turn in value):
        return False
    return any(map(_role, value)) and all(any(name in turn for name in SAYS) for turn in value)


def answers_in(chat: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the messages in which the model says something, counted from 0."""
    return [n for n, turn in enumerate(chat) if _role(turn) == MODEL and text_of_message(turn)]


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
            "this is not a chat", field=field, found=value, expected="a list of messages with roles"
        )
    answers = answers_in(value)
    if not answers and value and _calls_tool(value[-1]):
        raise NoAnswer("the model calls a tool and says nothing", field=field)
    if not answers:
        raise InputError(
            "the model says nothing in this chat",
            field=field,
            found=f"the roles {', '.join(map(_role_of, value))}",
            expected="a message of the role assistant",
        )
    at = answers[-1 if number is None else number]
    earlier = [line for turn in value[:at] for line in lines_of(turn)]
    talk = [line for line in earlier if line.role in (USER, MODEL) and line.text]
    asked = max((n for n in range(at) if is_user(value[n])), default=0)
    # What earlier turns found is part of the talk, and no evidence; what no turn is in counts.
    own = [m for n, m in enumerate(value[: at + 1]) if n >= asked or not _role(m)]
    lines = (line for message in own for line in lines_of(message))
    found = [line.text for line in lines if line.role == TOOL and line.text.strip()]
    found += [text for message in own for text in _retrieved(message)]
    passages = tuple(dict.fromkeys(found))
    is_whole = len(value) == 1 + len(talk) <= 2
    return ChatTurn(_question(talk), text_of_message(value[at]), passages, is_whole)


_CALLS: Final = frozenset(("function", "function_call", "tool_use", "tool_call", "tool-call"))


def _calls_tool(message: Mapping[str, Any]) -> bool:
    """Say whether a message, or a part of it, is a call of a tool."""
    content = message.get("content")
    parts = [part for part in content if isinstance(part, Mapping)] if content else []
    called = any(message.get(name) for name in ("tool_calls", "function_call"))
    return called or message.get("type") in _CALLS or any(map(_calls_tool, parts))


# Where a message has what was found for it.
_RETRIEVED: Final = words_in("passages", "of_messages")


def _retrieved(message: Mapping[str, Any]) -> Iterator[str]:
    for name in _RETRIEVED:
        value = parse_list(message.get(name))
        parts = value if isinstance(value, list) else [value]
        if all(
            isinstance(part, Mapping) and isinstance(part.get("document"), list) for part in parts
        ):
            value = parts = [text for part in parts for text in part["document"]]  # Open WebUI's
        if all(has_text(as_passage(part)) for part in parts):
            yield from (passage.text for passage in passages_of(value, name))


def turn_without_answer(value: Any) -> ChatTurn:
    """Return the last turn of a chat whose answer stands elsewhere; its own answer is empty."""
    return turn_of([*value, {"role": "assistant", "content": "…"}], "")._replace(answer="")


def text_of_message(message: Mapping[str, Any]) -> str:
    """Return the text of a message; empty if it has none, as one that only calls tools."""
    return "".join(line.text for line in lines_of(message) if line.role == _role(message))


def _question(talk: Sequence[ChatMessage]) -> str:
    """Return what was said before an answer: one message alone, or a talk with its speakers."""
    if len(talk) == 1:
        return talk[0].text if talk[0].role == USER else ""
    return "\n\n".join(f"{line.role}: {line.text}" for line in talk)


def lines_of(message: Mapping[str, Any]) -> Iterator[ChatMessage]:
    """Yield what a message says, and what tools say in it, which some put into the user's."""
    role = _role(message)
    content = next((message[name] for name in HOLDS if message.get(name) is not None), None)
    content = content.get("parts", content) if isinstance(content, Mapping) else content
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield ChatMessage(role, part)
        elif isinstance(part, Mapping):
            yield from _said_in(part, role)


# What a tool returned, as a part of a message: by its type, or inside a field of this name.
_RESULT_TYPES: Final = frozenset(("tool_result", "tool-result", "tool_call_response"))
_RESULTS: Final = ("functionResponse", "function_response", "toolResult", "tool_call_result")
_RETURNED: Final = ("response", "result", "content", "output")  # where such a part has it


def _said_in(part: Mapping[str, Any], role: str) -> Iterator[ChatMessage]:
    result = next((part[name] for name in _RESULTS if isinstance(part.get(name), Mapping)), None)
    if result is None and part.get("type") in _RESULT_TYPES:
        result = part
    if result is not None:
        held = next((result[name] for name in _RETURNED if name in result), None)
        yield ChatMessage(TOOL, returned(held))
    elif isinstance(part.get("text"), str):
        yield ChatMessage(role, part["text"])
    elif isinstance(part.get("text"), Mapping):  # of a thread
        yield ChatMessage(role, str(part["text"].get("value") or ""))
    elif part.get("type") == "text" and isinstance(part.get("content"), str):
        yield ChatMessage(role, part["content"])


def returned(value: Any) -> str:
    """Return what a tool gave back: its text, those of its parts, or all of it as JSON."""
    if isinstance(value, Mapping):
        parts = value.get("content")
        typed = value.get("text", value.get("value")) if "type" in value else None
        only = next(iter(value.values())) if len(value) == 1 else None
        inner = next((held for held in (typed, only) if held is not None), None)
        inner = parts if isinstance(parts, list) else inner
        return to_json(value).decode() if inner is None else returned(inner)
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        return "\n".join(map(returned, value))
    return value if isinstance(value, str) else to_json(value).decode()


def _role(message: Mapping[str, Any]) -> str:
    return _ROLES.get(_role_of(message), "")


# Where a message says only whether it is the user's.
_OF_USER: Final = ("isCreatedByUser", "is_user", "isUser", "from_user", "fromUser")


def _role_of(message: Mapping[str, Any]) -> str:
    is_users = next((message[name] for name in _OF_USER if name in message), None)
    if is_users is not None:
        return "user" if str(is_users).lower() in ("true", "1") else "assistant"
    said = next((message[name] for name in SAYS if message.get(name)), None)
    role = str(said.get("role") if isinstance(said, Mapping) else said)
    return role.lower().removesuffix("_message")
