"""Spanlab's errors for server reports and client exceptions: a reason, and what to do about it.

What a server reports is read from whatever form its reply has: OpenAI sends ``{"error": {"message":
…, "code": …}}``; Ollama a string as error, vLLM ``{"object": "error", "message": …}``, FastAPI a
``detail``, OpenRouter an error inside a choice or under status 200, and whatever stands in front of
them a page of HTML.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from spanlab.base.errors import (
    ConfigurationError,
    ContextTooLongError,
    ForbiddenError,
    ModelError,
    NoConnectionError,
    NoCreditError,
    RefusedError,
    SpanlabError,
    UnavailableError,
    UnknownModelError,
    UnparsableAnswerError,
    WrongKeyError,
)
from spanlab.base.redaction import redact
from spanlab.models.choice import USUAL_ORIGINS, ModelOrigins
from spanlab.schema import storable_json

_EXCERPT = 200  # characters of a provider's message or a model's answer that a reason quotes
_NO_CREDIT = re.compile(
    r"insufficient_quota|insufficient.{0,20}(balance|credit|fund)|credit.{0,30}(exhaust|too low)"
    r"|exceeded your current quota|billing|payment required",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context_length|context length|context window|context size|context limit|maximum context"
    r"|too many tokens|input token count|prompt is too long|input is too long|reduce the length"
    r"|inputs` tokens",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"content_filter|content_policy|content policy|content management policy|usage polic|safety"
    r"|flagged|moderation",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|no such model|unknown model|no models? loaded|not a valid model"
    r"|\bmodel\b.{0,100}(not found|does not exist|not exist|not loaded)",
    re.IGNORECASE,
)
_NO_MEMORY = re.compile(
    r"out of memory|\boom\b|(more|not enough|insufficient).{0,20} memory", re.IGNORECASE
)
_REFUSED_CONNECTIONS = {"ConnectError", "ClientConnectorError"}  # as httpx and aiohttp name them


def failure_of(
    reply: ServerReport,
    *,
    host: str,
    model: str,
    key_name: str,
    origins: ModelOrigins = USUAL_ORIGINS,
) -> ModelError:
    """Return the error that a reply's status and words stand for.

    Args:
        reply: the endpoint's reply.
        host: the endpoint as messages name it.
        model: the model that was asked.
        key_name: the environment variable that holds the key.
        origins: what to check where the endpoint has no such model.
    """
    words, reason = f"{reply.code} {reply.message}", quoted(reply.message)
    status = reply.status
    if status == 402 or (status in {0, 403, 429} and _NO_CREDIT.search(words)):
        return NoCreditError(
            f"credits exhausted: the account behind {key_name} at {host} has nothing left{reason}; "
            "top it up or use another key, then retry the failed items"
        )
    if status not in {401, 404, 429}:
        if is_too_long(reply):
            return ContextTooLongError(
                f"the prompt is too long for {model}{reason}; "
                "use fewer or shorter passages, or a model with a larger context"
            )
        if status < 500 and _REFUSED.search(words):
            return RefusedError(f"{host} refused the prompt by its content policy{reason}")
    if status in {401, 403}:
        refusal = WrongKeyError if status == 401 else ForbiddenError
        return refusal(
            f"{host} does not accept the key in {key_name} for {model}{reason}; set the right key"
        )
    if status == 404 or (status in {0, 400, 422} and _NO_MODEL.search(words)):
        return UnknownModelError(
            f"{host} has no model {model!r} at this address{reason}; "
            f"check {origins.name} and {origins.address}"
        )
    return _unavailable(reply, host, reason)


def is_too_long(reply: ServerReport) -> bool:
    """Return whether an error's words say that the prompt does not fit the model."""
    return _TOO_LONG.search(f"{reply.code} {reply.message}") is not None


