"""Answers become steps, each with its own characters, however they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.systems.safe.steps import StepKind, final_answer, first_step, steps_in

A, L, F = StepKind.ATTRIBUTION, StepKind.LOGICAL, StepKind.FINAL_ANSWER


@pytest.mark.parametrize(
    ("answer", "steps"),
    [
        pytest.param(
            "Step 1: According to Passage 2, Ada built it. (Attribution)\n"
            "Step 2: So it is hers. (Logical)\nStep 3: ####ANSWER: Ada (Final Answer)",
            [
                ("According to Passage 2, Ada built it.", A),
                ("So it is hers.", L),
                ("####ANSWER: Ada", F),
            ],
            id="tagged",
        ),
        pytest.param(
            "**Step 1:** Ada built it *(attribution)*.\n\n**Step 2** - It is old. [Logical]",
            [("Ada built it", A), ("It is old.", L)],
            id="tagged-in-markdown",
        ),
        pytest.param(
            "Here is my reasoning:\nStep 1: Ada built it.\nStep 2: She was born in Rome.",
            [("Ada built it.", None), ("She was born in Rome.", None)],
            id="steps-without-tags-after-an-introduction",
        ),
        pytest.param(
            "The tower is old.\nStep 1: Ada built it.",
            [("The tower is old.", None), ("Ada built it.", None)],
            id="a-statement-before-the-first-step-is-one",
        ),
        pytest.param(
            "Ada built it. (Attribution) So it is hers. (Logical)",
            [("Ada built it.", A), ("So it is hers.", L)],
            id="tags-alone",
        ),
        pytest.param(
            "Step 1: Ada built it. (Attribution) She was born in Rome. (Attribution)",
            [("Ada built it.", A), ("She was born in Rome.", A)],
            id="two-steps-in-one",
        ),
        pytest.param(
            "1. Ada built\n   the tower.\n2) It is old.\n\nSo the answer is Ada.",
            [
                ("Ada built\n   the tower.", None),
                ("It is old.", None),
                ("So the answer is Ada.", None),
            ],
            id="numbered-with-a-conclusion",
        ),
        pytest.param(
            "- Ada built it.\n• It is old.",
            [("Ada built it.", None), ("It is old.", None)],
            id="bulleted",
        ),
        pytest.param(
            "Ada built it. It is old. ####ANSWER: Ada",
            [("Ada built it.", None), ("It is old.", None), ("####ANSWER: Ada", F)],
            id="free-text",
        ),
        pytest.param(
            "In 1889. 1989 is wrong.", [("In 1889.", None), ("1989 is wrong.", None)], id="no-list"
        ),
        pytest.param("Step 1:\nStep 2: It is old.", [("It is old.", None)], id="empty-step"),
        pytest.param(" \n", [], id="blank"),
    ],
)
def test_an_answer_is_read_into_its_steps(
    answer: str, steps: list[tuple[str, StepKind | None]]
) -> None:
    found = steps_in(answer, "en")
    assert [(step.text, step.kind) for step in found] == steps


@given(st.text("S tep1:.\n-*(Attribution)#ANWER😀é"))
def test_steps_quote_the_answer_in_order_and_never_overlap(answer: str) -> None:
    at = 0
    for step in steps_in(answer, "en"):
        assert at <= step.start < step.end
        assert answer[step.start : step.end] == step.text
        at = step.end


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("####ANSWER: Her Honor, the Governor (Final Answer)", "Her Honor, the Governor"),
        ("Step 4: #### Answer: **1862**", "1862"),
        ("####ANSWER:", ""),
        ("####ANSWER: Ada\nThat was it.", "Ada"),
        ("The answer is Ada.", None),
    ],
)
def test_the_value_of_a_final_answer_stands_after_its_mark(text: str, value: str | None) -> None:
    assert final_answer(text) == value


@pytest.mark.parametrize(
    ("reply", "text", "kind"),
    [
        ("Step 3: St. Mary is old. (Attribution)", "St. Mary is old.", A),
        ("Gladly!\nStep 3: It is old. (Logical)\nStep 4: ####ANSWER: x", "It is old.", L),
        ("Dr. Smith built St. Mary.", "Dr. Smith built St. Mary.", None),
        ("It is old.\nI hope that helps.", "It is old.", None),
        ("It is old. (Logical) It is high. (Attribution)", "It is old.", L),
        ("####ANSWER: St. Mary (Final Answer)", "####ANSWER: St. Mary", F),
        ("- It is old.", "- It is old.", None),
    ],
)
def test_a_generators_reply_has_one_step(reply: str, text: str, kind: StepKind | None) -> None:
    found = first_step(reply)
    assert found is not None
    assert (found.text, found.kind) == (text, kind)


def test_a_blank_reply_has_none() -> None:
    assert first_step(" \n") is None
