"""What commands and options were called in 1.0: still taken where something does the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from warnings import warn

from spanlab.base.errors import DeprecatedWarning

_OPTIONS: Final = {  # of a command: the option that takes a value NAME=…
    "campaign": {
        "--known-share": "share",
        "--warn-below": "warn_below",
        "--test-items": "test_items",
        "--pass-at": "pass_at",
    }
}
_FLAGS: Final = {
    "campaign": {
        "--retry": ("--known", "retry=yes"),
        "--no-retry": ("--known", "retry=no"),
        "--no-known": ("--known", "none"),
    }
}
_DAYS: Final = {"d": 1, "w": 7}


def as_now(command: str, words: Sequence[str]) -> list[str]:
    """Return a command's words with the options of now, and warn of each that was replaced."""
    replaced: list[str] = []
    left = [part for word in words for part in _parted(word)]
    while left:
        word = left.pop(0)
        now = _now(command, word, left[:1])
        if now is None:
            replaced.append(word)
            continue
        if word not in _FLAGS.get(command, {}):
            left.pop(0)
        warn(f"{word} is deprecated: type {' '.join(now)}", DeprecatedWarning, stacklevel=2)
        replaced += now
    return replaced


def _parted(word: str) -> list[str]:
    """Return --name=value as two words, where the name is one of 1.0."""
    name, equals, value = word.partition("=")
    names = {"--expires"}.union(*_OPTIONS.values())
    return [name, value] if equals and name in names else [word]


def _now(command: str, word: str, value: Sequence[str]) -> tuple[str, ...] | None:
    """Return what to type for a word and the one after it; None for a word of now."""
    if flag := _FLAGS.get(command, {}).get(word):
        return flag
    if value and (name := _OPTIONS.get(command, {}).get(word)):
        return "--known", f"{name}={value[0]}"
    if value and command in {"keys", "invitations"} and word == "--expires":
        span = re.fullmatch(r"(\d+)([dw])", value[0])
        return ("--days", str(int(span[1]) * _DAYS[span[2]])) if span else None
    return None
