"""Passages lead to the answer, on a graph of their entities.

Kwon et al. 2026, "SAFE", train-time verification: facts are extracted from the passages, looked for
again, and brought under one name an entity; then a path of facts is looked for that gives the
answer. Without one, whoever reasons from the passages cannot be right by them, and a verifier must
not learn from it. Models are callables here.

A model groups names ("USA", "United States"); what can be known without one is decided here. Only
what names one person, place, organisation, work or event may be grouped: two equal numbers are not
the same thing, and "the director" is somebody else in every passage.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Final, NamedTuple

from spanlab.detection.entities import EntityEdge
from spanlab.models.meter import together
from spanlab.scoring.answers import score_answer
from spanlab.systems.safe.recomputing import period
from spanlab.text.terms import terms

GLEANED: Final = 2  # further rounds of extraction
TRIES: Final = 2  # paths that are asked for

_SAME: Final = frozenset(
    ("same as", "alias", "also known as", "known as", "birth name", "alternative name", "nickname")
)


class GroundingFailure(StrEnum):
    """Why the passages of a question do not lead to its answer."""

    NO_FACTS = "no facts"  # the passages give no relation
    NO_PATH = "no path"  # no relations give the answer, says the model
    NOT_REACHED = "answer not reached"  # those that it names do not have the answer
    BROKEN = "broken path"  # they hang on nothing that the question names
    ONE_SIDE = "one side missing"  # of two things to compare


class PathProposal(NamedTuple):
    """A path that a model proposes: whether there is one, its relations' indices, and why."""

    valid: bool
    relations: Sequence[int]
    explanation: str


@dataclass(frozen=True)
class GroundingResult:
    """What the passages of a question came to.

    Attributes:
        edges: the facts, with one name for every entity.
        passages: of each fact the index of the passage that states it first.
        path: the indices of the facts that give the answer; empty if it is unverifiable.
        reason: why it is; None for a question that is verified.
        explanation: the model's, or what is wrong with its path.
        gleaned: rounds in which facts were looked for again, of the passage that took most.
    """

    edges: tuple[EntityEdge, ...]
    passages: tuple[int, ...]
    path: tuple[int, ...]
    reason: GroundingFailure | None
    explanation: str
    gleaned: int


@dataclass(frozen=True)
class BenchmarkQuestion:
    """A question with its right answers and the titles of its passages."""

    question: str
    answers: tuple[str, ...]
    titles: tuple[str, ...] = ()


async def ground(
    benchmark: BenchmarkQuestion,
    passages: int,
    *,
    extract: Callable[[int], Awaitable[Iterable[EntityEdge]]],
    glean: Callable[[int, Sequence[EntityEdge]], Awaitable[Iterable[EntityEdge]]],
    resolve: Callable[[Sequence[str], Sequence[EntityEdge]], Awaitable[Iterable[Sequence[str]]]],
    discover: Callable[[Sequence[EntityEdge], str], Awaitable[PathProposal]],
) -> GroundingResult:
    """Verify that the passages of a question lead to its answer.

    Args:
        benchmark: the question.
        passages: how many passages there are.
        extract: the facts of a passage.
        glean: those that a passage has beside these.
        resolve: groups of names that mean the same, of the names and the facts.
        discover: a path through the facts; told what was wrong with the path before, if anything.
    """
    extracted = await together(*(_facts(at, extract, glean) for at in range(passages)))
    stated: dict[EntityEdge, int] = {}
    for passage, (edges, _) in enumerate(extracted):
        for edge in edges:
            stated.setdefault(edge, passage)
    gleaned = max((rounds for _, rounds in extracted), default=0)
    if not stated:
        return GroundingResult((), (), (), GroundingFailure.NO_FACTS, "", gleaned)
    # One name for every entity.
    names = list(dict.fromkeys(name for edge in stated for name in (edge.subject, edge.object)))
    pairs = [(edge.subject, edge.object) for edge in stated if key(edge.relation) in _SAME]
    canonical_names = canonical(names, [*pairs, *await resolve(names, list(stated))])
    resolved: dict[EntityEdge, int] = {}
    for edge, passage in stated.items():
        renamed = EntityEdge(
            canonical_names[edge.subject], edge.relation, canonical_names[edge.object]
        )
        resolved.setdefault(renamed, passage)
    aliases: dict[str, list[str]] = defaultdict(list)
    for name, canonical_name in canonical_names.items():
        aliases[canonical_name].append(name)
    found = await _find_path(tuple(resolved), benchmark, aliases, discover)
    return GroundingResult(tuple(resolved), tuple(resolved.values()), *found, gleaned)


