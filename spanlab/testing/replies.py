"""What a scripted model is asked and replies, in which form."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ModelRequest:
    """One request; ``headers`` have lower-case names and lack the key.

    ``at`` is when it came (Unix seconds); ``caller`` tells keys apart, see ``caller_with``.
    """

    number: int
    method: str
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    caller: str = ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The chat messages."""
        return list(self.body.get("messages", []))

    @property
    def text(self) -> str:
        """All messages' text, one after the other."""
        return "\n\n".join(str(message.get("content") or "") for message in self.messages)

    @property
    def wants_vectors(self) -> bool:
        """Whether texts are to be embedded."""
        return self.path.partition("?")[0].endswith("/embeddings")

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that are offered."""
        offered = (tool.get("function") or tool for tool in self.body.get("tools") or ())
        return tuple(str(tool.get("name")) for tool in offered)

    @property
    def fingerprint(self) -> str:
        """The same for two requests that ask the same."""
        return hashlib.sha256(json.dumps(self.body, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class ScriptedReply:
    """What goes back; ``hang`` never answers and ``drop`` closes the connection instead.

    ``delay`` is in seconds before it, ``pause`` in seconds between one byte and the next, of a
    stream between one event and the next.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    pause: float = 0.0
    hang: bool = False
    drop: bool = False


Script = Callable[[ModelRequest], ScriptedReply]


def caller_with(key: str) -> str:
    """Return the ``caller`` of requests with a key."""
    return hashlib.sha256(f"Bearer {key}".encode()).hexdigest()[:8]


def say(
    text: str | None,
    *,
    finish: str = "stop",
    cached: int = 0,
    refusal: str | None = None,
    delay: float = 0.0,
    **more: Any,
) -> ScriptedReply:
    """Answer like a chat model; ``more`` goes into the body (``citations``, ``usage`` …).

    Args:
        text: the message's content.
        finish: its ``finish_reason``.
        cached: prompt tokens that count as cached.
        refusal: the message's refusal.
        delay: seconds before the reply.
        more: further fields of the body.
    """
    message = {"role": "assistant", "content": text, "refusal": refusal}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "cached_tokens": cached,
        **more,
    }
    return ScriptedReply(body=body, delay=delay)


def say_fields(**fields: Any) -> ScriptedReply:
    """Answer with a task's output fields, in the marked sections that DSPy's prompts ask for.

    Args:
        fields: name and value of each; what is no string is written as JSON.
    """
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in fields.items()
    }
    sections = [f"[[ ## {name} ## ]]\n{text}" for name, text in texts.items()]
    return say("\n\n".join([*sections, "[[ ## completed ## ]]"]))


def fail(
    status: int,
    message: str = "scripted",
    *,
    code: str | None = None,
    retry_after: float | None = None,
) -> ScriptedReply:
    """Answer with an error in OpenAI's form."""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return ScriptedReply(
        status, {"error": {"message": message, "code": code, "type": code}}, headers
    )


