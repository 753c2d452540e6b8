"""The pursuit of evidence by hand: when it ends, what it asks again, which window it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.detectors.papelo.pursuit import Pair, Pursuit, align, pursue


class Script:
    """Answers as it was told to, and notes what it was asked."""

    def __init__(self, *follows: str | bool, ways: int = 4) -> None:
        self.follows, self.ways = list(follows), ways
        self.followed: list[int] = []
        self.paraphrased: list[str] = []
        self.judged: list[int] = []

    async def first(self, claim: str) -> str:
        return f"is it so that {claim}?"

    async def follow(self, _claim: str, pairs: Sequence[Pair[str]]) -> str | bool:
        self.followed.append(len(pairs))
        return self.follows[len(pairs) - 1]

    async def answer(self, _claim: str, question: str) -> str:
        return f"answer to {question}"

    async def paraphrase(self, question: str) -> list[str]:
        self.paraphrased.append(question)
        return [f"{question} ({number})" for number in range(1, self.ways + 1)]

    async def verdict(self, _claim: str, pairs: Sequence[Pair[str]]) -> str:
        self.judged.append(len(pairs))
        return "refuted"

    def run(self, n: int = 5, *, late: bool = True, fill: bool = True) -> Pursuit[str, str]:
        found = pursue(
            "x",
            first=self.first,
            follow=self.follow,
            answer=self.answer,
            paraphrase=self.paraphrase if fill else None,
            verdict=self.verdict,
            n=n,
            late=late,
        )
        return asyncio.run(found)


X = "is it so that x?"


@pytest.mark.parametrize(
    ("follows", "asked", "early"),
    [
        pytest.param(
            (True,), [X, f"{X} (1)", f"{X} (2)", f"{X} (3)", f"{X} (4)"], True, id="settled-at-once"
        ),
        pytest.param(
            ("a", False), [X, "a", f"{X} (1)", "a (1)", f"{X} (2)"], False, id="in-turn-from-two"
        ),
        pytest.param(
            ("a", "b", True), [X, "a", "b", f"{X} (1)", "a (1)"], True, id="each-only-as-needed"
        ),
        pytest.param(("a", "b", "c", "d", "e"), [X, "a", "b", "c", "d"], None, id="never-settled"),
        pytest.param(
            ("a", "b", "c", "d", False), [X, "a", "b", "c", "d"], False, id="settled-by-the-last"
        ),
    ],
)
def test_questions_end_when_settled_and_are_then_asked_in_other_words(
    follows: tuple[str | bool, ...], asked: list[str], early: bool | None
) -> None:
    script = Script(*follows)
    found = script.run()
    assert [pair.question for pair in found.pairs] == asked
    assert [pair.answer for pair in found.pairs] == [f"answer to {each}" for each in asked]
    assert (found.early, found.verdict, script.judged) == (early, "refuted", [5])


def test_the_late_verdict_may_overturn_the_early_one_unless_told_not_to() -> None:
    assert Script(True).run().verdict == "refuted"
    kept = Script(True)
    assert kept.run(late=False).verdict is True
    assert kept.judged == []
    unsettled = Script(*"abcde")
    assert unsettled.run(late=False).verdict == "refuted"


def test_without_paraphrases_there_are_only_the_questions_asked() -> None:
    assert len(Script("a", True).run(fill=False).pairs) == 2


def test_a_question_that_is_not_paraphrased_is_asked_again_as_it_is() -> None:
    assert [pair.question for pair in Script(True, ways=0).run(3).pairs] == [X, X, X]


def test_more_pairs_than_paraphrases_begin_with_the_first_one_again() -> None:
    questions = [pair.question for pair in Script(True, ways=2).run(5).pairs]
    assert questions == [X, f"{X} (1)", f"{X} (2)", f"{X} (1)", f"{X} (2)"]


@given(
    n=st.integers(1, 9),
    settled=st.one_of(st.none(), st.integers(1, 9)),
    ways=st.integers(0, 5),
)
def test_there_are_n_pairs_and_nothing_is_asked_once_settled(
    n: int, settled: int | None, ways: int
) -> None:
    follows = [True if at == settled else f"q{at}" for at in range(1, 10)]
    script = Script(*follows, ways=ways)
    found = script.run(n)
    asked = min(n, settled or n)
    assert len(found.pairs) == n
    assert script.followed == list(range(1, asked + 1))
    assert script.paraphrased == [pair.question for pair in found.pairs[: min(asked, n - asked)]]
    assert found.early is (True if settled is not None and settled <= n else None)


A, B, C, D, E, F, G = "alpha one", "beta", "gamma", "delta", "epsilon", "zeta", "eta one"


@pytest.mark.parametrize(
    ("sentences", "snippet", "window"),
    [
        pytest.param([A, B, C, D, E, F, G], "delta", (1, 6), id="middle-of-three"),
        pytest.param([A, B, C, D, E, F], "delta", (1, 6), id="later-of-two"),
        pytest.param([A, B, C, D, E, F, G], "alpha beta", (0, 5), id="only-the-first"),
        pytest.param([A, B], "beta", (0, 2), id="a-short-page-is-one-window"),
        pytest.param([A, B, C], "Delta", None, id="not-there"),
        pytest.param(
            ["a b c d e f g", "h", "i", "k", "l", "m"],
            "a b c d e f g x y z",
            None,
            id="seven-of-ten-words-are-not-more-than-seventy-percent",
        ),
        pytest.param(
            ["a b c d e f g h", "h", "i", "k", "l", "m"], "a b c d e f g h y z", (0, 5), id="eight"
        ),
        pytest.param([], "alpha", None, id="no-sentences"),
        pytest.param([A, B], "…", None, id="no-words"),
        pytest.param(["塔建于1889年。", "树是绿的。"], "塔建于1889年", (0, 2), id="no-spaces"),
    ],
)
def test_the_middle_window_that_holds_the_snippet_is_read(
    sentences: list[str], snippet: str, window: tuple[int, int] | None
) -> None:
    assert align(sentences, snippet) == window
