"""How common words are in general, counted over the items that a model was trained on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from spanlab.detectors.offline.lexicon import EMPTY, Lexicon, Months

_LEAST = 2  # items in which a word must stand to be kept


def base(lang: str) -> str:
    """Return a language code without region or script."""
    return lang.partition("-")[0]


@dataclass(frozen=True)
class Background:
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

    def months(self, lang: str) -> Months:
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

    def whole(self) -> Background:
        """Return the background of all items, without its rare words."""
        counts = {
            code: {form: n for form, n in sorted(counter.items()) if n >= _LEAST}
            for code, counter in sorted(self._counts.items())
        }
        return Background(dict(sorted(self._items.items())), counts, self._lexicon)


@dataclass(frozen=True)
class _WithoutOne(Background):
    left_out: frozenset[str] = frozenset()

    def of(self, lang: str) -> Callable[[str], float]:
        code = base(lang)
        counts, items = self.counts[code], max(self.items[code] - 1, 1)

        def share(form: str) -> float:
            count = counts.get(form, 0) - (form in self.left_out)
            return count / items if count >= _LEAST else 0.0

        return share
