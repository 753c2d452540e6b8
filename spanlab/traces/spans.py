"""What spans of traces say, whichever convention and program they come from; see ``span_files``.

Each meaning has one table of the names that conventions have for it: OpenInference, OpenLLMetry,
OpenTelemetry's for generative models (``gen_ai.*``, all their generations, as attributes and as
events), pydantic-ai, Vercel's AI SDK, MLflow, Langfuse, LangSmith, Logfire, Google's ADK, Haystack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from spanlab.base.errors import InputError
from spanlab.base.fields import storable
from spanlab.formats.cells import is_reply, text_of_reply
from spanlab.formats.chats import (
    TOOL,
    USER,
    is_chat,
    is_message,
    lines_of,
    returned,
    text_of_message,
    without_classes,
)
from spanlab.formats.reader import passages_of
from spanlab.traces.conventions import meanings_in, names_in
from spanlab.traces.span_files import EVENTS, plain_list

Span = Mapping[str, Any]


class TracedMessage(NamedTuple):
    """What somebody said in a model's call."""

    role: str
    text: str


def kind_of(span: Span) -> str:
    """Return what a span is for: one of the kinds that have words, or ""."""
    if "kind" in span:  # found before, see ``Trace``
        return str(span["kind"])
    attributes = span["attributes"]
    words = (KINDS.get(str(attributes.get(name)).lower()) for name in NAMES["kind"])
    parts = (_CLASSES[name].search(str(attributes.get(name))) for name in _CLASSES)
    marks = (kind for name, kind in MARKS.items() if attributes.get(name))
    if kind := next(filter(None, words), None):
        return kind
    if part := next(filter(None, parts), None):
        return KINDS[part[1].lower()]
    found = has_documents(span) or any(QUERY_RESULT in event for event in _events_of(span))
    return "retriever" if found else next(marks, "")


def input_of(span: Span) -> Any:
    """Return what a span was given, unpacked; None if it does not say."""
    return next(map(_with_messages, _given(span, read=True)), None)


def output_of(span: Span) -> Any:
    """Return what a span gave back, unpacked; None if it does not say."""
    return next(map(_with_messages, _given(span, read=False)), None)


def asked_of(span: Span) -> str:
    """Return the question that a span was given, wherever it has one; "" for none."""
    return next(filter(None, map(text_asked, _given(span, read=True))), "")


def said_by(span: Span) -> str:
    """Return the text that a span gave back; "" for none."""
    given = map(_with_messages, _given(span, read=False))
    return next(filter(None, map(text_said, given)), "")


def is_score(span: Span) -> bool:
    """Say whether a span gave back a score, as functions that judge do."""
    given = output_of(span)
    return isinstance(given, dict) and isinstance(given.get("score"), int | float)


def _given(span: Span, *, read: bool) -> Iterator[Any]:
    """Yield what a span says of its input or output, under each of the names that it has it."""
    said = _said(span, "input" if read else "output")
    yield from (value for value in said if _unpacked(value) not in (None, "", [], {}))
    yield from _in_events(_events_of(span), read=read)


def _said(span: Span, meaning: str) -> Iterator[Any]:
    """Yield what a span's attributes of a meaning hold."""
    held = (_held(span["attributes"], name) for name in NAMES[meaning])
    return (value for value in held if value is not None)


def _held(attributes: Mapping[str, Any], name: str) -> Any:
    """Return an attribute, or the list that attributes such as ``name.0.key`` hold."""
    if attributes.get(name) is not None:
        return attributes[name]
    begin = f"{name}."
    inner = {
        key[len(begin) :]: value
        for key, value in attributes.items()
        if key.startswith(begin) and key[len(begin) :][:1].isdecimal()
    }
    return _nested(inner) if inner else None


def _nested(flat: Mapping[str, Any]) -> Any:
    """Return the list or object that dotted names make."""
    groups: dict[str, dict[str, Any]] = {}
    for name, value in flat.items():
        first, _, rest = name.partition(".")
        groups.setdefault(first, {})[rest] = value
    tree = {first: v[""] if "" in v else _nested(v) for first, v in groups.items()}
    return [tree[n] for n in sorted(tree, key=int)] if all(map(str.isdecimal, tree)) else tree


