"""What is read, chosen and decided for one claim, round by round."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, Protocol

from spanlab.models import count_tokens
from spanlab.models.meter import together
from spanlab.schema import NodeQuote, ProcessGraph, ProcessNode, Step
from spanlab.systems.veritrail.entries import VeriTrailOptions
from spanlab.systems.veritrail.evidence import (
    ClaimRuling,
    NodeSentence,
    SelectedEvidence,
    batches,
    fitting,
    largest,
    sentences_of,
)
from spanlab.systems.veritrail.trace import TrailStep
from spanlab.systems.veritrail.walk import WalkRound, WalkVerdict

RERUNS: Final = 3  # of a selection among what was selected; the paper leaves the number open
NOTHING_CHOSEN: Final = "nothing that was read settles the claim"


class TrailModels(Protocol):
    """What a trail asks of models."""

    async def choose(self, sentences: Sequence[NodeSentence]) -> SelectedEvidence:
        """Choose the sentences that settle the claim; all fit one prompt."""
        ...

    async def rule(self, evidence: Sequence[str]) -> ClaimRuling:
        """Judge the claim on texts and summaries."""
        ...


@dataclass(frozen=True)
class _RoundNotes:
    """What a round left: its selections, by roots and others, and what was made of them."""

    roots: tuple[SelectedEvidence, ...]
    others: tuple[SelectedEvidence, ...]
    judged: ClaimRuling
    unknown: int  # ids that models returned and nobody had given
    remark: str | None = None  # what did not fit

    @property
    def sentences(self) -> list[NodeSentence]:
        return [sentence for chosen in (*self.others, *self.roots) for sentence in chosen.sentences]


class TrailReader:
    """Selects and judges for one claim, and remembers both.

    Args:
        asking: asks models about the claim.
        process: how the answer was generated.
        lang: BCP 47 tag of its texts.
        options: limits in sentences.
        room: the limit of a verdict's evidence in estimated tokens.
    """

    def __init__(
        self,
        asking: TrailModels,
        process: ProcessGraph,
        lang: str,
        options: VeriTrailOptions,
        room: float = inf,
    ) -> None:
        self._asking, self._process, self._lang, self._options = asking, process, lang, options
        self._room = room
        self._rounds: list[_RoundNotes] = []

    async def select(self, nodes: tuple[str, ...]) -> set[str]:
        """Return those of the nodes that hold evidence."""
        texts = await asyncio.to_thread(self._process.read, nodes)
        options = self._options
        roots, others = await together(
            self._among(self._sentences(texts, roots=True), options.root_sentences),
            self._among(self._sentences(texts, roots=False), options.sentences),
        )
        nothing = ClaimRuling(
            "not-supported", NOTHING_CHOSEN
        )  # no soft score without verdicts (E.3)
        unknown = sum(root.unknown for root in (*roots, *others))
        self._rounds.append(_RoundNotes(_filled(roots), _filled(others), nothing, unknown))
        return {sentence.node for sentence in self._rounds[-1].sentences}

    async def judge(self, nodes: tuple[str, ...]) -> WalkVerdict:
        """Return the verdict on the evidence of nodes: full texts of roots, summaries of others."""
        notes, options = self._rounds[-1], self._options
        others = await self._fitting(notes.others, options.sentences, options.judged)
        summaries = [chosen.summary for chosen in others if chosen.summary]
        room = self._room - sum(map(count_tokens, summaries))
        sources = fitting(*await self._sources(nodes), room)
        texts = [*filter(None, sources.shown.values()), *summaries]
        judged = await self._asking.rule(texts) if texts else notes.judged
        remark = sources.remark(self._room)
        self._rounds[-1] = replace(notes, others=tuple(others), judged=judged, remark=remark)
        return judged.verdict

    async def _sources(self, nodes: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return the roots among nodes: their texts, and what was chosen of them."""
        by_id, options, notes = self._process.by_id, self._options, self._rounds[-1]
        whole = {node: by_id[node].text for node in nodes if not by_id[node].sources}
        chosen = _by_node(chosen for notes in self._rounds for chosen in notes.roots)
        parts = {node: " ".join(chosen[node]) for node in whole}
        if options.judged_roots:
            most = options.judged_roots
            kept = _by_node(await self._fitting(notes.roots, options.root_sentences, most))
            for node, texts in _by_node(notes.roots).items():
                if len(kept.get(node, ())) < len(texts):  # not all that was chosen of it
                    whole[node] = parts[node] = " ".join(kept.get(node, ()))
        return whole, parts

    @property
    def judged(self) -> ClaimRuling:
        """The latest verdict, why, and its soft score; not supported where nothing was read."""
        return (
            self._rounds[-1].judged
            if self._rounds
            else ClaimRuling("not-supported", NOTHING_CHOSEN)
        )

    @property
    def quotes(self) -> list[NodeSentence]:
        """All sentences that were chosen, in the order of the rounds."""
        return [sentence for notes in self._rounds for sentence in notes.sentences]

    def steps(self, rounds: Sequence[WalkRound], claim: int) -> tuple[Step, ...]:
        """Return the rounds of a walk as steps of a trace, for the claim of this number."""
        return tuple(
            TrailStep(
                claim=claim,
                round=number,
                checked=round_.checked,
                quotes=tuple(NodeQuote(**quote._asdict()) for quote in notes.sentences),
                summaries=tuple(chosen.summary for chosen in notes.others if chosen.summary),
                verdict=round_.verdict,
                reason=notes.judged.reason or None,
                dropped=notes.unknown,
                remark=notes.remark,
            )
            for number, (round_, notes) in enumerate(
                zip(rounds, self._rounds, strict=True), start=1
            )
        )

    def _sentences(self, nodes: Sequence[ProcessNode], *, roots: bool) -> list[NodeSentence]:
        return sentences_of([node for node in nodes if roots is not bool(node.sources)], self._lang)

    async def _among(self, sentences: Sequence[NodeSentence], most: int) -> list[SelectedEvidence]:
        prompts = (self._asking.choose(batch) for batch in batches(sentences, most))
        selected: list[SelectedEvidence] = await together(*prompts)
        return selected

    async def _fitting(
        self, selected: Sequence[SelectedEvidence], shown: int, most: int
    ) -> Sequence[SelectedEvidence]:
        """Select again among what was selected until a verdict can rest on it (§3.1.3)."""
        for _ in range(RERUNS):
            sentences = [sentence for evidence in selected for sentence in evidence.sentences]
            if len(sentences) <= most:
                return selected
            again = _filled(await self._among(sentences, shown))
            if not again:
                break
            selected = again
        return largest(selected, most)


def _filled(selected: Sequence[SelectedEvidence]) -> tuple[SelectedEvidence, ...]:
    return tuple(evidence for evidence in selected if evidence.sentences)


def _by_node(selected: Iterable[SelectedEvidence]) -> dict[str, list[str]]:
    """Return the texts of chosen sentences by the node that they stand in."""
    by_node: dict[str, list[str]] = {}
    for sentence in (sentence for chosen in selected for sentence in chosen.sentences):
        by_node.setdefault(sentence.node, []).append(sentence.text)
    return by_node
