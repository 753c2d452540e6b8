"""A scorer of Inspect: how much of an answer the passages of its sample support."""

from __future__ import annotations

import asyncio
from typing import Any

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from spanlab.base.errors import UsageError
from spanlab.integrations.verdicts import judge


@scorer(metrics=[mean(), stderr()])
def grounded(detector: str = "offline", passages: str = "passages", **options: Any) -> Scorer:
    """Score by the share of an answer's characters that a detector does not mark.

    The explanation is the worst span; all are in the score's metadata, with offsets in Unicode code
    points.

    Args:
        detector: the name of a detector.
        passages: where a sample's metadata, or the solver's, has the passages.
        **options: as for ``spanlab.detect``.
    """

    async def score(state: TaskState, target: Target) -> Score:
        if passages not in state.metadata:
            known = ", ".join(state.metadata) or "nothing"
            raise UsageError(
                f"sample {state.sample_id}: no metadata {passages!r}; available: {known}"
            )
        answer = state.output.completion
        if not answer.strip():  # as after an error or a limit, which must not end the evaluation
            return Score(value=0.0, answer=answer, explanation="there is no answer to judge")
        found = state.metadata[passages]
        verdict = await asyncio.to_thread(
            judge, answer, found, state.input_text, detector, **options
        )
        return Score(
            value=verdict.score,
            answer=answer,
            explanation=verdict.reason,
            metadata={"spans": verdict.spans},
        )

    return score