def _unpacked(value: Any) -> Any:
    """Return a value without what programs put around it: JSON, LangChain's classes."""
    inner = parse_json(value)
    return without_classes(value if inner is None else inner)


def parse_json(value: Any) -> Any:
    """Return what a text is in JSON, None if it is none; another value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return storable(json.loads(value))
    except (ValueError, RecursionError):
        return None


def _events_of(span: Span) -> list[dict[str, Any]]:
    """Return a span's events, by the names of their attributes."""
    events = parse_json(span["attributes"].get(EVENTS))
    return [event for event in plain_list(events) if isinstance(event, dict)]


def _in_events(events: Iterable[Mapping[str, Any]], *, read: bool) -> Iterator[Any]:
    """Yield the chats in a span's events, of any generation of the convention."""
    names = ("gen_ai.input.messages", "gen_ai.prompt")
    names = names if read else ("gen_ai.output.messages", "gen_ai.completion")
    chat = []
    for event in events:
        yield from (event[name] for name in names if event.get(name))
        _, _, kind = str(event.get("event.name") or "").rpartition("gen_ai.")
        body = parse_json(event.get("body")) or event
        if kind == "choice" and not read:
            chat.append(_as_message("assistant", body.get("message", body)))
        elif kind.endswith(".message") and read:
            chat.append(_as_message(kind.removesuffix(".message"), body))
    if chat:
        yield chat


def _as_message(role: str, body: Any) -> dict[str, Any]:
    """Return the message of an event, whose content may be JSON of parts."""
    body = _unpacked(body)
    content = body.get("content") if isinstance(body, dict) else body
    parts = _unpacked(content)
    return {"role": role, "content": parts if isinstance(parts, list) else content}


def documents_of(span: Span) -> list[str]:
    """Return the texts that a retriever or a tool found, letter by letter.

    What a tool gives back as it was given, such as an answer, it did not find.
    """
    for value in _said(span, "documents"):
        if texts := documents_in(_unpacked(value)):
            return texts
    results = [str(event[QUERY_RESULT]) for event in _events_of(span) if QUERY_RESULT in event]
    kind = kind_of(span)
    if results or kind not in ("retriever", "tool") or ENDING_TOOL.match(span["name"]):
        return results
    value = output_of(span)
    if kind == "retriever":
        return documents_in(value)
    given = set(strings_in(input_of(span)))
    return [text for text in _found_by_tool(value) if text not in given]


def ending_of(span: Span) -> str:
    """Return what a tool gave back as it was given, by which agents answer; "" for any other."""
    text = said_by(span) if kind_of(span) == "tool" else ""
    return text if text and text in arguments_of(span) else ""


def _found_by_tool(value: Any) -> list[str]:
    value = [value] if is_message(value) else value
    if isinstance(value, dict) and {"name", "response"} <= value.keys():  # a message of ADK's
        value = value["response"]
    if is_chat(value):
        texts = [line.text for message in value for line in lines_of(message) if line.text]
    elif isinstance(value, str):
        texts = [value]
    elif listed := texts_listed(value):
        return listed
    elif isinstance(value, dict):
        parts = next((value[n] for n in NAMES["part"] if isinstance(value.get(n), list)), None)
        is_text = parts is not None or len(value) == 1
        content = value if parts is None else {"content": parts}
        texts = [returned(content)] if is_text else documents_in(value)
    else:
        texts = documents_in(value)
    return [text for inner in texts for text in results_in(inner)]


def results_in(text: str) -> list[str]:
    """Return the texts of a list that a tool gave back as JSON; any other text as it is.

    That a conversation went on to another agent is no result.
    """
    return texts_listed(parse_json(text)) or ([] if HANDED_OVER.match(text) else [text])


def texts_listed(value: Any) -> list[str]:
    """Return the texts in a list of texts or documents, or in an object's only such list."""
    if isinstance(value, dict):
        lists = [v for n, v in value.items() if isinstance(v, list) and n not in NAMES["part"]]
        value = lists[0] if len(lists) == 1 else None
    if not isinstance(value, list) or is_chat(value):
        return []
    try:
        texts = [passage.text for passage in passages_of(list(map(_document, value)), "documents")]
    except InputError:
        return []
    return [text for text in texts if text.strip() and not is_repr(text)]


