"""What endpoints refuse and can do for a model: learnt from their words, found out by checks, kept.

Servers differ in what they take, and deployments are called anything, so nothing is decided by a
model's name: what a refusal names is left out, or sent under its other name, from then on.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from spanlab.base.fields import FrozenModel
from spanlab.base.settings import Settings
from spanlab.models.choice import Dollars
from spanlab.models.failures import ServerReport, is_too_long
from spanlab.schema import Count

SYSTEM = "system role"  # among refusals: instructions go into the user's message instead
SCHEMA = "json_schema"  # among refusals: the schema goes where llama.cpp's server reads it
_FORMAT = "response_format"
_LOOKED_AT = 2000  # characters of a message; behind them stands at most what was sent
_STATUSES = frozenset({400, 422, 500, 501})  # 500: a chat template that fails on a role
_OTHER_NAMES = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}
# How messages name what can be left out without changing what is asked.
_NAMED = {
    **{
        name: re.compile(rf"\b{name}\b", re.IGNORECASE)
        for name in (
            *("temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed", "n"),
            *("frequency_penalty", "presence_penalty", "logprobs", "top_logprobs"),
        )
    },
    _FORMAT: re.compile(r"response[_ ]format|json[_ ](schema|mode|object)", re.IGNORECASE),
    "reasoning_effort": re.compile(r"reasoning([_. ]effort)?\b|\bthink(ing)?\b", re.IGNORECASE),
}
_SYSTEM_NAMED = re.compile(
    r"\bsystem\b.{0,20}\b(role|message|prompt|instruction)|\brole\b.{0,20}\bsystem\b"
    r"|developer instruction|roles must alternate|only user and assistant roles",
    re.IGNORECASE | re.DOTALL,
)


class RefusedParameters:
    """The parameters that one endpoint refuses for one model, for any number of threads.

    Args:
        refused: what is known to be.
    """

    def __init__(self, refused: Iterable[str] = ()) -> None:
        self.refused = frozenset(refused)

    @property
    def remarks(self) -> list[str]:
        """What is done about refusals, a sentence each."""
        moot = {SCHEMA} if _FORMAT in self.refused else set()
        return [self._remark(name) for name in sorted(self.refused - moot)]

    def _remark(self, name: str) -> str:
        if name == SCHEMA:
            return "the endpoint takes no schema in OpenAI's response_format: sent in llama.cpp's"
        if name == SYSTEM:
            return "the endpoint takes no system message: it is part of the user's message"
        other_name = _OTHER_NAMES.get(name)
        if other_name is not None and other_name not in self.refused:
            return f"the endpoint does not take {name}: sent as {other_name}"
        return f"the endpoint does not take {name}: left out"

    def adapt(self, body: bytes) -> bytes:
        """Return a request's body without what is refused."""
        if not (self.refused and body):
            return body
        request = json.loads(body)
        for name in self.refused & request.keys():
            value, other_name = request.pop(name), _OTHER_NAMES.get(name)
            if other_name is not None and other_name not in self.refused:
                request[other_name] = value
        if SCHEMA in self.refused and _has_schema(request):
            schema = request[_FORMAT]["json_schema"]["schema"]
            request[_FORMAT] = {"type": "json_object", "schema": schema}
        if SYSTEM in self.refused:
            request["messages"] = _without_system(request["messages"])
        return json.dumps(request, ensure_ascii=False).encode()

    def learn(self, reply: ServerReport, sent: bytes) -> bool:
        """Note what a refusal names.

        Args:
            reply: the refusal.
            sent: the body that was refused.

        Returns:
            Whether it names something that was sent and can be left out.
        """
        if not sent or reply.status not in _STATUSES or is_too_long(reply):
            return False  # "use fewer max_tokens" of an account without credit is no refusal
        request, words = json.loads(sent), f"{reply.parameter} {reply.message}"[:_LOOKED_AT]
        named = next(
            (name for name, form in _NAMED.items() if name in request and form.search(words)), None
        )
        if named is None and _has_system(request) and _SYSTEM_NAMED.search(words):
            named = SYSTEM
        if named == _FORMAT and _has_schema(request):
            named = SCHEMA
        if named is not None:
            self.refused |= {named}
        return named is not None


