"""What model calls came to in tokens and money, and the limits on that."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial

from pydantic import field_validator

from spanlab.base.options import OptionModel, option


@dataclass(frozen=True)
class Usage:
    """Sums over model calls.

    ``calls`` counts answers that came over the network, ``from_cache`` those that the disk cache
    gave for nothing, ``failed`` requests that ended without an answer. ``cached_tokens`` are the
    part of ``input_tokens`` that the provider had cached. ``cost`` is in US dollars and None as
    soon as one call's price is unknown. ``uncounted`` are the calls whose tokens the endpoint did
    not count: they, and what they cost, are counted here, about. ``searches`` are those
    that search services and tool servers were asked for; ``tool_calls`` are all calls of tools that
    agents made, searches among them. ``claims`` were judged; ``texts_read`` of the ``texts`` that
    led to their answers were read for them, where they were followed to their sources.
    ``quotes`` of answers were replied, of which ``quotes_lost`` do not stand in their answer.
    """

    calls: int = 0
    from_cache: int = 0
    failed: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    uncounted: int = 0
    searches: int = 0
    tool_calls: int = 0
    claims: int = 0
    texts_read: int = 0
    texts: int = 0
    quotes: int = 0
    quotes_lost: int = 0

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return self._with(other, 1)

    def __sub__(self, other: Usage) -> Usage:
        return self._with(other, -1)

    def _with(self, other: Usage, sign: int) -> Usage:
        is_priced = self.cost is not None and other.cost is not None
        cost = (self.cost or 0.0) + sign * (other.cost or 0.0) if is_priced else None
        counts = {name: getattr(self, name) + sign * getattr(other, name) for name in _COUNTS}
        return Usage(cost=cost, **counts)


_COUNTS = tuple(field.name for field in fields(Usage) if field.name != "cost")


_limit = partial(option, None, group="Model calls", placeholder="no limit")


class Budget(OptionModel):
    """Limits of one run, each of the sum of that name in ``Usage``; None is no limit."""

    calls: int | None = _limit(
        title="Maximum calls",
        help="Stop after this many model calls.",
        flags="--max-calls",
        ge=0,
    )
    tokens: int | None = _limit(
        title="Maximum tokens",
        help="Stop after this many tokens of model calls, input and output together.",
        flags="--max-tokens",
        ge=0,
    )
    cost: float | None = _limit(
        title="Maximum cost (US dollars)",
        help="Stop when model calls and searches have cost this much, in US dollars.",
        flags="--max-cost",
        ge=0.0,
        allow_inf_nan=False,
    )
    searches: int | None = _limit(
        title="Maximum searches",
        help="Stop after this many searches and calls of tool servers.",
        flags="--max-searches",
        ge=0,
    )


class CallLimits(OptionModel):
    """How fast models may be called, and what the calls may come to.

    Whatever has such limits extends this, and hands them on whole: a further one works everywhere.
    """

    rate: float | None = _limit(
        title="Rate limit (calls per minute)",
        help="At most this many model calls per minute, for all workers together.",
        gt=0.0,
        le=1_000_000.0,
    )
    budget: Budget | None = None

    @field_validator("budget")
    @classmethod
    def _none_without_limits(cls, budget: Budget | None) -> Budget | None:
        return None if budget == Budget() else budget
