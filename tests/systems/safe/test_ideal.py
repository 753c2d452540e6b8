"""Ideal reasonings: what is wrong with plans and steps, and how often they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from spanlab.schema import Item, Passage
from spanlab.systems.safe.ideal import carried_out, flaw_in_plan, flaw_in_steps
from spanlab.systems.safe.steps import ReasoningStep, steps_in

PLAN = (
    "Step 1: Find who built the tower. (Attribution)\n"
    "Step 2: Find where the builder from Step 1 was born. (Attribution)\n"
    "Step 3: Name the place found in Step 2. (Logical)"
)
STEPS = (
    "Step 1: According to Passage 1, Ada Berg built the tower. (Attribution)\n"
    "Step 2: According to Passage 3, Ada Berg was born in Oslo in 1930. (Attribution)\n"
    "Step 3: The builder was born in Oslo, as Step 2 says. (Logical)\n"
    "Step 4: ####ANSWER: Oslo (Final Answer)"
)
ITEM = Item(
    id="q",
    lang="en",
    question="Where was the builder of the tower born?",
    answer="",
    passages=(
        Passage(title="Tower", text="Ada Berg built it."),
        Passage(title="Rome", text="Rome is old."),
        Passage(title="Ada Berg", text="Ada Berg (born 1930 in Oslo, no. 123456) was an engineer."),
    ),
    meta={"answers": ["Oslo"]},
)


def read(text: str) -> tuple[ReasoningStep, ...]:
    return steps_in(text, "en")


def test_a_plan_has_entries_that_need_only_what_comes_before() -> None:
    assert flaw_in_plan(read(PLAN)) is None


@pytest.mark.parametrize(
    ("plan", "flaw"),
    [
        ("", "no entry"),
        ("Step 1: Find who built the tower.\nStep 2: Find more. (Attribution)", "entry 1 does not"),
        ("Step 1: ####ANSWER: Oslo (Final Answer)", "entry 1 does not end"),
        (PLAN.replace("Step 1 was", "Step 2 was"), "entry 2 needs step 2"),
        ("Step 1: Compare the two. (Logical)", "there are none"),
        ("\n".join(f"Step {n}: Find {n}. (Attribution)" for n in range(1, 12)), "more than 10"),
    ],
)
def test_what_is_wrong_with_a_plan_is_named(plan: str, flaw: str) -> None:
    assert flaw in str(flaw_in_plan(read(plan)))


def flaw_of(steps: str, item: Item = ITEM) -> str | None:
    return flaw_in_steps(item, (0, 2), read(PLAN), read(steps))


def test_steps_that_carry_out_a_plan_are_right() -> None:
    assert flaw_of(STEPS) is None


@pytest.mark.parametrize(
    ("old", "new", "flaw"),
    [
        ("Step 4: ####ANSWER: Oslo (Final Answer)", "", "take 4 steps, not 3"),
        ("says. (Logical)", "says. (Attribution)", "step 3 does not end with (Logical)"),
        ("According to Passage 3, ", "", "step 2 has to cite one passage, of these: 1, 3"),
        ("Passage 3", "Passages 1 and 3", "step 2 has to cite one passage"),
        ("Passage 3", "Passage 2", "step 2 has to cite one passage"),
        ("Passage 3", "Passage 9", "there is no passage 9"),
        ("in 1930", "in 1931", "step 2 has '1931'"),
        ("in 1930", "in 1930, no. 123457", "step 2 has '123457'"),
        ("in Oslo in", "in Rome in", "step 2 has 'Rome'"),
        (
            "Passage 3, Ada Berg was born in Oslo in 1930",
            "Passage 1, Ada Berg built the tower",
            "repeats step 1",
        ),
        ("ANSWER: Oslo", "ANSWER: Bergen", "lead to Bergen, which is not the right one"),
        ("ANSWER: Oslo", "ANSWER: Oslo and Rome", "which is not the right one"),
    ],
)
def test_what_is_wrong_with_steps_is_named(old: str, new: str, flaw: str) -> None:
    assert old in STEPS
    assert flaw in str(flaw_of(STEPS.replace(old, new)))


def test_a_name_may_have_another_form_than_in_its_passage() -> None:
    (*others, last) = ITEM.passages
    foreign = last.model_copy(update={"text": f"{last.text} She was American."})
    item = ITEM.model_copy(update={"passages": (*others, foreign)})
    steps = STEPS.replace("born in Oslo in 1930", "born in 1930 in America")
    assert flaw_of(steps, item) is None
    assert "'America'" in str(flaw_of(steps))


def test_a_known_answer_may_have_other_forms() -> None:
    item = ITEM.model_copy(update={"meta": {"answers": ["Christiania", "the Oslo"]}})
    assert flaw_of(STEPS, item) is None
    dotted = ITEM.model_copy(update={"meta": {"answers": ["J.K. Oslo"]}})
    assert flaw_of(STEPS.replace("ANSWER: Oslo", "ANSWER: J. K. Oslo"), dotted) is None


class Teacher:
    """Plans and carries out as told; the last of each stays."""

    def __init__(self, plans: Sequence[str], steps: Sequence[str]) -> None:
        self.said = {"plan": list(plans), "take": list(steps)}
        self.objections: list[tuple[str, str]] = []

    def _next(self, what: str, objection: str) -> tuple[ReasoningStep, ...]:
        self.objections.append((what, objection))
        told = self.said[what]
        return read(told.pop(0) if len(told) > 1 else told[0])

    async def plan(self, objection: str) -> Sequence[ReasoningStep]:
        return self._next("plan", objection)

    async def take(self, plan: Sequence[ReasoningStep], objection: str) -> Sequence[ReasoningStep]:
        assert plan == read(PLAN)
        return self._next("take", objection)


@pytest.mark.parametrize(
    ("plans", "steps", "asked", "flaw"),
    [
        ([PLAN], [STEPS], ["plan", "take"], None),
        (["", PLAN], ["", STEPS], ["plan", "plan", "take", "take"], None),
        ([""], [STEPS], ["plan"] * 3, "the plan has no entry"),
        ([PLAN], [""], ["plan", *["take"] * 3], "take 4 steps, not 0"),
    ],
)
def test_what_is_wrong_is_asked_for_again_twice(
    plans: list[str], steps: list[str], asked: list[str], flaw: str | None
) -> None:
    teacher = Teacher(plans, steps)
    found = asyncio.run(
        carried_out(
            plan=teacher.plan,
            take=teacher.take,
            flaw=lambda plan, taken: flaw_in_steps(ITEM, (0, 2), plan, taken),
        )
    )
    assert [what for what, _ in teacher.objections] == asked
    assert found.flaw is None if flaw is None else flaw in str(found.flaw)
    told = [objection for _, objection in teacher.objections]
    assert told[0] == ""
    assert bool(told[1]) is (asked[1] == asked[0])