def _unavailable(reply: ServerReport, host: str, words: str) -> ModelError:
    if reply.status == 429:
        wait = f"; it asks to wait {reply.retry_after:g} s" if reply.retry_after else ""
        return UnavailableError(
            f"{host} keeps refusing calls above its rate limit{words}{wait}; "
            "lower the concurrency or retry the failed items later"
        )
    if _NO_MEMORY.search(reply.message):
        return UnavailableError(
            f"{host} has run out of memory{words}; lower the concurrency, or use fewer passages or "
            "a smaller model"
        )
    if reply.status >= 500 or reply.status in {0, 408, 409}:
        status = f"with status {reply.status}" if reply.status else "with an error"
        return UnavailableError(f"{host} answers {status}{words}; retry the failed items later")
    return ModelError(f"{host} refused the request with status {reply.status}{words}")


def as_first_failure(error: ModelError) -> ModelError:
    """Return an error as it counts while the endpoint has not answered any call of the run.

    A wrong key (401) and an unknown model (404) are the configuration's whenever they come. A
    forbidden call (403) and a refused connection are so only at first: later, the former can be
    due to one prompt, and the latter to a server that starts anew.
    """
    if isinstance(error, ForbiddenError | NoConnectionError):
        return ConfigurationError(str(error))
    return error


def no_connection(
    host: str, cause: BaseException, origins: ModelOrigins = USUAL_ORIGINS
) -> UnavailableError:
    """Return the error for an endpoint that cannot be reached.

    Args:
        host: the endpoint as messages name it.
        cause: what the client raised; its cause tells whether a connection was made at all.
        origins: what to check.
    """
    why = cause.__cause__ or cause
    names = {base.__name__ for base in type(why).__mro__}
    kind = NoConnectionError if names & _REFUSED_CONNECTIONS else UnavailableError
    reason: Any = getattr(why, "os_error", why)  # aiohttp writes its own settings around it …
    words = getattr(reason, "strerror", None) or str(why)
    if "Connect call failed" in words and reason.errno:  # … and asyncio a tuple behind it
        words = os.strerror(reason.errno)
    return kind(
        f"no connection to {host}{quoted(words)}; check {origins.address} and the network, "
        "then retry the failed items"
    )


def no_answer_in_time(host: str, seconds: float) -> UnavailableError:
    """Return the error for an endpoint that did not answer in time."""
    return UnavailableError(
        f"{host} gave no answer within {seconds:g} s; raise the timeout or retry the failed items"
    )


def no_completion(
    host: str, reply: str, origins: ModelOrigins = USUAL_ORIGINS
) -> UnparsableAnswerError:
    """Return the error for a reply that is neither an answer nor an error.

    Args:
        host: the endpoint as messages name it.
        reply: what the endpoint sent, or what is wrong with it.
        origins: what to check.
    """
    return UnparsableAnswerError(
        f"{host} sent a reply that is not a chat completion{quoted(words_of(reply))}; "
        f"check {origins.address}"
    )


def translate(error: BaseException) -> SpanlabError:
    """Return the spanlab error that an exception of a model call stands for.

    Raise it with ``from None``: what it came from may quote a key.

    Args:
        error: what a dspy module or a ``dspy.LM`` raised.

    Returns:
        The error itself if it is one of spanlab's, or the one that lies in its causes; otherwise
        a new one, redacted.
    """
    for cause in _causes(error):
        if isinstance(cause, SpanlabError):
            return cause
    for cause in _causes(error):
        kind = {base.__name__ for base in type(cause).__mro__}
        if "AdapterParseError" in kind:
            answer = str(getattr(cause, "lm_response", "") or "")
            return unreadable_answer(answer)
    return call_failed(error)


def call_failed(error: BaseException) -> ModelError:
    """Return the error for what no other says: nothing is known of it but its kind and words."""
    return ModelError(redact(f"the model call failed: {type(error).__name__}{quoted(str(error))}"))


def unreadable_answer(answer: str) -> UnparsableAnswerError:
    """Return the error for an answer that is not in the form asked for."""
    if not answer.strip():
        return UnparsableAnswerError("the model's answer is empty; retry the failed items")
    return UnparsableAnswerError(
        f"the model's answer is not in the form asked for{quoted(answer)}; "
        "retry the failed items or use another model"
    )


