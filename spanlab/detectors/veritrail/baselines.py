"""What VeriTrail's paper compares with: retrieval, the whole source, and retrieval while tracing.

After Metropolitansky et al. 2025, "VeriTrail", §4.2 and appendix E.1. All use VeriTrail's own
verdict prompt, so that only what is judged differs. Deviation: texts are ranked by the words that
they share with the claim, rare ones counting more, not by embeddings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spanlab.detectors.base import Kit
from spanlab.detectors.common.claim_detector import Verified
from spanlab.detectors.common.context import ranked
from spanlab.detectors.common.evidence import evidence
from spanlab.detectors.common.model_detector import Case
from spanlab.detectors.entry import JUDGE
from spanlab.detectors.veritrail.detector import ProcessDetector, VeriTrailProgram
from spanlab.detectors.veritrail.entry import ClaimOptions, Method, RetrievalOptions
from spanlab.detectors.veritrail.fitting import closest_fitting, room_of
from spanlab.detectors.veritrail.judging import Judged
from spanlab.detectors.veritrail.trail import NOTHING_CHOSEN, Asking
from spanlab.detectors.veritrail.walk import Round, Walk, WalkVerdict, walk
from spanlab.lm.meter import LETTERS_PER_TOKEN
from spanlab.schema import Graph, TrailStep, process_of, roots_of


class Baseline(ProcessDetector):
    """Judges claims on texts that are chosen without a model.

    Args:
        kit: what it works with.
        program: the model's steps.
        guided: the predictor whose instruction the specification's guidance is added to.
        method: how the texts are chosen.
    """

    def __init__(self, kit: Kit, program: VeriTrailProgram, *, guided: str, method: Method) -> None:
        kind = ClaimOptions if method == "whole" else RetrievalOptions
        self._options, self._method = kind.model_validate(kit.spec.options), method
        super().__init__(kit, program, guided=guided, options=self._options)

    async def verify(self, case: Case, number: int, claim: str) -> Verified:
        """Judge one claim."""
        item, process = case.item, process_of(case.item)
        options = self._options
        k = options.k if isinstance(options, RetrievalOptions) else None
        window = self.kit.models[JUDGE].window
        room = room_of(window) if window else self.kit.spec.context / LETTERS_PER_TOKEN
        reader = _Reader(await self.asking(item, claim), process, claim, k, room)
        if self._method == "traced":
            found = await walk(process, select=reader.select, judge=reader.judge)
        else:
            found = await _judged_at_once(process, reader)
        passages = range(len(item.passages)) if item.process is None else ()
        return Verified(
            verdict=found.verdict,
            reason=reader.judged.reason,
            support=reader.judged.support,
            evidence=evidence(item, passages, claim) if passages else (),
            error_stages=found.error_stages,
            steps=tuple(
                TrailStep(
                    claim=number,
                    round=at,
                    checked=each.checked,
                    verdict=each.verdict,
                    reason=judgement.judged.reason or None,
                    judged=judgement.nodes,
                    remark=judgement.remark,
                )
                for at, (each, judgement) in enumerate(
                    zip(found.rounds, reader.judgements, strict=True), start=1
                )
            ),
        )


class _Judgement(NamedTuple):
    """A verdict, the nodes whose texts it was given on, and what did not fit."""

    judged: Judged
    nodes: tuple[str, ...]
    remark: str | None


@dataclass
class _Reader:
    """Chooses the texts closest to a claim, and has it judged on them, within a prompt's size."""

    asking: Asking
    process: Graph
    claim: str
    k: int | None  # None: all
    room: float  # estimated tokens of all texts in a prompt
    judgements: list[_Judgement] = field(default_factory=list)

    @property
    def judged(self) -> Judged:
        """The latest verdict; not supported where nothing was read."""
        last = self.judgements[-1:]
        return last[0].judged if last else Judged("not-supported", NOTHING_CHOSEN)

    async def select(self, nodes: tuple[str, ...]) -> Sequence[str]:
        """Return the nodes whose texts come closest to the claim."""
        return self._ranked(nodes)[: self.k]

    async def judge(self, nodes: tuple[str, ...]) -> WalkVerdict:
        """Return the verdict on the texts of nodes, the closest ones where not all fit."""
        ranked_nodes = self._ranked(nodes)
        texts = {node: self.process.by_id[node].text for node in ranked_nodes}
        shown = closest_fitting(texts, self.room)
        judged = await self.asking.rule(list(shown.shown.values()))
        self.judgements.append(_Judgement(judged, tuple(shown.shown), shown.remark(self.room)))
        return judged.verdict

    def _ranked(self, nodes: Sequence[str]) -> list[str]:
        texts = [self.process.by_id[node].text for node in nodes]
        return [nodes[index] for index in ranked(texts, self.claim)]


async def _judged_at_once(process: Graph, reader: _Reader) -> Walk:
    """Judge a claim on its process's roots, without tracing it."""
    found = await asyncio.to_thread(roots_of, process)
    roots = tuple(node.id for node in found)
    if not roots:
        return Walk("not-supported", ())
    verdict = await reader.judge(tuple(await reader.select(roots)))
    return Walk(verdict, (Round(roots, roots, verdict),))
