"""A claim is taken apart again and again until its parts stay whole.

After Metropolitansky et al. 2025, "VeriTrail", §3.1.1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from spanlab.lm.gathering import together

MOST_ATTEMPTS: Final = 20  # §3.1.1, footnote 2


async def sub_claims(
    claim: str,
    *,
    decompose: Callable[[str], Awaitable[Sequence[str]]],
    attempts: int = MOST_ATTEMPTS,
) -> tuple[str, ...]:
    """Take a claim apart.

    Args:
        claim: the claim.
        decompose: returns the parts of a claim, itself alone if it has none; several calls run at
            the same time.
        attempts: how often it is called at most.

    Returns:
        The parts that stayed whole, in the order in which they were found to, then those for which
        no attempt was left; empty where the claim itself stays whole.
    """
    known = {claim}
    whole: list[str] = []
    queue = [claim]
    while queue and attempts:
        now, queue = queue[:attempts], queue[attempts:]
        attempts -= len(now)
        for text, parts in zip(
            now, await together(*(_awaited(decompose(text)) for text in now)), strict=True
        ):
            new = [part for part in dict.fromkeys(parts) if part not in known]
            known.update(new)
            splits = len(set(parts)) > 1
            queue += new if splits else []
            whole += [text] if not splits or text in parts else []
    return tuple(part for part in (*whole, *queue) if part != claim)


async def _awaited(work: Awaitable[Sequence[str]]) -> Sequence[str]:
    return await work
