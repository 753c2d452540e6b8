"""Names that people type: characters that draw nothing, and names that look alike.

What looks alike is Unicode's (UTS 39): each character becomes the one that it is drawn like, such
as a Cyrillic “В” a “B”, a capital “I” and a “1” an “l”, and an “m” an “rn”.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final
from unicodedata import combining, normalize

from spanlab.base.errors import UsageError
from spanlab.base.fields import check_name

# What Unicode has programs ignore when they draw (Default_Ignorable_Code_Point, 15.0), and blanks
# that are no spaces.
_UNDRAWN: Final = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U00013441\U00013442\U0001bca0-\U0001bca3"
    "\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Joiners within words of Persian or Hindi, and the parts of an emoji, are drawn by what they join.
_JOINED: Final = re.compile("(?<=[^\x00-\x7f\\s])[\u200c\u200d\ufe0e\ufe0f](?!$)|(?<=\\W)\ufe0f$")
# Small letters that UTS 39 keeps apart, and the eye does not.
_NEAR: Final = str.maketrans("ĸɴʙʜᴛᴍɛʋ", "knbhtmeu")


def check_typed(name: str, owner: str, taken: Iterable[str] = ()) -> None:
    """Check a name that somebody has typed.

    Args:
        name: the name.
        owner: what would have it, such as "a dataset".
        taken: names of others. One of them itself is no new name, and is not refused.

    Raises:
        UsageError: it cannot be a name, holds a character that draws nothing, or looks like one of
            ``taken``.
    """
    check_name(name, owner)
    undrawn = _UNDRAWN.search(_JOINED.sub("", name))
    if undrawn:
        raise UsageError(
            f"the name “{name}” for {owner} holds a character that is not drawn "
            f"(U+{ord(undrawn[0]):04X}): type it again"
        )
    taken = set(taken)
    other = None if name in taken else alike(name, taken)
    if other is not None:
        raise UsageError(
            f"the name “{name}” for {owner} looks like “{other}”, which there is already: type "
            "that one if it is meant, or one that nobody takes for it"
        )


def alike(name: str, names: Iterable[str]) -> str | None:
    """Return the first of ``names`` that looks like a name; None if none does."""
    forms = looks(name)
    return next((other for other in names if forms & looks(other)), None)


@lru_cache(10_000)
def looks(name: str) -> frozenset[str]:
    """Return what a name looks like; two names that share one of these look alike.

    Case, accents, width and spaces make no difference: names are compared as they are written, and
    in small letters.
    """
    letters = _UNDRAWN.sub("", normalize("NFKD", name))
    return frozenset(_skeleton(form) for form in (letters, letters.casefold()))


def drawn(name: str) -> str:
    """Return a name of others without what draws nothing, and with single spaces."""
    return " ".join(_UNDRAWN.sub("", name).split())


def _skeleton(letters: str) -> str:
    looked_up = normalize("NFD", letters.translate(_table()))
    bare = "".join(letter for letter in looked_up if not combining(letter))
    return " ".join(bare.casefold().translate(_NEAR).split())


@cache
def _table() -> dict[int, str]:
    lines = files("spanlab.base").joinpath("look_alike.tsv").read_text(encoding="utf-8").split("\n")
    pairs = (line.split("\t") for line in lines if "\t" in line)
    return {ord(letter): model for model, letters in pairs for letter in letters}
