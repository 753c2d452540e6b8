"""Searching in English, in which most has been written; the answer under review stays as it is."""

from __future__ import annotations

from dataclasses import replace

import dspy

from spanlab.lm import predict
from spanlab.retrievers.base import RetrievedPassages, Retriever, SearchQuery


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
