"""Shapes of words: yes and no, repetition, years, and the gaps between words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanlab.detectors.offline.links import Column
from spanlab.detectors.offline.normal import fold
from spanlab.detectors.offline.words import Reading

_ENDS = frozenset(".!?。！？।؟۔")
_PAUSES = frozenset(",;:،؛，、；：")
_MARKED = 2  # a sign and its voicing mark
_NONE, _SPACE, _OTHER, _PAUSE, _END, _LINE, _BEGIN, _FINISH = range(8)


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(word) for word in text.split())


# In the languages that the detector was trained on.
NEGATIONS = _words(
    "not no never nor nein nicht kein keine nie ne pas jamais non mai nunca jamás ni inte ingen "
    "inget aldrig ej ei eivät en et emme ette eikä 不 没 無 无 非 未 नहीं न मत لا لم ليس لن غير نه "
    "نیست není nikdy ez cap"
)
YES = _words("yes ja oui si sí sì kyllä 是 हाँ हां نعم بله ano bai")
NO = _words("no nein non nej ei 否 不 नहीं لا خیر ne ez")


def repeats(forms: Sequence[str]) -> Column:
    """Count for each word how often it stood before."""
    seen: dict[str, int] = {}
    counts = []
    for form in forms:
        counts.append(seen.get(form, 0))
        seen[form] = counts[-1] + 1
    return np.array(counts, dtype=np.float64)


def year(form: str) -> bool:
    """Return whether a word's form is a number from 1000 to 2999."""
    return len(form) == 5 and form[0] == "#" and form[1] in "12" and form[1:].isdigit()


def hiragana(form: str) -> bool:
    """Return whether a word's form is one hiragana, with which Japanese writes its grammar."""
    return "\u3041" <= form[0] <= "\u309f" and len(form) <= _MARKED


def gaps(words: Reading) -> list[int]:
    """Return the sort of gap before each word, and after the last one, as numbers from 0 to 7.

    They are nothing, space, other characters, comma, end of a sentence, line break, begin and
    finish of the answer.
    """
    between = [
        _gap(words.text[end:start])
        for end, start in zip(words.ends[:-1], words.starts[1:], strict=True)
    ]
    return [_BEGIN, *between, _FINISH]


def _gap(text: str) -> int:
    if not text:
        return _NONE
    if "\n" in text:
        return _LINE
    if text.isspace():
        return _SPACE
    if not _ENDS.isdisjoint(text):
        return _END
    return _PAUSE if not _PAUSES.isdisjoint(text) else _OTHER
