"""What is found without a model: only what is certain, and each by its rule."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from spanlab.systems.safe.steps import ErrorType, ReasoningStep, StepKind, steps_in
from spanlab.systems.safe.verifier import flaw_in

A, L, F = StepKind.ATTRIBUTION, StepKind.LOGICAL, StepKind.FINAL_ANSWER
EARLIER = ["According to Passage 4, Chester Withey directed it.", "Ada Smith was born in 1960."]


def step(text: str, kind: StepKind | None = A) -> ReasoningStep:
    return ReasoningStep(0, len(text), text, kind)


def error_of(text: str, kind: StepKind | None = A, passages: int = 10) -> ErrorType | None:
    found = flaw_in(step(text, kind), [step(each) for each in EARLIER], passages)
    return found.error if found else None


@pytest.mark.parametrize(
    ("text", "kind", "error"),
    [
        (EARLIER[0], A, ErrorType.REDUNDANCY),
        ("according to passage 4: Chester Withey directed it!", L, ErrorType.REDUNDANCY),
        (EARLIER[1], None, ErrorType.REDUNDANCY),
        ("Let me find the director.", A, ErrorType.INEFFICIENCY),
        ("Next, I will compare the two dates", L, ErrorType.INEFFICIENCY),
        ("Now I will look at the passages again.", A, ErrorType.INEFFICIENCY),
        ("Let's first check who directed it.", A, ErrorType.INEFFICIENCY),
        ("I need to find out where Ann Lee was born.", A, ErrorType.INEFFICIENCY),
        ("The next step is to determine the director of the film.", A, ErrorType.INEFFICIENCY),
        ("...", A, ErrorType.INEFFICIENCY),
        ("According to Passage 11, it is old.", A, ErrorType.UNSUPPORTED),
        ("Passages 3 and 12 say that it is old.", A, ErrorType.UNSUPPORTED),
        ("Passage 0 says so.", None, ErrorType.UNSUPPORTED),
        ("He was 1963 - 1899 = 74 years old.", L, ErrorType.LOGICAL_FALLACY),
        ("Together 1,200 + 350 equals 1,450.", L, ErrorType.LOGICAL_FALLACY),
        ("3 × 4 = 13 films", L, ErrorType.LOGICAL_FALLACY),
        ("10 / 4 = 3.5", L, ErrorType.LOGICAL_FALLACY),
        ("5 is greater than 7", L, ErrorType.LOGICAL_FALLACY),
        ("1930 is after 1946, so he is younger.", L, ErrorType.LOGICAL_FALLACY),
        ("August 25, 1963 is before 6 October 1939.", L, ErrorType.LOGICAL_FALLACY),
        ("2001-05-01 is later than 2001-05-02.", L, ErrorType.LOGICAL_FALLACY),
        (
            "Chester Withey (October 6, 1939), Carlo Vanzina (July 8, 2018): Vanzina died first.",
            L,
            ErrorType.LOGICAL_FALLACY,
        ),
        ("Pasanen (1930), Spielberg (1946), so Spielberg is older.", L, ErrorType.LOGICAL_FALLACY),
        ("1930 is after 1946.", A, ErrorType.UNSUPPORTED),
        ("####ANSWER:", F, ErrorType.WRONG_CONCLUSION),
        # Right, or not certain.
        ("According to Passage 10, Chester Withey directed it.", A, None),
        ("He was 1963 - 1899 = 64 years old.", L, None),
        ("10 / 3 = 3.33", L, None),
        ("1 + 2 + 3 = 6", L, None),
        ("2 + 3 × 4 = 14", L, None),
        ("1.2 + 1.3 = 2.5 million", L, None),
        ("In 2001-05 = May, 3 years passed", A, None),
        ("7 is greater than 5", L, None),
        ("1930 is before 1946.", L, None),
        ("1930 is before May 1, 1930.", L, None),
        ("Pasanen (1930), Spielberg (1946), so Spielberg is not older.", L, None),
        ("Pasanen (1930), Spielberg (1946), so the latter is younger.", L, None),
        ("Withey (1939) and Vanzina (2018): Withey died earlier.", L, None),
        ("Let me see: the film is from 1920.", A, None),
        ("Let me note that Passage 2 says Ann Lee directed it.", A, None),
        ("Let me note Ann Lee directed it.", A, None),
        ("We should remember Ann Lee is older.", L, None),
        ("I will look at Passage 2, in which Ann Lee directed it.", A, None),
        ("Let me check that Ann Lee directed it.", A, None),
        ("I will identify Ann Lee as the director.", A, None),
        ("Let me turn to Passage 2 - Ann Lee directed it.", A, None),
        ("Let me look up the director (Ann Lee).", A, None),
        ("Let us calculate 1946 - 1930 = 16.", L, None),
        ("So we need to conclude Ann Lee is older.", L, None),
        ("1862", A, None),
        ("####ANSWER: 1862", F, None),
        ("####ANSWER: Passage 12", F, None),
    ],
)
def test_a_flaw_is_found_where_it_is_certain(
    text: str, kind: StepKind | None, error: ErrorType | None
) -> None:
    assert error_of(text, kind) is error


def test_a_flaw_says_its_rule_and_what_to_do() -> None:
    found = flaw_in(step("According to Passage 11, it is old."), [], 10)
    assert found is not None
    assert "there is no passage 11 among 10" in found.diagnosis
    assert found.guidance == "Cite one of the passages 1 to 10."


def test_citations_are_not_judged_where_no_passages_are_known() -> None:
    assert error_of("According to Passage 3, it is old.", passages=0) is None


def trajectories(shared: Path) -> Iterator[tuple[list[str], int]]:
    """Yield a hundred right reasonings with their number of passages."""
    path = shared / "claims" / "safe_samples.jsonl"
    samples = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    dice = random.Random(18)
    for number in range(100):
        sample = samples[number % len(samples)]
        titles = sample["passage_titles"]
        steps = [
            f"According to Passage {titles.index(title) + 1}, {each['sentence']} (Attribution)"
            for each in sample["gold_steps"] or ()
            for title in each["titles"]
        ] or [
            f"According to Passage {at}, {titles[at - 1]} is known. (Attribution)" for at in (1, 2)
        ]
        early, span = dice.randint(1700, 1950), dice.randint(1, 60)
        steps.append(
            f"From {early} to {early + span} are {early + span} - {early} = {span} years. (Logical)"
        )
        steps.append(f"{early} is before {early + span}. (Logical)")
        yield steps, len(titles)


@pytest.mark.parametrize("injected", ["repeated", "citation", "arithmetic"])
def test_injected_errors_come_back_and_no_right_step_is_reported(
    injected: str, shared: Path
) -> None:
    dice = random.Random(injected)
    for steps, passages in trajectories(shared):
        at = dice.randrange(1, len(steps))
        broken = {
            "repeated": steps[dice.randrange(at)],
            "citation": f"According to Passage {passages + 1}, it is so. (Attribution)",
            "arithmetic": f"That is 1990 - 1950 = {dice.choice([39, 41, 50])} years. (Logical)",
        }[injected]
        answer = "\n".join(
            f"Step {number}: {text}"
            for number, text in enumerate([*steps[:at], broken, *steps[at:]], 1)
        )
        read = steps_in(answer, "en")
        # What repeats a later step makes that one the repetition.
        wrong = [
            number for number, each in enumerate(read) if flaw_in(each, read[:number], passages)
        ]
        assert wrong == [at], answer