def _causes(error: BaseException) -> list[BaseException]:
    causes: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in causes:
        causes.append(current)
        current = current.__cause__ or current.__context__
    return causes


def quoted(message: str) -> str:
    """Return a colon and the beginning of a quoted message, without keys; "" for an empty one."""
    text = redact(" ".join(message.split()))
    if not text:
        return ""
    return f": “{text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + '…'}”"


_LOOKED_AT = 20_000  # characters of a page in which its words are looked for
_HIDDEN = re.compile(r"<(script|style)\b.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# Statuses of errors that came without one, by their code or type.
_STATUSES = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "insufficient_quota": 429,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "overloaded_error": 503,
}


@dataclass(frozen=True)
class ServerReport:
    """An error as a server reports it; ``status`` is 0 where nothing says which kind it is.

    ``parameter`` is the part of the request that it names, "" for none. ``retry_after`` is in
    seconds.
    """

    status: int
    message: str
    code: str = ""
    parameter: str = ""
    retry_after: float | None = None

    @classmethod
    def read(cls, status: int, headers: Mapping[str, str], data: bytes) -> ServerReport:
        """Read a reply whose status says that it is an error.

        Args:
            status: of HTTP.
            headers: with names in lower case.
            data: the body, or its beginning.
        """
        text = data.decode("utf-8", errors="replace")
        try:
            report = read_report(storable_json(text))
        except ValueError:
            report = None
        report = report or cls(status, words_of(text))
        wait = seconds_of(headers.get("retry-after"))
        return replace(report, status=status, retry_after=wait)


def read_report(body: object) -> ServerReport | None:
    """Return the error that the JSON of a reply reports; None if it reports none."""
    if not isinstance(body, dict):
        return None
    choices = body.get("choices")
    if isinstance(choices, list) and choices:
        choice = choices[0] if isinstance(choices[0], dict) else {}
        error = body.get("error") or choice.get("error")
        return _read(error) if error else None
    if body.get("error"):
        return _read(body["error"])
    if body.get("object") == "error":
        return _read(body)
    message = next((body[name] for name in ("detail", "message", "errors") if body.get(name)), None)
    return None if message is None else _read(message)


def words_of(page: str) -> str:
    """Return the words of a text that may be a page of HTML."""
    page = page[:_LOOKED_AT]
    if page.lstrip()[:1] != "<":
        return page
    return " ".join(html.unescape(_TAG.sub(" ", _HIDDEN.sub(" ", page))).split())


def _read(error: object) -> ServerReport:
    """Read an error: a sentence, an object that has one, or a list of such."""
    if isinstance(error, list):
        return ServerReport(400, "; ".join(_read(inner).message for inner in error))
    if not isinstance(error, dict):
        return ServerReport(0, str(error))
    code = str(error.get("code") or error.get("type") or "")
    words = error.get("message") or error.get("msg") or error.get("detail")
    message = words if isinstance(words, str) else json.dumps(words or error, ensure_ascii=False)
    place = error.get("loc")
    if isinstance(place, list):
        message = f"{'.'.join(map(str, place))}: {message}"
    return ServerReport(
        _status(error), message + _upstream(error), code, str(error.get("param") or "")
    )


def _upstream(error: dict[str, Any]) -> str:
    """Return what the provider behind a gateway said."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f": {raw}" if raw else ""


def _status(error: dict[str, Any]) -> int:
    for name in ("code", "status", "type"):
        value = error.get(name)
        if isinstance(value, int | str) and re.fullmatch(r"[45]\d\d", str(value)):
            return int(value)
        if value in _STATUSES:
            return _STATUSES[value]
    return 0


def seconds_of(retry_after: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for, None without a usable one."""
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (when.astimezone(UTC) - datetime.now(UTC)).total_seconds())
