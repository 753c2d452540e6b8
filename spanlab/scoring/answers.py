"""Scores of answers in words: short answers, METEOR, AVeriTeC's.

Yang et al. 2018, "HotpotQA": before comparing, answers are put into lower case and lose
punctuation, articles and extra spaces; yes, no and "noanswer" share no words with anything else.

Later versions of NLTK part words at dashes and behind quotation marks, and sentences before curly
quotation marks, which changes a fifth of the scores. Here texts are parted as they were then,
whichever version is installed.

As in Schlichtkrull et al. 2023, "AVeriTeC", and the shared task of FEVER 2024.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import ClassVar, Final, NamedTuple

import numpy as np

from spanlab.base.errors import UsageError, missing_package
from spanlab.base.fields import FrozenModel

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
    scores = [_score_one(_words(answer), _words(gold)) for gold in right]
    return AnswerScore(
        max((score.exact for score in scores), default=0.0),
        max((score.f1 for score in scores), default=0.0),
    )


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _score_one(answer: list[str], right: list[str]) -> AnswerScore:
    exact = float(answer == right)
    whole = {" ".join(answer), " ".join(right)} & _WHOLE
    shared = (Counter(answer) & Counter(right)).total()
    if (whole and not exact) or not shared:
        return AnswerScore(exact, 0.0)
    precision, recall = shared / len(answer), shared / len(right)
    return AnswerScore(exact, 2 * precision * recall / (precision + recall))


_DASH = "\u2013"
_CLITICS = "re|ve|ll"  # in the rule that parts an opening quotation mark from its word
_LONE_LETTER = re.compile(r"'(?!re|ve|ll|[mtsdn])(\w)\b", re.IGNORECASE)
_CLOSING = re.compile(r"[\"')\]}]+?(?:\s+|(?=--)|$)", re.MULTILINE)

_NO_DATA = (
    "METEOR needs WordNet 3.0 and the sentence model punkt_tab of NLTK: "
    "python -m nltk.downloader wordnet punkt_tab (or let NLTK_DATA name a directory with both)"
)

_Words = Callable[[str], tuple[str, ...]]


def meteor(candidate: str, reference: str) -> float:
    """Return how alike two texts are, in [0, 1]: METEOR with exact, stemmed and synonymous words.

    Raises:
        UsageError: NLTK, WordNet or the sentence model is not there.
    """
    score, words = _nltk()
    return float(score(words(reference), words(candidate)))


@cache
def _nltk() -> tuple[Callable[..., float], _Words]:
    try:
        from nltk.corpus import wordnet
        from nltk.stem import PorterStemmer
        from nltk.translate.meteor_score import single_meteor_score
    except ModuleNotFoundError as error:
        raise missing_package("AVeriTeC's score", error.name, "averitec") from None
    try:
        wordnet.ensure_loaded()
        words = _parting()
    except LookupError:
        raise UsageError(_NO_DATA) from None
    # The same words come again and again; looking one up costs more than all the rest.
    dictionary = SimpleNamespace(synsets=cache(wordnet.synsets))
    stemmer = SimpleNamespace(stem=cache(PorterStemmer().stem))
    return partial(single_meteor_score, wordnet=dictionary, stemmer=stemmer), words


def _parting() -> _Words:
    """Return what parts a text into sentences, and those into words, as NLTK 3.9.1 did."""
    from nltk.data import find
    from nltk.tokenize import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktLanguageVars, PunktSentenceTokenizer, load_punkt_params

    class QuotedWords(NLTKWordTokenizer):
        STARTING_QUOTES: ClassVar = [
            *(
                rule
                for rule in NLTKWordTokenizer.STARTING_QUOTES
                if _CLITICS not in rule[0].pattern
            ),
            (_LONE_LETTER, r"' \1"),
        ]
        PUNCTUATION: ClassVar = [
            rule for rule in NLTKWordTokenizer.PUNCTUATION if not rule[0].fullmatch(_DASH)
        ]

    class SentenceMarks(PunktLanguageVars):
        re_boundary_realignment = _CLOSING
        _re_non_word_chars = r"(?:[)\";}\]\*:@\'\({\[!?])"

    model = load_punkt_params(find("tokenizers/punkt_tab/english/"))
    sentences = PunktSentenceTokenizer(model, lang_vars=SentenceMarks())
    tokenizer = QuotedWords()

    @cache
    def words(text: str) -> tuple[str, ...]:
        return tuple(
            word for sentence in sentences.tokenize(text) for word in tokenizer.tokenize(sentence)
        )

    return words


LABELS: Final = (
    "Supported",
    "Refuted",
    "Not Enough Evidence",
    "Conflicting Evidence/Cherrypicking",
)

LEVELS: Final = (0.2, 0.25, 0.3)  # that the match of the evidence must exceed
MOST_PAIRS: Final = 10  # of a prediction; further ones are not looked at


class PredictedClaim(FrozenModel):
    """A system's label and its pairs of a question and an answer."""

    id: str
    label: str
    pairs: tuple[tuple[str, str], ...] = ()


