"""METEOR as AVeriTeC's shared task computed it: NLTK's, with WordNet 3.0 and NLTK 3.9.1's words.

Later versions of NLTK part words at dashes and behind quotation marks, and sentences before curly
quotation marks, which changes a fifth of the scores. Here texts are parted as they were then,
whichever version is installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import ClassVar

from spanlab.errors import UsageError, missing_package

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
    known = SimpleNamespace(synsets=cache(wordnet.synsets))
    stemmer = SimpleNamespace(stem=cache(PorterStemmer().stem))
    return partial(single_meteor_score, wordnet=known, stemmer=stemmer), words


def _parting() -> _Words:
    """Return what parts a text into sentences, and those into words, as NLTK 3.9.1 did."""
    from nltk.data import find
    from nltk.tokenize import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktLanguageVars, PunktSentenceTokenizer, load_punkt_params

    class Words(NLTKWordTokenizer):
        STARTING_QUOTES: ClassVar = [
            *(
                each
                for each in NLTKWordTokenizer.STARTING_QUOTES
                if _CLITICS not in each[0].pattern
            ),
            (_LONE_LETTER, r"' \1"),
        ]
        PUNCTUATION: ClassVar = [
            each for each in NLTKWordTokenizer.PUNCTUATION if not each[0].fullmatch(_DASH)
        ]

    class Marks(PunktLanguageVars):
        re_boundary_realignment = _CLOSING
        _re_non_word_chars = r"(?:[)\";}\]\*:@\'\({\[!?])"

    model = load_punkt_params(find("tokenizers/punkt_tab/english/"))
    sentences = PunktSentenceTokenizer(model, lang_vars=Marks())
    tokenizer = Words()

    @cache
    def words(text: str) -> tuple[str, ...]:
        return tuple(
            word for sentence in sentences.tokenize(text) for word in tokenizer.tokenize(sentence)
        )

    return words
