"""Whether passages lead to an answer: the algorithm, with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import pytest

from spanlab.detection.entities import EntityEdge
from spanlab.systems.safe.grounding import (
    BenchmarkQuestion,
    GroundingFailure,
    GroundingResult,
    PathProposal,
    flaw_in_path,
    ground,
)

DIRECTED = EntityEdge("3000 Nights", "directed by", "Mai Masri")
NATION = EntityEdge("Mai Masri", "nationality", "Palestinian")
FILMS = BenchmarkQuestion(
    "Which film came out first, Red Sea or Blue Moon?",
    ("Blue Moon",),
    ("Red Sea", "Blue Moon (film)", "Green Hill"),
)
RED = EntityEdge("Red Sea", "released", "1954-03-01")
BLUE = EntityEdge("Blue Moon", "released", "1949-03-01")
OLDER = BenchmarkQuestion(
    "How many years older is Ada Berg than Bo Carl?", ("12",), ("Ada Berg", "Bo Carl")
)
ADA, BO = EntityEdge("Ada Berg", "born", "1930"), EntityEdge("Bo Carl", "born", "1942")


@pytest.mark.parametrize(
    ("path", "asked", "reason"),
    [
        # A chain leads from the question to the answer, in whatever direction its facts are put.
        (
            [DIRECTED, NATION],
            BenchmarkQuestion("The director of 3000 Nights is what?", ("Palestinian",)),
            None,
        ),
        (
            [EntityEdge("Mai Masri", "director of", "3000 Nights"), NATION],
            BenchmarkQuestion("The director of 3000 Nights is what?", ("Palestinian",)),
            None,
        ),
        (
            [DIRECTED, NATION],
            BenchmarkQuestion(
                "What is the nationality of the director of 3000 Nights?", ("Lebanon",)
            ),
            GroundingFailure.NOT_REACHED,
        ),
        # The answer is there, and nothing leads to it: another entity of a similar name.
        (
            [
                EntityEdge("Piedmont", "in", "Virginia"),
                EntityEdge("Piedmont, Carolina", "has", "Rock Hill"),
            ],
            BenchmarkQuestion("What lies in the Piedmont of Virginia?", ("Rock Hill",)),
            GroundingFailure.BROKEN,
        ),
        (
            [NATION],
            BenchmarkQuestion("Who directed 3000 Nights?", ("Mai Masri",)),
            GroundingFailure.BROKEN,
        ),
        # An answer may be more or less exact than the passages.
        (
            [EntityEdge("Jang", "in", "Karachi")],
            BenchmarkQuestion("Where is Jang?", ("Karachi, Pakistan",)),
            None,
        ),
        (
            [EntityEdge("Jang", "in", "Karachi, Sindh")],
            BenchmarkQuestion("Where is Jang?", ("Karachi",)),
            None,
        ),
        (
            [EntityEdge("Jang", "founded", "2 May 1940")],
            BenchmarkQuestion("Jang is from?", ("1940-05-02",)),
            None,
        ),
        (
            [EntityEdge("Jang", "founded", "1941")],
            BenchmarkQuestion("When was Jang founded?", ("1940",)),
            GroundingFailure.NOT_REACHED,
        ),
        # A comparison needs both sides, which need not meet.
        ([RED, BLUE], FILMS, None),
        ([BLUE], FILMS, GroundingFailure.ONE_SIDE),
        ([RED, BLUE, EntityEdge("Green Hill", "released", "1980")], FILMS, GroundingFailure.BROKEN),
        (
            [ADA, BO],
            BenchmarkQuestion("Is Ada Berg older than Bo Carl?", ("yes",), OLDER.titles),
            None,
        ),
        (
            [ADA],
            BenchmarkQuestion("Is Ada Berg older than Bo Carl?", ("yes",), OLDER.titles),
            GroundingFailure.ONE_SIDE,
        ),
        # Numbers are worked out; all that they are worked out from hangs on the question.
        ([ADA, BO], OLDER, None),
        ([ADA, EntityEdge("Cy Dahl", "born", "1942")], OLDER, GroundingFailure.BROKEN),
    ],
)
def test_a_path_is_evidence_if_it_connects_question_and_answer(
    path: Sequence[EntityEdge], asked: BenchmarkQuestion, reason: GroundingFailure | None
) -> None:
    aliases = {name: (name,) for edge in path for name in (edge.subject, edge.object)}
    found = flaw_in_path(path, asked, aliases)
    assert (found and found[0]) == reason


def test_other_names_of_an_entity_count() -> None:
    asked = BenchmarkQuestion("Where was JFK born?", ("Brookline",))
    path = [EntityEdge("John F. Kennedy", "born in", "Brookline")]
    bare = {"John F. Kennedy": ("John F. Kennedy",), "Brookline": ("Brookline",)}
    assert flaw_in_path(path, asked, bare) is not None
    assert flaw_in_path(path, asked, bare | {"John F. Kennedy": ("John F. Kennedy", "JFK")}) is None


class Script:
    """A model that says what it is told to; it notes what it was asked."""

    def __init__(
        self,
        passages: Sequence[Sequence[Sequence[EntityEdge]]],
        paths: Sequence[PathProposal],
        groups: Sequence[Sequence[str]] = (),
    ) -> None:
        self.passages, self.paths, self.groups = passages, list(paths), groups
        self.gleaned: list[tuple[int, int]] = []
        self.objections: list[str] = []
        self.edges: Sequence[EntityEdge] = ()

    async def extract(self, passage: int) -> Iterable[EntityEdge]:
        return self.passages[passage][0]

    async def glean(self, passage: int, edges: Sequence[EntityEdge]) -> Iterable[EntityEdge]:
        self.gleaned.append((passage, len(edges)))
        rounds = sum(each == passage for each, _ in self.gleaned)
        told = self.passages[passage]
        return told[rounds] if rounds < len(told) else []

    async def resolve(
        self, names: Sequence[str], edges: Sequence[EntityEdge]
    ) -> Sequence[Sequence[str]]:
        return self.groups

    async def discover(self, edges: Sequence[EntityEdge], objection: str) -> PathProposal:
        self.edges = edges
        self.objections.append(objection)
        return self.paths.pop(0)

    def run(self, asked: BenchmarkQuestion) -> GroundingResult:
        return asyncio.run(
            ground(
                *(asked, len(self.passages)),
                extract=self.extract,
                glean=self.glean,
                resolve=self.resolve,
                discover=self.discover,
            )
        )


ASKED = BenchmarkQuestion("Who directed 3000 Nights?", ("Mai Masri",))


def test_facts_are_looked_for_again_until_nothing_is_new() -> None:
    more = [[DIRECTED], [NATION], [DIRECTED, NATION]]
    script = Script([more, [[RED]]], [PathProposal(True, [0], "so")])
    found = script.run(ASKED)
    assert found.edges == (DIRECTED, NATION, RED)
    assert found.passages == (0, 0, 1)
    assert found.gleaned == 2
    assert sorted(script.gleaned) == [(0, 1), (0, 2), (1, 1)]
    assert (found.path, found.reason) == ((0,), None)


def test_an_entity_has_one_name_in_the_path() -> None:
    split = [EntityEdge("3000 Nights", "by", "Masri"), EntityEdge("Mai Masri", "born in", "Amman")]
    asked = BenchmarkQuestion("Where was the director of 3000 Nights born?", ("Amman",))
    broken = Script([[split]], [PathProposal(True, [0, 1], "")] * 2).run(asked)
    assert broken.reason is GroundingFailure.BROKEN
    whole = Script([[split]], [PathProposal(True, [0, 1], "")], [["Mai Masri", "Masri"]]).run(asked)
    assert whole.reason is None
    assert whole.edges[1].subject == "Masri"


def test_what_the_passages_call_the_same_is_the_same() -> None:
    said = [
        EntityEdge("Norma Jeane", "same as", "Marilyn"),
        EntityEdge("Norma Jeane", "born in", "LA"),
    ]
    asked = BenchmarkQuestion("Where was Marilyn born?", ("LA",))
    assert Script([[said]], [PathProposal(True, [1], "")]).run(asked).reason is None


def test_a_path_that_does_not_hold_is_asked_for_once_more() -> None:
    passages = [[[DIRECTED, NATION]]]
    script = Script(passages, [PathProposal(True, [1], "so"), PathProposal(True, [0, 0, 7], "now")])
    found = script.run(ASKED)
    assert (found.path, found.reason, found.explanation) == ((0,), None, "now")
    assert script.objections[0] == ""
    assert "nothing connects the question" in script.objections[1]
    stubborn = Script(passages, [PathProposal(True, [1], "so")] * 2)
    assert stubborn.run(ASKED).reason is GroundingFailure.BROKEN
    assert len(stubborn.objections) == 2


def test_without_facts_or_a_path_a_question_is_unverifiable() -> None:
    nothing = Script([[[]], [[]]], []).run(ASKED)
    assert (nothing.reason, nothing.gleaned) == (GroundingFailure.NO_FACTS, 1)
    assert Script([], []).run(ASKED).reason is GroundingFailure.NO_FACTS
    refused = Script([[[NATION]]], [PathProposal(False, [0], "the director is not named")])
    found = refused.run(ASKED)
    assert (found.reason, found.path) == (GroundingFailure.NO_PATH, ())
    assert found.explanation == "the director is not named"
    assert len(refused.objections) == 1, "the model's word is not doubted"
    empty = Script([[[NATION]]], [PathProposal(True, [9], "so")]).run(ASKED)
    assert empty.reason is GroundingFailure.NO_PATH
