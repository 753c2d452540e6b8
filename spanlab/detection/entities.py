"""The names of entities, the evidence under them in order, and relations between them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from rapidfuzz import fuzz, process, utils

from spanlab.models.values import ReplyModel, Text
from spanlab.schema.memory import StoredEntry
from spanlab.text.terms import terms

NEAR: Final = 88.0  # of 100: likeness of each word below which two names are not taken for one

_ARTICLES: Final = frozenset(
    (
        *("the", "a", "an", "le", "la", "les", "l", "un", "une", "der", "die", "das", "ein"),
        *("eine", "el", "los", "las", "il", "lo", "gli", "i", "uno", "una", "o", "os", "as"),
        *("het", "en", "ett", "den", "det"),
    )
)

_ARABIC_ARTICLE: Final = "\u0627\u0644"

# Spellings of the same that no rule finds; aliases that redirects teach come on top.
_KNOWN: Final[Mapping[str, str]] = {
    alias: key
    for key, aliases in {
        "united states": ("usa", "united states of america", "us of america"),
        "united kingdom": ("uk", "great britain", "united kingdom of great britain"),
        "soviet union": ("ussr", "union of soviet socialist republics"),
        "european union": ("eu",),
        "united nations": ("un", "uno"),
        "united arab emirates": ("uae",),
    }.items()
    for alias in aliases
}

_ABBREVIATION: Final = re.compile(r"\b(?:[^\W\d_]\.){2,}")
_WORD: Final = re.compile(r"[^\W_]+")
_TOKEN: Final = re.compile(r"(?:[^\W\d_]\.){2,}|[^\W_]+(?:[-'’.][^\W_]+)*|[^\w\s]")

_LINKS: Final = frozenset(
    ("of", "the", "de", "des", "du", "del", "von", "van", "der", "da", "di", "la", "le")
)

# What has a capital because a sentence begins with it.
_OPENING: Final = _ARTICLES | frozenset(
    (
        *("he", "she", "it", "they", "we", "you", "his", "her", "its", "their", "our", "this"),
        *("that", "these", "those", "there", "in", "on", "at", "of", "by", "from", "to", "for"),
        *("with", "as", "if", "when", "while", "after", "before", "since", "during", "until"),
        *("and", "but", "or", "not", "no", "all", "some", "many", "most", "both", "each", "only"),
        *("who", "what", "which", "where", "how", "why", "is", "are", "was", "were", "did", "does"),
    )
)

_DIGITS: Final = re.compile(r"\d+")


def key_of(name: str) -> str:
    """Return what a name of an entity is found by.

    Case, accents, width, a leading article, punctuation and the script of digits do not count.

    Returns:
        The key; empty for a name without letters, such as a number: too much has the same one.
    """
    if name.strip() in {"US", "U.S."}:  # as a word it is a pronoun
        return "united states"
    text = unicodedata.normalize("NFKD", name.casefold())
    text = "".join(
        _plain(letter) for letter in text if not unicodedata.category(letter).startswith("Mn")
    )
    text = unicodedata.normalize("NFKC", text).replace("'s ", " ").removesuffix("'s")
    text = _ABBREVIATION.sub(lambda match: match.group().replace(".", ""), text)
    words = _WORD.findall(text)
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    if words and words[0].startswith(_ARABIC_ARTICLE) and len(words[0]) > 4:
        words[0] = words[0].removeprefix(_ARABIC_ARTICLE)
    key = " ".join(words)
    if not any(letter.isalpha() for letter in key):
        return ""
    return _KNOWN.get(key, key)


def keys_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return what evidence about some names is kept under, each key once.

    Common nouns count only where there is no proper name, told by a capital or a script without
    capitals: what was found for the steps of one tower says nothing of those of another.
    """
    named = {name: key for name in names if (key := key_of(name))}
    proper = [key for name, key in named.items() if name != name.lower() or name == name.upper()]
    return tuple(dict.fromkeys(proper or named.values()))


def looked_up(names: Iterable[str]) -> tuple[str, ...]:
    """Return what evidence about some names is looked up by: all their keys, each once.

    Common nouns count beside proper names, too: under them lies what was found for claims that
    name nobody, and hold for all.
    """
    return tuple(dict.fromkeys(filter(None, map(key_of, names))))


def names_of(text: str) -> tuple[str, ...]:
    """Return the names in a text, told by their capitals, in order and each once.

    Returns:
        Runs of words with a capital, such as "University of Oslo" or "Apollo 11"; empty for a text
        without capitals, or in a script that has none.
    """
    runs: list[list[str]] = [[]]
    small: list[str] = []  # words that belong to a name if it goes on after them
    for token in _TOKEN.findall(text):
        run = runs[-1]
        if token[0].isupper() and (run or token.casefold() not in _OPENING):
            run += [*small, token]
            small = []
        elif run and token.isdecimal() and not small:
            run.append(token)
        elif run and token in _LINKS:
            small.append(token)
        else:
            runs, small = [*runs, []] if run else runs, []
    return tuple(dict.fromkeys(" ".join(run) for run in runs if run))


