"""Links words of the answer to words of the passages (or the question).

A word is linked to every known word of the same form and, if it has letters enough, to those so
similar that they are forms of one word (``Helsinki`` and ``Helsingissä``), which stands in for a
stemmer in any language. A unit is linked to its symbol (``metres`` and ``m``). A word without a
link is described by how close the closest word comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process
from rapidfuzz.distance import Prefix

from spanlab.systems.offline.dates import ONE_DATE, ParsedDate, match
from spanlab.systems.offline.passages import PassageWords
from spanlab.systems.offline.words import TokenizedText, WordKind

Column = NDArray[np.float64]
_SAME = 80  # rapidfuzz ratio in [0, 100] from which two words are forms of one
_SAME_PREFIX = 3  # letters that they share at the start
_SHORTEST = 4  # letters from which on a word may match a similar one
_LONGEST = 100  # letters of a word that is compared with similar ones: not of text without spaces
_FLOOR = 50
_CLOSEST = 5  # words of which the longest common start counts
_COLUMNS = ("linked", "exact", "ratio", "prefix", "trigrams", "inside", "distance")
_COMPANY = 2  # signs that stand in the texts side by side as in the answer
_NOT_A_NUMBER = -1.0
_TOO_LONG = 16  # characters of a number's form that is not compared by value

# Symbols of units, with folded words for them; those with a star may end in any way.
_UNITS = {
    "km": "kilomet* chilomet* quilomet* كيلومتر* किलोमीटर",
    "m": "metre metres meter meters metern metro metros metri metria metrin metru متر मीटर",
    "cm": "centimet* zentimet* sentimet* senttimet* سنتيمتر* सेंटीमीटर",
    "mm": "millimet* milimet* ملليمتر* मिलीमीटर",
    "kg": "kilogram* chilogram* quilogram* كيلوغرام* كيلوجرام* किलोग्राम",
    "ha": "hectare* hektar* ettari ettaro hehtaari* हेक्टेयर",
    "kw": "kilowat* chilowat*",
    "mw": "megawat*",
}
_WORDS_OF_UNITS = {
    word: symbol for symbol, words in _UNITS.items() for word in (symbol, *words.split())
}
_STEMS_OF_UNITS = tuple(word[:-1] for word in _WORDS_OF_UNITS if word.endswith("*"))


@dataclass(frozen=True)
class WordLinks:
    """How each word of an answer occurs in some texts, column by column.

    ``linked`` is 1 for a word that occurs there in some form; ``ratio``, ``prefix`` and
    ``trigrams`` in [0, 1] say how close the closest word comes, in edits, in common letters at
    the start and in trigrams found anywhere; ``inside`` is 1 for a word that is part of a longer
    one; ``distance`` in [0, 1] is a number's relative distance to the closest one, -1 for words.
    ``places`` are its positions, in order.
    """

    linked: Column
    exact: Column
    ratio: Column
    prefix: Column
    trigrams: Column
    inside: Column
    distance: Column
    places: tuple[tuple[int, ...], ...]


def link(answer: TokenizedText, texts: PassageWords, most_places: int) -> WordLinks:
    """Look up every word of an answer in ``texts``.

    At most ``most_places`` positions are kept per word: a very common word does not help to tell
    places apart.
    """
    rows, places = _look_up(dict(zip(answer.forms, answer.kinds, strict=True)), texts)
    table = np.array([rows[form] for form in answer.forms], dtype=np.float64).reshape(-1, 7)
    linked, exact, ratio, prefix, trigrams, inside, distance = table.T
    kept = tuple(places[form][:most_places] for form in answer.forms)
    return WordLinks(linked, exact, ratio, prefix, trigrams, inside, distance, kept)


class DateLinks(NamedTuple):
    """Words of an answer's dates: all, those contradicted by positions, and those confirmed."""

    stated: frozenset[int]
    instead: dict[int, int]
    confirmed: frozenset[int]


def with_dates(
    links: WordLinks, stated: Sequence[ParsedDate], dates: Sequence[ParsedDate]
) -> tuple[WordLinks, DateLinks]:
    """Link the parts of dates, in whatever way they are written, and unlink contradicted ones.

    ``stated`` are the answer's dates, ``dates`` those of the texts.
    """
    words = frozenset(at for date in stated for at in date.words)
    matches = [
        date_match
        for date_match in (match(date, dates) for date in stated)
        if date_match is not None
    ]
    if not matches:
        return links, DateLinks(words, {}, frozenset())
    table = np.array([getattr(links, name) for name in _COLUMNS])
    places = list(links.places)
    instead: dict[int, int] = {}
    confirmed: set[int] = set()
    for date_match in matches:
        for at, place in (*date_match.same.items(), *date_match.whole):
            table[:-1, at] = 1.0
            table[-1, at] = min(table[-1, at], 0.0)
            places[at] = tuple(sorted({*places[at], place}))
        if len(date_match.same) >= ONE_DATE:
            confirmed.update(date_match.same)
        for at, place in date_match.other.items() if len(date_match.same) >= ONE_DATE else ():
            table[:-1, at] = 0.0
            places[at] = ()
            instead[at] = place
    columns = dict(zip(_COLUMNS, table, strict=True))
    dated = DateLinks(words, instead, frozenset(confirmed) - frozenset(instead))
    return replace(links, places=tuple(places), **columns), dated


