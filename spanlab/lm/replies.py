"""What a reply of an endpoint comes to: tokens and cost, a usable answer, or a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spanlab.errors import (
    ModelError,
    RefusedError,
    UnavailableError,
    UnparsableAnswerError,
)
from spanlab.lm.attempts import Setback
from spanlab.lm.choice import ModelChoice
from spanlab.lm.failures import (
    failure_of,
    no_answer_in_time,
    no_connection,
    quoted,
    unreadable,
)
from spanlab.lm.http_replies import HttpReply, words_of
from spanlab.lm.thinking import thoughts_of
from spanlab.lm.tokens import count_tokens
from spanlab.lm.transport import NoReplyError
from spanlab.lm.usage import Usage
from spanlab.redaction import redact

if TYPE_CHECKING:
    from dspy.lm15 import Response


class ReportedError(Exception):
    """The endpoint has replied with an error."""

    def __init__(self, reply: HttpReply) -> None:
        super().__init__(reply.message)
        self.reply = reply


def setback_of(error: Exception, choice: ModelChoice) -> Setback:
    """Classify what one attempt raised; the error holds no key and no cause."""
    if isinstance(error, ModelError):
        return Setback(error, again=False)
    if isinstance(error, ReportedError):
        reply = error.reply
        failed = failure_of(
            reply, host=choice.host, model=choice.model, key_name=choice.api_key_env
        )
        return Setback(failed, isinstance(failed, UnavailableError), reply.retry_after)
    # The client fails to put into words that the system gave a connection up.
    late = isinstance((error.__cause__ or error).__context__, TimeoutError)
    if late or isinstance(error, TimeoutError) or "timed out" in str(error):
        return Setback(no_answer_in_time(choice.host, choice.timeout), again=True)
    if isinstance(error, NoReplyError):
        return Setback(no_connection(choice.host, error), again=True)
    return Setback(no_completion(choice, type(error).__name__), again=False)


def no_completion(choice: ModelChoice, said: str) -> UnparsableAnswerError:
    """Return the error for a reply that is neither an answer nor an error."""
    return UnparsableAnswerError(
        f"{choice.host} sent a reply that is no chat completion{quoted(words_of(said))}; "
        "check OPENAI_BASE_URL"
    )


def usage_of(response: Response, choice: ModelChoice, sent: bytes) -> Usage:
    """Return one call's tokens as the endpoint counts them, and their cost.

    The cost is what the endpoint states, else what the tokens come to at the choice's price; None
    if there is no price. Tokens that the endpoint does not count are counted here, about.

    Args:
        response: the answer.
        choice: whose price holds.
        sent: the request's body.
    """
    spent = response.usage
    counted = bool(spent.input_tokens)
    asked = spent.input_tokens or count_tokens(sent.decode())
    answered = spent.output_tokens or (0 if counted else count_tokens(response.text or ""))
    cached = min(spent.cache_read_tokens or 0, asked)
    cost = _stated_cost(response)
    if cost is None and choice.price is not None:
        cost = choice.price.of(asked, cached, answered)
    return Usage(
        calls=1,
        input_tokens=asked,
        cached_tokens=cached,
        output_tokens=answered,
        cost=cost,
        uncounted=0 if counted else 1,
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
        raise no_completion(choice, "")
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
        if thoughts_of(response):
            raise UnparsableAnswerError(
                f"{choice.model} thought and never answered: its reasoning fills the reply; "
                "raise max_tokens or lower the reasoning effort, then retry the failed items"
            )
        raise unreadable("")
