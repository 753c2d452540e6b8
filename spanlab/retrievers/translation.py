"""Asking in English, in which most has been written; the answer under review stays as it is."""

from __future__ import annotations

import dspy

from spanlab.lm import predict
from spanlab.retrievers.base import Found, Retriever
from spanlab.schema import Item


class TranslateQuestion(dspy.Signature):
    """Translate a question into English for a search engine.

    Say what the question says and nothing more: do not answer it, explain it or correct it. Give
    names in the spelling that English texts use, and keep numbers, dates and titles of works as
    they are. A question that is in English already stays as it is.
    """

    question: str = dspy.InputField(desc="in any language")
    english: str = dspy.OutputField(desc="the question in English, on one line")


class Translated:
    """Asks another retriever in English."""

    def __init__(self, inner: Retriever, lm: dspy.LM) -> None:
        self._inner = inner
        self._lm = lm
        self._translate = dspy.Predict(TranslateQuestion)
        self.name = f"{inner.name}+en"

    async def retrieve(self, item: Item) -> Found:
        """Ask for the question in English; an English or empty question goes on as it is."""
        question = item.question.strip()
        if not question or item.lang.partition("-")[0] == "en":
            return await self._inner.retrieve(item)
        prediction = await predict(self._translate, self._lm, question=question)
        english = " ".join(prediction.english.split()) or question
        return await self._inner.retrieve(item.model_copy(update={"question": english}))


def translated(inner: Retriever, lm: dspy.LM) -> Translated:
    """Return a retriever that asks ``inner`` in English.

    Args:
        inner: who is asked.
        lm: translates; from ``lm.language_model``.
    """
    return Translated(inner, lm)