@cache
def dialect_of(endpoint: str, model: str) -> RefusedParameters:
    """Return the refused parameters known of an endpoint and model, shared in this process."""
    check = recall(endpoint, model)
    return RefusedParameters(check.refused if check is not None else ())


def _has_schema(request: Mapping[str, Any]) -> bool:
    """Say whether a request has a schema in OpenAI's form."""
    return bool((request.get(_FORMAT) or {}).get("json_schema"))


def _has_system(request: Mapping[str, Any]) -> bool:
    return any(message.get("role") == "system" for message in request["messages"])


def _without_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages with what the system says at the beginning of what the user says first."""
    instructions = [
        str(message["content"]) for message in messages if message.get("role") == "system"
    ]
    dialogue = [message for message in messages if message.get("role") != "system"]
    question = dialogue[0] if dialogue and dialogue[0].get("role") == "user" else None
    if question is None:
        return [{"role": "user", "content": "\n\n".join(instructions)}, *dialogue]
    content = question["content"]
    if isinstance(content, list):  # text and images
        joined: Any = [*({"type": "text", "text": text} for text in instructions), *content]
    else:
        joined = "\n\n".join([*instructions, str(content)])
    return [{**question, "content": joined}, *dialogue[1:]]


STRUCTURED = "structured"  # the kind of call whose answer is JSON by a schema


class CheckedCall(FrozenModel):
    """One kind of call, whether the endpoint can do it, and what there is to say of it."""

    kind: str
    works: bool
    note: str = ""
    is_task: bool = False  # a detector's, which leans on the others


class ModelCheck(FrozenModel):
    """The result of checking what an endpoint can do for a model.

    ``refused`` are the parts of requests that it does not take (see ``RefusedParameters``).
    ``seconds`` are those of a short answer, ``speed`` its tokens a second (None: not counted).
    ``cost`` of the check is in US dollars, None where no price is known. ``at`` is an ISO time.
    ``window`` is how many tokens prompt and answer may have together, None if it does not say.
    """

    model: str
    endpoint: str
    at: str
    trials: tuple[CheckedCall, ...]
    refused: tuple[str, ...] = ()
    seconds: float = 0.0
    speed: float | None = None
    window: Count | None = None
    calls: Count = 0
    input_tokens: Count = 0
    output_tokens: Count = 0
    cost: Dollars | None = None

    @property
    def figures(self) -> str:
        """How fast it is and what the check came to, in one line."""
        speed = "" if self.speed is None else f", {self.speed:g} tokens a second"
        cost = "price unknown" if self.cost is None else f"${self.cost:.4f}"
        tokens = f"{self.input_tokens:,} tokens in, {self.output_tokens:,} out"
        window = "unknown" if self.window is None else f"{self.window:,} tokens"
        return (
            f"context window: {window}; "
            f"a short reply took {self.seconds:.2f} s{speed}; "
            f"this check: {self.calls} calls, {tokens}, {cost}"
        )

    def works(self, kind: str) -> bool:
        """Say whether the endpoint can do a kind of call; no if it was not tried."""
        return any(trial.works for trial in self.trials if trial.kind == kind)


def keep(check: ModelCheck, settings: Settings) -> None:
    """Keep a check, in place of an earlier one of that endpoint and model."""
    path = _path(check.endpoint, check.model, settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{check.model_dump_json(indent=2)}\n", encoding="utf-8")


def recall(endpoint: str, model: str, settings: Settings | None = None) -> ModelCheck | None:
    """Return the last check of an endpoint and model; None without a readable one."""
    try:
        path = _path(endpoint, model, settings or Settings.read())
        return ModelCheck.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def learnt_of(endpoint: str, model: str) -> dict[str, JsonValue]:
    """Return what the last check found, as options of a model: ``structured`` and ``window``."""
    check = recall(endpoint, model)
    if check is None:
        return {"structured": False}
    return {"structured": check.works(STRUCTURED), "window": check.window}


def _path(endpoint: str, model: str, settings: Settings) -> Path:
    name = hashlib.sha256(f"{endpoint}\n{model}".encode()).hexdigest()[:32]
    return settings.home / "models" / f"{name}.json"
