"""The words by which fields, judgements and languages are known: those of ``vocabulary.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Final

_PART: Final = re.compile(r"\{(\w+)\}")


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def words_in(section: str, name: str) -> tuple[str, ...]:
    """Return the words of a list in their order."""
    return tuple(word for entry in _table()[section][name].split(", ") for word in _said_by(entry))


def ranks_in(section: str, name: str) -> dict[str, int]:
    """Return the words of a list with the places of their entries, of which all words are alike."""
    entries = enumerate(_table()[section][name].split(", "))
    return {word: rank for rank, entry in reversed([*entries]) for word in _said_by(entry)}


def all_words(section: str) -> dict[str, tuple[str, ...]]:
    """Return all lists of a section by their names."""
    return {name: words_in(section, name) for name in _table()[section]}


def sides_in(section: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return the words on either side of the slash in each list of a section."""
    listed = {name: said.split(" / ") for name, said in _table()[section].items()}
    return {name: (one.split(", "), other.split(", ")) for name, (one, other) in listed.items()}


def named_by(section: str) -> dict[str, str]:
    """Return for each word of a section the name of its list."""
    return {word: name for name, listed in all_words(section).items() for word in listed}


def _said_by(entry: str) -> Iterator[str]:
    """Yield what an entry stands for: itself, or the words of its parts, the last outermost."""
    parts = [words_in("parts", part) for part in reversed(_PART.findall(entry))]
    for chosen in product(*parts):
        yield " ".join(reversed(chosen)) if parts else entry