class GoldClaim(FrozenModel):
    """A claim's label, its questions, and every question with each of its answers as one text."""

    label: str
    questions: tuple[str, ...]
    answered: tuple[str, ...]


class AveritecItem(FrozenModel):
    """One claim's scores: matches in [0, 1], of questions alone and with answers."""

    id: str
    questions: float
    evidence: float
    correct: bool


class AveritecReport(FrozenModel):
    """Scores over all claims, in [0, 1].

    ``f1`` is by label, 0 for one that neither side has; ``score`` by level the share of claims
    whose label is right and whose evidence matches better than the level.
    """

    items: tuple[AveritecItem, ...]
    questions: float
    evidence: float
    accuracy: float
    f1: Mapping[str, float]
    macro_f1: float
    score: Mapping[float, float]


def averitec(
    sides: Sequence[tuple[PredictedClaim, GoldClaim]],
    alike: Callable[[str, str], float] = meteor,
) -> AveritecReport:
    """Score predictions against gold claims.

    Args:
        sides: prediction and gold of every claim, at least one.
        alike: how alike a predicted text is to a gold one, in [0, 1].

    Raises:
        UsageError: METEOR needs something that is not installed.
    """
    items = tuple(_item(predicted, gold, alike) for predicted, gold in sides)
    f1 = {label: _f1(sides, label) for label in LABELS}
    return AveritecReport(
        items=items,
        questions=float(np.mean([item.questions for item in items])),
        evidence=float(np.mean([item.evidence for item in items])),
        accuracy=float(np.mean([item.correct for item in items])),
        f1=f1,
        macro_f1=sum(f1.values()) / len(f1),
        score={
            level: float(np.mean([item.correct and item.evidence > level for item in items]))
            for level in LEVELS
        },
    )


def _item(
    predicted: PredictedClaim, gold: GoldClaim, alike: Callable[[str, str], float]
) -> AveritecItem:
    pairs = predicted.pairs[:MOST_PAIRS]
    return AveritecItem(
        id=predicted.id,
        questions=_match([question for question, _ in pairs], gold.questions, alike),
        evidence=_match(
            [f"{question} {answer}" for question, answer in pairs], gold.answered, alike
        ),
        correct=predicted.label == gold.label,
    )


def _match(
    predicted: Sequence[str], gold: Sequence[str], alike: Callable[[str, str], float]
) -> float:
    """Assign each gold text a text of its own; those that are left without count as 0."""
    from scipy.optimize import linear_sum_assignment

    if not predicted or not gold:
        return 0.0
    table = np.array([[alike(one, other) for other in gold] for one in predicted])
    return float(table[linear_sum_assignment(table, maximize=True)].sum()) / len(gold)


def _f1(sides: Sequence[tuple[PredictedClaim, GoldClaim]], label: str) -> float:
    both = sum(predicted.label == gold.label == label for predicted, gold in sides)
    either = sum((predicted.label == label) + (gold.label == label) for predicted, gold in sides)
    return 2 * both / either if either else 0.0
