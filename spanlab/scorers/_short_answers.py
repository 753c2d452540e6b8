"""Short answers against the right ones: exact match and F1 of words, as HotpotQA counts them.

Yang et al. 2018, "HotpotQA": before comparing, answers are put into lower case and lose
punctuation, articles and extra spaces; yes, no and "noanswer" share no words with anything else.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_WHOLE: Final = frozenset(("yes", "no", "noanswer"))


class AnswerScore(NamedTuple):
    """How well an answer matches: ``exact`` 0 or 1, ``f1`` in [0, 1]."""

    exact: float
    f1: float


def score_answer(answer: str, right: Sequence[str]) -> AnswerScore:
    """Score an answer by the right one that it matches best.

    Args:
        answer: what was answered.
        right: the right answers.

    Returns:
        The best of each score; zeros without right answers.
    """
    found = [_one(_words(answer), _words(each)) for each in right]
    return AnswerScore(
        max((each.exact for each in found), default=0.0),
        max((each.f1 for each in found), default=0.0),
    )


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _one(answer: list[str], right: list[str]) -> AnswerScore:
    exact = float(answer == right)
    whole = {" ".join(answer), " ".join(right)} & _WHOLE
    shared = (Counter(answer) & Counter(right)).total()
    if (whole and not exact) or not shared:
        return AnswerScore(exact, 0.0)
    precision, recall = shared / len(answer), shared / len(right)
    return AnswerScore(exact, 2 * precision * recall / (precision + recall))
