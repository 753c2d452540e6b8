"""What an optimisation will come to before anything is paid for."""

from __future__ import annotations

from dataclasses import dataclass

from optimizers import mipro
from optimizers.request import Search

_VAL_SIZE = {"light": 100, "medium": 300, "heavy": 1000}  # DSPy's bound on items to choose by
_FULL_EVERY = 5  # minibatch trials between two full evaluations
_SUMMARY_CALLS = 12  # of the prompt model, to describe data and program


@dataclass(frozen=True)
class Effort:
    """Upper bounds: ``trials`` evaluations, calls of the task model and of the prompt model.

    Answers that the cache holds cost nothing, so a run usually comes to less.
    """

    trials: int
    task_calls: int
    prompt_calls: int


def estimate(request: Search, items: int, predictors: int = 1, calls: int = 1) -> Effort:
    """Bound what a search will do.

    Args:
        request: the search.
        items: labelled items that it will get.
        predictors: prompts of the detector.
        calls: model calls of the detector per item.

    Returns:
        The sum over the cross-validation and the search on all items.
    """
    seen = [items - items // request.folds] * request.folds if request.folds else []
    rounds = [_search(request, each, predictors, calls) for each in (*seen, items)]
    held_out = 2 * items if request.folds else 0
    return Effort(
        trials=sum(each.trials for each in rounds) + 2 * request.folds,
        task_calls=sum(each.task_calls for each in rounds) + held_out * calls,
        prompt_calls=sum(each.prompt_calls for each in rounds),
    )


def _search(request: Search, items: int, predictors: int, calls: int) -> Effort:
    learn, choose = -(-items // 2), items // 2
    candidates = (
        mipro.candidates(request.trials)
        if request.auto is None and request.trials is not None
        else mipro.AUTO[request.auto or "light"]
    )
    if request.auto is not None:
        choose = min(choose, _VAL_SIZE[request.auto])
    demonstrations = request.bootstrapped + request.labelled > 0
    trials = request.trials or mipro.trials(
        request.auto or "light", predictors, demonstrations=demonstrations
    )
    if choose > mipro.MANY:
        full = trials // _FULL_EVERY + 1 + (trials % _FULL_EVERY != 0)
        evaluated, count = trials * mipro.FEW + (full + 1) * choose, trials + full + 1
    else:
        evaluated, count = (trials + 1) * choose, trials + 1
    bootstrapped = (candidates - 2) * learn if demonstrations else 0
    return Effort(
        trials=count,
        task_calls=(evaluated + bootstrapped) * calls,
        prompt_calls=_SUMMARY_CALLS + candidates * predictors,
    )
