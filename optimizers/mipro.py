"""MIPROv2: instructions and demonstrations searched together by Bayesian optimisation.

Opsahl-Ong et al. 2024, "Optimizing Instructions and Demonstrations for Multi-Stage Language Model
Programs", as DSPy implements it, with the settings that Huang et al. 2025 released.

    1. the program answers items itself; good answers become demonstrations
    2. the prompt model writes instructions, grounded in the data and the demonstrations
    3. Optuna's TPE chooses pairs of both, evaluates them, and learns which do well

Deviations: an answer has to reach ``Search.success`` to become a demonstration, where the released
code took any that was not quite wrong; and demonstrations never come from the items that
candidates are chosen by.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from optimizers.strategies import SearchRound
from spanlab.runtime import quiet

if TYPE_CHECKING:
    import dspy

CANDIDATES: Final = {"light": 6, "medium": 12, "heavy": 18}  # DSPy's number of candidates
MANY: Final = 50  # items from which on DSPy evaluates candidates on a few of them first
MINIBATCH: Final = 35  # those few items


def search_by_mipro(work: SearchRound) -> dspy.Module:
    """Return the best program found; the one that the search began from if none scored higher.

    Raises:
        SpanlabError: the search cannot go on; the reason why.
    """
    import dspy

    request = work.request
    optimizer = dspy.MIPROv2(
        metric=work.metric,
        prompt_model=work.prompt_lm,
        task_model=work.task_lm,
        max_bootstrapped_demos=request.bootstrapped,
        max_labeled_demos=request.labelled if work.has_answers else 0,
        auto=request.auto,
        num_candidates=None if request.trials is None else candidates(request.trials),
        num_threads=request.threads,
        max_errors=work.patience,
        seed=request.seed,
        init_temperature=work.prompt_temperature,
        metric_threshold=request.success,
    )
    minibatch = len(work.choose) > MANY
    with quiet():
        return optimizer.compile(
            work.program,
            trainset=list(work.learn),
            valset=list(work.choose),
            num_trials=request.trials,
            minibatch=minibatch,
            minibatch_size=min(MINIBATCH, len(work.choose)),
        )


def candidates(trials: int) -> int:
    """Return how many instructions and sets of demonstrations so many trials can try out.

    DSPy recommends 1.5 trials for each; below 3 there would be nothing to choose from.
    """
    return max(3, min(CANDIDATES["heavy"], round(trials / 1.5)))


def trials_of(auto: str, predictors: int, *, demonstrations: bool) -> int:
    """Return how many trials an automatic budget makes; DSPy's own rule.

    Args:
        auto: "light", "medium" or "heavy".
        predictors: prompts in the program.
        demonstrations: whether demonstrations are searched too.
    """
    number = CANDIDATES[auto]
    variables = predictors * (2 if demonstrations else 1)
    return int(max(2 * variables * math.log2(number), 1.5 * number))
