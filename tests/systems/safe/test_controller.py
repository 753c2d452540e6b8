"""The controlled reasoning by hand: what is asked in which order, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from spanlab.systems.safe.controller import ReasoningTrajectory, control

FINAL = "####ANSWER: Ada (Final Answer)"


@dataclass(frozen=True)
class Said:
    error: str | None = None
    diagnosis: str = "because"
    guidance: str = "do that"


RIGHT = Said()
WRONG = Said("Unsupported")


class Script:
    """Gives steps and verdicts in turn, the last ones for ever, and notes what it was asked."""

    def __init__(self, steps: Sequence[str], verdicts: Sequence[Said] = (RIGHT,)) -> None:
        self.steps, self.verdicts = list(steps), list(verdicts)
        self.asked: list[tuple[tuple[str, ...], Said | None]] = []
        self.verified: list[tuple[tuple[str, ...], str]] = []
        self.concluded: list[tuple[str, ...]] = []

    async def generate(self, accepted: tuple[str, ...], feedback: Said | None) -> str:
        self.asked.append((accepted, feedback))
        return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]

    async def verify(self, accepted: tuple[str, ...], step: str) -> Said:
        self.verified.append((accepted, step))
        return self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]

    async def conclude(self, accepted: tuple[str, ...]) -> str:
        self.concluded.append(accepted)
        return "####ANSWER: forced"

    def run(self, **limits: int) -> ReasoningTrajectory[str, Said]:
        return asyncio.run(
            control(generate=self.generate, verify=self.verify, conclude=self.conclude, **limits)
        )


def test_a_right_reasoning_ends_with_its_final_answer() -> None:
    script = Script(["a", "b", FINAL])
    found = script.run()
    assert [step.text for step in found.steps] == ["a", "b", FINAL]
    assert (found.answer, found.forced, found.calls) == ("Ada", False, 6)
    assert script.concluded == []


def test_a_generator_gets_what_stands_and_the_last_verdict_also_a_right_one() -> None:
    script = Script(["a", "wrong", "b", FINAL], [RIGHT, WRONG, RIGHT])
    found = script.run()
    assert script.asked == [
        ((), None),
        (("a",), RIGHT),
        (("a",), WRONG),
        (("a", "b"), RIGHT),
    ]
    assert script.verified[1:3] == [(("a",), "wrong"), (("a",), "b")]
    assert [(each.at, each.text) for each in found.attempts] == [
        (1, "a"),
        (2, "wrong"),
        (2, "b"),
        (3, FINAL),
    ]
    assert not any(step.unresolved for step in found.steps)


def test_after_the_last_revision_the_last_attempt_stands_unresolved() -> None:
    script = Script(["a", "b", "c", "d", FINAL], [WRONG, WRONG, WRONG, WRONG, RIGHT])
    found = script.run()
    assert [(step.text, step.unresolved) for step in found.steps] == [("d", True), (FINAL, False)]
    assert script.asked[-1] == (("d",), WRONG)
    assert found.calls == 10


def test_without_revisions_every_step_stands() -> None:
    found = Script(["a", FINAL], [WRONG, RIGHT]).run(retries=0)
    assert [(step.text, step.unresolved) for step in found.steps] == [("a", True), (FINAL, False)]


def test_without_a_final_answer_one_is_forced_and_not_verified() -> None:
    script = Script(["a"])
    found = script.run(steps=2)
    assert [step.text for step in found.steps] == ["a", "a", "####ANSWER: forced"]
    assert (found.answer, found.forced, found.calls) == ("forced", True, 5)
    assert script.concluded == [("a", "a")]
    assert len(script.verified) == 2
    assert found.steps[-1].verdict is None


def test_an_error_at_the_last_step_is_revised_before_the_answer_is_forced() -> None:
    found = Script(["a", "wrong", "b"], [RIGHT, WRONG, RIGHT]).run(steps=2)
    assert [step.text for step in found.steps] == ["a", "b", "####ANSWER: forced"]
    assert found.forced


def test_a_final_answer_that_stays_wrong_ends_it_unresolved() -> None:
    found = Script([FINAL], [WRONG]).run(retries=2)
    assert [(step.text, step.unresolved) for step in found.steps] == [(FINAL, True)]
    assert (found.answer, found.forced, found.calls) == ("Ada", False, 6)


def test_a_wrong_final_answer_may_be_revised_into_another_step() -> None:
    found = Script([FINAL, "a", FINAL], [WRONG, RIGHT]).run()
    assert [step.text for step in found.steps] == ["a", FINAL]


def test_no_steps_at_all_force_the_answer_at_once() -> None:
    found = Script(["a"]).run(steps=0)
    assert (found.answer, found.calls, found.attempts) == ("forced", 1, ())


@pytest.mark.parametrize("said", ["Ada", "  Ada\n"])
def test_a_forced_answer_without_its_mark_is_the_whole_text(said: str) -> None:
    async def conclude(_accepted: tuple[str, ...]) -> str:
        return said

    script = Script([""])
    work = control(generate=script.generate, verify=script.verify, conclude=conclude, steps=1)
    found = asyncio.run(work)
    assert (found.answer, found.forced) == ("Ada", True)
    assert [step.text for step in found.steps] == ["", said]


def test_steps_may_be_objects_with_a_text() -> None:
    @dataclass(frozen=True)
    class Step:
        text: str

    async def generate(_accepted: tuple[Step, ...], _feedback: Said | None) -> Step:
        return Step(FINAL)

    async def verify(_accepted: tuple[Step, ...], _step: Step) -> Said:
        return RIGHT

    async def conclude(_accepted: tuple[Step, ...]) -> Step:
        raise AssertionError("there is a final answer")

    found = asyncio.run(control(generate=generate, verify=verify, conclude=conclude))
    assert (found.answer, found.steps[0].text) == ("Ada", FINAL)