def arguments_of(span: Span) -> list[str]:
    """Return the texts that a span was given, each as one of its arguments and in no list."""
    given = input_of(span)
    given = given.get("kwargs") or given.get("args") or given if isinstance(given, dict) else given
    values = given.values() if isinstance(given, dict) else given
    return [value for value in values if isinstance(value, str)] if values else []


def strings_in(value: Any) -> Iterator[str]:
    """Yield all texts in a value, but those of what a chat had said before."""
    if isinstance(value, str):
        yield value
    pairs = value.items() if isinstance(value, dict) else (("", v) for v in plain_list(value))
    for name, inner in pairs:
        if "history" not in name:
            yield from strings_in(inner)


def documents_in(value: Any) -> list[str]:
    """Return the texts of documents; none for what only names them, as LlamaIndex's objects."""
    while isinstance(value, dict) and (name := next((n for n in NAMES["list"] if n in value), "")):
        value = value[name]
    parts = list(map(_document, plain_list(value)))
    try:
        texts = [passage.text for passage in passages_of(parts or value, "documents")]
    except InputError:
        return [] if value is None else [str(value)]
    return [text for text in texts if text.strip() and not is_repr(text)]


def _document(part: Any) -> Any:
    """Return a document without the object that says how it was found."""
    found = parse_json(part)
    if isinstance(found, dict) and isinstance(found.get("node"), dict):
        return found["node"]
    return part.get("document", part) if isinstance(part, dict) else part


def is_repr(text: str) -> bool:
    """Say whether a text is how Python shows an object that has no form as JSON."""
    return REPR.match(text) is not None


def context_of(span: Span) -> list[str]:
    """Return the documents that a span was given beside its question."""
    given = input_of(span)
    return context_in(given.get("kwargs", given) if isinstance(given, dict) else {})


def context_in(given: Mapping[str, Any]) -> list[str]:
    """Return the documents among what a call was given."""
    return documents_in(next((given[name] for name in NAMES["context"] if given.get(name)), None))


def has_documents(span: Span) -> bool:
    """Say whether a span has documents in a convention's own place."""
    return any(_said(span, "documents"))


def messages_of(span: Span, *, read: bool) -> list[TracedMessage]:
    """Return what a model's call read or wrote, by the first convention that has any.

    Thoughts and calls of tools are left out; what tools returned has the role "tool".
    """
    if kind_of(span) == "agent":
        text = asked_of(span) if read else said_by(span)
        return [TracedMessage("user" if read else "assistant", text)] if text.strip() else []
    for value in _given(span, read=read):
        lines = [line for line in _lines(value, read=read) if line.text.strip()]
        if lines:
            return [*_instructions(span), *lines] if read else lines
    return []


def _instructions(span: Span) -> Iterator[TracedMessage]:
    """Yield the instructions that a convention has beside the messages."""
    for value in _said(span, "instructions"):
        parts = lines_of({"role": "system", "content": _unpacked(value)})
        yield TracedMessage("system", "\n".join(part.text for part in parts))


def _lines(given: Any, *, read: bool) -> Iterator[TracedMessage]:
    """Yield the messages in a span's input or output, or its text as one."""
    value = whole = _with_messages(given)
    if isinstance(value, dict):
        names = NAMES["chat"] if read else ("messages",)
        value = _with_messages(next((value[name] for name in names if name in value), value))
    chat = value if isinstance(value, list) else [value]
    if all(isinstance(part, dict) and isinstance(part.get("content"), str) for part in chat):
        chat = [{"role": "user" if read else "assistant", **part} for part in chat]
    if is_chat(chat) or (len(chat) == 1 and is_message(chat[0])):
        for message in chat:
            role = str(message.get("role") or message.get("type") or "").lower()
            for line in lines_of(message):
                if read or line.role not in (USER, TOOL):
                    yield TracedMessage("tool" if line.role == TOOL else role, line.text)
    elif not read and is_reply(value):
        yield TracedMessage("assistant", text_of_reply(value))
    elif isinstance(given, str) and not (
        isinstance(whole, dict | list) and (read or _is_object_of_api(whole))
    ):
        text = value if isinstance(value, str) else given
        yield from _spoken(text) if read else [TracedMessage("assistant", text)]


def _is_object_of_api(value: Any) -> bool:
    """Say whether a value is what an API answers with, or a list of that, which is no text."""
    parts = value if isinstance(value, list) else [value]
    names = {name for part in parts if isinstance(part, dict) for name in part}
    return bool({*NAMES["reply"], "object"} & names)


