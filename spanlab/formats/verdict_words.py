"""Words that judge an answer or a claim: one table for all readers.

``VERDICTS`` has the words that say by themselves what they mean. ``YES`` and ``NO`` mean what the
name of their column says: yes under "hallucinated" is no under "faithful".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final, cast

from spanlab.base.errors import InputError
from spanlab.formats.vocabulary import named_by, sides_in, words_in
from spanlab.schema import Verdict

VERDICTS: Final = cast(dict[str, Verdict], named_by("verdicts"))
_SAID: Final = {  # language → its words for yes and no, with those of every language
    language: {
        word: is_yes for words, is_yes in zip(sides, (True, False), strict=True) for word in words
    }
    for language, sides in sides_in("yes_or_no").items()
}
YES: Final = frozenset(word for said in _SAID.values() for word in said if said[word])
NO: Final = frozenset(word for said in _SAID.values() for word in said if not said[word])
UNDECIDED: Final = frozenset(words_in("judged", "undecided"))
_ALONE: Final = frozenset(words_in("judged", "alone"))
_TELLING: Final = _ALONE | {*words_in("judged", "bad"), *words_in("judged", "good")}
_WHOLE: Final = re.compile(r"-?\d+(\.0+)?")
_NUMBERED: Final = re.compile(r"\d{1,2}\s*[:.)=_-]\s*(?=[^\W\d_])")  # a class: "1: hallucinated"
_SHADES: Final = dict.fromkeys((0xFE0F, *range(0x1F3FB, 0x1F400)))  # of 👍 and ✔
# A number says whether a claim is supported, as in LLM-AggreFact; "no" says as much.
OF_CLAIMS: Final[dict[str, Verdict]] = {
    **dict.fromkeys(("true", "yes", "1"), "supported"),
    **dict.fromkeys(("no", "0"), "not-supported"),
    "false": "refuted",
    **VERDICTS,
}


def plain_word(value: object) -> str:
    """Return a value as the table has it: in small letters, with spaces; a whole number as such."""
    text = str(value).strip().casefold().translate(_SHADES)
    if _WHOLE.fullmatch(text):
        return text.partition(".")[0]
    text = _NUMBERED.sub("", text, count=1) if _NUMBERED.match(text) else text.rstrip(".!")
    return " ".join(text.replace("_", " ").replace("-", " ").split())


def tells(value: object) -> bool:
    """Say whether a verdict names what it judges, as "faithful" does and "good" does not."""
    return not _TELLING.isdisjoint(plain_word(value).split())


@lru_cache(1 << 10)
def yes_or_no(words: frozenset[str]) -> Mapping[str, bool]:
    """Return what yes and no are in the languages that have all such words of a column.

    None if no language has them: "nie" is no beside "tak", and never beside "ja".
    """
    said = (YES | NO).intersection(words)
    tables = [_SAID["every"] | table for table in _SAID.values()]
    return {w: yes for table in tables if said <= table.keys() for w, yes in table.items()}


def are_verdicts(values: Collection[object]) -> bool:
    """Say whether values judge answers whatever their column is called, as "hallucinated" does."""
    words = set(map(plain_word, values))
    said = {part for word in words for part in word.split()}
    return words <= VERDICTS.keys() | UNDECIDED and not _ALONE.isdisjoint(said)


def verdict_of(label: str | bool | int | float, *, field: str = "label") -> Verdict:
    """Return the verdict that a label of a claim means; ``field`` is where it is.

    Raises:
        InputError: it means none that is known.
    """
    verdict = OF_CLAIMS.get(plain_word(label))
    if verdict is None:
        raise InputError(
            "this label is not a verdict on a claim",
            field=field,
            found=str(label),
            expected="true, false or a verdict such as supported, refuted, not enough evidence, "
            "conflicting, not supported or inconclusive",
        )
    return verdict
