"""GEPA: the prompt model reflects on the feedback of failed items and rewrites the instruction.

Agrawal et al. 2025, "GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning", as
DSPy implements it. It tunes instructions alone; demonstrations stay as they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optimizers.strategies import Round
from spanlab.workflows.interpreter import quiet

if TYPE_CHECKING:
    import dspy


def search(work: Round) -> dspy.Module:
    """Return the best program found; the one that the search began from if nothing beat it.

    Raises:
        SpanlabError: the search cannot go on; the reason why.
    """
    import dspy

    def metric(
        example: dspy.Example,
        prediction: dspy.Prediction,
        trace: object = None,
        predictor: str | None = None,
        predictor_trace: Any = None,
    ) -> dspy.Prediction:
        judged = work.judged(example, prediction)
        return dspy.Prediction(score=judged.score, feedback=judged.feedback)

    request = work.request
    # A trial of GEPA's is one evaluation on all items that candidates are chosen by.
    calls = None if request.trials is None else (request.trials + 1) * len(work.choose)
    optimizer = dspy.GEPA(
        metric=metric,
        auto=request.auto,
        max_metric_calls=calls,
        reflection_lm=work.prompt_lm,
        num_threads=request.threads,
        seed=request.seed,
        track_stats=False,
        skip_perfect_score=True,
    )
    with quiet(), dspy.context(lm=work.task_lm):
        return optimizer.compile(work.program, trainset=list(work.learn), valset=list(work.choose))
