"""Algorithms 1 and 2: questions pursued, and answered from sources.

After Malon 2024, "Multi-hop Evidence Pursuit Meets the Web: Team Papelo at FEVER 2024": algorithm
1 is ``pursue``, AlignContext of algorithm 2 is ``align``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from spanlab.base.inbound import ABOUT, one_line
from spanlab.detection.common.evidence import CLOSE
from spanlab.models.meter import together
from spanlab.schema import Item, Passage, PassageQuote
from spanlab.text.extents import Extent
from spanlab.text.facts import closest_sentence
from spanlab.text.terms import terms
from spanlab.text.tokens import sentences

HITS: Final = 10  # search results that are read (§3.3)
SNIPPET: Final = 1_500  # characters; what is longer is a document of which a part is shown
_RAREST: Final = 8  # words that stand in for names where writing has no capitals
_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")


@dataclass(frozen=True)
class SourcedAnswer:
    """An answer, the passages it rests on (0-based indices of the item's), and how it was found.

    ``window`` is what was read of the one document, None if the answer rests on the search
    results; ``sentence`` is the sentence of it that comes closest to the answer.
    """

    text: str
    searched: str
    passages: tuple[int, ...] = ()
    window: PassageQuote | None = None
    sentence: PassageQuote | None = None
    remark: str | None = None


def names_in(text: str) -> str:
    """Return what a search is tried again with: names, and capitalised words after the first.

    Returns:
        Words with a capital or a digit, without the first one; in a text without capitals the
        rarest words of it, as far as their length tells. Empty for a text without words.
    """
    words = [match.group() for match in _WORD.finditer(text)]
    named = [word for word in words[1:] if word[0].isupper() or word[0].isdecimal()]
    if not any(word[0].isupper() for word in words):
        often = Counter(words)
        rare = sorted(often, key=lambda word: (often[word], -len(word), words.index(word)))
        named = sorted(rare[:_RAREST], key=words.index)
    return " ".join(dict.fromkeys(named))


def shown(passage: Passage, text: str, *, metadata: bool = True) -> str:
    """Return text of a passage as a prompt shows it: quoted, after its title, site and date."""
    about = [passage.title, site(passage.url), passage.date] if metadata else []
    head = one_line(", ".join(filter(None, about)), ABOUT)
    return f"({head}):\n{quoted(text)}" if head else quoted(text)


def quoted(text: str) -> str:
    """Return text that others wrote with a mark in front of every line, which nothing can end."""
    return "\n".join(f"> {line}" for line in text.splitlines())


def site(url: str | None) -> str | None:
    """Return the site of an address, without ``www.``; None without one."""
    try:
        host = urlsplit(url or "").hostname
    except ValueError:
        return None
    return host.removeprefix("www.") if host else None


def numbered(parts: Sequence[tuple[Passage, Extent]], *, metadata: bool = True) -> str:
    """Return parts of passages as a prompt shows them, numbered from 1."""
    return "\n\n".join(
        f"Document {number} {shown(passage, passage.text[slice(*part)], metadata=metadata)}"
        for number, (passage, part) in enumerate(parts, start=1)
    )


def part_about(text: str, searched: str, lang: str) -> Extent:
    """Return the characters of a passage that a prompt shows: all of it, unless it is long.

    Of a long passage without a snippet of a search engine, these are the five sentences around the
    best match.
    """
    if len(text) <= SNIPPET:
        return Extent(0, len(text))
    closest = closest_sentence([text], searched, lang=lang)
    places = sentences(text, lang)
    at = next((n for n, place in enumerate(places) if closest and place.start >= closest.start), 0)
    first = max(min(at - WINDOW // 2, len(places) - WINDOW), 0)
    return Extent(places[first].start, places[min(first + WINDOW, len(places)) - 1].end)


def window(page: str, snippet: str, lang: str) -> Extent | None:
    """Return the characters of a page that a snippet comes from; None if it does not hold it."""
    places = sentences(page, lang)
    aligned = align([page[slice(*place)] for place in places], snippet)
    if aligned is None:
        return None
    first, last = aligned
    return Extent(places[first].start, places[last - 1].end)


def answering(item: Item, read: PassageQuote, answer: str) -> PassageQuote | None:
    """Return the sentence of what was read that comes closest to an answer; None if none does."""
    text = item.passages[read.passage].text[read.start : read.end]
    closest = closest_sentence([text], answer, lang=item.lang)
    if closest is None or closest.score < CLOSE:
        return None
    return PassageQuote(
        passage=read.passage, start=read.start + closest.start, end=read.start + closest.end
    )


PAIRS: Final = 5  # questions with answers; 5 % of AVeriTeC's claims have more (§4.4)
WINDOW: Final = 5  # sentences of a page that are read (§3.3)
SHARE: Final = 0.7  # of a snippet's words, more of which a window must hold (§3.3)
A = TypeVar("A")
V = TypeVar("V")
_T = TypeVar("_T")


class QuestionAnswer(NamedTuple, Generic[A]):
    """A question and its answer."""

    question: str
    answer: A


@dataclass(frozen=True)
class PursuitResult(Generic[A, V]):
    """What was asked and answered about a claim, and what it amounts to.

    The first ``asked`` pairs are questions, those after them fill up. ``early`` is the verdict
    that ended the questions, None if none did.
    """

    pairs: tuple[QuestionAnswer[A], ...]
    asked: int
    early: bool | None
    verdict: V | bool


async def pursue(  # noqa: PLR0913 - the steps of algorithm 1, by their names
    claim: str,
    *,
    first: Callable[[str], Awaitable[str]],
    follow: Callable[[str, Sequence[QuestionAnswer[A]]], Awaitable[str | bool]],
    answer: Callable[[str, str], Awaitable[A]],
    paraphrase: Callable[[str], Awaitable[Sequence[str]]] | None,
    verdict: Callable[[str, Sequence[QuestionAnswer[A]]], Awaitable[V]],
    n: int = PAIRS,
    late: bool = True,
) -> PursuitResult[A, V]:
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
    pairs: list[QuestionAnswer[A]] = []
    early: bool | None = None
    question = await first(claim)
    while len(pairs) < n and early is None:
        pairs.append(QuestionAnswer(question, await answer(claim, question)))
        next_question = await follow(claim, tuple(pairs))
        if isinstance(next_question, bool):
            early = next_question
        else:
            question = next_question
    n_pairs = len(pairs)
    if paraphrase is not None:
        again = await _again([pair.question for pair in pairs], n, paraphrase)
        pairs += await _answered(claim, again, answer)
    if early is not None and not late:
        return PursuitResult(tuple(pairs), n_pairs, early, early)
    return PursuitResult(tuple(pairs), n_pairs, early, await verdict(claim, tuple(pairs)))


async def ask_at_once(
    claim: str,
    *,
    questions: Callable[[str], Awaitable[Sequence[str]]],
    answer: Callable[[str, str], Awaitable[A]],
    paraphrase: Callable[[str], Awaitable[Sequence[str]]] | None,
    verdict: Callable[[str, Sequence[QuestionAnswer[A]]], Awaitable[V]],
    n: int = PAIRS,
) -> PursuitResult[A, V]:
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
    first_questions = list(await questions(claim))[:n] or [claim]
    pairs = await _answered(claim, first_questions, answer)
    if paraphrase is not None:
        pairs += await _answered(claim, await _again(first_questions, n, paraphrase), answer)
    return PursuitResult(
        tuple(pairs), len(first_questions), None, await verdict(claim, tuple(pairs))
    )


async def _answered(
    claim: str, questions: Sequence[str], answer: Callable[[str, str], Awaitable[A]]
) -> list[QuestionAnswer[A]]:
    """Answer several questions at the same time."""
    answers = await together(*(_awaited(answer(claim, question)) for question in questions))
    return list(map(QuestionAnswer, questions, answers))


async def _again(
    first_questions: Sequence[str], n: int, paraphrase: Callable[[str], Awaitable[Sequence[str]]]
) -> list[str]:
    """Return what to ask until there are ``n`` questions: each of them in turn, in other words."""
    k = len(first_questions)
    bases = first_questions[: max(n - k, 0)]
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
