"""Which words of the passages (or the question) are words of the answer.

A word is linked to every known word of the same form and, if it has letters enough, to those so
similar that they are forms of one word (``Helsinki`` and ``Helsingissä``), which stands in for a
stemmer in any language. What is not linked is still described by how close the closest comes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from spanlab.detectors.offline.passages import Passages
from spanlab.detectors.offline.words import Kind, Reading

Column = NDArray[np.float64]

_SAME = 80  # rapidfuzz ratio in [0, 100] from which two words are forms of one
_SAME_PREFIX = 3  # letters that they share at the start
_SHORTEST = 4  # letters from which on a word may match a similar one
_FLOOR = 50
_NOT_A_NUMBER = -1.0


@dataclass(frozen=True)
class Links:
    """How some texts know each word of an answer, column by column.

    ``linked`` is 1 for a word that stands there in some form; ``ratio``, ``prefix`` and
    ``trigrams`` in [0, 1] say how close the closest word comes, in edits, in common letters at
    the start and in trigrams found anywhere; ``inside`` is 1 for a word that is part of a longer
    one; ``distance`` in [0, 1] is a number's relative distance to the closest one, -1 for words.
    ``places`` are the positions where it stands, in order.
    """

    linked: Column
    exact: Column
    ratio: Column
    prefix: Column
    trigrams: Column
    inside: Column
    distance: Column
    places: tuple[tuple[int, ...], ...]


def link(answer: Reading, texts: Passages, most_places: int) -> Links:
    """Look up every word of an answer.

    Args:
        answer: the answer's words.
        texts: where to look.
        most_places: so many positions are kept per word; one that stands everywhere tells no
            places apart.

    Returns:
        The columns, with one row per word.
    """
    rows, places = _look_up(dict(zip(answer.forms, answer.kinds, strict=True)), texts)
    table = np.array([rows[form] for form in answer.forms], dtype=np.float64).reshape(-1, 7)
    linked, exact, ratio, prefix, trigrams, inside, distance = table.T
    kept = tuple(places[form][:most_places] for form in answer.forms)
    return Links(linked, exact, ratio, prefix, trigrams, inside, distance, kept)


def _look_up(
    asked: dict[str, Kind], texts: Passages
) -> tuple[dict[str, tuple[float, ...]], dict[str, tuple[int, ...]]]:
    rows: dict[str, tuple[float, ...]] = {}
    places: dict[str, tuple[int, ...]] = {}
    values = _values(texts.places)
    similar: list[str] = []
    for form, kind in asked.items():
        places[form] = tuple(texts.places.get(form, ()))
        found = float(bool(places[form]))
        if kind is Kind.NUMBER:
            distance = 0.0 if found else _distance(form, values)
            rows[form] = (found,) * 6 + (distance,)
        else:
            rows[form] = (found,) * 6 + (_NOT_A_NUMBER,)
            if kind is Kind.LETTERS and len(form) >= _SHORTEST:
                similar.append(form)
    _add_similar(similar, texts, rows, places)
    return rows, places


def _add_similar(
    asked: list[str],
    texts: Passages,
    rows: dict[str, tuple[float, ...]],
    places: dict[str, tuple[int, ...]],
) -> None:
    known = [form for form in texts.places if form[0] != "#" and len(form) >= _SHORTEST]
    if not asked or not known:
        return
    ratios = process.cdist(asked, known, scorer=fuzz.ratio, dtype=np.uint8, score_cutoff=_FLOOR)
    trigrams = {gram for form in known for gram in _trigrams(form)}
    joined = "\n".join(known)
    for form, row in zip(asked, ratios, strict=True):
        same = [
            known[at]
            for at in np.flatnonzero(row >= _SAME)
            if known[at][:_SAME_PREFIX] == form[:_SAME_PREFIX]
        ]
        if rows[form][0]:
            if len(same) > 1:
                places[form] = _all_places(same, texts)
            continue
        closest = [known[at] for at in np.argsort(row)[-5:] if row[at]]
        prefix = max((_common(form, other) for other in closest), default=0.0)
        grams = _trigrams(form)
        covered = sum(gram in trigrams for gram in grams) / len(grams)
        ratio = float(row.max()) / 100
        rows[form] = (
            float(bool(same)), 0.0, ratio, prefix, covered, float(form in joined), _NOT_A_NUMBER
        )  # fmt: skip
        places[form] = _all_places(same, texts)


def _all_places(forms: list[str], texts: Passages) -> tuple[int, ...]:
    return tuple(sorted(place for form in forms for place in texts.places[form]))


def _common(one: str, other: str) -> float:
    """Share of the longer word that both have in common from their start."""
    longest = max(len(one), len(other))
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at / longest
    return min(len(one), len(other)) / longest


def _trigrams(form: str) -> list[str]:
    padded = f" {form} "
    return [padded[at : at + 3] for at in range(len(padded) - 2)]


def _values(forms: dict[str, list[int]]) -> Column:
    return np.array([_value(form) for form in forms if form[0] == "#" and len(form) < 16])


def _distance(form: str, values: Column) -> float:
    if not len(values) or len(form) >= 16:
        return 1.0
    value = _value(form)
    gaps = np.abs(values - value) / np.maximum(np.maximum(np.abs(values), abs(value)), 1e-9)
    return float(min(gaps.min(), 1.0))


def _value(form: str) -> float:
    return float(form[1:])
