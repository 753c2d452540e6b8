"""Reasoning with a verifier at one's side, without models: generate, verify, revise, conclude.

After Kwon et al. 2026, "SAFE: An LLM-as-Verifier Framework for Evidence-Grounded Multi-Hop
Reasoning", §3.4. The limits are those of §4.1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from spanlab.systems.safe.steps import final_answer

STEPS: Final = 10  # K, §4.1
RETRIES: Final = 3  # N, §4.1


class StepVerdict(Protocol):
    """What a verifier says of a step; ``error`` is None if the step is right."""

    @property
    def error(self) -> str | None:
        """What is wrong."""
        ...

    @property
    def diagnosis(self) -> str:
        """Why the step is wrong or right."""
        ...

    @property
    def guidance(self) -> str:
        """The one next action."""
        ...


S = TypeVar("S")  # a step: a string, or something with ``text``
V = TypeVar("V", bound=StepVerdict)


@dataclass(frozen=True)
class StepAttempt(Generic[S, V]):
    """A step as it was generated and what the verifier said; ``at`` is its number, from 1."""

    at: int
    step: S
    verdict: V

    @property
    def text(self) -> str:
        """The step's text."""
        return text_of(self.step)


@dataclass(frozen=True)
class TakenStep(Generic[S, V]):
    """A step that stands. ``unresolved`` if it is wrong and no revision was left.

    ``verdict`` is None for the forced final step, which nobody verifies.
    """

    step: S
    verdict: V | None
    unresolved: bool = False

    @property
    def text(self) -> str:
        """The step's text."""
        return text_of(self.step)


@dataclass(frozen=True)
class ReasoningTrajectory(Generic[S, V]):
    """A reasoning.

    Attributes:
        steps: the steps that stand, in order, the final one last.
        attempts: everything that was generated and verified, in order, with what was refused.
        answer: the value of the final step; its whole text where it has no mark.
        forced: whether the final step was forced, because no step was left.
        calls: how often ``generate``, ``verify`` and ``conclude`` were called, together.
    """

    steps: tuple[TakenStep[S, V], ...]
    attempts: tuple[StepAttempt[S, V], ...]
    answer: str
    forced: bool
    calls: int


async def control(
    *,
    generate: Callable[[tuple[S, ...], V | None], Awaitable[S]],
    verify: Callable[[tuple[S, ...], S], Awaitable[V]],
    conclude: Callable[[tuple[S, ...]], Awaitable[S]],
    steps: int = STEPS,
    retries: int = RETRIES,
) -> ReasoningTrajectory[S, V]:
    """Reason step by step; every step is verified before the next one is taken.

    Args:
        generate: ``generate(accepted, feedback)`` returns the next step, a string or something
            with ``text``. ``feedback`` is the last verdict: of a step that is to be revised, or of
            the last one taken, whose guidance names the next action; None at first.
        verify: ``verify(accepted, step)`` returns the verdict on a step.
        conclude: ``conclude(accepted)`` returns the final step where ``steps`` brought none; it
            is not verified and ends the reasoning whatever it is.
        steps: how many steps there are at most before a final one is forced, 0 or more.
        retries: how often a step is revised at most, 0 or more; then its last attempt stands.

    Returns:
        The steps that stand, everything that was tried, and the answer.
    """
    accepted: tuple[S, ...] = ()
    taken: list[TakenStep[S, V]] = []
    attempts: list[StepAttempt[S, V]] = []
    feedback: V | None = None
    while len(taken) < steps:
        for _ in range(retries + 1):
            step = await generate(accepted, feedback)
            feedback = verdict = await verify(accepted, step)
            attempts.append(StepAttempt(len(taken) + 1, step, verdict))
            if verdict.error is None:
                break
        accepted = (*accepted, step)
        taken.append(TakenStep(step, verdict, unresolved=verdict.error is not None))
        answer = final_answer(text_of(step))
        if answer is not None:
            calls = 2 * len(attempts)
            return ReasoningTrajectory(
                tuple(taken), tuple(attempts), answer, forced=False, calls=calls
            )
    step = await conclude(accepted)
    text = text_of(step)
    answer = final_answer(text)
    return ReasoningTrajectory(
        (*taken, TakenStep(step, None)),
        tuple(attempts),
        text.strip() if answer is None else answer,
        forced=True,
        calls=2 * len(attempts) + 1,
    )


def text_of(step: object) -> str:
    """Return the text of a step: itself, or what it has as ``text``."""
    return step if isinstance(step, str) else str(getattr(step, "text", step))
