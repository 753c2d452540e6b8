"""Detectors that judge claims: take them out, verify each, find the wrong words.

A system's own file holds its verifier, ``verify``; a claim that fails is one failed claim.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import dspy

from spanlab.base.errors import BudgetError, ConfigurationError, SpanlabError
from spanlab.detection.base import DetectorKit
from spanlab.detection.claims import (
    ClaimExtractor,
    ExtractedClaim,
    NameWrongWords,
    placed,
    wrong_words,
)
from spanlab.detection.common import EXTRACTOR
from spanlab.detection.common.model_detector import (
    DetectionCase,
    ModelDetector,
    places_of,
    span_of,
    strongest,
)
from spanlab.models.meter import advance, together
from spanlab.schema import (
    HALLUCINATED,
    Annotation,
    Claim,
    Evidence,
    FactStep,
    Item,
    RemarkStep,
    Span,
    Step,
    Verdict,
)
from spanlab.schema.usage import Usage
from spanlab.text.extents import Extent

CLAIMS_AT_ONCE: Final = 4  # claims of one answer under way at the same time
NO_ANSWER = "the answer is empty: there is nothing to check"
NO_CLAIMS = "the answer states nothing that can be verified"


@dataclass(frozen=True)
class ClaimJudgement:
    """What a verifier says of a claim.

    ``support`` in [0, 1] is how likely the claim is supported, None if the verifier gives no
    probability; ``steps`` tell how it came to the verdict.
    """

    verdict: Verdict
    reason: str = ""
    support: float | None = None
    evidence: tuple[Evidence, ...] = ()
    error_stages: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def prob(self) -> float | None:
        """How sure the verdict is, in [0, 1]."""
        if self.support is None or self.verdict == "supported":
            return self.support
        return 1.0 - self.support


@dataclass(frozen=True)
class _ClaimResult:
    """A claim with its spans and the steps that led to them; ``error`` if it failed."""

    claim: Claim
    spans: tuple[Span, ...] = ()
    steps: tuple[Step, ...] = ()
    error: SpanlabError | None = None


class ClaimProgram(dspy.Module):
    """The model's parts that all claim detectors share; a system adds the verifier's."""

    def __init__(self) -> None:
        super().__init__()
        self.extraction = ClaimExtractor()
        self.words = dspy.Predict(NameWrongWords)


class ClaimDetector(ModelDetector):
    """Takes claims out of an answer, verifies each, and marks the words of those that are wrong.

    Args:
        kit: what it works with.
        program: the model's steps.
        guided: the predictor whose instruction the specification's guidance is added to.
        whole: the answer is one claim, and nothing is extracted.
    """

    program: ClaimProgram

    def __init__(
        self, kit: DetectorKit, program: ClaimProgram, *, guided: str, whole: bool
    ) -> None:
        super().__init__(kit, program, guided=guided)
        self.whole = whole

    @abstractmethod
    async def verify(self, case: DetectionCase, number: int, claim: str) -> ClaimJudgement:
        """Judge a claim.

        Args:
            case: the item with its passages.
            number: 0-based index of the claim, for steps of the trace.
            claim: the claim, understandable by itself.

        Raises:
            SpanlabError: it could not be judged; the other claims still are.
        """

    async def try_with(
        self, item: Item, claim: str, predictors: Mapping[str, dspy.Module]
    ) -> ClaimJudgement:
        """Judge a claim of an item with other predictors, as an optimiser tries them.

        Args:
            item: the item with its passages.
            claim: the claim, understandable by itself.
            predictors: what takes the place of the program's own, by name.

        Raises:
            SpanlabError: it could not be judged.
        """
        other, case = self.with_predictors(predictors), DetectionCase(item)
        await other.prepare(case)
        return await other.verify(case, 0, claim)

    async def steps(self, case: DetectionCase) -> Annotation:
        """Take an item through the steps."""
        item = case.item
        if not item.answer.strip():
            return self.annotation(note=NO_ANSWER)
        # 1. Passages, for systems that read them.
        await self.prepare(case)
        # 2. Claims.
        claims = await self._extracted(case)
        if not claims:
            return self.annotation(note=NO_CLAIMS)
        # 3. Verdicts and places.
        results = await self._results(case, claims)
        failures = [result.error for result in results if result.error is not None]
        if len(failures) == len(results):
            raise failures[0]
        return self.annotation(
            spans=strongest(span for result in results for span in result.spans),
            claims=[result.claim for result in results],
            trace=[step for result in results for step in result.steps],
            note=_note(len(failures), len(results)),
        )

    async def prepare(self, case: DetectionCase) -> None:
        """Let the item have what the verifier reads."""
        await case.retrieve(self.kit.retriever)

    async def _extracted(self, case: DetectionCase) -> Sequence[ExtractedClaim]:
        item = case.item
        if self.whole:
            return (ExtractedClaim(item.answer.strip(), Extent(0, len(item.answer))),)
        prediction = await self.ask(
            self.program.extraction,
            EXTRACTOR,
            question=item.question,
            answer=item.answer,
            lang=item.lang,
        )
        case.trace.extend(RemarkStep(text=remark) for remark in prediction.remarks)
        claims: Sequence[ExtractedClaim] = prediction.claims
        return claims

    async def _results(
        self, case: DetectionCase, claims: Sequence[ExtractedClaim]
    ) -> list[_ClaimResult]:
        done = 0

        async def judged(number: int, claim: ExtractedClaim) -> _ClaimResult:
            nonlocal done
            result = await self._result(case, number, claim)
            done += 1
            await advance(done, len(claims))
            return result

        work = (judged(number, claim) for number, claim in enumerate(claims))
        results: list[_ClaimResult] = await together(*work, at_once=CLAIMS_AT_ONCE)
        return results

    async def _result(
        self, case: DetectionCase, number: int, claim: ExtractedClaim
    ) -> _ClaimResult:
        source = Span.of(case.item.answer, claim.source.start, claim.source.end)
        try:
            judgement = await self.verify(case, number, claim.text)
            self.kit.meter.note("", Usage(claims=1))
            spans = (
                await self._placed(case, claim, judgement)
                if judgement.verdict in HALLUCINATED
                else ()
            )
        except (BudgetError, ConfigurationError):
            raise
        except SpanlabError as error:
            note = f"not judged: {error}"
            remark = RemarkStep(text=note, claim=number)
            return _ClaimResult(
                Claim(text=claim.text, source=source, note=note), (), (remark,), error
            )
        judged = Claim(
            text=claim.text,
            source=source,
            verdict=judgement.verdict,
            prob=judgement.prob,
            evidence=judgement.evidence,
            note=judgement.reason or None,
            error_stages=judgement.error_stages,
        )
        fact = FactStep(
            text=claim.text,
            verdict=judgement.verdict,
            prob=judgement.prob,
            reason=judgement.reason or None,
            places=places_of(Extent(span.start, span.end) for span in spans),
            claim=number,
        )
        return _ClaimResult(judged, spans, (*judgement.steps, fact))

    async def _placed(
        self, case: DetectionCase, claim: ExtractedClaim, judgement: ClaimJudgement
    ) -> tuple[Span, ...]:
        item = case.item
        sentence = item.answer[slice(*claim.source)]
        named = await self.ask(
            self.program.words,
            question=item.question,
            answer=item.answer,
            sentence=sentence,
            claim=claim.text,
            reason=judgement.reason,
        )
        prob = 1.0 if judgement.prob is None else judgement.prob
        mapping = placed(item.answer, sentence, wrong_words(named), prob=prob, lang=item.lang)
        return tuple(
            span_of(item.answer, span, judgement.reason).model_copy(
                update={"evidence": judgement.evidence}
            )
            for span in mapping.spans
        )


def _note(failed: int, claims: int) -> str | None:
    return f"{failed} of {claims} claims could not be judged" if failed else None