def _with_messages(given: Any) -> Any:
    """Return an input or output unpacked, its messages in the form that most programs write."""
    value = _unpacked(given)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    content = value.get("content") if isinstance(value, dict) else None
    if isinstance(content, dict) and "parts" in content:  # ADK's reply
        value = content
    return [_message(part) for part in value] if isinstance(value, list) else value


def _message(part: Any) -> Any:
    """Return a message without the objects that OpenInference has it and its parts in."""
    message = part.get("message", part) if isinstance(part, dict) else part
    if not (isinstance(message, dict) and isinstance(message.get("contents"), list)):
        return message
    contents = [content.get("message_content", content) for content in message["contents"]]
    return {**message, "content": message.get("content") or contents}


def _spoken(text: str) -> Iterator[TracedMessage]:
    """Yield the messages of a text such as OpenLIT writes, with who speaks before each."""
    _, *parts = SPEAKERS.split(text)
    if not (parts and SPEAKERS.match(text)):
        yield TracedMessage("", text)
    for role, said in zip(parts[::2], parts[1::2], strict=True):
        yield TracedMessage(role, said.strip())


def text_said(value: Any) -> str:
    """Return the text in what a run gave back; "" for none, or for a list of several."""
    if isinstance(value, list):
        return text_said(value[-1]) if value and not _are_several(value) else ""
    is_reply = isinstance(value, dict) and not is_message(value)
    if is_reply and ("choices" in value or "generations" in value):
        value = text_of_reply(value) or value
    return _text_in(value, "answer", text_said)


def _are_several(value: list[Any]) -> bool:
    """Say whether a list holds texts, or rows of a table: one for each of several runs."""
    rows = {tuple(part) for part in value if isinstance(part, dict)}
    are_rows = len(rows) == 1 and not any(is_message(part) or "type" in part for part in value)
    are_rows &= all(isinstance(part, dict) for part in value)
    return len(value) > 1 and (are_rows or all(isinstance(part, str) for part in value))


def text_asked(value: Any) -> str:
    """Return the question in what a run was given; "" if it has none, or several."""
    value = _with_messages(value)
    if isinstance(value, list):
        if _are_several(value):
            return ""
        users = [part for part in value if is_message(part) and _is_user(part)]
        return (
            text_of_message(users[-1])
            if users and is_chat(value)
            else next(filter(None, map(text_asked, value)), "")
        )
    return _text_in(value, "question", text_asked)


def _text_in(value: Any, meaning: str, inside: Callable[[Any], str]) -> str:
    if is_message(value):
        return text_of_message(value)
    if isinstance(value, dict):
        texts = (inside(value[name]) for name in NAMES[meaning] if name in value)
        return next(filter(None, texts), "")
    return value if isinstance(value, str) and not is_repr(value) else ""


def _is_user(message: Mapping[str, Any]) -> bool:
    said = (message.get(name) for name in ("role", "type", "from"))
    return any(str(role).lower() in USERS for role in said)


KINDS: Final = meanings_in("kinds")
MARKS: Final = meanings_in("marks")
_CLASSES: Final = {  # names that hold a class of Haystack's or LlamaIndex's, told by its end
    "haystack.component.type": re.compile(r"(Generator|Retriever|Ranker|Rerank)$"),
    "traceloop.entity.name": re.compile(r"^[^.]*(Retriever|Ranker|Rerank)(\.|$)"),
}
NAMES: Final = names_in("names")
USERS: Final = frozenset(("user", "human"))
REPR: Final = re.compile(r"<NodeWithScore|<[\w.]+ object at |[A-Z]\w*\(\w+=")
QUERY_RESULT: Final = "db.query.result.document"  # of OpenLLMetry's events, one a document
# Tools by which an agent answers or another one goes on, and what these say.
ENDING_TOOL: Final = re.compile(r"(finish|final_answer|handoff|transfer_(to|back)\w*)\b")
HANDED_OVER: Final = re.compile(
    r'\{"assistant": "[^"]*"\}$|(successfully )?transferr(ed|ing) (back )?to\b|'
    r"Final result processed",
    re.IGNORECASE,
)
SPEAKERS: Final = re.compile(r"^(system|user|assistant|tool|developer): ", re.MULTILINE)
