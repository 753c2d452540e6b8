"""Names in a knowledge graph: which of them mean the same, and which are no names at all (§3.3).

A model groups names ("USA", "United States"); what can be known without one is decided here. Only
what names one person, place, organisation, work or event may be grouped: two equal numbers are not
the same thing, and "the director" is somebody else in every passage.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from spanlab.detectors.safe.recomputing import period

_ARTICLE: Final = re.compile(r"^\W*(?:an?|the)\s+(?=\W*\w)", re.I)
# After an initial, with the space before a further one: U.S. is US, J. K. is JK.
_INITIAL: Final = re.compile(r"(?<=\b[^\W\d_])\.(?:\s(?=[^\W\d_]\.))?")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER: Final = re.compile(r"\d+\w{0,2}")  # 44th, 1990s, 5km
_WORD_OF_A_VALUE: Final = re.compile(
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundreds?|thousands?|"
    "million|billion|trillion|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|"
    "half|dozen|percent|per|cent|usd|eur|gbp|dollars?|euros?|pounds?|days?|weeks?|months?|years?|"
    "hours?|minutes?|seconds?|century|centuries|(?:kilo)?met(?:re|er)s?|miles?|feet|foot|inch(?:es)?|"
    "km|kg|(?:kilo)?grams?|tons?|tonnes?|acres?|hectares?|square|about|around|approximately|over|"
    "nearly|circa|and|of|bc|ad"
)
_ORDINAL: Final = re.compile("[ivx]+|jr|junior|sr|senior|elder|younger")


def key(name: str) -> str:
    """Return a name without what spellings of one name differ in: case, marks, an article.

    Days become ISO dates. Two names with the same key mean the same.
    """
    when = period(name)
    if when is not None and when.first == when.last:
        return when.first.isoformat()
    return " ".join(_words(_ARTICLE.sub("", name)))


def plain(text: str) -> str:
    """Return a text whose initials have no dots, and whose numbers no commas at thousands.

    Names and numbers of two texts can be compared in it: it has "US", "JK Rowling" and "1000" for
    "U.S.", "J. K. Rowling" and "1,000".
    """
    return _THOUSANDS.sub("", _INITIAL.sub("", text))


def is_value(name: str) -> bool:
    """Say whether a name is a date, a number or a quantity."""
    words = _words(name)
    return period(name) is not None or all(
        _NUMBER.fullmatch(word) or _WORD_OF_A_VALUE.fullmatch(word) for word in words
    )


def is_generic(name: str) -> bool:
    """Say whether a name is a common noun: one without a capital letter, in scripts with capitals.

    Scripts without capitals do not tell; nothing in them is generic.
    """
    return name == name.lower() and name != name.upper()


def canonical(names: Iterable[str], groups: Iterable[Sequence[str]] = ()) -> Mapping[str, str]:
    """Say under which name each entity is known.

    Args:
        names: the names in a graph, in their order.
        groups: names that mean the same, as a model says. Names that are not in the graph, values
            and common nouns are left out of them, and what cannot be one thing is not merged: the
            elder and the younger, Apollo 11 and Apollo 13.

    Returns:
        For every name the first one that means the same.
    """
    clusters: dict[str, list[str]] = {}
    for name in names:
        found = clusters.setdefault(key(name), [])
        if name not in found:
            found.append(name)
    of = {name: cluster for cluster in clusters.values() for name in cluster}
    order = {name: at for at, name in enumerate(of)}
    for group in groups:
        known = [clusters.get(key(name), ()) for name in group if is_nameable(name)]
        members = [of[cluster[0]] for cluster in known if cluster]
        for other in members[1:]:
            one = of[members[0][0]]
            if other is one or _apart(one, other):
                continue
            one += other
            of.update((name, one) for name in other)
    return {name: min(cluster, key=order.__getitem__) for name, cluster in of.items()}


def is_nameable(name: str) -> bool:
    """Say whether a name may be grouped with others: it is no value and no common noun."""
    return not (is_value(name) or is_generic(name))


def _apart(one: Sequence[str], other: Sequence[str]) -> bool:
    """Say whether two groups of names differ in a number or a generation."""
    left, right = (set(chain.from_iterable(map(_marks, names))) for names in (one, other))
    return bool(left and right and left != right)


def _marks(name: str) -> set[str]:
    return {word for word in _words(name)[1:] if _ORDINAL.fullmatch(word) or word.isdecimal()}


def _words(name: str) -> list[str]:
    text = unicodedata.normalize("NFKC", name).casefold()
    return "".join(each if _is_letter(each) else " " for each in plain(text)).split()


def _is_letter(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M")
