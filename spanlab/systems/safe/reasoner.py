"""Generator and verifier on a question.

``controller.control`` is the algorithm; here it gets its models and its evidence.

Deviation. The paper's generator is shown the feedback on its last attempt, ours that on all
attempts at the step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import dspy
from pydantic import Field, JsonValue

from spanlab.base.errors import BudgetError, ConfigurationError, SpanlabError
from spanlab.detection.base import DetectorKit
from spanlab.detection.common.context import PromptContext, context
from spanlab.detection.common.model_detector import DetectionCase, ModelDetector, strongest
from spanlab.detection.entry import JUDGE, DetectorOptions
from spanlab.schema import (
    Annotation,
    AnswerPlace,
    Evidence,
    Item,
    QueryStep,
    RemarkStep,
    Span,
    Step,
)
from spanlab.search.base import SearchQuery
from spanlab.systems.safe.controller import RETRIES, STEPS, ReasoningTrajectory, control
from spanlab.systems.safe.detector import SafeProgram, marked, quoted, searches, traced
from spanlab.systems.safe.entries import ANSWER_JUDGE, GENERATOR
from spanlab.systems.safe.prompts import ConcludeReasoning, JudgeAnswer, TakeNextStep
from spanlab.systems.safe.steps import (
    ErrorType,
    ReasoningStep,
    StepKind,
    first_step,
    right_answers,
    written,
)
from spanlab.systems.safe.trace import ReasoningTraceStep
from spanlab.systems.safe.verifier import VerifiedStep, listed, verified

Verification = Literal["none", "self", "safe"]
FOUND: Final = 3  # passages of a search for missing evidence (§5, finding 5)
SELF_VERIFIED: Final = "self-verification"  # signs what the generator says of its own steps
NO_FEEDBACK: Final = "(none yet)"
_UNVERIFIED: Final = VerifiedStep(None, "", "")


class ReasonOptions(DetectorOptions):
    """How a question is reasoned about."""

    verification: Verification = Field(
        "safe", description="Who verifies: nobody, the generator, or the verifier."
    )
    feedback: Literal["both", "guidance", "diagnosis"] = Field(
        "both", description="What of a verdict the generator sees."
    )
    steps: int = Field(STEPS, ge=0, le=100, description="Steps before an answer is forced.")
    retries: int = Field(RETRIES, ge=0, le=20, description="Revisions of a step.")
    judge: bool = Field(False, description="Let a model judge answers by the right ones.")


class ReasonedAnswer(NamedTuple):
    """The final answer to a question as ``verdict``, and the steps to it as ``reason``."""

    verdict: str
    reason: str


class ReasoningProgram(SafeProgram):
    """The verifier, the generator of steps and that of the forced final answer."""

    def __init__(self, *, searches: bool) -> None:
        super().__init__(searches=searches)
        self.next = dspy.Predict(TakeNextStep)
        self.conclude = dspy.Predict(ConcludeReasoning)
        self.judge = dspy.Predict(JudgeAnswer)


class StepReasoner(ModelDetector):
    """Answers an item's question: the item that it returns has the steps as its answer.

    Args:
        kit: what it works with.
        options: how it reasons.
    """

    program: ReasoningProgram

    def __init__(self, kit: DetectorKit, options: ReasonOptions) -> None:
        super().__init__(kit, ReasoningProgram(searches=searches(kit.spec)), guided="verify")
        self.options = options
        if options.verification == "self":
            self.name = SELF_VERIFIED

    async def steps(self, case: DetectionCase) -> Annotation:
        """Reason about the item's question; its answer, if it has one, is not looked at."""
        thinking = _ReasoningCalls(self, case)
        trajectory = await self._controlled(thinking)
        case.item = case.item.model_copy(
            update={"meta": {**case.item.meta, "reasoning": await self._outcome(case, trajectory)}}
        )
        return self._write_annotation(case, thinking, trajectory)

    async def try_with(
        self, item: Item, _: str, predictors: Mapping[str, dspy.Module]
    ) -> ReasonedAnswer:
        """Answer an item's question with other predictors, as an optimiser tries them.

        Raises:
            SpanlabError: a model gave no answer that can be used.
        """
        other = self.with_predictors(predictors)
        trajectory = await other._controlled(_ReasoningCalls(other, DetectionCase(item)))
        return ReasonedAnswer(
            trajectory.answer, "\n".join(taken.text for taken in trajectory.steps)
        )

    async def _controlled(
        self, thinking: _ReasoningCalls
    ) -> ReasoningTrajectory[ReasoningStep, VerifiedStep]:
        case = thinking.case
        case.item = case.item.model_copy(update={"answer": ""})
        if not case.item.passages and self.searches:
            await self.search(case, case.item.question)
        return await control(
            generate=thinking.generate,
            verify=thinking.verify,
            conclude=thinking.conclude,
            steps=self.options.steps,
            retries=self.options.retries,
        )

    async def _outcome(
        self, case: DetectionCase, trajectory: ReasoningTrajectory[ReasoningStep, VerifiedStep]
    ) -> JsonValue:
        """Return what the item's ``meta`` keeps of a reasoning."""
        summary: dict[str, JsonValue] = {
            "verification": self.options.verification,
            "answer": trajectory.answer,
            "forced": trajectory.forced,
            "unresolved": sum(taken.unresolved for taken in trajectory.steps),
        }
        right = right_answers(case.item)
        if not (self.options.judge and right):
            return summary
        try:
            judged = await self.ask(
                self.program.judge,
                ANSWER_JUDGE,
                question=case.item.question,
                right=list(right),
                answer=trajectory.answer,
            )
            summary["judged"] = judged.judged.answer
        except (BudgetError, ConfigurationError):
            raise
        except SpanlabError as error:  # the reasoning stands, and has been paid for
            case.trace.append(RemarkStep(text=f"the answer was not judged: {error}"))
        return summary

    @property
    def searches(self) -> bool:
        """Whether there is somebody to search for what the passages lack."""
        return searches(self.kit.spec)

    async def search(self, case: DetectionCase, text: str) -> tuple[int, ...]:
        """Search for evidence, and return the indices of the passages that are new."""
        before = len(case.item.passages)
        query = SearchQuery(text, language=case.item.lang, k=FOUND)
        retrieved = await case.retrieve(self.kit.retriever, query)
        new = tuple(index for index in retrieved if index >= before)
        case.trace.append(QueryStep(text=text, retriever=self.kit.retriever.name, passages=new))
        return new

    def _write_annotation(
        self,
        case: DetectionCase,
        thinking: _ReasoningCalls,
        trajectory: ReasoningTrajectory[ReasoningStep, VerifiedStep],
    ) -> Annotation:
        """Write the steps into the item's answer, and say which of them are wrong."""
        answer, places = written(
            ReasoningStep(
                *(0, 0, taken.text.strip() or "…"),
                taken.step.kind or (taken.verdict.kind if taken.verdict else None),
            )
            for taken in trajectory.steps
        )
        case.item = case.item.model_copy(update={"answer": answer})
        case.trace[:] = _placed(case.trace, places)
        spans: list[Span] = []
        for place, taken in zip(places, trajectory.steps, strict=True):
            if taken.unresolved and taken.verdict is not None:
                quotes = quoted(case.item, thinking.shown, taken.verdict)
                spans += marked(case.item, place, taken.verdict, quotes, words=True)
        note = f"answer forced after {self.options.steps} steps" if trajectory.forced else None
        return self.annotation(spans=strongest(spans), note=note)


