"""One step: checks that cost nothing, sums done again, and a model.

Each check says by which rule it found something. It keeps silent wherever a reader could disagree:
a step that it reports is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

import dspy

from spanlab.scoring.claims import RIGHT
from spanlab.systems.safe.recomputing import wrong_results
from spanlab.systems.safe.steps import (
    ErrorType,
    ReasoningStep,
    StepKind,
    final_answer,
    first_error,
    written,
)
from spanlab.text.terms import terms

NO_STEPS = "(none yet)"


@dataclass(frozen=True)
class VerifiedStep:
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
) -> VerifiedStep:
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
        return VerifiedStep(flaw.error, flaw.diagnosis, flaw.guidance, kind, free=True)
    ruling = (await ask(listed([*earlier, step]))).ruling
    kind = step.kind or ruling.kind or StepKind.ATTRIBUTION
    return VerifiedStep(
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


@dataclass(frozen=True)
class StepFlaw:
    """An error with the rule that a step breaks, and how to mend it."""

    error: ErrorType
    diagnosis: str
    guidance: str


def flaw_in(
    step: ReasoningStep, earlier: Sequence[ReasoningStep], passages: int
) -> StepFlaw | None:
    """Return what is certainly wrong with a step.

    Args:
        step: the step; one of unknown kind counts as attribution.
        earlier: the steps before it.
        passages: how many passages there are; 0 if they are not known.

    Returns:
        The first flaw in the order of the protocol; None if nothing is certain.
    """
    by_error = {flaw.error: flaw for flaw in _flaws(step, earlier, passages)}
    kind = step.kind or StepKind.ATTRIBUTION
    error = first_error(kind, by_error.keys())
    if error is None:
        return None
    shown = by_error.get(error) or next(iter(by_error.values()))
    return StepFlaw(error, shown.diagnosis, shown.guidance)


def _flaws(
    step: ReasoningStep, earlier: Sequence[ReasoningStep], passages: int
) -> Iterator[StepFlaw]:
    if step.kind is StepKind.FINAL_ANSWER:
        if not final_answer(step.text):
            yield StepFlaw(
                ErrorType.WRONG_CONCLUSION,
                "A final answer has a value: this one has none.",
                "Give the value that the steps lead to, as ####ANSWER: <value>.",
            )
        return
    words = _words(step.text)
    for number, other in enumerate(earlier, start=1):
        if words and _words(other.text) == words:
            yield StepFlaw(
                ErrorType.REDUNDANCY,
                f"A step says something new: this one repeats step {number} word for word.",
                f"Do not repeat step {number}; take the next action.",
            )
            break
    if not words or _PLAN.match(step.text):
        yield StepFlaw(
            ErrorType.INEFFICIENCY,
            "A step states one fact or draws one conclusion: this one has no subject, relation "
            "and object.",
            "State one fact of one passage, or one conclusion from the steps.",
        )
    missing = [number for number in cited(step.text) if not 0 < number <= passages]
    if missing and passages:
        yield StepFlaw(
            ErrorType.UNSUPPORTED,
            f"A step cites a passage that exists: there is no passage {missing[0]} "
            f"among {passages}.",
            f"Cite one of the passages 1 to {passages}.",
        )
    wrong = next(wrong_results(step.text), None)
    if wrong is not None:
        yield StepFlaw(
            ErrorType.LOGICAL_FALLACY,
            f"What can be recomputed has to be right: {wrong}",
            f"Correct this: {wrong}",
        )


# A plan says what it will look for, and nothing that could be true or false: after the verb comes
# no further clause and no result.
_PLAN = re.compile(
    r"(?:(?:first|next|now|then|so|okay|ok|well),?\s+)?"
    r"(?:let me|let us|let's|let’s|i will|i'll|i’ll|i need to|i am going to|i'm going to|"
    r"i’m going to|we will|we'll|we’ll|we need to|we should|i should|the next step is to)\s+"
    r"(?:(?:now|first|next|then|also|just)\s+)?"
    r"(?:analy[sz]e|begin|break|calculate|check|collect|compare|compute|continue|determine|"
    r"discover|examine|explore|extract|figure|find|focus|gather|get|go|identify|investigate|know|"
    r"learn|locate|look|move|plan|proceed|read|retrieve|review|scan|search|see|start|summari[sz]e|"
    r"take|think|try|turn|verify|work)\b"
    r"(?!.*(?:\s-\s|\b(?:that|as|because|since|conclude|to be|being|equals?|gives?|yields?|"
    r"says?|said|states?|stated|shows?|mentions?|tells?)\b))"
    r"[^.!?;:,(–—=]*[.!…]*\s*$",
    re.I,
)

CITATION = re.compile(r"^according to passage \d{1,4}[,:]?\s+", re.I)  # as steps begin
_CITED = re.compile(r"\bpassages?\s+(\d{1,4}(?:\s*(?:,|and|&|-|–)\s*\d{1,4})*)\b", re.I)


def _words(text: str) -> tuple[str, ...]:
    return tuple(terms(text))


def cited(text: str) -> Iterator[int]:
    """Yield the numbers of the passages that a step cites, of a range its ends."""
    for citation in _CITED.finditer(text):
        yield from map(int, re.findall(r"\d+", citation[1]))


def renumbered(text: str, number: Callable[[int], int]) -> str:
    """Return a step whose citations have other numbers: ``number`` of each that they have."""
    return _CITED.sub(
        lambda citation: re.sub(r"\d+", lambda match: str(number(int(match[0]))), citation[0]),
        text,
    )
