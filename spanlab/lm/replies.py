"""What a reply of an endpoint comes to: tokens and cost, a usable answer, or a reason."""

from __future__ import annotations

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
from spanlab.lm.failures import (
    HttpReply,
    failure_of,
    no_answer_in_time,
    no_connection,
    quoted,
    unreadable,
)
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
    return Setback(_no_completion(choice, type(error).__name__), again=False)


def _no_completion(choice: ModelChoice, why: str) -> UnparsableAnswerError:
    return UnparsableAnswerError(
        f"{choice.host} sent a reply that is no chat completion{quoted(why)}; check OPENAI_BASE_URL"
    )


def _reported(error: lm15.LM15Error, choice: ModelChoice) -> Setback:
    message = str(error.message).split("\n\n", 1)[0]  # advice on lm15's own API comes after it
    status = error.status or next(
        (status for kind, status in _STATUS.items() if isinstance(error, kind)), 0
    )
    if status == 0:
        return Setback(ModelError(redact(f"{choice.model}: {message}")), again=False)
    if status < 400:
        return Setback(_no_completion(choice, message), again=False)
    reply = HttpReply(status, message, error.provider_code or "", error.retry_after)
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
    """Return one call's tokens as the endpoint counts them, and their cost.

    The cost is what the endpoint states, else what the tokens come to at the choice's price; None
    if there is no price or the endpoint counts no tokens.
    """
    spent = response.usage
    asked = spent.input_tokens or 0
    cached = min(spent.cache_read_tokens or 0, asked)
    answered = spent.output_tokens or 0
    cost = _stated_cost(response)
    counted = spent.input_tokens is not None
    if cost is None and counted and choice.price is not None:
        cost = choice.price.of(asked, cached, answered)
    return Usage(
        calls=1, input_tokens=asked, cached_tokens=cached, output_tokens=answered, cost=cost
    )


def _stated_cost(response: Response) -> float | None:
    usage = (response.provider_data or {}).get("usage")
    cost = usage.get("cost") if isinstance(usage, dict) else None
    total = cost.get("total_cost") if isinstance(cost, dict) else None
    return float(total) if isinstance(total, int | float) else None


def check(response: Response, choice: ModelChoice) -> None:
    """Refuse an answer that is none.

    Raises:
        RefusedError: the model or its provider's filter declined.
        UnparsableAnswerError: the answer was cut off or is empty, or there is none at all.
    """
    if not (response.provider_data or {}).get("choices"):
        raise _no_completion(choice, "")
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
