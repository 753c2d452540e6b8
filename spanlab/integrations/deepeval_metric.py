"""A metric of DeepEval: how much of an answer its retrieval context supports."""

from __future__ import annotations

import asyncio
from typing import Any

from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

from spanlab.base.fields import check_share
from spanlab.integrations.notebook import AnyDetector
from spanlab.integrations.verdicts import AT_LEAST, judge


class GroundedMetric(BaseMetric):
    """The share of an answer's characters that a detector does not mark as hallucinated.

    ``spans`` are those of the last answer, with offsets in Unicode code points.

    Args:
        threshold: the least share that passes.
        detector: as for ``spanlab.detect``.
        **options: as for ``spanlab.detect``.

    Raises:
        UsageError: ``threshold`` is no share.
    """

    def __init__(
        self, threshold: float = AT_LEAST, detector: AnyDetector = "offline", **options: Any
    ) -> None:
        self.threshold = check_share("threshold", threshold)
        self.include_reason = True
        self.spans: list[dict[str, Any]] = []
        self._detector, self._options = detector, options

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """Return the score of a test case; its retrieval context, else its context, counts."""
        found = test_case.retrieval_context or test_case.context or ()
        verdict = judge(
            test_case.actual_output or "",
            [getattr(passage, "context", passage) for passage in found],
            test_case.input or "",
            self._detector,
            **self._options,
        )
        self.error = None
        self.score, self.reason, self.spans = verdict.score, verdict.reason, verdict.spans
        self.success = self.is_successful()
        return verdict.score

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """Return the score of a test case, while others are measured."""
        return await asyncio.to_thread(self.measure, test_case)

    @property
    def __name__(self) -> str:
        return "Grounded (spanlab)"
