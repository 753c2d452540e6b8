"""GEPA: the prompt model reflects on the feedback of failed items and rewrites the instruction.

Agrawal et al. 2025, "GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning", as
DSPy implements it. It tunes instructions alone; demonstrations stay as they were.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from optimizers.mipro import CANDIDATES
from optimizers.strategies import SearchRound
from spanlab.runtime import quiet

if TYPE_CHECKING:
    import dspy


REFLECTED: Final = 3  # items that the prompt model reflects on at a time
_BATCH = 35  # and the numbers of DSPy's rule for a budget
_FULL_EVERY = 5
_BOOTSTRAPS = 5


def evaluations(auto: str | None, trials: int | None, choose: int, prompts: int) -> int:
    """Return how many items a search evaluates, until it begins no further round.

    Args:
        auto: "light", "medium" or "heavy", by DSPy's own rule; None goes by ``trials``.
        trials: evaluations on all items that candidates are chosen by.
        choose: how many these are.
        prompts: prompts in the program.
    """
    if trials is not None or auto is None:
        return ((trials or 0) + 1) * choose
    number = CANDIDATES[auto]
    rounds = int(max(4 * prompts * math.log2(number), 1.5 * number))
    full = (rounds + 1) // _FULL_EVERY + 1 + (rounds < _FULL_EVERY)
    return (1 + full) * choose + number * _BOOTSTRAPS + rounds * _BATCH


def search_by_gepa(work: SearchRound) -> dspy.Module:
    """Return the best program found; the one that the search began from if none scored higher.

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
    prompts = len(work.program.predictors())
    optimizer = dspy.GEPA(
        metric=metric,
        max_metric_calls=evaluations(request.auto, request.trials, len(work.choose), prompts),
        reflection_minibatch_size=REFLECTED,
        reflection_lm=work.prompt_lm,
        num_threads=request.threads,
        seed=request.seed,
        track_stats=False,
        skip_perfect_score=True,
    )
    with quiet(), dspy.context(lm=work.task_lm):
        return optimizer.compile(work.program, trainset=list(work.learn), valset=list(work.choose))
