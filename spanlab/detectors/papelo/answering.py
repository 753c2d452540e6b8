"""A question is answered from the one document that answers it best (algorithm 2, §3.3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from spanlab.detectors.common.evidence import CLOSE
from spanlab.detectors.papelo.pursuit import WINDOW, align
from spanlab.extents import Extent
from spanlab.inbound import ABOUT, one_line
from spanlab.mappers import closest_sentence, sentences
from spanlab.schema import Item, Passage, PassageQuote

HITS: Final = 10  # search results that are read (§3.3)
SNIPPET: Final = 1_500  # characters; what is longer is a document of which a part is shown
_RAREST: Final = 8  # words that stand in for names where writing has no capitals
_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")


@dataclass(frozen=True)
class Answered:
    """An answer, the passages it rests on (0-based indices of the item's), and how it was found.

    ``window`` is what was read of the one document, None if the answer rests on the search
    results; ``sentence`` is the sentence of it that comes closest to the answer.
    """

    text: str
    searched: str
    passages: tuple[int, ...] = ()
    window: PassageQuote | None = None
    sentence: PassageQuote | None = None
    remark: str | None = None


def names_in(text: str) -> str:
    """Return what a search is tried again with: names, and capitalised words after the first.

    Returns:
        Words with a capital or a digit, without the first one; in a text without capitals the
        rarest words of it, as far as their length tells. Empty for a text without words.
    """
    words = [found.group() for found in _WORD.finditer(text)]
    named = [word for word in words[1:] if word[0].isupper() or word[0].isdecimal()]
    if not any(word[0].isupper() for word in words):
        often = Counter(words)
        rare = sorted(often, key=lambda word: (often[word], -len(word), words.index(word)))
        named = sorted(rare[:_RAREST], key=words.index)
    return " ".join(dict.fromkeys(named))


def shown(passage: Passage, text: str, *, metadata: bool = True) -> str:
    """Return text of a passage as a prompt shows it: quoted, after its title, site and date."""
    about = [passage.title, site(passage.url), passage.date] if metadata else []
    head = one_line(", ".join(filter(None, about)), ABOUT)
    return f"({head}):\n{quoted(text)}" if head else quoted(text)


def quoted(text: str) -> str:
    """Return text that others wrote with a mark in front of every line, which nothing can end."""
    return "\n".join(f"> {line}" for line in text.splitlines())


def site(url: str | None) -> str | None:
    """Return the site of an address, without ``www.``; None without one."""
    try:
        host = urlsplit(url or "").hostname
    except ValueError:
        return None
    return host.removeprefix("www.") if host else None


def numbered(parts: Sequence[tuple[Passage, Extent]], *, metadata: bool = True) -> str:
    """Return parts of passages as a prompt shows them, numbered from 1."""
    return "\n\n".join(
        f"Document {number} {shown(passage, passage.text[slice(*part)], metadata=metadata)}"
        for number, (passage, part) in enumerate(parts, start=1)
    )


def part_about(text: str, searched: str, lang: str) -> Extent:
    """Return the characters of a passage that a prompt shows: all of it, unless it is long.

    Of a long one, which no search engine has made a snippet of, that are the five sentences
    around the one that comes closest to what was searched for.
    """
    if len(text) <= SNIPPET:
        return Extent(0, len(text))
    closest = closest_sentence([text], searched, lang=lang)
    places = sentences(text, lang)
    at = next((n for n, place in enumerate(places) if closest and place.start >= closest.start), 0)
    first = max(min(at - WINDOW // 2, len(places) - WINDOW), 0)
    return Extent(places[first].start, places[min(first + WINDOW, len(places)) - 1].end)


def window(page: str, snippet: str, lang: str) -> Extent | None:
    """Return the characters of a page that a snippet comes from; None if it does not hold it."""
    places = sentences(page, lang)
    found = align([page[slice(*place)] for place in places], snippet)
    if found is None:
        return None
    first, last = found
    return Extent(places[first].start, places[last - 1].end)


def answering(item: Item, read: PassageQuote, answer: str) -> PassageQuote | None:
    """Return the sentence of what was read that comes closest to an answer; None if none does."""
    text = item.passages[read.passage].text[read.start : read.end]
    found = closest_sentence([text], answer, lang=item.lang)
    if found is None or found.score < CLOSE:
        return None
    return PassageQuote(
        passage=read.passage, start=read.start + found.start, end=read.start + found.end
    )
