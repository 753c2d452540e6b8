"""One round of search, from a program to a better one, by MIPROv2 or GEPA as DSPy implements them.

MIPROv2: instructions and demonstrations are searched together by Bayesian optimisation.
Opsahl-Ong et al. 2024, "Optimizing Instructions and Demonstrations for Multi-Stage Language Model
Programs", with the settings that Huang et al. 2025 released.

    1. the program answers items itself; good answers become demonstrations
    2. the prompt model writes instructions, grounded in the data and the demonstrations
    3. Optuna's TPE chooses pairs of both, evaluates them, and learns which do well

Deviations: an answer has to reach ``Search.success`` to become a demonstration, where the released
code took any that was not quite wrong; and demonstrations never come from the items that
candidates are chosen by.

GEPA: the prompt model reflects on the feedback of failed items and rewrites the instruction.
Agrawal et al. 2025, "GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning".
It tunes instructions alone; demonstrations stay as they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from optimizers.metrics import ScoredAnswer
from optimizers.request import PROMPT_TEMPERATURE, PromptSearch
from spanlab.base.runtime import quiet

if TYPE_CHECKING:
    import dspy


Metric = Callable[..., float]


@dataclass(frozen=True)
class SearchRound:
    """The inputs of one search: the program it begins from, its items, its models.

    ``learn`` are the items that demonstrations come from, ``choose`` those that candidates are
    scored on; none is in both. ``has_answers`` says whether the items hold what a perfect program
    would return, so that they can be demonstrations themselves. ``patience`` is the number of
    failed items that ends nothing.
    """

    request: PromptSearch
    program: dspy.Module
    learn: tuple[dspy.Example, ...]
    choose: tuple[dspy.Example, ...]
    has_answers: bool
    judge: Callable[[dspy.Example, dspy.Prediction], ScoredAnswer]
    task_lm: dspy.LM
    prompt_lm: dspy.LM
    patience: int = 1_000_000
    prompt_temperature: float = PROMPT_TEMPERATURE

    def metric(
        self, example: dspy.Example, prediction: dspy.Prediction, trace: object = None
    ) -> float:
        """Return the score of a prediction, by the signature that DSPy expects."""
        return self.judge(example, prediction).score


CANDIDATES: Final = {"light": 6, "medium": 12, "heavy": 18}  # DSPy's number of candidates
MANY: Final = 50  # items from which on DSPy evaluates candidates on a few of them first
MINIBATCH: Final = 35  # those few items


def search_by_mipro(search_round: SearchRound) -> dspy.Module:
    """Return the best program found; the one that the search began from if none scored higher.

    Raises:
        SpanlabError: the search cannot go on; the reason why.
    """
    import dspy

    request = search_round.request
    optimizer = dspy.MIPROv2(
        metric=search_round.metric,
        prompt_model=search_round.prompt_lm,
        task_model=search_round.task_lm,
        max_bootstrapped_demos=request.bootstrapped,
        max_labeled_demos=request.labelled if search_round.has_answers else 0,
        auto=request.auto,
        num_candidates=None if request.trials is None else n_candidates(request.trials),
        num_threads=request.threads,
        max_errors=search_round.patience,
        seed=request.seed,
        init_temperature=search_round.prompt_temperature,
        metric_threshold=request.success,
    )
    minibatch = len(search_round.choose) > MANY
    with quiet():
        return optimizer.compile(
            search_round.program,
            trainset=list(search_round.learn),
            valset=list(search_round.choose),
            num_trials=request.trials,
            minibatch=minibatch,
            minibatch_size=min(MINIBATCH, len(search_round.choose)),
        )


def n_candidates(trials: int) -> int:
    """Return how many instructions and sets of demonstrations so many trials can try out.

    DSPy recommends 1.5 trials for each; below 3 there would be nothing to choose from.
    """
    return max(3, min(CANDIDATES["heavy"], round(trials / 1.5)))


def n_trials(auto: str, predictors: int, *, demonstrations: bool) -> int:
    """Return how many trials an automatic budget makes; DSPy's own rule.

    Args:
        auto: "light", "medium" or "heavy".
        predictors: prompts in the program.
        demonstrations: whether demonstrations are searched too.
    """
    number = CANDIDATES[auto]
    variables = predictors * (2 if demonstrations else 1)
    return int(max(2 * variables * math.log2(number), 1.5 * number))


REFLECTED: Final = 3  # items that the prompt model reflects on at a time
_BATCH = 35  # and the numbers of DSPy's rule for a budget
_FULL_EVERY = 5
_BOOTSTRAPS = 5


def n_evaluations(auto: str | None, trials: int | None, choose: int, prompts: int) -> int:
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


def search_by_gepa(search_round: SearchRound) -> dspy.Module:
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
        scored = search_round.judge(example, prediction)
        return dspy.Prediction(score=scored.score, feedback=scored.feedback)

    request = search_round.request
    prompts = len(search_round.program.predictors())
    optimizer = dspy.GEPA(
        metric=metric,
        max_metric_calls=n_evaluations(
            request.auto, request.trials, len(search_round.choose), prompts
        ),
        reflection_minibatch_size=REFLECTED,
        reflection_lm=search_round.prompt_lm,
        num_threads=request.threads,
        seed=request.seed,
        track_stats=False,
        skip_perfect_score=True,
    )
    with quiet(), dspy.context(lm=search_round.task_lm):
        return optimizer.compile(
            search_round.program,
            trainset=list(search_round.learn),
            valset=list(search_round.choose),
        )


_STRATEGIES: Final[Mapping[str, Callable[[SearchRound], dspy.Module]]] = {
    "mipro": search_by_mipro,
    "gepa": search_by_gepa,
}


def search_function(name: str) -> Callable[[SearchRound], dspy.Module]:
    """Return the search of this name, one of those that ``PromptSearch.strategy`` allows."""
    return _STRATEGIES[name]
