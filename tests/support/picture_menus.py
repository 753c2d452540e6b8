"""Which menu each picture of the guide shows, as `make pictures` noted it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

_FILE = Path(__file__).with_suffix(".json")


def noted_menus() -> Mapping[str, Sequence[str]]:
    """Return the entries of the menu in each picture, by the picture's name without ``-dark``."""
    noted: Mapping[str, Sequence[str]] = json.loads(_FILE.read_text("utf-8"))
    return noted


def note_menu(picture: str, entries: Sequence[str]) -> None:
    """Note the entries of the menu in a picture that was taken."""
    noted = dict(noted_menus()) if _FILE.is_file() else {}
    noted[picture] = [entry for entry in entries if entry]
    _FILE.write_text(json.dumps(dict(sorted(noted.items())), indent=1) + "\n", "utf-8")
