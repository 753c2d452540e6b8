"""Stop words, months, and how common words are.

The lists are those of spaCy and of Unicode's CLDR (through Babel). Both libraries are asked at
training only: their words are folded, packed and stored in the model, so that detecting imports
neither (spaCy alone takes longer to import than the detector may take to load).
"""

from __future__ import annotations

import json
import runpy
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from spanlab.base.errors import missing_package
from spanlab.systems.offline.words import WordKind, read

_SHORTEST = 3  # letters of a month's name or abbreviation in the text's own language or English …
_STEM, _ENDING = 5, 5  # letters of a name that can take a case, and of the case: "martxoaren"
_SHORTEST_FOREIGN = 4  # … and in another one, where it may well be another word


@dataclass(frozen=True)
class Lexicon:
    """Folded words by language code.

    ``stops`` are words that carry no statement, separated by spaces; ``months`` are alternately
    the name of a month and its number.
    """

    stops: Mapping[str, str]
    months: Mapping[str, str]

    def dump(self) -> bytes:
        """Return the lexicon as bytes, for a file."""
        content = {"stops": dict(self.stops), "months": dict(self.months)}
        return json.dumps(content, ensure_ascii=False, sort_keys=True).encode()

    @classmethod
    def parse(cls, data: bytes) -> Lexicon:
        """Read the bytes of ``dump``; raises ValueError for others."""
        content = json.loads(data)
        stops, months = (
            {str(code): str(words) for code, words in content[name].items()}
            for name in ("stops", "months")
        )
        return cls(stops, months)

    def stop(self, lang: str) -> frozenset[str]:
        """Return a language's stop words; none for a language without a list."""
        return _split(self.stops.get(lang, ""))

    def month(self, lang: str) -> MonthNames:
        """Return the months' names: the language's own, English and foreign ones.

        A foreign name that is another month elsewhere (``listopad``) is left out.
        """
        own = _pairs(self.months.get(lang, ""))
        english = _pairs(self.months.get("en", ""))
        stems = {} if lang == "en" else own
        return MonthNames(
            self._foreign | english | own,
            {name[:-1]: number for name, number in stems.items() if len(name) > _STEM} | stems,
        )

    @cached_property
    def _foreign(self) -> dict[str, int]:
        numbers: dict[str, set[int]] = defaultdict(set)
        for packed in self.months.values():
            for name, number in _pairs(packed).items():
                if len(name) >= _SHORTEST_FOREIGN:
                    numbers[name].add(number)
        return {name: min(meant) for name, meant in numbers.items() if len(meant) == 1}


@dataclass(frozen=True)
class MonthNames:
    """Names of months with their numbers; ``stems`` are those that may take an ending."""

    names: Mapping[str, int]
    stems: Mapping[str, int]

    def number(self, form: str) -> int | None:
        """Return the number of the month that a word names, with or without an ending."""
        number = self.names.get(form)
        for end in range(len(form) - 1, max(len(form) - _ENDING, _STEM) - 1, -1):
            number = number or self.stems.get(form[:end])
        return number


EMPTY = Lexicon({}, {})


@lru_cache(maxsize=1)
def gather() -> Lexicon:
    """Collect the words of all languages for which spaCy has stop words.

    Raises:
        UsageError: Babel is not installed.
    """
    stops = {code: " ".join(sorted(words)) for code, words in _stops() if words}
    return Lexicon(stops, _months(frozenset(stops)))


def _stops() -> Iterator[tuple[str, set[str]]]:
    import spacy.lang

    for file in sorted(Path(spacy.lang.__path__[0]).glob("*/stop_words.py")):
        # By itself: to import the rest of all languages takes seconds.
        readings = [read(word) for word in runpy.run_path(str(file))["STOP_WORDS"]]
        yield file.parent.name, {reading.forms[0] for reading in readings if len(reading) == 1}


