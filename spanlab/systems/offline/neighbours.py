"""Features from a word's shape and from its neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.systems.offline.links import Column
from spanlab.systems.offline.words import TokenizedText, fold

_WIDTHS = (2, 6)  # standard deviations, in words
_OUTSIDE = -1.0  # beyond the answer's ends
_MOST = 10.0  # facts are counted up to here


class NeighbourFeatures(NamedTuple):
    """Per word: whether it is a number or name, other content, known at all, in the passages."""

    fact: NDArray[np.bool_]
    content: NDArray[np.bool_]
    known: NDArray[np.bool_]
    linked: NDArray[np.bool_]


def support(words: NeighbourFeatures, sentence: NDArray[np.int64]) -> dict[str, Column]:
    """Return how many facts each word's sentence states, and what share is known (-1 for none).

    A sentence whose numbers and names are all in the passages is mostly right, even where its
    other words do not. ``sentence`` has the number of each word's sentence.
    """

    def per_sentence(column: NDArray[np.bool_]) -> Column:
        counts = np.bincount(sentence, column.astype(np.float64))
        return np.asarray(counts[sentence], dtype=np.float64)

    wrong = words.fact & ~words.known
    facts, false = per_sentence(words.fact), per_sentence(wrong)
    content, held = per_sentence(words.content), per_sentence(words.content & words.linked)
    return {
        "sentence_facts": np.minimum(facts, _MOST),
        "sentence_facts_wrong": np.minimum(false, _MOST),
        "sentence_facts_known": np.where(facts > 0, (facts - false) / np.maximum(facts, 1), -1.0),
        "sentence_held": (held + 0.5) / (content + 1),
        "facts_wrong": np.full(len(facts), min(float(wrong.sum()), _MOST)),
    }


def neighbours(columns: Mapping[str, Column], chosen: Sequence[str]) -> dict[str, Column]:
    """Return the chosen columns of the words before and after each word."""
    features: dict[str, Column] = {}
    for name in chosen:
        column = columns[name]
        features[f"{name}_before"] = np.r_[_OUTSIDE, column[:-1]]
        features[f"{name}_after"] = np.r_[column[1:], _OUTSIDE]
    return features


def smoothed(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return every column averaged over the words around, by Gaussian weights of two widths."""
    table = np.stack(list(columns.values()), axis=1)
    columns_by_name: dict[str, Column] = {}
    for width in _WIDTHS:
        averaged = _average(table, width)
        columns_by_name |= {f"{name}_{width}": averaged[:, at] for at, name in enumerate(columns)}
    return columns_by_name


def _average(table: Column, width: int) -> Column:
    total = table.copy()
    weights = np.ones(len(table))
    for step in range(1, min(3 * width, len(table) - 1) + 1):
        factor = np.exp(-(step**2) / (2 * width**2))
        total[step:] += factor * table[:-step]
        total[:-step] += factor * table[step:]
        weights[step:] += factor
        weights[:-step] += factor
    return np.asarray(total / weights[:, None], dtype=np.float64)


_ENDS = frozenset(".!?。！？।؟۔")
_PAUSES = frozenset(",;:،؛，、；：")
_MARKED = 2  # a sign and its voicing mark
_NONE, _SPACE, _OTHER, _PAUSE, _END, _LINE, _BEGIN, _FINISH = range(8)


def folded(text: str) -> frozenset[str]:
    """Return the words of a text as they are compared."""
    return frozenset(fold(word) for word in text.split())


# In the languages that the detector was trained on.
NEGATIONS = folded(
    "not no never nor nein nicht kein keine nie ne pas jamais non mai nunca jamás ni inte ingen "
    "inget aldrig ej ei eivät en et emme ette eikä 不 没 無 无 非 未 नहीं न मत لا لم ليس لن غير نه "
    "نیست není nikdy ez cap"
)

YES = folded("yes ja oui si sí sì kyllä 是 हाँ हां نعم بله ano bai")
NO = folded("no nein non nej ei 否 不 नहीं لا خیر ne ez")


def repeats(forms: Sequence[str]) -> Column:
    """Count for each word how often it stood before."""
    seen: dict[str, int] = {}
    counts = []
    for form in forms:
        counts.append(seen.get(form, 0))
        seen[form] = counts[-1] + 1
    return np.array(counts, dtype=np.float64)


def year(form: str) -> bool:
    """Return whether a word's form is a number from 1000 to 2999."""
    return len(form) == 5 and form[0] == "#" and form[1] in "12" and form[1:].isdigit()


def hiragana(form: str) -> bool:
    """Return whether a word's form is one hiragana, with which Japanese writes its grammar."""
    return "\u3041" <= form[0] <= "\u309f" and len(form) <= _MARKED


def gaps(words: TokenizedText) -> list[int]:
    """Return the sort of gap before each word, and after the last one, as numbers from 0 to 7.

    They are nothing, space, other characters, comma, end of a sentence, line break, begin and
    finish of the answer.
    """
    between = [
        _gap(words.text[end:start])
        for end, start in zip(words.ends[:-1], words.starts[1:], strict=True)
    ]
    return [_BEGIN, *between, _FINISH]


def _gap(text: str) -> int:
    if not text:
        return _NONE
    if "\n" in text:
        return _LINE
    if text.isspace():
        return _SPACE
    if not _ENDS.isdisjoint(text):
        return _END
    return _PAUSE if not _PAUSES.isdisjoint(text) else _OTHER
