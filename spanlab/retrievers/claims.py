"""Asking claim by claim, so that what the question never asked for is looked up too.

Huang et al. (2025), UCSC at SemEval-2025 Task 3, "context from claims": the queries are made of the
claims of the answer instead of the question.
"""

from __future__ import annotations

import asyncio
from itertools import zip_longest
from typing import TYPE_CHECKING

import dspy

from spanlab.lm import predict
from spanlab.retrievers.base import Found, Retriever
from spanlab.schema import Item, Passage

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 8  # claims of one answer; each is a search


class WriteClaims(dspy.Signature):
    """List the factual claims of an answer as queries for a search engine.

    Go through the answer from its beginning to its end and write down every statement that a
    reference work could confirm or refute, as one short sentence each. A claim must make sense to
    somebody who sees neither question nor answer: replace pronouns and "the city" by the names they
    stand for. Keep names, numbers and dates exactly as the answer has them, even where they look
    wrong. Leave out opinions, advice and what is only said about the question. If there are more
    claims than allowed, keep those that are easiest to get wrong.
    """

    question: str = dspy.InputField(desc="what was asked; it may be empty")
    answer: str = dspy.InputField(desc="what a language model answered")
    language: str = dspy.InputField(desc="the language to write the claims in")
    most: int = dspy.InputField(desc="how many claims at most")
    claims: list[str] = dspy.OutputField(desc="self-contained claims in the order of the answer")


class ClaimQueries:
    """Asks another retriever for every claim of the answer."""

    def __init__(self, inner: Retriever, lm: dspy.LM, *, english: bool, most: int) -> None:
        self._inner = inner
        self._lm = lm
        self._english = english
        self._most = most
        self._write = dspy.Predict(WriteClaims)
        self.name = f"{inner.name}+claims" + ("-en" if english else "")

    async def retrieve(self, item: Item) -> Found:
        """Ask for the claims; for the question where the answer claims nothing.

        The passages come by turns, the best of every claim first.
        """
        claims = await self._claims(item)
        if not claims:
            return await self._inner.retrieve(item)
        asking = (
            self._inner.retrieve(item.model_copy(update={"question": claim})) for claim in claims
        )
        # All are waited for, also when one fails: what the others found is kept for the next try.
        answers = await asyncio.gather(*asking, return_exceptions=True)
        found: list[Found] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            found.append(answer)
        return Found(
            tuple(query for each in found for query in each.queries),
            _by_turns([each.passages for each in found]),
        )

    async def _claims(self, item: Item) -> tuple[str, ...]:
        if not item.answer.strip():
            return ()
        written = await predict(
            self._write,
            self._lm,
            question=item.question,
            answer=item.answer,
            language="English" if self._english else "that of the answer",
            most=self._most,
        )
        claims = (" ".join(claim.split()) for claim in written.claims)
        return tuple(dict.fromkeys(claim for claim in claims if claim))[: self._most]


def claim_queries(
    inner: Retriever, lm: dspy.LM, *, english: bool = False, most: int = MOST
) -> ClaimQueries:
    """Return a retriever that asks ``inner`` for every claim of the answer.

    Args:
        inner: who is asked.
        lm: writes the claims; from ``lm.language_model``.
        english: whether the claims are written in English, whatever the answer's language.
        most: how many claims of one answer at most, at least 1.
    """
    return ClaimQueries(inner, lm, english=english, most=most)


def _by_turns(lists: Sequence[Sequence[Passage]]) -> tuple[Passage, ...]:
    rounds = zip_longest(*lists)
    return tuple(dict.fromkeys(each for turn in rounds for each in turn if each is not None))