def in_company(links: WordLinks, answer: TokenizedText, exempt: NDArray[np.bool_]) -> WordLinks:
    """Unlink signs that the texts hold, but beside other signs than in the answer.

    A single sign of a script without spaces is mostly a part of a word: its
    presence anywhere tells little. Only ``linked``, ``exact`` and ``places`` change; words that are
    ``exempt`` may stand alone.
    """
    if WordKind.SIGN not in answer.kinds:
        return links
    signs = np.array(answer.kinds) == WordKind.SIGN
    starts, ends = np.array(answer.starts), np.array(answer.ends)
    touches = signs[:-1] & signs[1:] & (ends[:-1] == starts[1:])
    beside = np.r_[touches, False] | np.r_[False, touches]
    alone = runs(links.places).length < _COMPANY
    lonely = signs & beside & alone & ~exempt
    linked, exact = (np.where(lonely, 0.0, column) for column in (links.linked, links.exact))
    kept = tuple(() if lonely[at] else place for at, place in enumerate(links.places))
    return replace(links, linked=linked, exact=exact, places=kept)


class SharedRuns(NamedTuple):
    """Per word: the longest run of words it shares with the texts, and how far it reaches."""

    length: Column
    left: Column
    right: Column


def runs(places: Sequence[tuple[int, ...]]) -> SharedRuns:
    """Find for each word the longest stretch of words that the texts hold word for word."""
    table = np.zeros((3, len(places)))
    at = np.repeat(np.arange(len(places)), [len(place) for place in places])
    if not len(at):
        return SharedRuns(*table)
    ahead = np.array([place for held in places for place in held]) - at
    order = np.argsort(ahead * len(places) + at)  # the words of a run come one after the other
    at, ahead = at[order], ahead[order]
    goes_on = (np.diff(ahead, prepend=ahead[0]) == 0) & (np.diff(at, prepend=at[0]) == 1)
    begins = np.flatnonzero(~goes_on)
    length = np.diff(begins, append=len(at))
    left = np.arange(len(at)) - np.repeat(begins, length)
    length = np.repeat(length, length)
    for row, values in zip(table, (length, left, length - left - 1), strict=True):
        np.maximum.at(row, at, values)
    return SharedRuns(*table)


def _look_up(
    kinds: dict[str, WordKind], texts: PassageWords
) -> tuple[dict[str, tuple[float, ...]], dict[str, tuple[int, ...]]]:
    rows: dict[str, tuple[float, ...]] = {}
    places: dict[str, tuple[int, ...]] = {}
    numbers = [form for form in texts.places if form[0] == "#" and len(form) < _TOO_LONG]
    values = np.array([float(form[1:]) for form in numbers])
    similar: list[str] = []
    units: dict[str, list[str]] = {}
    for form in texts.places:
        units.setdefault(_unit(form), []).append(form)
    for form, kind in kinds.items():
        unit = _unit(form)
        places[form] = _all_places(units.get(unit, []) if unit else [form], texts)
        is_there = float(bool(places[form]))
        if kind is WordKind.NUMBER:
            distance = 0.0 if is_there else _distance(form, values)
            rows[form] = (is_there,) * 6 + (distance,)
        else:
            rows[form] = (is_there,) * 6 + (_NOT_A_NUMBER,)
            if kind is WordKind.LETTERS and _SHORTEST <= len(form) <= _LONGEST:
                similar.append(form)
    _add_similar(similar, texts, rows, places)
    return rows, places


def _add_similar(
    forms: list[str],
    texts: PassageWords,
    rows: dict[str, tuple[float, ...]],
    places: dict[str, tuple[int, ...]],
) -> None:
    long_forms = [
        form for form in texts.places if form[0] != "#" and _SHORTEST <= len(form) <= _LONGEST
    ]
    if not forms or not long_forms:
        return
    ratios = process.cdist(
        forms, long_forms, scorer=fuzz.ratio, dtype=np.uint8, score_cutoff=_FLOOR
    )
    same: list[list[str]] = [[] for _ in forms]
    for row, column in np.argwhere(ratios >= _SAME).tolist():
        if long_forms[column][:_SAME_PREFIX] == forms[row][:_SAME_PREFIX]:
            same[row].append(long_forms[column])
    missing = [row for row, form in enumerate(forms) if not rows[form][0]]
    best = ratios[missing].max(axis=1, initial=0).tolist()
    closest = np.argsort(ratios[missing], axis=1)[:, -_CLOSEST:].tolist()
    joined = f" {'  '.join(long_forms)} "
    for row, ratio, columns in zip(missing, best, closest, strict=True):
        form = forms[row]
        near = [long_forms[column] for column in columns if ratios[row, column]]
        prefix = max((_common(form, other) for other in near), default=0.0)
        padded = f" {form} "
        covered = sum(padded[at : at + 3] in joined for at in range(len(form))) / len(form)
        rows[form] = (
            float(bool(same[row])), 0.0, ratio / 100, prefix, covered, float(form in joined),
            _NOT_A_NUMBER,
        )  # fmt: skip
        places[form] = _all_places(same[row], texts)
    for row, form in enumerate(forms):
        if len(same[row]) > 1:
            places[form] = _all_places(same[row], texts)


def _all_places(forms: list[str], texts: PassageWords) -> tuple[int, ...]:
    return tuple(sorted(place for form in forms for place in texts.places.get(form, ())))


@lru_cache(maxsize=20_000)
def _unit(form: str) -> str:
    """Return the symbol of the unit that a word is, an empty text for other words."""
    stem = next((stem for stem in _STEMS_OF_UNITS if form.startswith(stem)), None)
    return _WORDS_OF_UNITS.get(f"{stem}*" if stem else form, "")


def _common(word: str, other: str) -> float:
    """Share of the longer word that both have in common from their start."""
    return Prefix.similarity(word, other) / max(len(word), len(other))


def _distance(form: str, values: Column) -> float:
    if not len(values) or len(form) >= _TOO_LONG:
        return 1.0
    value = float(form[1:])
    gaps = np.abs(values - value) / np.maximum(np.maximum(np.abs(values), abs(value)), 1e-9)
    return float(min(gaps.min(), 1.0))