async def _facts(
    passage: int,
    extract: Callable[[int], Awaitable[Iterable[EntityEdge]]],
    glean: Callable[[int, Sequence[EntityEdge]], Awaitable[Iterable[EntityEdge]]],
) -> tuple[list[EntityEdge], int]:
    """Return the facts of a passage, and in how many rounds they were looked for again."""
    own = dict.fromkeys(await extract(passage))
    for number in range(1, GLEANED + 1):
        more = [edge for edge in await glean(passage, list(own)) if edge not in own]
        if not more:
            return list(own), number
        own |= dict.fromkeys(more)
    return list(own), GLEANED


async def _find_path(
    edges: Sequence[EntityEdge],
    benchmark: BenchmarkQuestion,
    aliases: Mapping[str, Sequence[str]],
    discover: Callable[[Sequence[EntityEdge], str], Awaitable[PathProposal]],
) -> tuple[tuple[int, ...], GroundingFailure | None, str]:
    """Return a path that holds, or none and why, and the explanation; see ``GroundingResult``."""
    reason, flaw = GroundingFailure.NO_PATH, ""
    for _ in range(TRIES):
        proposal = await discover(edges, flaw)
        path = tuple(dict.fromkeys(at for at in proposal.relations if 0 <= at < len(edges)))
        if not (proposal.valid and path):
            return (), GroundingFailure.NO_PATH, proposal.explanation
        path_flaw = flaw_in_path([edges[at] for at in path], benchmark, aliases)
        if path_flaw is None:
            return path, None, proposal.explanation
        reason, flaw = path_flaw
    return (), reason, flaw


def flaw_in_path(
    path: Sequence[EntityEdge],
    benchmark: BenchmarkQuestion,
    aliases: Mapping[str, Sequence[str]],
) -> tuple[GroundingFailure, str] | None:
    """Return what is wrong with a path as the evidence of an answer.

    Facts are links in both directions. A chain leads from what the question names to the answer.
    Where the answer is yes, no, a number, or one of the things that the question compares, each
    part of the path hangs on something that the question names, and two things are named.

    Args:
        path: facts.
        benchmark: the question.
        aliases: all names of each entity, its own included.

    Returns:
        The kind of flaw, and what exactly; None if the path holds.
    """
    parts = _parts(path)
    entities: set[str] = set().union(*parts)
    named = {name for name in entities if _is_named(aliases[name], benchmark.question)}
    answering = {name for name in entities if _is_answer(aliases[name], benchmark)}
    reached = [part for part in parts if part & answering]
    compares = any(_is_named((answer,), benchmark.question) for answer in benchmark.answers)
    derived = all(map(_is_derived, benchmark.answers))
    if not (reached or derived):
        answers = " or ".join(benchmark.answers)
        return GroundingFailure.NOT_REACHED, f"the relations do not mention {answers}"
    loose = parts if derived or compares else reached
    hanging = [part for part in loose if part & named]
    if not hanging or ((derived or compares) and len(hanging) < len(loose)):
        stray = next(part for part in loose if not part & named)
        names = ", ".join(sorted(stray))
        return GroundingFailure.BROKEN, f"nothing connects the question with: {names}"
    if compares or all(answer.casefold() in {"yes", "no"} for answer in benchmark.answers):
        titles = {
            key(title) for title in benchmark.titles if _is_named((title,), benchmark.question)
        }
        missing = titles - {key(alias) for name in named for alias in aliases[name]}
        if len(named) < 2 and missing:
            names = ", ".join(sorted(missing))
            return GroundingFailure.ONE_SIDE, f"nothing is said of: {names}"
    return None


def _parts(path: Iterable[EntityEdge]) -> list[set[str]]:
    """Return the entities of a path, those that it connects together."""
    parts: list[set[str]] = []
    for edge in path:
        ends = {edge.subject, edge.object}
        joined = ends.union(*(part for part in parts if part & ends))
        parts = [part for part in parts if not part & ends] + [joined]
    return parts


def _is_named(names: Iterable[str], question: str) -> bool:
    """Say whether a question names an entity by any of its names."""
    question_terms = {*terms(question), *terms(plain(question))}
    return any(words and words <= question_terms for words in map(_name_words, names))


def _name_words(name: str) -> set[str]:
    """Return the words of a name that a question may use; none of a common noun."""
    bare = name.partition(" (")[0]
    return set() if is_generic(bare) else set(terms(key(bare) if not period(bare) else bare))


def _is_answer(names: Iterable[str], benchmark: BenchmarkQuestion) -> bool:
    return any(_matches(name, answer) for name in names for answer in benchmark.answers)


def _matches(name: str, answer: str) -> bool:
    """Say whether a name is an answer, or either has all words of the other."""
    if key(name) == key(answer) or score_answer(name, (answer,)).exact:
        return True
    left, right = set(terms(key(name))), set(terms(key(answer)))
    if is_value(name) or is_value(answer):
        return False
    return bool(left and right) and (left <= right or right <= left)


