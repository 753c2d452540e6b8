"""Spanlab's errors for server reports and client exceptions: a reason, and what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
from spanlab.base.settings import EndpointSettings, ModelSettings
from spanlab.models.reports import ServerReport, words_of

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


@dataclass(frozen=True)
class EndpointVariables:
    """The environment variables of an endpoint, for the advice in messages."""

    model: str = ModelSettings.variable("model")
    address: str = EndpointSettings.variable("base_url")
    price: str = ModelSettings.variable("price")


USUAL_VARIABLES = EndpointVariables()


def failure_of(
    reply: ServerReport,
    *,
    host: str,
    model: str,
    key_name: str,
    variables: EndpointVariables = USUAL_VARIABLES,
) -> ModelError:
    """Return the error that a reply's status and words stand for.

    Args:
        reply: the endpoint's reply.
        host: the endpoint as messages name it.
        model: the model that was asked.
        key_name: the environment variable that holds the key.
        variables: those to check where the endpoint has no such model.
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
            f"check {variables.model} and {variables.address}"
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
    host: str, cause: BaseException, variables: EndpointVariables = USUAL_VARIABLES
) -> UnavailableError:
    """Return the error for an endpoint that cannot be reached.

    Args:
        host: the endpoint as messages name it.
        cause: what the client raised; its cause tells whether a connection was made at all.
        variables: those to check.
    """
    why = cause.__cause__ or cause
    names = {base.__name__ for base in type(why).__mro__}
    kind = NoConnectionError if names & _REFUSED_CONNECTIONS else UnavailableError
    return kind(
        f"no connection to {host}{quoted(str(why))}; check {variables.address} and the network, "
        "then retry the failed items"
    )


def no_answer_in_time(host: str, seconds: float) -> UnavailableError:
    """Return the error for an endpoint that did not answer in time."""
    return UnavailableError(
        f"{host} gave no answer within {seconds:g} s; raise the timeout or retry the failed items"
    )


def no_completion(
    host: str, reply: str, variables: EndpointVariables = USUAL_VARIABLES
) -> UnparsableAnswerError:
    """Return the error for a reply that is neither an answer nor an error.

    Args:
        host: the endpoint as messages name it.
        reply: what the endpoint sent, or what is wrong with it.
        variables: those to check.
    """
    return UnparsableAnswerError(
        f"{host} sent a reply that is not a chat completion{quoted(words_of(reply))}; "
        f"check {variables.address}"
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
