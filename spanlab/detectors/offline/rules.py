"""From what is known of a word to the probability that annotators mark it.

Two steps. *Doubt* looks at the word alone: the table below gives, for each sort of word and each
degree of support, the share of annotators that marked such words in Mu-SHROOM's validation set
(10 languages, contexts of Perplexity Sonar Pro), averaged over languages and rounded; words that
stand near the same neighbours in the passages are doubted less, by the measured slope. *Spreading*
looks around: annotators mark phrases, and an answer that has gone wrong stays wrong, so doubt
weighs more late in the answer and after the first word without support; words that stand in
their place in the passages are shielded from it. Its weights and ``FLOOR`` were chosen from a
coarse grid on the same data by macro IoU and Corr; the neighbouring grid points differ by less
than .01.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from spanlab.detectors.offline.features import Features
from spanlab.detectors.offline.words import Kind

FLOOR = 0.4  # marked from this probability on
FLOOR_WITHOUT_PASSAGES = 0.5  # fewer marks for the same score, where nothing can be compared

_CONTRADICTED = 1.0  # another number stands in its place
_UNKNOWN_NUMBER, _UNKNOWN_DIGIT = 0.9, 0.7
_UNKNOWN_NAME = 0.8
_UNKNOWN_CASELESS, _UNKNOWN_WORD = 0.7, 0.58
_SIMILAR, _KNOWN = 0.53, 0.45
_ASKED, _ASKED_NUMBER, _ASKED_SIGN = 0.15, 0.05, 0.25
_SIGNS = {0.0: 0.6, 25.0: 0.58, 70.0: 0.5, 90.0: 0.44, 100.0: 0.41}
_NEAR_NUMBER, _NEAR_KNOWN, _NEAR_UNKNOWN = (
    0.45,
    0.3,
    0.2,
)  # taken off in proportion to the neighbours nearby

_SIMILAR_FROM = 85.0  # rapidfuzz ratio of one word's forms; Peter and Petra have 80
_ASKED_SIGNS_FROM = 70.0

_FUNCTION_SHARE = 0.75  # a function word has this share of its less doubtful neighbour's doubt
_NOTHING_SAID = 0.2  # doubt of an answer of function words alone
_REACH = 2.0  # words over which doubt spreads, falling by e
_OWN, _LATE, _AFTER = 0.6, 0.35, 0.35
_ALARM = 0.58  # the first word this doubtful starts the stretch that _AFTER weighs


def probabilities(features: Sequence[Features]) -> list[float]:
    """Estimate for each word of an answer which share of annotators would mark it.

    Args:
        features: the description of every word, in order.

    Returns:
        One probability in [0, 1] per word.
    """
    own = [_doubt(word) for word in features]
    filled = _with_function_words(own)
    around = _spread(filled)
    first = next((at for at, doubt in enumerate(own) if (doubt or 0) >= _ALARM), len(own))
    probs = []
    for number, at in enumerate(features):
        reached = around[number] * (1 - at.near if at.known == 100 else 1)
        weight = _LATE * at.position + (_AFTER if number >= first else 0.0)
        probs.append(min(1.0, _OWN * filled[number] + weight * reached))
    return probs


def _doubt(at: Features) -> float | None:
    """Rate one word by itself; None for a function word, which has no doubt of its own."""
    if at.word.function:
        return None
    return _RATERS[at.word.kind](at)


def _letters_doubt(at: Features) -> float:
    if at.asked >= _SIMILAR_FROM:
        return _ASKED
    if at.known == 100:
        return _KNOWN - _NEAR_KNOWN * at.near
    if at.known >= _SIMILAR_FROM:
        return _SIMILAR - _NEAR_KNOWN * at.near
    if at.name:
        return _UNKNOWN_NAME
    caseless = at.word.text.lower() == at.word.text.upper()
    return (_UNKNOWN_CASELESS if caseless else _UNKNOWN_WORD) - _NEAR_UNKNOWN * at.near


def _number_doubt(at: Features) -> float:
    if at.asked == 100:
        return _ASKED_NUMBER
    if at.known == 100:
        return _KNOWN - _NEAR_NUMBER * at.near
    if at.rival is not None:
        return _CONTRADICTED
    return _UNKNOWN_DIGIT if len(at.word.text) == 1 else _UNKNOWN_NUMBER


def _sign_doubt(at: Features) -> float:
    if at.asked >= _ASKED_SIGNS_FROM:
        return _ASKED_SIGN
    return _SIGNS[at.known] - _NEAR_UNKNOWN * at.near


_RATERS = {Kind.LETTERS: _letters_doubt, Kind.NUMBER: _number_doubt, Kind.SIGN: _sign_doubt}


def _with_function_words(doubts: Sequence[float | None]) -> list[float]:
    """Give function words a share of the doubt of their less doubtful neighbour."""
    before = _nearest(doubts)
    after = _nearest(doubts[::-1])[::-1]
    filled = []
    for doubt, left, right in zip(doubts, before, after, strict=True):
        sides = [side for side in (left, right) if side is not None]
        lent = _FUNCTION_SHARE * min(sides) if sides else _NOTHING_SAID
        filled.append(lent if doubt is None else doubt)
    return filled


def _nearest(doubts: Sequence[float | None]) -> list[float | None]:
    """Find for each word the last doubt up to it."""
    found: list[float | None] = []
    last = None
    for doubt in doubts:
        last = last if doubt is None else doubt
        found.append(last)
    return found


def _spread(doubts: Sequence[float]) -> list[float]:
    """Average each word's doubt with its neighbours', weighing them by exp(-distance / reach)."""
    forward = _faded(doubts)
    backward = _faded(doubts[::-1])[::-1]
    ones = _faded([1.0] * len(doubts))
    return [
        (there + back - own) / (here + ones[-1 - at] - 1)
        for at, (there, back, own, here) in enumerate(
            zip(forward, backward, doubts, ones, strict=True)
        )
    ]


def _faded(values: Sequence[float]) -> list[float]:
    """Sum up from the left, every earlier value fading by one step per word."""
    step = math.exp(-1 / _REACH)
    sums = []
    total = 0.0
    for value in values:
        total = total * step + value
        sums.append(total)
    return sums