def _months(languages: frozenset[str]) -> dict[str, str]:
    try:
        from babel import localedata
    except ImportError as error:
        raise missing_package("training", "Babel", "train") from error
    names: dict[str, dict[str, int]] = defaultdict(dict)
    for identifier in sorted(localedata.locale_identifiers()):
        code = identifier.partition("_")[0]
        if code in languages:
            # A locale's own names only: what Babel makes of inherited ones depends on what was
            # asked before.
            own = localedata.load(identifier, merge_inherited=False).get("months", {})
            for forms in own.values():
                for width in ("wide", "abbreviated"):
                    listed = forms.get(width)
                    for number, name in listed.items() if isinstance(listed, dict) else ():
                        names[code].setdefault(_main_word(name), number)
    return {
        code: " ".join(f"{name} {number}" for name, number in sorted(months.items()) if name)
        for code, months in sorted(names.items())
    }


def _main_word(name: str) -> str:
    """Return the only long word of a month's name (``de març``), empty if there is none."""
    text = read(name)
    if any(kind is not WordKind.LETTERS for kind in text.kinds):
        return ""
    long = [form for form in text.forms if len(form) >= _SHORTEST]
    return long[0] if len(long) == 1 else ""


@lru_cache(maxsize=128)
def _split(packed: str) -> frozenset[str]:
    return frozenset(packed.split())


@lru_cache(maxsize=128)
def _pairs(packed: str) -> dict[str, int]:
    parts = packed.split()
    return dict(zip(parts[::2], map(int, parts[1::2]), strict=True))


_LEAST = 2  # items in which a word must stand to be kept


def base(lang: str) -> str:
    """Return a language code without region or script."""
    return lang.partition("-")[0]


@dataclass(frozen=True)
class WordBackground:
    """The number of items of each language that hold each word.

    ``items`` has the number of items per language, ``counts`` the words' numbers of items. A
    language that was not seen takes the highest share of any that was. ``lexicon`` has stop words
    and names of months.
    """

    items: Mapping[str, int]
    counts: Mapping[str, Mapping[str, int]]
    lexicon: Lexicon = EMPTY

    def stop(self, lang: str) -> frozenset[str]:
        """Return the words of a language that carry no statement."""
        return self.lexicon.stop(base(lang))

    def months(self, lang: str) -> MonthNames:
        """Return the names of months to expect beside a language."""
        return self.lexicon.month(base(lang))

    def of(self, lang: str) -> Callable[[str], float]:
        """Return a function from a word to the share of the language's items that hold it."""
        code = base(lang)
        if code in self.items:
            counts, items = self.counts[code], self.items[code]
            return lambda form: counts.get(form, 0) / items
        return lambda form: self._shares.get(form, 0.0)

    @cached_property
    def _shares(self) -> dict[str, float]:
        shares: dict[str, float] = defaultdict(float)
        for code, counts in self.counts.items():
            for form, count in counts.items():
                shares[form] = max(shares[form], count / self.items[code])
        return dict(shares)


class WordCounter:
    """Counts words item by item, so that an item can be left out of its own background."""

    def __init__(self, lexicon: Lexicon = EMPTY) -> None:
        self._lexicon = lexicon
        self._items: Counter[str] = Counter()
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, lang: str, forms: Iterable[str]) -> None:
        """Count the words of one item."""
        code = base(lang)
        self._items[code] += 1
        self._counts[code].update(set(forms))

    def without(self, lang: str, forms: frozenset[str]) -> _WithoutOne:
        """Return the background as it were without one of the items counted."""
        code = base(lang)
        return _WithoutOne(
            {code: self._items[code]}, {code: self._counts[code]}, self._lexicon, left_out=forms
        )

    def whole(self) -> WordBackground:
        """Return the background of all items, without its rare words."""
        counts = {
            code: {form: n for form, n in sorted(counter.items()) if n >= _LEAST}
            for code, counter in sorted(self._counts.items())
        }
        return WordBackground(dict(sorted(self._items.items())), counts, self._lexicon)


@dataclass(frozen=True)
class _WithoutOne(WordBackground):
    left_out: frozenset[str] = frozenset()

    def of(self, lang: str) -> Callable[[str], float]:
        code = base(lang)
        counts, items = self.counts[code], max(self.items[code] - 1, 1)

        def share(form: str) -> float:
            count = counts.get(form, 0) - (form in self.left_out)
            return count / items if count >= _LEAST else 0.0

        return share
