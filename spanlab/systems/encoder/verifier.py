"""Verdicts by a classifier of pairs of texts, of what the passages say and of a statement.

NLI models (entailment, neutral, contradiction) and fact-checking models of two classes, such as
MiniCheck (Tang et al. 2024): the kind of verifier that VeriTrail's paper compares with. Passages
are the premise, in windows that overlap where they are longer than the model takes. A statement is
as much supported as the mean of the ``best`` windows that support it most (one window: the
maximum), and as much refuted as the window that contradicts it most. One that is itself too long is
read in pieces, and is as much supported as the piece that is supported least.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import SpanlabError
from spanlab.detection.base import DetectorKit, failed
from spanlab.detection.common.claim_detector import ClaimDetector, ClaimJudgement, ClaimProgram
from spanlab.detection.common.context import readable
from spanlab.detection.common.evidence import evidence, stance_of
from spanlab.detection.common.model_detector import DetectionCase
from spanlab.networks.checkpoint import Checkpoint, open_checkpoint
from spanlab.networks.checkpoint_facts import refuted_labels, supported_labels
from spanlab.networks.classifier import OnnxClassifier, load
from spanlab.networks.tokenizing import CheckpointTokenizer, TokenizedPiece, rows_of
from spanlab.schema import (
    HALLUCINATED,
    Annotation,
    AnnotatorKind,
    AnswerPlace,
    Claim,
    FactStep,
    Interval,
    Item,
    RemarkStep,
    Span,
    Step,
    Verdict,
)
from spanlab.systems.encoder import NliClaimOptions, NliOptions
from spanlab.systems.encoder.detector import tokenizing_of
from spanlab.text.tokens import sentences

NAME: Final = "encoder-nli"
NO_PASSAGES: Final = "no passages were given: there is nothing to judge the answer by"


@dataclass(frozen=True)
class JudgedStatement:
    """What is judged, and the texts that it is judged by."""

    text: str
    passages: tuple[str, ...]


@dataclass(frozen=True)
class PairVerdict:
    """A verdict, how probable support and contradiction are, and how many windows were read."""

    verdict: Verdict
    support: float
    refutation: float
    windows: int

    @property
    def prob(self) -> float:
        """How sure the verdict is, in [0, 1]."""
        sure = {"supported": self.support, "refuted": self.refutation}
        return round(sure.get(self.verdict, 1.0 - self.support), 3)

    @property
    def reason(self) -> str:
        """The figures that the verdict rests on, in words."""
        of = f" of {self.windows} windows" if self.windows > 1 else ""
        return f"support {self.support:.2f}, contradiction {self.refutation:.2f}{of}"


@dataclass(frozen=True)
class PairClassifier:
    """A loaded classifier of pairs; any number of threads may share it."""

    options: NliOptions
    checkpoint: Checkpoint
    network: OnnxClassifier
    tokenizing: CheckpointTokenizer
    supported: frozenset[int]
    refuted: frozenset[int]
    digest: str

    @classmethod
    def load(cls, options: NliOptions) -> PairClassifier:
        """Load the verifier that options describe.

        Raises:
            InputError: the checkpoint is missing, damaged, unsuitable or unsafe.
            UsageError: a package or device is missing.
        """
        checkpoint = open_checkpoint(options.model, options.weights)
        tokenizing = tokenizing_of(checkpoint, options)
        network = load(checkpoint, "texts", options.running)
        supported = supported_labels(network.labels, options.supported, checkpoint.folder)
        refuted = refuted_labels(network.labels) - supported
        digest = checkpoint.digest()
        return cls(options, checkpoint, network, tokenizing, supported, refuted, digest)

    @property
    def provenance(self) -> str:
        """Which checkpoint judges, for traces."""
        weights = self.checkpoint.weights.name
        return f"checkpoint {self.checkpoint.name}, {weights} with SHA-256 {self.digest}"

    def judge(self, statements: Sequence[JudgedStatement]) -> list[PairVerdict | SpanlabError]:
        """Return verdicts, in the order of the statements, or why one cannot be given.

        Raises:
            InputError: the network breaks on them.
        """
        cut = [self._pieces(statement) for statement in statements]
        rated = iter(self.network.rate(rows_of(cut), self.options.batch))
        return [
            pieces
            if isinstance(pieces, SpanlabError)
            else self._ruling([[next(rated) for _ in piece.rows] for piece in pieces])
            for pieces in cut
        ]

    def _pieces(self, statement: JudgedStatement) -> list[TokenizedPiece] | SpanlabError:
        try:
            return self.tokenizing.read("\n".join, statement.passages, statement.text)
        except SpanlabError as error:
            return error

    def _ruling(self, pieces: Sequence[Sequence[NDArray[np.float32]]]) -> PairVerdict:
        """Join the probabilities of the windows of each piece."""
        support, refutation = 1.0 if pieces else 0.0, 0.0
        for windows in pieces:
            probs = np.array(windows, dtype=np.float64)
            supports = np.sort(probs[:, sorted(self.supported)].sum(axis=1))[::-1]
            support = min(support, float(supports[: self.options.best].mean()))
            refutation = max(refutation, float(probs[:, sorted(self.refuted)].sum(axis=1).max()))
        verdict: Verdict = self.options.neutral
        if support >= self.options.threshold:
            verdict = "supported"
        elif self.refuted and refutation >= self.options.refuted:
            verdict = "refuted"
        return PairVerdict(verdict, support, min(refutation, 1.0), sum(map(len, pieces)))


@dataclass(frozen=True)
class SentenceDetector:
    """Judges every sentence of an answer; what is not supported is marked as a whole."""

    verifier: PairClassifier
    name: str = NAME

    @property
    def batch(self) -> int:
        """How many items it takes at once."""
        return self.verifier.options.batch

    def annotate(self, item: Item) -> Annotation:
        """Mark an item's answer; see ``annotate_all``."""
        (annotation,) = self.annotate_all([item])
        return annotation

    def annotate_all(self, items: Sequence[Item]) -> list[Annotation]:
        """Mark answers, in their order.

        Returns:
            Annotations with a claim for every sentence; failed ones say what cannot be read.

        Raises:
            InputError: the network breaks on the items.
        """
        cut = [_sentences(item) for item in items]
        statements = [
            JudgedStatement(claim.text, passages_of(item))
            for item, claims in zip(items, cut, strict=True)
            for claim in claims
        ]
        rulings = iter(self.verifier.judge(statements))
        return [
            self._annotation(item, claims, [next(rulings) for _ in claims])
            for item, claims in zip(items, cut, strict=True)
        ]

    def _annotation(
        self, item: Item, sources: Sequence[Span], rulings: Sequence[PairVerdict | SpanlabError]
    ) -> Annotation:
        spans, claims, steps = list[Span](), list[Claim](), list[Step]()
        for number, (source, ruling) in enumerate(zip(sources, rulings, strict=True)):
            if isinstance(ruling, SpanlabError):
                return failed(self.name, ruling)
            quotes = evidence(
                item, range(len(item.passages)), source.text, stance=stance_of(ruling.verdict)
            )
            claims.append(
                Claim(
                    text=source.text,
                    source=source,
                    verdict=ruling.verdict,
                    prob=ruling.prob,
                    evidence=quotes,
                    note=ruling.reason,
                )
            )
            places: tuple[AnswerPlace, ...] = ()
            if ruling.verdict in HALLUCINATED:
                marks = {"prob": ruling.prob, "note": ruling.reason, "evidence": quotes}
                spans.append(source.model_copy(update=marks))
                places = (AnswerPlace(start=source.start, end=source.end),)
            steps.append(
                FactStep(
                    text=source.text,
                    verdict=ruling.verdict,
                    prob=ruling.prob,
                    reason=ruling.reason,
                    places=places,
                    claim=number,
                )
            )
        return Annotation(
            annotator=self.name,
            kind=AnnotatorKind.DETECTOR,
            spans=tuple(spans),
            hard=tuple(Interval(start=span.start, end=span.end) for span in spans),
            claims=tuple(claims),
            note=None if passages_of(item) else NO_PASSAGES,
            trace=(*steps, RemarkStep(text=self.verifier.provenance)),
        )


