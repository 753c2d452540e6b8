"""The detector, and the baselines it is compared with.

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

After Metropolitansky et al. 2025, "VeriTrail", §4.2 and appendix E.1. All use VeriTrail's own
verdict prompt, so that only what is judged differs. Deviation: texts are ranked by the words that
they share with the claim, rare ones counting more, not by embeddings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal, NamedTuple

import dspy

from spanlab.detection.base import DetectorKit
from spanlab.detection.claims import sub_claims
from spanlab.detection.common import EXTRACTOR
from spanlab.detection.common.claim_detector import ClaimDetector, ClaimJudgement, ClaimProgram
from spanlab.detection.common.context import ranked
from spanlab.detection.common.evidence import ClaimMemory, evidence, quote, searched_for, stance_of
from spanlab.detection.common.model_detector import DetectionCase
from spanlab.detection.entities import names_of
from spanlab.detection.entry import JUDGE
from spanlab.models.meter import LETTERS_PER_TOKEN, together
from spanlab.schema import Evidence, Item, ProcessGraph, passage_id, process_of, roots_of
from spanlab.schema.usage import Usage
from spanlab.systems.veritrail.entries import ClaimOptions, RetrievalOptions, VeriTrailOptions
from spanlab.systems.veritrail.evidence import (
    ClaimRuling,
    JudgeByEvidence,
    NodeSentence,
    SelectedEvidence,
    SelectEvidence,
    agreed,
    chosen,
    closest_fitting,
    majority,
    numbered,
    room_of,
)
from spanlab.systems.veritrail.trace import TrailStep
from spanlab.systems.veritrail.trail import NOTHING_CHOSEN, TrailModels, TrailReader
from spanlab.systems.veritrail.walk import WalkResult, WalkRound, WalkVerdict, walk
from spanlab.text.extents import Extent

SAMPLED: Final = 0.2  # temperature of several answers to one question (appendix E.3)


class VeriTrailProgram(ClaimProgram):
    """The model's parts: extraction, selection, verdict, and the wrong words."""

    def __init__(self) -> None:
        super().__init__()
        self.select = dspy.Predict(SelectEvidence)
        self.judge = dspy.Predict(JudgeByEvidence)


Method = Literal["retrieval", "whole", "traced"]


class ProcessDetector(ClaimDetector):
    """Judges claims on the texts that led to an answer, by VeriTrail's prompts."""

    program: VeriTrailProgram

    def __init__(
        self, kit: DetectorKit, program: VeriTrailProgram, *, guided: str, options: ClaimOptions
    ) -> None:
        self.answering = options
        super().__init__(kit, program, guided=guided, whole=options.claims == "answer")

    async def prepare(self, case: DetectionCase) -> None:
        """Retrieve passages, unless the item says how its answer was made."""
        if case.item.process is None:
            await super().prepare(case)

    async def asking(self, item: Item, claim: str) -> AskingModels:
        """Take a claim apart, and return who asks the models about it."""
        parts = await sub_claims(claim, decompose=partial(self._decomposed, item))
        return AskingModels(self, claim, "\n".join(f"- {part}" for part in parts or (claim,)))

    async def _decomposed(self, item: Item, claim: str) -> Sequence[str]:
        prediction = await self.ask(
            self.program.extraction.decompose,
            EXTRACTOR,
            question=item.question,
            context=item.answer,
            sentence=claim,
        )
        return [part.strip() for part in prediction.claims or () if part.strip()]


