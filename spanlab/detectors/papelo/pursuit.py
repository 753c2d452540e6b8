"""Multi-hop evidence pursuit, without models and without a network.

After Malon 2024, "Multi-hop Evidence Pursuit Meets the Web: Team Papelo at FEVER 2024": algorithm
1 is ``pursue``, AlignContext of algorithm 2 is ``align``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from spanlab.lm.meter import together
from spanlab.text import terms

PAIRS: Final = 5  # questions with answers; 5 % of AVeriTeC's claims have more (§4.4)
WINDOW: Final = 5  # sentences of a page that are read (§3.3)
SHARE: Final = 0.7  # of a snippet's words, more of which a window must hold (§3.3)

A = TypeVar("A")
V = TypeVar("V")
_T = TypeVar("_T")


class Pair(NamedTuple, Generic[A]):
    """A question and its answer."""

    question: str
    answer: A


@dataclass(frozen=True)
class Pursuit(Generic[A, V]):
    """What was asked and answered about a claim, and what it amounts to.

    The first ``asked`` pairs are questions, those after them fill up. ``early`` is the verdict
    that ended the questions, None if none did.
    """

    pairs: tuple[Pair[A], ...]
    asked: int
    early: bool | None
    verdict: V | bool


async def pursue(  # noqa: PLR0913 - the steps of algorithm 1, by their names
    claim: str,
    *,
    first: Callable[[str], Awaitable[str]],
    follow: Callable[[str, Sequence[Pair[A]]], Awaitable[str | bool]],
    answer: Callable[[str, str], Awaitable[A]],
    paraphrase: Callable[[str], Awaitable[Sequence[str]]] | None,
    verdict: Callable[[str, Sequence[Pair[A]]], Awaitable[V]],
    n: int = PAIRS,
    late: bool = True,
) -> Pursuit[A, V]:
    """Ask about a claim until it is settled, ask the same in other words, and judge.

    Args:
        claim: the claim.
        first: ``first(claim)`` returns the first question.
        follow: ``follow(claim, pairs)`` is asked after every answer, the n-th, too; it returns the
            next question, or True or False if the claim is settled.
        answer: ``answer(claim, question)`` searches and answers.
        paraphrase: ``paraphrase(question)`` returns several at once, in the order in which they
            are used; a question for which it returns none is asked again as it is. With None the
            pairs are not filled up.
        verdict: ``verdict(claim, pairs)`` judges by all pairs.
        n: how many pairs there will be at most.
        late: whether the verdict is given by all pairs also where an early one was reached, which
            it may overturn; otherwise the early one stays.

    Returns:
        All pairs in order, the early verdict and the last one.
    """
    pairs: list[Pair[A]] = []
    early: bool | None = None
    question = await first(claim)
    while len(pairs) < n and early is None:
        pairs.append(Pair(question, await answer(claim, question)))
        said = await follow(claim, tuple(pairs))
        if isinstance(said, bool):
            early = said
        else:
            question = said
    asked = len(pairs)
    if paraphrase is not None:
        again = await _again([pair.question for pair in pairs], n, paraphrase)
        pairs += await _answered(claim, again, answer)
    if early is not None and not late:
        return Pursuit(tuple(pairs), asked, early, early)
    return Pursuit(tuple(pairs), asked, early, await verdict(claim, tuple(pairs)))


async def ask_at_once(
    claim: str,
    *,
    questions: Callable[[str], Awaitable[Sequence[str]]],
    answer: Callable[[str, str], Awaitable[A]],
    paraphrase: Callable[[str], Awaitable[Sequence[str]]] | None,
    verdict: Callable[[str, Sequence[Pair[A]]], Awaitable[V]],
    n: int = PAIRS,
) -> Pursuit[A, V]:
    """Ask all questions about a claim at once, without follow-up questions (AllAtOnce, §3.2).

    Args:
        claim: the claim.
        questions: ``questions(claim)`` returns the questions, of which the first ``n`` count; the
            claim itself is asked where there is none.
        answer: as for ``pursue``; all questions are answered at the same time.
        paraphrase: as for ``pursue``.
        verdict: as for ``pursue``.
        n: how many pairs there will be at most.

    Returns:
        All pairs in order and the verdict; there is no early one.
    """
    asked = list(await questions(claim))[:n] or [claim]
    pairs = await _answered(claim, asked, answer)
    if paraphrase is not None:
        pairs += await _answered(claim, await _again(asked, n, paraphrase), answer)
    return Pursuit(tuple(pairs), len(asked), None, await verdict(claim, tuple(pairs)))


async def _answered(
    claim: str, questions: Sequence[str], answer: Callable[[str, str], Awaitable[A]]
) -> list[Pair[A]]:
    """Answer several questions at the same time."""
    answers = await together(*(_awaited(answer(claim, each)) for each in questions))
    return list(map(Pair, questions, answers))


async def _again(
    asked: Sequence[str], n: int, paraphrase: Callable[[str], Awaitable[Sequence[str]]]
) -> list[str]:
    """Return what to ask until there are ``n`` questions: each of them in turn, in other words."""
    k = len(asked)
    bases = asked[: max(n - k, 0)]
    others = await together(*(_awaited(paraphrase(base)) for base in bases))
    ways = [tuple(other) or (base,) for base, other in zip(bases, others, strict=True)]
    return [ways[at % k][(at // k - 1) % len(ways[at % k])] for at in range(k, n)]


def align(
    sentences: Sequence[str], snippet: str, size: int = WINDOW, share: float = SHARE
) -> tuple[int, int] | None:
    """Find the part of a page that a search engine's snippet comes from.

    Args:
        sentences: the page's sentences in order.
        snippet: what the search engine showed.
        size: sentences in a window; a shorter page is one window.
        share: of the snippet's distinct words, more than which a window must hold, in [0, 1).

    Returns:
        The sentences ``[first, last)`` of the middle one of the windows that hold enough, the later
        of two middle ones; None if none does or the snippet has no words.
    """
    wanted = frozenset(terms(snippet))
    held = [wanted.intersection(terms(sentence)) for sentence in sentences]
    starts = range(max(len(sentences) - size, 0) + 1 if sentences else 0)
    enough = [
        start
        for start in starts
        if len(frozenset().union(*held[start : start + size])) > share * len(wanted)
    ]
    if not enough:
        return None
    first = enough[len(enough) // 2]
    return first, min(first + size, len(sentences))


async def _awaited(work: Awaitable[_T]) -> _T:
    return await work
