"""Telling a corrected answer from everything else that a model replies instead of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rapidfuzz.distance import LCSseq

from spanlab.lm.parsing import tagged_as
from spanlab.text import UNSPACED

LEAST_KEPT: Final = 0.15  # share of the answer, by letters of its words; refusals keep up to .1
LEAST_TAKEN: Final = 0.6  # share of a revision whose words stand in what it was made from
SHORT: Final = 20  # letters of an answer that a few other words may replace as a whole
_WORD: Final = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
_CLOSING: Final = re.compile(r"</([\w-]{1,40})>")
_FENCED: Final = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_QUOTES: Final = "\"“”„«»'*"
_MOST_TAGS: Final = 3  # names of tags that are looked into
_MOST_DROPPED: Final = 4  # paragraphs of talk before or after a revision


def revision_in(answer: str, reply: str, sources: str) -> str | None:
    """Return what of a reply is the corrected answer: the part most like it.

    Tags, fences and quotation marks around it, a line such as "Here is the corrected answer:"
    before it and remarks after it are left out.

    Args:
        answer: the answer to correct.
        reply: what the model returned.
        sources: passages and question; see ``is_revision``.

    Returns:
        The part; None if the reply is no revision at all.
    """
    old = _words(answer)
    parts = dict.fromkeys(each.strip() for each in (reply, *_parts(reply)))
    alike = {each: LCSseq.normalized_similarity(old, _words(each)) for each in parts}
    best = max(alike.values())
    ties = [each for each, score in alike.items() if score == best]
    part = min(ties, key=lambda each: abs(len(each) - len(answer)))
    return part if is_revision(answer, part, sources) else None


def is_revision(answer: str, revised: str, sources: str) -> bool:
    """Say whether a text is the answer corrected, and no refusal or talk about it.

    Args:
        answer: the answer to correct.
        revised: what is said to be its correction.
        sources: passages and question; a wholly wrong answer is corrected with their words.

    Returns:
        Whether enough of the answer is kept, or the new words are those of the sources; a short
        answer may also be replaced by one that is hardly longer.
    """
    old, new = _words(answer), _words(revised)
    if not new:
        return False
    if kept(answer, revised) >= LEAST_KEPT:
        return True
    letters = sum(map(len, old))
    if letters <= SHORT and sum(map(len, new)) <= 1.5 * letters:
        return True
    known = {*_words(sources), *old}
    return _share(new, [word in known for word in new]) >= LEAST_TAKEN


def kept(answer: str, revised: str) -> float:
    """Return the share of an answer, by letters of its words, that a revision keeps in order.

    Returns:
        A number in [0, 1]; 1.0 for an answer without words.
    """
    old = _words(answer)
    stays = [False] * len(old)
    for part in LCSseq.opcodes(old, _words(revised)):
        if part.tag == "equal":
            stays[part.src_start : part.src_end] = [True] * (part.src_end - part.src_start)
    return _share(old, stays)


def _share(words: list[str], counted: list[bool]) -> float:
    total = sum(map(len, words))
    return sum(len(w) for w, c in zip(words, counted, strict=True) if c) / total if total else 1.0


def _parts(reply: str) -> Iterator[str]:
    """Yield the parts of a reply that may be the revision."""
    names = list(dict.fromkeys(_CLOSING.findall(reply)))[:_MOST_TAGS]
    yield from filter(None, (tagged_as(name, reply) for name in names))
    fenced = _FENCED.search(reply)
    yield from [fenced[1]] if fenced else []
    paragraphs = re.split(r"\n\s*\n", reply.strip())
    for first in range(min(len(paragraphs), _MOST_DROPPED)):
        for last in range(len(paragraphs), max(len(paragraphs) - _MOST_DROPPED, first), -1):
            part = "\n\n".join(paragraphs[first:last])
            lead, colon, rest = part.partition(":")
            for each in (part, rest) if colon and "\n" not in lead else (part,):
                yield each
                yield each.strip().strip(_QUOTES)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