class VeriTrail(ProcessDetector):
    """Follows claims through the process that made an answer."""

    def __init__(self, kit: DetectorKit, program: VeriTrailProgram, *, guided: str) -> None:
        self.options = VeriTrailOptions.model_validate(kit.spec.options)
        super().__init__(kit, program, guided=guided, options=self.options)
        self._memory = self.options.opened(kit)

    async def verify(self, case: DetectionCase, number: int, claim: str) -> ClaimJudgement:
        """Follow one claim; what the memory holds about its names is one more source."""
        claim_memory = ClaimMemory(self._memory, self, case, claim)
        if case.item.process is None:
            await claim_memory.recall(names_of(claim))
        item, process = case.item, process_of(case.item)
        room = room_of(self.kit.window(JUDGE))
        trail = TrailReader(await self.asking(item, claim), process, item.lang, self.options, room)
        walked = await walk(process, select=trail.select, judge=trail.judge, q=self.options.q)
        read = {node for step in walked.rounds for node in step.checked}
        sizes = await asyncio.to_thread(process.sizes)
        texts = sum(sizes.values()) - 1  # without the answer itself
        self.kit.meter.note("", Usage(texts_read=len(read), texts=texts))
        quotes = _evidence(item, trail, walked.verdict, claim_memory)
        await claim_memory.keep(searched_for(item, (cited.passage for cited in quotes)))
        return ClaimJudgement(
            verdict=walked.verdict,
            reason=trail.judged.reason,
            support=trail.judged.support,
            evidence=quotes,
            error_stages=walked.error_stages,
            steps=(*claim_memory.steps(number), *trail.steps(walked.rounds, number)),
        )


class AskingModels:
    """Asks a detector's models about one claim, as often as its options say."""

    def __init__(self, detector: ProcessDetector, claim: str, parts: str) -> None:
        self._detector, self._inputs = detector, {"claim": claim, "parts": parts}
        self._samples = detector.answering.samples
        self._agreeing = min(detector.answering.agreeing, self._samples)

    async def choose(self, sentences: Sequence[NodeSentence]) -> SelectedEvidence:
        """Choose the sentences that enough answers chose."""
        program = self._detector.program
        answers = await self._answers(program.select, sentences=numbered(sentences))
        return agreed(sentences, [chosen(sentences, answer) for answer in answers], self._agreeing)

    async def rule(self, evidence: Sequence[str]) -> ClaimRuling:
        """Judge as enough answers do."""
        shown = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(evidence, start=1))
        answers = await self._answers(self._detector.program.judge, evidence=shown)
        return majority([answer.ruling for answer in answers], self._agreeing)

    async def _answers(self, module: dspy.Module, **inputs: str) -> list[dspy.Prediction]:
        if self._samples == 1:
            return [await self._detector.ask(module, **inputs, **self._inputs)]
        configs = [
            {"rollout_id": number, "temperature": SAMPLED} for number in range(self._samples)
        ]
        estimates = (
            self._detector.ask(module, config=config, **inputs, **self._inputs)
            for config in configs
        )
        return await together(*estimates)


def _evidence(
    item: Item, trail: TrailReader, verdict: WalkVerdict, claim_memory: ClaimMemory
) -> tuple[Evidence, ...]:
    """Return what was chosen of an item's passages; the closest sentence if there is nothing."""
    if item.process is not None:
        return ()
    stance = stance_of(verdict)
    numbers = {passage_id(index): index for index in range(len(item.passages))}
    quoted = tuple(
        quote(item, index, Extent(cited.start, cited.end), stance, claim_memory.notes.get(index))
        for cited in trail.quotes
        for index in (numbers[cited.node],)
    )
    return quoted or evidence(item, range(len(item.passages)), claim_memory.claim)


