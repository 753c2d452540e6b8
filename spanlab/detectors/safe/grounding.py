"""Whether the passages of a question lead to its answer, on a knowledge graph of them (§3.3).

Kwon et al. 2026, "SAFE", train-time verification: facts are extracted from the passages, looked for
again, and brought under one name an entity; then a path of facts is looked for that gives the
answer. Without one, whoever reasons from the passages cannot be right by them, and a verifier must
not learn from it. Models are callables here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from spanlab.detectors.safe.entities import canonical, is_generic, is_value, key, plain
from spanlab.detectors.safe.recomputing import period
from spanlab.entities import Edge
from spanlab.lm.meter import together
from spanlab.scorers import score_answer
from spanlab.text import terms

GLEANED: Final = 2  # further rounds of extraction
TRIES: Final = 2  # paths that are asked for
_SAME: Final = frozenset(
    ("same as", "alias", "also known as", "known as", "birth name", "alternative name", "nickname")
)


class Unverifiable(StrEnum):
    """Why the passages of a question do not lead to its answer."""

    NO_FACTS = "no facts"  # the passages give no relation
    NO_PATH = "no path"  # no relations give the answer, says the model
    NOT_REACHED = "answer not reached"  # those that it names do not have the answer
    BROKEN = "broken path"  # they hang on nothing that the question names
    ONE_SIDE = "one side missing"  # of two things to compare


class Proposal(NamedTuple):
    """A path that a model proposes: whether there is one, its relations' indices, and why."""

    valid: bool
    relations: Sequence[int]
    explanation: str


@dataclass(frozen=True)
class Grounding:
    """What the passages of a question came to.

    Attributes:
        edges: the facts, with one name for every entity.
        passages: of each fact the index of the passage that states it first.
        path: the indices of the facts that give the answer; empty if it is unverifiable.
        reason: why it is; None for a question that is verified.
        explanation: the model's, or what is wrong with its path.
        gleaned: rounds in which facts were looked for again, of the passage that took most.
    """

    edges: tuple[Edge, ...]
    passages: tuple[int, ...]
    path: tuple[int, ...]
    reason: Unverifiable | None
    explanation: str
    gleaned: int


@dataclass(frozen=True)
class Asked:
    """A question with its right answers and the titles of its passages."""

    question: str
    answers: tuple[str, ...]
    titles: tuple[str, ...] = ()


async def ground(
    asked: Asked,
    passages: int,
    *,
    extract: Callable[[int], Awaitable[Iterable[Edge]]],
    glean: Callable[[int, Sequence[Edge]], Awaitable[Iterable[Edge]]],
    resolve: Callable[[Sequence[str], Sequence[Edge]], Awaitable[Iterable[Sequence[str]]]],
    discover: Callable[[Sequence[Edge], str], Awaitable[Proposal]],
) -> Grounding:
    """Verify that the passages of a question lead to its answer.

    Args:
        asked: the question.
        passages: how many passages there are.
        extract: the facts of a passage.
        glean: those that a passage has beside these.
        resolve: groups of names that mean the same, of the names and the facts.
        discover: a path through the facts; told what was wrong with the path before, if anything.
    """

    async def facts(passage: int) -> tuple[list[Edge], int]:
        found = dict.fromkeys(await extract(passage))
        for number in range(1, GLEANED + 1):
            more = [edge for edge in await glean(passage, list(found)) if edge not in found]
            if not more:
                return list(found), number
            found |= dict.fromkeys(more)
        return list(found), GLEANED

    extracted = await together(*map(facts, range(passages)))
    stated: dict[Edge, int] = {}
    for passage, (edges, _) in enumerate(extracted):
        for edge in edges:
            stated.setdefault(edge, passage)
    gleaned = max((rounds for _, rounds in extracted), default=0)
    if not stated:
        return Grounding((), (), (), Unverifiable.NO_FACTS, "", gleaned)
    # One name for every entity.
    names = list(dict.fromkeys(name for edge in stated for name in (edge.subject, edge.object)))
    said = [(edge.subject, edge.object) for edge in stated if key(edge.relation) in _SAME]
    known = canonical(names, [*said, *await resolve(names, list(stated))])
    resolved: dict[Edge, int] = {}
    for edge, passage in stated.items():
        renamed = Edge(known[edge.subject], edge.relation, known[edge.object])
        resolved.setdefault(renamed, passage)
    edges = tuple(resolved)
    # A path, and whether it is one.
    aliases: dict[str, list[str]] = defaultdict(list)
    for name, one in known.items():
        aliases[one].append(name)
    flaw = ""
    for _ in range(TRIES):
        proposal = await discover(edges, flaw)
        path = tuple(dict.fromkeys(at for at in proposal.relations if 0 <= at < len(edges)))
        if not (proposal.valid and path):
            reason, flaw = Unverifiable.NO_PATH, proposal.explanation
            break
        found = flaw_in_path([edges[at] for at in path], asked, aliases)
        if found is None:
            stands = tuple(resolved.values())
            return Grounding(edges, stands, path, None, proposal.explanation, gleaned)
        reason, flaw = found
    return Grounding(edges, tuple(resolved.values()), (), reason, flaw, gleaned)


