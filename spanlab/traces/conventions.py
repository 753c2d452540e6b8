"""The names by which conventions say what spans hold: those of ``conventions.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_TABLES: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)


def names_in(section: str) -> dict[str, tuple[str, ...]]:
    """Return the names of a section, the surest first, by what they mean."""
    return {meaning: tuple(names.split(", ")) for meaning, names in _TABLES[section].items()}


def meanings_in(section: str) -> dict[str, str]:
    """Return what each name of a section means."""
    return {name: meaning for meaning, names in names_in(section).items() for name in names}
