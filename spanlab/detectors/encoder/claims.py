"""``encoder-nli-claims``: claims that a model takes out of an answer, judged by a local classifier.

The model takes claims out and names the words that are wrong; the verdict is the classifier's.
"""

from __future__ import annotations

import asyncio

from spanlab.detectors.base import DetectorKit
from spanlab.detectors.common.claim_detector import ClaimDetector, ClaimJudgement, ClaimProgram
from spanlab.detectors.common.context import readable
from spanlab.detectors.common.evidence import evidence, stance_of
from spanlab.detectors.common.model_detector import DetectionCase
from spanlab.detectors.encoder.entry import NliClaimOptions
from spanlab.detectors.encoder.verifying import JudgedStatement, PairClassifier
from spanlab.errors import SpanlabError
from spanlab.schema import RemarkStep


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
        said = JudgedStatement(claim, tuple(text for text in texts if text.strip()))
        (ruling,) = await asyncio.to_thread(self._verifier.judge, [said])
        if isinstance(ruling, SpanlabError):
            raise ruling
        return ClaimJudgement(
            verdict=ruling.verdict,
            reason=ruling.reason,
            support=1.0 - ruling.refutation if ruling.verdict == "refuted" else ruling.support,
            evidence=evidence(item, read, claim, stance=stance_of(ruling.verdict)),
            steps=(RemarkStep(text=self._verifier.provenance, claim=number),),
        )