def flaw_in_path(
    path: Sequence[Edge], asked: Asked, aliases: Mapping[str, Sequence[str]]
) -> tuple[Unverifiable, str] | None:
    """Return what is wrong with a path as the evidence of an answer.

    Facts are links in both directions. A chain leads from what the question names to the answer.
    Where the answer is yes, no, a number, or one of the things that the question compares, each
    part of the path hangs on something that the question names, and two things are named.

    Args:
        path: facts.
        asked: the question.
        aliases: all names of each entity, its own included.

    Returns:
        The kind of flaw, and what exactly; None if the path holds.
    """
    parts = _parts(path)
    entities: set[str] = set().union(*parts)
    named = {name for name in entities if _is_named(aliases[name], asked.question)}
    answering = {name for name in entities if _is_answer(aliases[name], asked)}
    reached = [part for part in parts if part & answering]
    compares = any(_is_named((answer,), asked.question) for answer in asked.answers)
    derived = all(map(_is_derived, asked.answers))
    if not (reached or derived):
        answers = " or ".join(asked.answers)
        return Unverifiable.NOT_REACHED, f"the relations do not mention {answers}"
    loose = parts if derived or compares else reached
    hanging = [part for part in loose if part & named]
    if not hanging or ((derived or compares) and len(hanging) < len(loose)):
        stray = next(part for part in loose if not part & named)
        names = ", ".join(sorted(stray))
        return Unverifiable.BROKEN, f"nothing connects the question with: {names}"
    if compares or all(answer.casefold() in {"yes", "no"} for answer in asked.answers):
        titles = {key(title) for title in asked.titles if _is_named((title,), asked.question)}
        missing = titles - {key(alias) for name in named for alias in aliases[name]}
        if len(named) < 2 and missing:
            names = ", ".join(sorted(missing))
            return Unverifiable.ONE_SIDE, f"nothing is said of: {names}"
    return None


def _parts(path: Iterable[Edge]) -> list[set[str]]:
    """Return the entities of a path, those that it connects together."""
    parts: list[set[str]] = []
    for edge in path:
        ends = {edge.subject, edge.object}
        joined = ends.union(*(part for part in parts if part & ends))
        parts = [part for part in parts if not part & ends] + [joined]
    return parts


def _is_named(names: Iterable[str], question: str) -> bool:
    """Say whether a question names an entity by any of its names."""
    asked = {*terms(question), *terms(plain(question))}
    return any(words and words <= asked for words in map(_name_words, names))


def _name_words(name: str) -> set[str]:
    """Return the words of a name that a question may use; none of a common noun."""
    bare = name.partition(" (")[0]
    return set() if is_generic(bare) else set(terms(key(bare) if not period(bare) else bare))


def _is_answer(names: Iterable[str], asked: Asked) -> bool:
    return any(_matches(name, answer) for name in names for answer in asked.answers)


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
