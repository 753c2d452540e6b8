"""The words of the answer that state the wrong part of a claim.

A model names them and the fact-to-span mapper finds them, as in the knowledge-graph detector of
Huang et al. 2025, "UCSC at SemEval-2025 Task 3".
"""

from __future__ import annotations

from collections.abc import Iterable

import dspy

from spanlab.lm.lenient import ReplyModel, Text
from spanlab.mappers import Quote, QuoteMapping, map_fact
from spanlab.mappers.quotes import FLOOR


class WrongWords(ReplyModel):
    """Words copied from the answer."""

    text: Text


class NameWrongWords(dspy.Signature):
    """Name the words of an answer that make a claim of it wrong.

    Copy them from the answer letter by letter, as few as carry the error: the wrong name, number,
    date or word, not the sentence around it. If everything that the claim says is made up, copy
    all the words that state it.
    """

    question: str = dspy.InputField(desc="what was asked")
    answer: str = dspy.InputField(desc="the answer; only its words may be copied")
    sentence: str = dspy.InputField(desc="the sentence of the answer that states the claim")
    claim: str = dspy.InputField(desc="the wrong claim")
    reason: str = dspy.InputField(desc="why it is wrong")
    words: list[WrongWords] = dspy.OutputField(desc="the wrong words in the order of the answer")


def wrong_words(prediction: dspy.Prediction) -> tuple[str, ...]:
    """Return the words that a predictor of `NameWrongWords` named; blank ones are left out."""
    words: list[WrongWords] = prediction.words or []
    return tuple(each.text for each in words if each.text.strip())


def placed(
    answer: str,
    sentence: str | None,
    words: Iterable[str],
    *,
    prob: float | None,
    lang: str,
    floor: float = FLOOR,
) -> QuoteMapping:
    """Find the words that a model named.

    Args:
        answer: the text as it is.
        sentence: the sentence of it that states the claim, None if that is not known.
        words: what was named.
        prob: probability of the spans, in [0, 1].
        lang: BCP 47 tag of the answer.
        floor: how alike the words and their place must be, in [0, 1].

    Returns:
        The places, and the words that were not found.
    """
    quotes = [Quote(text, prob) for text in words]
    return map_fact(answer, sentence, quotes, lang=lang, floor=floor)