@dataclass
class _ReasoningCalls:
    """The callables of one controlled reasoning; ``tried`` has the attempts at each step."""

    reasoner: StepReasoner
    case: DetectionCase
    tried: defaultdict[int, list[tuple[str, VerifiedStep]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    @property
    def shown(self) -> PromptContext:
        """The passages as prompts show them."""
        kit = self.reasoner.kit
        return context(self.case.item, kit.retriever.name, kit.spec.context)

    async def generate(
        self, accepted: Sequence[ReasoningStep], feedback: VerifiedStep | None
    ) -> ReasoningStep:
        text = self._feedback(accepted, feedback)
        return await self._written(self.reasoner.program.next, accepted, feedback=text)

    async def conclude(self, accepted: Sequence[ReasoningStep]) -> ReasoningStep:
        step = await self._written(self.reasoner.program.conclude, accepted)
        step = ReasoningStep(step.start, step.end, step.text, StepKind.FINAL_ANSWER)
        self.case.trace.append(_attempt(len(accepted) + 1, 1, step, _UNVERIFIED))
        return step

    async def verify(self, accepted: Sequence[ReasoningStep], step: ReasoningStep) -> VerifiedStep:
        verdict = await self._verdict(accepted, step)
        number = len(accepted) + 1
        tried = self.tried[number]
        quotes = quoted(self.case.item, self.shown, verdict)
        self.case.trace.append(_attempt(number, len(tried) + 1, step, verdict, quotes))
        if verdict.error is ErrorType.MISSING_EVIDENCE and self.reasoner.searches:
            verdict = await self._with_evidence(verdict, verdict.query or step.text)
        tried.append((step.text, verdict))
        return verdict

    async def _written(
        self, module: dspy.Predict, accepted: Sequence[ReasoningStep], **more: str
    ) -> ReasoningStep:
        """Have the generator write a step; of several in one reply the first one counts."""
        prediction = await self.reasoner.ask(
            module,
            GENERATOR,
            passages=self.shown.text,
            question=self.case.item.question,
            steps=listed(accepted),
            **more,
        )
        return first_step(prediction.step or "") or ReasoningStep(0, 0, "")

    async def _verdict(
        self, accepted: Sequence[ReasoningStep], step: ReasoningStep
    ) -> VerifiedStep:
        how, shown = self.reasoner.options.verification, self.shown
        if how == "none":
            return _UNVERIFIED

        async def ask(steps: str) -> dspy.Prediction:
            return await self.reasoner.ask(
                self.reasoner.program.verify,
                JUDGE if how == "safe" else GENERATOR,
                passages=shown.text,
                question=self.case.item.question,
                steps=steps,
            )

        return await verified(step, accepted, len(shown.passages), ask, free=how == "safe")

    async def _with_evidence(self, verdict: VerifiedStep, query: str) -> VerifiedStep:
        """Search for what is missing, and tell the generator what came of it."""
        new = await self.reasoner.search(self.case, query)
        names = ", ".join(str(index + 1) for index in new)
        remark = (
            f"New passages were found: {names}." if new else f"Nothing was found for “{query}”."
        )
        return VerifiedStep(**{**vars(verdict), "guidance": f"{remark} {verdict.guidance}".strip()})

    def _feedback(self, accepted: Sequence[ReasoningStep], verdict: VerifiedStep | None) -> str:
        """Return what the generator is told: every attempt at the step, or the last verdict.

        With the last attempt alone one that repeats would be answered by the same prompt, and so
        from the cache, for ever. New attempts stand at the end, after what the prompt had before.
        """
        if verdict is None or verdict is _UNVERIFIED:
            return NO_FEEDBACK
        refused = self.tried[len(accepted) + 1]
        blocks = [f"Wrong: {text}\n{self._describe(of_it)}" for text, of_it in refused]
        return "\n\n".join(blocks) or self._describe(verdict)

    def _describe(self, verdict: VerifiedStep) -> str:
        shown = self.reasoner.options.feedback
        lines: list[str] = []
        if verdict.error is not None and shown != "guidance":
            lines += [f"Error: {verdict.error}"]
        # What is good about a right step is of no use for the next one.
        if shown == "diagnosis" or (shown == "both" and verdict.error is not None):
            lines += [f"Diagnosis: {verdict.diagnosis}"]
        lines += [f"Guidance: {verdict.guidance}"] if shown != "diagnosis" else []
        return "\n".join(lines)


def _attempt(
    number: int,
    attempt: int,
    step: ReasoningStep,
    verdict: VerifiedStep,
    quotes: tuple[Evidence, ...] = (),
) -> ReasoningTraceStep:
    traced_step = traced(number, step, verdict, quotes)
    return traced_step.model_copy(update={"round": attempt, "stands": False, "places": ()})


def _placed(trace: Sequence[Step], places: Sequence[ReasoningStep]) -> list[Step]:
    """Return a trace in which the last attempt of every step stands, at its place in the answer."""
    last = {
        step.number: at for at, step in enumerate(trace) if isinstance(step, ReasoningTraceStep)
    }
    steps: list[Step] = []
    for at, step in enumerate(trace):
        if isinstance(step, ReasoningTraceStep) and last[step.number] == at:
            place = places[step.number - 1]
            kept = {"stands": True, "places": (AnswerPlace(start=place.start, end=place.end),)}
            steps.append(step.model_copy(update=kept))
        else:
            steps.append(step)
    return steps