def call_tools(**calls: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Script:
    """Call tools by name, at once.

    The reply fails where the request does not offer a tool of such a name, so that a test of an
    agent shows it.

    >>> from spanlab.testing import ModelServer, call_tools, in_turn, say
    >>> agent = in_turn(call_tools(search={"query": "tower"}), say("It was built in 1889."))
    >>> server = ModelServer(agent)

    Args:
        calls: of each tool its arguments, or a list of them for several calls.
    """
    listed = [
        (name, arguments)
        for name, given in calls.items()
        for arguments in ([given] if isinstance(given, Mapping) else given)
    ]

    def script(ask: ModelRequest) -> ScriptedReply:
        if ask.wants_vectors:
            return say(None)
        if missing := [name for name in calls if name not in ask.tools]:
            offered = ", ".join(ask.tools) or "none"
            raise LookupError(f"no tool {', '.join(missing)} is offered; available: {offered}")
        reply = say(None, finish="tool_calls")
        made = [_call(f"call_{ask.number}_{n}", *call) for n, call in enumerate(listed)]
        reply.body["choices"][0]["message"]["tool_calls"] = made
        return reply

    return script


def _call(name: str, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    text = json.dumps(arguments, ensure_ascii=False)
    return {"id": name, "type": "function", "function": {"name": tool, "arguments": text}}


def in_turn(*replies: ScriptedReply | Script) -> Script:
    """Give one reply after the other; the last one stays. Requests for vectors take no turn."""
    left = list(replies)

    def script(ask: ModelRequest) -> ScriptedReply:
        if ask.wants_vectors:
            return say(None)
        reply = left.pop(0) if len(left) > 1 else left[0]
        return reply(ask) if callable(reply) else reply

    return script


def rules(*pairs: tuple[str, ScriptedReply | Script], otherwise: ScriptedReply | Script) -> Script:
    """Give the reply of the first pair whose words stand in the prompt."""

    def script(ask: ModelRequest) -> ScriptedReply:
        reply = next((reply for words, reply in pairs if words in ask.text), otherwise)
        return reply(ask) if callable(reply) else reply

    return script


_SECTION = re.compile(r"^\[\[ ## (\w+) ## \]\]\n?", re.MULTILINE)


def fields_of(text: str) -> dict[str, Any]:
    """Return the fields of a meant answer, in marked sections or JSON; {} for any other text."""
    pieces = _SECTION.split(text)[1:]
    if pieces:
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        return {name: _value(content.strip()) for name, content in pairs if name != "completed"}
    value = _value(text)
    return value if isinstance(value, dict) else {}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _fields(write: Callable[[dict[str, Any]], str]) -> Callable[[str], str]:
    """Write the fields of a meant answer; what has none stays as it is."""

    def form(text: str) -> str:
        fields = fields_of(text)
        return write(fields) if fields else text

    return form


def _only_list(write: Callable[[list[Any]], str]) -> Callable[[str], str]:
    """Write the list of an answer that is nothing but one list; others stay as they are."""

    def form(text: str) -> str:
        values = list(fields_of(text).values())
        alone = len(values) == 1 and isinstance(values[0], list)
        return write(values[0]) if alone else text

    return form


def _only_text(form: str) -> Callable[[str], str]:
    """Write the text of an answer that is nothing but one text; others stay as they are."""

    def write(text: str) -> str:
        values = list(fields_of(text).values())
        alone = len(values) == 1 and isinstance(values[0], str)
        return form.format(values[0]) if alone else text

    return write


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _fenced(text: str, language: str = "json") -> str:
    return f"```{language}\n{text}\n```"


def _sections(marker: str) -> Callable[[dict[str, Any]], str]:
    def write(fields: dict[str, Any]) -> str:
        texts = {k: v if isinstance(v, str) else _json(v) for k, v in fields.items()}
        return "\n\n".join(marker.format(name=name, text=text) for name, text in texts.items())

    return write


def _in_python(value: Any) -> str:
    """Write objects as calls of their class, as Python prints them."""
    if isinstance(value, list):
        return "[" + ", ".join(_in_python(element) for element in value) + "]"
    if isinstance(value, dict):
        return "Part(" + ", ".join(f"{k}={_in_python(v)}" for k, v in value.items()) + ")"
    return repr(value)


Form = Callable[[str], str]

FORMS: Mapping[str, Form] = {
    "json": _fields(_json),
    "fenced-json": _fields(lambda fields: _fenced(_json(fields))),
    "json-in-words": _fields(lambda fields: f"Here it is:\n{_json(fields)}\nI hope this helps!"),
    "indented-json": _fields(lambda fields: json.dumps(fields, indent=2)),
    "trailing-comma": _fields(lambda fields: _json(fields)[:-1] + ",}"),
    "bare-list": _only_list(_json),
    "fenced-list": _only_list(lambda values: _fenced(_json(values))),
    "other-key": _only_list(lambda values: _json({"result": values})),
    "python-objects": _only_list(_in_python),
    "python-literals": _fields(repr),
    "no-end-marker": _fields(_sections("[[ ## {name} ## ]]\n{text}")),
    "inline-markers": _fields(_sections("[[ ## {name} ## ]] {text}")),
    "bold-markers": _fields(_sections("**[[ ## {name} ## ]]**\n{text}")),
    "heading-names": _fields(_sections("### {name}\n{text}")),
    "tags": _fields(_sections("<{name}>\n{text}\n</{name}>")),
    "lines": _only_list(lambda values: "\n".join(map(_json, values)) or "[]"),
    "list-in-words": _only_list(lambda values: f"As [1] says:\n{_json(values)}\nThat is all."),
    "bare-text": _only_text("{}"),
    "tagged-text": _only_text("<corrected_answer>\n{}\n</corrected_answer>"),
    "text-in-words": _only_text("Sure! Here is the corrected answer:\n\n{}\n\nI changed little."),
    "bold-names": _fields(_sections("**{name}:** {text}")),
    "crlf": lambda text: text.replace("\n", "\r\n"),
}

_DRAFT = '[[ ## parts ## ]]\n[{"text": "The"}]\n\nWait. {"parts": [{"text": "was"}]} Or not.'

THOUGHTS: Mapping[str, Form] = {
    "think": lambda text: f"<think>\nIt is 42, I think.\n</think>\n\n{text}",
    "think-closed": lambda text: f"It is 42, I think.\n</think>\n\n{text}",
    "think-draft": lambda text: f"<think>\n{_DRAFT}\n</think>\n{text}",
    "think-closed-draft": lambda text: f"{_DRAFT}\n</think>\n{text}",
    "think-empty": lambda text: f"<think>\n\n</think>\n\n{text}",
    "thinking": lambda text: f"<thinking>{_DRAFT}</thinking>{text}",
    "thought": lambda text: f"<thought>{_DRAFT}</thought>{text}",
    "reasoning-tag": lambda text: f"<reasoning>{_DRAFT}</reasoning>\n{text}",
    "think-brackets": lambda text: f"[THINK]{_DRAFT}[/THINK]{text}",
    "seed-think": lambda text: f"<seed:think>{_DRAFT}</seed:think>{text}",
    "kimi-think": lambda text: f"◁think▷{_DRAFT}◁/think▷{text}",
    "cohere-think": lambda text: f"<|START_THINKING|>{_DRAFT}<|END_THINKING|>{text}",
    "channels-bare": lambda text: f"analysisWe say {_DRAFT}assistantfinal{text}",
    "end-of-turn": lambda text: f"{text}<|im_end|>",
    "channels": lambda text: (
        f"<|channel|>analysis<|message|>{_DRAFT}<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{text}"
    ),
}
