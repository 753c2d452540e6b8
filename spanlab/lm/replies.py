"""What a reply of an endpoint comes to: tokens and cost, a usable answer, or a reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dspy import lm15

from spanlab.errors import (
    ModelError,
    RefusedError,
    UnavailableError,
    UnparsableAnswerError,
)
from spanlab.lm.attempts import Setback
from spanlab.lm.choice import ModelChoice
from spanlab.lm.failures import Reply, failure_of, no_answer_in_time, no_connection, unreadable
from spanlab.lm.secrets import redact
from spanlab.lm.usage import Usage

if TYPE_CHECKING:
    from dspy.lm15 import Response


def setback_of(error: Exception, choice: ModelChoice) -> Setback:
    """Classify what one attempt raised; the error holds no key and no cause."""
    # lm15 fails to put into words that the system gave a connection up, where it has no limit.
    late = isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError)
    if late or (isinstance(error, lm15.TransportError) and "timed out" in str(error)):
        return Setback(no_answer_in_time(choice.host, choice.timeout), again=True)
    if isinstance(error, lm15.TransportError):
        return Setback(no_connection(choice.host, error), again=True)
    if isinstance(error, lm15.LM15Error):
        return _reported(error, choice)
    name = type(error).__name__
    words = f"{choice.host} sent a reply that is no chat completion ({name}); retry later"
    return Setback(UnparsableAnswerError(redact(words)), again=False)


def _reported(error: lm15.LM15Error, choice: ModelChoice) -> Setback:
    message = str(error.message).split("\n\n", 1)[0]  # advice on lm15's own API comes after it
    status = error.status or next(
        (status for kind, status in _STATUS.items() if isinstance(error, kind)), 0
    )
    if status == 0:
        return Setback(ModelError(redact(f"{choice.model}: {message}")), again=False)
    if status < 400:
        return Setback(unreadable(message), again=False)
    reply = Reply(status, message, error.provider_code or "", error.retry_after)
    failed = failure_of(reply, host=choice.host, model=choice.model, key_name=choice.api_key_env)
    return Setback(failed, again=isinstance(failed, UnavailableError), after=error.retry_after)


# The kinds of error that some servers put into a reply with status 200.
_STATUS: dict[type[Exception], int] = {
    lm15.AuthError: 401,
    lm15.BillingError: 402,
    lm15.RateLimitError: 429,
    lm15.ContextLengthError: 400,
    lm15.UnsupportedModelError: 404,
    lm15.InvalidRequestError: 400,
    lm15.ServerError: 500,
}


def usage_of(response: Response, choice: ModelChoice) -> Usage:
    """Return one call's tokens as the endpoint counts them, and their cost."""
    spent = response.usage
    asked = spent.input_tokens or 0
    cached = min(spent.cache_read_tokens or 0, asked)
    answered = spent.output_tokens or 0
    cost = choice.price.of(asked, cached, answered) if choice.price else None
    return Usage(
        calls=1, input_tokens=asked, cached_tokens=cached, output_tokens=answered, cost=cost
    )


def check(response: Response, choice: ModelChoice) -> None:
    """Refuse an answer that is none.

    Raises:
        RefusedError: the model or its provider's filter declined.
        UnparsableAnswerError: the answer was cut off or is empty.
    """
    declined = next((part.text for part in response.message.parts if part.type == "refusal"), None)
    if declined or response.finish_reason == "content_filter":
        words = " ".join((declined or "").split())[:200]
        raise RefusedError(
            redact(f"{choice.model} refused to answer" + (f": “{words}”" if words else ""))
        )
    if response.finish_reason == "length":
        raise UnparsableAnswerError(
            f"the answer of {choice.model} was cut off after "
            f"{response.usage.output_tokens or 'too many'} tokens; raise max_tokens and retry"
        )
    if not (response.text or "").strip() and not response.tool_calls:
        raise unreadable("")


def as_chat_body(response: Response) -> dict[str, object]:
    """Return an answer as the JSON of a chat completion, which is how the cache keeps it."""
    parts = response.message.parts
    text = "".join(part.text for part in parts if part.type == "text")
    thoughts = "".join(part.text for part in parts if part.type == "thinking")
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.input)},
        }
        for call in response.tool_calls
    ]
    message: dict[str, object] = {"role": "assistant", "content": text}
    if thoughts:
        message["reasoning_content"] = thoughts
    if calls:
        message["tool_calls"] = calls
    return {
        "model": response.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": response.usage.input_tokens,
            "completion_tokens": response.usage.output_tokens,
            "total_tokens": response.usage.total_tokens,
        },
    }