def _is_derived(answer: str) -> bool:
    """Say whether an answer is worked out from facts and need not be named by any."""
    counts = is_value(answer) and period(answer) is None
    return answer.casefold() in {"yes", "no"} or counts


_ARTICLE: Final = re.compile(r"^\W*(?:an?|the)\s+(?=\W*\w)", re.I)

# After an initial, with the space before a further one: U.S. is US, J. K. is JK.
_INITIAL: Final = re.compile(r"(?<=\b[^\W\d_])\.(?:\s(?=[^\W\d_]\.))?")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER: Final = re.compile(r"\d+\w{0,2}")  # 44th, 1990s, 5km

_WORD_OF_A_VALUE: Final = re.compile(
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundreds?|thousands?|"
    "million|billion|trillion|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|"
    "half|dozen|percent|per|cent|usd|eur|gbp|dollars?|euros?|pounds?|days?|weeks?|months?|years?|"
    "hours?|minutes?|seconds?|century|centuries|(?:kilo)?met(?:re|er)s?|miles?|feet|foot|inch(?:es)?|"
    "km|kg|(?:kilo)?grams?|tons?|tonnes?|acres?|hectares?|square|about|around|approximately|over|"
    "nearly|circa|and|of|bc|ad"
)

_ORDINAL: Final = re.compile("[ivx]+|jr|junior|sr|senior|elder|younger")


def key(name: str) -> str:
    """Return a name without what spellings of one name differ in: case, marks, an article.

    Days become ISO dates. Two names with the same key mean the same.
    """
    when = period(name)
    if when is not None and when.first == when.last:
        return when.first.isoformat()
    return " ".join(_words(_ARTICLE.sub("", name)))


def plain(text: str) -> str:
    """Return a text whose initials have no dots, and whose numbers no commas at thousands.

    Names and numbers of two texts can be compared in it: it has "US", "JK Rowling" and "1000" for
    "U.S.", "J. K. Rowling" and "1,000".
    """
    return _THOUSANDS.sub("", _INITIAL.sub("", text))


def is_value(name: str) -> bool:
    """Say whether a name is a date, a number or a quantity."""
    words = _words(name)
    return period(name) is not None or all(
        _NUMBER.fullmatch(word) or _WORD_OF_A_VALUE.fullmatch(word) for word in words
    )


def is_generic(name: str) -> bool:
    """Say whether a name is a common noun: one without a capital letter, in scripts with capitals.

    Scripts without capitals do not tell; nothing in them is generic.
    """
    return name == name.lower() and name != name.upper()


def canonical(names: Iterable[str], groups: Iterable[Sequence[str]] = ()) -> Mapping[str, str]:
    """Say under which name each entity is known.

    Args:
        names: the names in a graph, in their order.
        groups: names that mean the same, as a model says. Names that are not in the graph, values
            and common nouns are left out of them, and what cannot be one thing is not merged: the
            elder and the younger, Apollo 11 and Apollo 13.

    Returns:
        For every name the first one that means the same.
    """
    clusters: dict[str, list[str]] = {}
    for name in names:
        same_key = clusters.setdefault(key(name), [])
        if name not in same_key:
            same_key.append(name)
    of = {name: cluster for cluster in clusters.values() for name in cluster}
    order = {name: at for at, name in enumerate(of)}
    for group in groups:
        clusters_named = [clusters.get(key(name), ()) for name in group if is_nameable(name)]
        members = [of[cluster[0]] for cluster in clusters_named if cluster]
        for other in members[1:]:
            cluster = of[members[0][0]]
            if other is cluster or _apart(cluster, other):
                continue
            cluster += other
            of.update((name, cluster) for name in other)
    return {name: min(cluster, key=order.__getitem__) for name, cluster in of.items()}


def is_nameable(name: str) -> bool:
    """Say whether a name may be grouped with others: it is no value and no common noun."""
    return not (is_value(name) or is_generic(name))


def _apart(names: Sequence[str], other_names: Sequence[str]) -> bool:
    """Say whether two groups of names differ in a number or a generation."""
    left, right = (
        set(chain.from_iterable(map(_marks, cluster))) for cluster in (names, other_names)
    )
    return bool(left and right and left != right)


def _marks(name: str) -> set[str]:
    return {word for word in _words(name)[1:] if _ORDINAL.fullmatch(word) or word.isdecimal()}


def _words(name: str) -> list[str]:
    text = unicodedata.normalize("NFKC", name).casefold()
    return "".join(letter if _is_letter(letter) else " " for letter in plain(text)).split()


def _is_letter(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M")
