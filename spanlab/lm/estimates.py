"""What a run will come to, before it starts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spanlab.lm.choice import Price

# Rules of thumb for byte-pair encodings: about four letters of an alphabet make one token,
# and a character of a script without spaces is about one.
_LETTERS_PER_TOKEN = 4.0
_WIDE_FROM = 0x2E80  # CJK radicals; the scripts above are written without spaces


@dataclass(frozen=True)
class Estimate:
    """Calls, tokens and US dollars (None without a price); an upper estimate, not a bill."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None


def count_tokens(text: str) -> int:
    """Return about how many tokens a text has; 0 for an empty one."""
    wide = sum(1 for character in text if ord(character) >= _WIDE_FROM)
    return wide + round((len(text) - wide) / _LETTERS_PER_TOKEN)


def estimate(prompts: Iterable[str], *, output_tokens: int, price: Price | None = None) -> Estimate:
    """Return what asking these prompts will come to, one call each.

    Args:
        prompts: the texts to send, as far as they are known.
        output_tokens: how long an answer is, in tokens.
        price: US dollars per million tokens.

    Returns:
        The estimate, without any prefix cache; all zeros for no prompts.
    """
    sizes = [count_tokens(prompt) for prompt in prompts]
    asked, answered = sum(sizes), output_tokens * len(sizes)
    cost = price.of(asked, 0, answered) if price else None
    return Estimate(len(sizes), asked, answered, cost)
