"""Queries in place of the question: one for every claim of the answer, or in English.

What the question never asked for is looked up too. Huang et al. (2025), UCSC at SemEval-2025
Task 3, "context from claims": the queries are made of the claims of the answer.
"""

from __future__ import annotations

from dataclasses import replace

import dspy

from spanlab.models import predict
from spanlab.schema import Item
from spanlab.search.base import RetrievedPassages, Retriever, SearchQuery, question_of

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
    """Searches with another retriever, for an item by every claim of its answer.

    Args:
        inner: who is asked.
        lm: writes the claims; from ``lm.language_model``.
        english: whether claims are written in English, and all other queries put into it.
        most: how many claims of one answer at most, at least 1.
    """

    def __init__(
        self, inner: Retriever, lm: dspy.LM, *, english: bool = False, most: int = MOST
    ) -> None:
        self._lm = lm
        self._english = english
        self._most = most
        self._write = dspy.Predict(WriteClaims)
        self._inner = EnglishQueries(inner, lm) if english else inner
        self.name = f"{inner.name}+claims" + ("-en" if english else "")

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        """Search with the other retriever."""
        return await self._inner.search(query)

    async def queries(self, item: Item) -> tuple[SearchQuery, ...]:
        """Return the claims of the answer; the question where the answer claims nothing."""
        if not item.answer.strip():
            return (question_of(item),)
        prediction = await predict(
            self._write,
            self._lm,
            question=item.question,
            answer=item.answer,
            language="English" if self._english else "that of the answer",
            most=self._most,
        )
        texts = dict.fromkeys(" ".join(claim.split()) for claim in prediction.claims)
        language = "en" if self._english else item.lang
        claims = [SearchQuery(text, language=language) for text in texts if text]
        return tuple(claims[: self._most]) or (question_of(item),)


class TranslateQuestion(dspy.Signature):
    """Translate a question into English for a search engine.

    Say what the question says and nothing more: do not answer it, explain it or correct it. Give
    names in the spelling that English texts use, and keep numbers, dates and titles of works as
    they are. A question that is in English already stays as it is.
    """

    question: str = dspy.InputField(desc="in any language")
    english: str = dspy.OutputField(desc="the question in English, on one line")


class EnglishQueries:
    """Puts every query into English and asks another retriever.

    Args:
        inner: who is asked.
        lm: translates; from ``lm.language_model``.
    """

    def __init__(self, inner: Retriever, lm: dspy.LM) -> None:
        self._inner = inner
        self._lm = lm
        self._translate = dspy.Predict(TranslateQuestion)
        self.name = f"{inner.name}+en"

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        """Search in English; a query in English goes on as it is."""
        if query.language.partition("-")[0] == "en":
            return await self._inner.search(query)
        prediction = await predict(self._translate, self._lm, question=query.text)
        english = " ".join(prediction.english.split()) or query.text
        return await self._inner.search(replace(query, text=english, language="en"))