def passages_of(item: Item) -> tuple[str, ...]:
    """Return the texts that an item's statements are judged by."""
    return tuple(passage.text for passage in item.passages if passage.text.strip())


def _sentences(item: Item) -> list[Span]:
    extents = sentences(item.answer, item.lang)
    return [Span.of(item.answer, start, end) for start, end in extents]


class EncoderClaims(ClaimDetector):
    """Judges claims by a classifier of pairs of texts.

    Args:
        kit: what it works with.
        options: the detector's own.
    """

    def __init__(self, kit: DetectorKit, options: NliClaimOptions) -> None:
        self._verifier = PairClassifier.load(options)
        whole = options.claims == "answer"
        super().__init__(kit, ClaimProgram(), guided="words", whole=whole)

    async def verify(self, case: DetectionCase, number: int, claim: str) -> ClaimJudgement:
        """Judge one claim."""
        item = case.item
        read = readable(item, self.kit.retriever.name)
        texts = (item.passages[index].text for index in read)
        statement = JudgedStatement(claim, tuple(text for text in texts if text.strip()))
        (ruling,) = await asyncio.to_thread(self._verifier.judge, [statement])
        if isinstance(ruling, SpanlabError):
            raise ruling
        return ClaimJudgement(
            verdict=ruling.verdict,
            reason=ruling.reason,
            support=1.0 - ruling.refutation if ruling.verdict == "refuted" else ruling.support,
            evidence=evidence(item, read, claim, stance=stance_of(ruling.verdict)),
            steps=(RemarkStep(text=self._verifier.provenance, claim=number),),
        )


def create_sentences(kit: DetectorKit) -> SentenceDetector:
    """Build ``encoder-nli``."""
    return SentenceDetector(PairClassifier.load(NliOptions.model_validate(kit.spec.options)))


def create_claims(kit: DetectorKit) -> EncoderClaims:
    """Build ``encoder-nli-claims``."""
    return EncoderClaims(kit, NliClaimOptions.model_validate(kit.spec.options))