class TrailBaseline(ProcessDetector):
    """Judges claims on texts that are chosen without a model.

    Args:
        kit: what it works with.
        program: the model's steps.
        guided: the predictor whose instruction the specification's guidance is added to.
        method: how the texts are chosen.
    """

    def __init__(
        self, kit: DetectorKit, program: VeriTrailProgram, *, guided: str, method: Method
    ) -> None:
        kind = ClaimOptions if method == "whole" else RetrievalOptions
        self._options, self._method = kind.model_validate(kit.spec.options), method
        super().__init__(kit, program, guided=guided, options=self._options)

    async def verify(self, case: DetectionCase, number: int, claim: str) -> ClaimJudgement:
        """Judge one claim."""
        item, process = case.item, process_of(case.item)
        options = self._options
        k = options.k if isinstance(options, RetrievalOptions) else None
        window = self.kit.window(JUDGE)
        room = room_of(window) if window else self.kit.spec.context / LETTERS_PER_TOKEN
        reader = _Reader(await self.asking(item, claim), process, claim, k, room)
        if self._method == "traced":
            walked = await walk(process, select=reader.select, judge=reader.judge)
        else:
            walked = await _judged_at_once(process, reader)
        passages = range(len(item.passages)) if item.process is None else ()
        return ClaimJudgement(
            verdict=walked.verdict,
            reason=reader.judged.reason,
            support=reader.judged.support,
            evidence=evidence(item, passages, claim) if passages else (),
            error_stages=walked.error_stages,
            steps=tuple(
                TrailStep(
                    claim=number,
                    round=at,
                    checked=selected.checked,
                    verdict=selected.verdict,
                    reason=judgement.judged.reason or None,
                    judged=judgement.nodes,
                    remark=judgement.remark,
                )
                for at, (selected, judgement) in enumerate(
                    zip(walked.rounds, reader.judgements, strict=True), start=1
                )
            ),
        )


class _NodeJudgement(NamedTuple):
    """A verdict, the nodes whose texts it was given on, and what did not fit."""

    judged: ClaimRuling
    nodes: tuple[str, ...]
    remark: str | None


@dataclass
class _Reader:
    """Chooses the texts closest to a claim, and has it judged on them, within a prompt's size."""

    asking: TrailModels
    process: ProcessGraph
    claim: str
    k: int | None  # None: all
    room: float  # estimated tokens of all texts in a prompt
    judgements: list[_NodeJudgement] = field(default_factory=list)

    @property
    def judged(self) -> ClaimRuling:
        """The latest verdict; not supported where nothing was read."""
        last = self.judgements[-1:]
        return last[0].judged if last else ClaimRuling("not-supported", NOTHING_CHOSEN)

    async def select(self, nodes: tuple[str, ...]) -> Sequence[str]:
        """Return the nodes whose texts come closest to the claim."""
        return self._ranked(nodes)[: self.k]

    async def judge(self, nodes: tuple[str, ...]) -> WalkVerdict:
        """Return the verdict on the texts of nodes, the closest ones where not all fit."""
        ranked_nodes = self._ranked(nodes)
        texts = {node: self.process.by_id[node].text for node in ranked_nodes}
        shown = closest_fitting(texts, self.room)
        judged = await self.asking.rule(list(shown.shown.values()))
        self.judgements.append(_NodeJudgement(judged, tuple(shown.shown), shown.remark(self.room)))
        return judged.verdict

    def _ranked(self, nodes: Sequence[str]) -> list[str]:
        texts = [self.process.by_id[node].text for node in nodes]
        return [nodes[index] for index in ranked(texts, self.claim)]


async def _judged_at_once(process: ProcessGraph, reader: _Reader) -> WalkResult:
    """Judge a claim on its process's roots, without tracing it."""
    root_nodes = await asyncio.to_thread(roots_of, process)
    roots = tuple(node.id for node in root_nodes)
    if not roots:
        return WalkResult("not-supported", ())
    verdict = await reader.judge(tuple(await reader.select(roots)))
    return WalkResult(verdict, (WalkRound(roots, roots, verdict),))


# How each of the paper's baselines chooses its texts (§4.2, appendix E.1).
_METHODS: Final[dict[str, Method]] = {
    "veritrail-rag": "retrieval",
    "veritrail-source": "whole",
    "veritrail-vt-rag": "traced",
}


def create(kit: DetectorKit) -> VeriTrail:
    """Build ``veritrail``."""
    return VeriTrail(kit, VeriTrailProgram(), guided="judge")


def create_baseline(kit: DetectorKit) -> TrailBaseline:
    """Build the baseline that the specification names."""
    method = _METHODS[kit.spec.detector]
    return TrailBaseline(kit, VeriTrailProgram(), guided="judge", method=method)
