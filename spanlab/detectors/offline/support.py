"""How well a sentence's statements are known: its numbers and names, and its other content."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.detectors.offline.links import Column

_MOST = 10.0  # facts are counted up to here


class Sides(NamedTuple):
    """Per word: whether it is a number or name, other content, known at all, in the passages."""

    fact: NDArray[np.bool_]
    content: NDArray[np.bool_]
    known: NDArray[np.bool_]
    linked: NDArray[np.bool_]


def support(words: Sides, sentence: NDArray[np.int64]) -> dict[str, Column]:
    """Return how many facts each word's sentence states, and what share is known.

    A sentence whose numbers and names all stand in the passages is mostly right, even where its
    other words do not.

    Args:
        words: what is known of each word.
        sentence: the number of each word's sentence.

    Returns:
        Features by name, one value per word; the share of known facts is -1 without facts.
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