def grams(key: str) -> frozenset[str]:
    """Return the pieces of three characters by which near names of a key are looked for."""
    padded = [f" {word} " for word in key.split()]
    return frozenset(word[at : at + 3] for word in padded for at in range(len(word) - 2))


def near(key: str, others: Iterable[str]) -> list[str]:
    """Return the keys that nearly are ``key``, the nearest first.

    Words may come in another order, and a longer word have a letter more or less; numbers may not
    differ. Short names have none: Austria is not Australia.
    """
    words = sorted(key.split())
    numbers = _DIGITS.findall(key)
    alike: dict[str, float] = {}
    for other in others:
        theirs = sorted(other.split())
        if other != key and len(theirs) == len(words) and _DIGITS.findall(other) == numbers:
            alike[other] = min(map(fuzz.ratio, words, theirs), default=0.0)
    close = (other for other, score in alike.items() if score >= NEAR)
    return sorted(close, key=lambda other: (-alike[other], other))


def _plain(character: str) -> str:
    digit = unicodedata.decimal(character, None)
    return character if digit is None else str(digit)


MOST: Final = 8  # entries in a prompt
ROOM: Final = 4_000  # characters of all of them together


def chosen(
    entries: Sequence[StoredEntry], claim: str, *, most: int = MOST, room: int = ROOM
) -> list[StoredEntry]:
    """Choose what a claim is shown of what the memory holds about its entities.

    Args:
        entries: what is kept, in any number.
        claim: the claim.
        most: entries at most.
        room: characters of their texts together; a longer first one is shown alone, cut.

    Returns:
        Pinned entries first, then those that share most with the claim, rare words counting more,
        of equals the newest.
    """
    wanted = frozenset(terms(claim))
    held = [wanted.intersection(terms(entry.entry.text)) for entry in entries]
    spread = Counter(word for words in held for word in words)
    worth = [math.fsum(math.log1p(len(entries) / spread[word]) for word in words) for words in held]
    order = sorted(
        range(len(entries)),
        key=lambda at: (not entries[at].pinned, -worth[at], -entries[at].entry.at, at),
    )
    picked: list[StoredEntry] = []
    for at in order:
        if len(picked) == most:
            break
        size = len(entries[at].entry.text)
        if size <= room or not picked:
            picked.append(entries[at])
            room -= size
    return picked


ALIKE = 85.0  # similarity (0 to 100) from which a name asked for means a name of the graph
MOST_NAMES = 3  # names of the graph that one name asked for may mean
MOST_RELATIONS = 40  # relations that one look-up returns


class EntityEdge(NamedTuple):
    """A relation from one entity to another, all three in words."""

    subject: str
    relation: str
    object: str

    def __str__(self) -> str:
        return f"{self.subject} – {self.relation} – {self.object}"


class EntityRelation(ReplyModel):
    """One relation between two entities, in words of the passages."""

    subject: Text
    relation: Text
    object: Text


def edges_of(relations: Iterable[EntityRelation]) -> Iterator[EntityEdge]:
    """Yield the relations of a model's reply that name all three parts."""
    for relation in relations:
        edge = EntityEdge(
            relation.subject.strip(), relation.relation.strip(), relation.object.strip()
        )
        if all(edge):
            yield edge


class EntityGraph:
    """A directed multigraph that is looked up by names, tolerant in their spelling.

    Args:
        edges: relations in order; the same one twice counts once, different ones between the same
            two entities all stay.
    """

    def __init__(self, edges: Iterable[EntityEdge]) -> None:
        self.edges = tuple(dict.fromkeys(edges))
        self._by_name: dict[str, list[int]] = defaultdict(list)
        for index, edge in enumerate(self.edges):
            for name in dict.fromkeys(edge):
                self._by_name[name].append(index)
        self._names = {name: utils.default_process(name) for name in self._by_name}

    @property
    def entities(self) -> tuple[str, ...]:
        """The entities, in the order in which the relations name them."""
        return tuple(dict.fromkeys(name for edge in self.edges for name in (edge[0], edge[2])))

    def look_up(self, names: Sequence[str]) -> tuple[EntityEdge, ...]:
        """Return the relations of the entities, or of the kind, that names mean.

        Args:
            names: entities or relations, spelled more or less as in the graph.

        Returns:
            At most ``MOST_RELATIONS`` relations in the graph's order; empty if no name is known.
        """
        indices: set[int] = set()
        for name in names:
            for entity in self._meant(name):
                indices.update(self._by_name[entity])
        return tuple(self.edges[index] for index in sorted(indices)[:MOST_RELATIONS])

    def _meant(self, name: str) -> list[str]:
        sought = utils.default_process(name)
        if not sought:
            return []
        matches = process.extract(
            sought, self._names, scorer=fuzz.WRatio, limit=MOST_NAMES, score_cutoff=ALIKE
        )
        exact = [entity for _, score, entity in matches if score == 100.0]
        return exact or [entity for _, _, entity in matches]
