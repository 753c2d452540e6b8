"""The verifier: one step, judged by free checks and then by a model, F(q, P, s1 … st) (§3.4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import dspy

from spanlab.detectors.safe.checks import flaw_in
from spanlab.detectors.safe.protocol import ErrorType, first_error
from spanlab.detectors.safe.reading import ReasoningStep, StepKind, written
from spanlab.scorers import RIGHT

NO_STEPS = "(none yet)"


@dataclass(frozen=True)
class Verified:
    """What is said of a step.

    ``kind`` is what the step does, as it says itself or as the verifier sees it. ``sentence`` is
    what of a passage settles it, ``words`` are the wrong words of the step, ``query`` is what to
    search for where evidence is missing; each may be empty. ``free`` says that no model was asked.
    """

    error: ErrorType | None
    diagnosis: str
    guidance: str
    kind: StepKind = StepKind.ATTRIBUTION
    sentence: str = ""
    words: tuple[str, ...] = ()
    query: str = ""
    free: bool = False

    @property
    def verdict(self) -> str:
        """The type of error; ``RIGHT`` for a right step."""
        return RIGHT if self.error is None else str(self.error)

    @property
    def reason(self) -> str:
        """The diagnosis."""
        return self.diagnosis


async def verified(
    step: ReasoningStep,
    earlier: Sequence[ReasoningStep],
    passages: int,
    ask: Callable[[str], Awaitable[dspy.Prediction]],
    *,
    free: bool = True,
) -> Verified:
    """Verify a step, without a model where its error is certain.

    Args:
        step: the step.
        earlier: the steps before it.
        passages: how many passages there are.
        ask: ``ask(steps)`` has a model verify the last of the steps; ``ruling`` is its answer.
        free: whether checks without a model come first.

    Raises:
        SpanlabError: the model gave no answer that can be used.
    """
    flaw = flaw_in(step, earlier, passages) if free else None
    if flaw is not None:
        kind = step.kind or StepKind.ATTRIBUTION
        return Verified(flaw.error, flaw.diagnosis, flaw.guidance, kind, free=True)
    ruling = (await ask(listed([*earlier, step]))).ruling
    kind = step.kind or ruling.kind or StepKind.ATTRIBUTION
    return Verified(
        first_error(kind, ruling.errors),
        ruling.diagnosis.strip(),
        ruling.guidance.strip(),
        kind,
        ruling.sentence.strip(),
        tuple(ruling.words),
        getattr(ruling, "query", "").strip(),  # only where somebody searches
    )


def listed(steps: Sequence[ReasoningStep]) -> str:
    """Return steps as a prompt shows them: a list that grows at its end alone."""
    return written(steps)[0] or NO_STEPS
