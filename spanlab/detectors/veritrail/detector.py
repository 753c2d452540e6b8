"""``veritrail``: follow every claim of an answer back to its sources.

After Metropolitansky et al. 2025, "VeriTrail: Closed-Domain Hallucination Detection with
Traceability". Section numbers are the paper's.

1. The process is the item's; without one, its passages became the answer in one step (§2).
2. Claims are taken out of the answer (§3.1; ``ClaimDetector``).
3. Each claim is taken apart (§3.1.1; ``sub_claims``).
4. From the answer's sources towards the roots (§3.1.4; ``walk``), round by round:
   a. sentences that settle the claim are chosen, several prompts at the same time (§3.1.2);
   b. a verdict is given on the full text of roots and the summaries of others (§3.1.3).
5. Claims that are not supported get the words that state them (``ClaimDetector``), and the stages
   where the error came in (§3.2).

Published macro F1, the paper's and not of this code: 84.5 on FABLES+ and 79.5 on DiverseSumm+ at
the largest ``q``.

Deviations. The prompts are our own. A verdict's limits count tokens as estimated from letters, and
of roots that do not fit the model's window, as far as that is known, the sentences chosen are shown
in place of the whole text. Claims are judged against sentences as spaCy's rules and ours
part them, not NLTK's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

import dspy

from spanlab.claims import sub_claims
from spanlab.detectors.base import Kit
from spanlab.detectors.common.claim_detector import ClaimDetector, ClaimProgram, Verified
from spanlab.detectors.common.claim_options import EXTRACTOR
from spanlab.detectors.common.evidence import Remembered, evidence, quote, searched_for, stance_of
from spanlab.detectors.common.model_detector import Case
from spanlab.detectors.entry import JUDGE
from spanlab.detectors.veritrail.entry import ClaimOptions, VeriTrailOptions
from spanlab.detectors.veritrail.fitting import room_of
from spanlab.detectors.veritrail.judging import JudgeClaim, Judged, majority
from spanlab.detectors.veritrail.selection import (
    Selected,
    SelectEvidence,
    Sentence,
    agreed,
    chosen,
    numbered,
)
from spanlab.detectors.veritrail.trail import Trail
from spanlab.detectors.veritrail.walk import WalkVerdict, walk
from spanlab.entities import names_of
from spanlab.extents import Extent
from spanlab.lm import Usage
from spanlab.lm.meter import together
from spanlab.schema import Evidence, Item, passage_id, process_of

SAMPLED: Final = 0.2  # temperature of several answers to one question (appendix E.3)


class VeriTrailProgram(ClaimProgram):
    """The model's parts: extraction, selection, verdict, and the wrong words."""

    def __init__(self) -> None:
        super().__init__()
        self.select = dspy.Predict(SelectEvidence)
        self.judge = dspy.Predict(JudgeClaim)


class ProcessDetector(ClaimDetector):
    """Judges claims on the texts that led to an answer, by VeriTrail's prompts."""

    program: VeriTrailProgram

    def __init__(
        self, kit: Kit, program: VeriTrailProgram, *, guided: str, options: ClaimOptions
    ) -> None:
        self.answering = options
        super().__init__(kit, program, guided=guided, whole=options.claims == "answer")

    async def prepare(self, case: Case) -> None:
        """Retrieve passages, unless the item says how its answer was made."""
        if case.item.process is None:
            await super().prepare(case)

    async def asking(self, item: Item, claim: str) -> AskingModels:
        """Take a claim apart, and return who asks the models about it."""
        parts = await sub_claims(claim, decompose=partial(self._decomposed, item))
        return AskingModels(self, claim, "\n".join(f"- {part}" for part in parts or (claim,)))

    async def _decomposed(self, item: Item, claim: str) -> Sequence[str]:
        said = await self.ask(
            self.program.extraction.decompose,
            EXTRACTOR,
            question=item.question,
            context=item.answer,
            sentence=claim,
        )
        return [part.strip() for part in said.claims or () if part.strip()]


class VeriTrail(ProcessDetector):
    """Follows claims through the process that made an answer."""

    def __init__(self, kit: Kit, program: VeriTrailProgram, *, guided: str) -> None:
        self.options = VeriTrailOptions.model_validate(kit.spec.options)
        super().__init__(kit, program, guided=guided, options=self.options)
        self._memory = self.options.opened(kit)

    async def verify(self, case: Case, number: int, claim: str) -> Verified:
        """Follow one claim; what the memory holds about its names is one more source."""
        known = Remembered(self._memory, self, case, claim)
        if case.item.process is None:
            await known.recall(names_of(claim))
        item, process = case.item, process_of(case.item)
        room = room_of(self.kit.models[JUDGE].window)
        trail = Trail(await self.asking(item, claim), process, item.lang, self.options, room)
        found = await walk(process, select=trail.select, judge=trail.judge, q=self.options.q)
        read = {node for step in found.rounds for node in step.checked}
        sizes = await asyncio.to_thread(process.sizes)
        texts = sum(sizes.values()) - 1  # without the answer itself
        self.kit.meter.note("", Usage(texts_read=len(read), texts=texts))
        quotes = _evidence(item, trail, found.verdict, known)
        await known.keep(searched_for(item, (each.passage for each in quotes)))
        return Verified(
            verdict=found.verdict,
            reason=trail.judged.reason,
            support=trail.judged.support,
            evidence=quotes,
            error_stages=found.error_stages,
            steps=(*known.steps(number), *trail.steps(found.rounds, number)),
        )


class AskingModels:
    """Asks a detector's models about one claim, as often as its options say."""

    def __init__(self, detector: ProcessDetector, claim: str, parts: str) -> None:
        self._detector, self._inputs = detector, {"claim": claim, "parts": parts}
        self._samples = detector.answering.samples
        self._agreeing = min(detector.answering.agreeing, self._samples)

    async def choose(self, found: Sequence[Sentence]) -> Selected:
        """Choose the sentences that enough answers chose."""
        program = self._detector.program
        said = await self._answers(program.select, sentences=numbered(found))
        return agreed(found, [chosen(found, each) for each in said], self._agreeing)

    async def rule(self, evidence: Sequence[str]) -> Judged:
        """Judge as enough answers do."""
        shown = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(evidence, start=1))
        said = await self._answers(self._detector.program.judge, evidence=shown)
        return majority([each.ruling for each in said], self._agreeing)

    async def _answers(self, module: dspy.Module, **inputs: str) -> list[dspy.Prediction]:
        if self._samples == 1:
            return [await self._detector.ask(module, **inputs, **self._inputs)]
        configs = [
            {"rollout_id": number, "temperature": SAMPLED} for number in range(self._samples)
        ]
        asked = (
            self._detector.ask(module, config=config, **inputs, **self._inputs)
            for config in configs
        )
        return await together(*asked)


def _evidence(
    item: Item, trail: Trail, verdict: WalkVerdict, known: Remembered
) -> tuple[Evidence, ...]:
    """Return what was chosen of an item's passages; the closest sentence if there is nothing."""
    if item.process is not None:
        return ()
    stance = stance_of(verdict)
    numbers = {passage_id(index): index for index in range(len(item.passages))}
    quoted = tuple(
        quote(item, index, Extent(each.start, each.end), stance, known.notes.get(index))
        for each in trail.quotes
        for index in (numbers[each.node],)
    )
    return quoted or evidence(item, range(len(item.passages)), known.claim)
