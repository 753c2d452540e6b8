"""A metric of RAGAS: how much of a response its retrieved contexts support."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from ragas.dataset_schema import SingleTurnSample
from ragas.metrics.base import MetricType, SingleTurnMetric

from spanlab.integrations.notebook import AnyDetector
from spanlab.integrations.verdicts import judge


def _columns() -> dict[MetricType, set[str]]:
    return {MetricType.SINGLE_TURN: {"user_input:optional", "response", "retrieved_contexts"}}


@dataclass
class Grounded(SingleTurnMetric):
    """The share of a response's characters that a detector does not mark as hallucinated.

    RAGAS keeps the score alone: ``reasons`` has the worst span by response.

    Args:
        detector: as for ``spanlab.detect``.
        options: as for ``spanlab.detect``.
    """

    name: str = "grounded"
    _required_columns: dict[MetricType, set[str]] = field(default_factory=_columns)
    detector: AnyDetector = "offline"
    options: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def init(self, run_config: Any) -> None:
        """Prepare nothing: models and limits are among the options."""

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any) -> float:
        response = sample.response or ""
        verdict = await asyncio.to_thread(
            judge,
            response,
            sample.retrieved_contexts,
            sample.user_input or "",
            self.detector,
            **self.options,
        )
        self.reasons[response] = verdict.reason
        return verdict.score
