"""What an optimisation will come to before anything is paid for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from optimizers import mipro
from optimizers.examples import Labelled, folds
from optimizers.preparing import chosen
from optimizers.request import Optimisation, Search
from spanlab.detectors import entry_of
from spanlab.detectors.costs import Asked, detecting, retrieving

if TYPE_CHECKING:
    from spanlab.storage import Store

_VAL_SIZE = {"light": 100, "medium": 300, "heavy": 1000}  # DSPy's bound on items to choose by
_FULL_EVERY = 5  # minibatch trials between two full evaluations
_SUMMARY_CALLS = 12  # of the prompt model, to describe data and program


@dataclass(frozen=True)
class Effort:
    """Upper bounds: ``trials`` evaluations, and calls of the models by what they are asked for.

    Answers that the cache holds cost nothing, so a run usually comes to less.
    """

    trials: int
    task_calls: int
    prompt_calls: int
    retrieval_calls: int = 0

    @property
    def calls(self) -> int:
        """All calls."""
        return self.task_calls + self.prompt_calls + self.retrieval_calls


@dataclass(frozen=True)
class SearchEstimate:
    """What a search will come to at most.

    ``items`` are the labelled ones, ``languages`` how many of them in each. ``cost`` is in US
    dollars, None where no price is known.
    """

    items: int
    languages: dict[str, int]
    effort: Effort
    cost: float | None


def estimate_search(store: Store, request: Optimisation) -> SearchEstimate:
    """Say what a search will come to at most; asks no model.

    Raises:
        UsageError: there are no labels, or too few of them, or no such detector.
        NotFoundError: there is no such dataset.
    """
    search = request.search
    examples = chosen(store.records(request.dataset), search)
    if search.folds and search.target is None:
        folds(examples, search.folds, search.seed)  # says so if there are too few
    each = _each(examples, search)
    source = search.detector.retriever
    found = [call for one in examples if source for call in retrieving(one.item, source)]
    effort = replace(
        estimate(search, len(examples), each.calls),
        retrieval_calls=sum(call.number for call in found),
    )
    return SearchEstimate(
        items=len(examples),
        languages=dict(sorted(Counter(one.item.lang for one in examples).items())),
        effort=effort,
        cost=_cost(search, each, effort, found),
    )


class _Each(NamedTuple):
    """What the detector asks for one item, on average: calls, and tokens of all of them."""

    calls: int
    asked: float
    answered: float


def _each(examples: Sequence[Labelled], search: Search) -> _Each:
    asked = [call for each in examples for call in detecting(each.item, search.detector)]
    count = len(examples)
    return _Each(
        calls=-(-sum(call.number for call in asked) // count),
        asked=sum(call.asked for call in asked) / count,
        answered=sum(call.answered for call in asked) / count,
    )


def _cost(search: Search, each: _Each, effort: Effort, retrieval: Sequence[Asked]) -> float | None:
    task = search.detector.model
    prompt = search.prompt_model or task
    if task is None or task.price is None or prompt is None or prompt.price is None:
        return None
    finding = 0.0
    for call in retrieval:
        if call.model is None or call.model.price is None:
            return None
        finding += call.model.price.of(call.asked, 0, call.answered)
    shown = 1 + (search.labelled + search.bootstrapped) / 2  # prompts have from none to all
    calls = max(each.calls, 1)
    asked, answered = round(each.asked * shown / calls), round(each.answered / calls)
    return (
        finding
        + effort.task_calls * task.price.of(asked, 0, answered)
        + effort.prompt_calls * prompt.price.of(asked, 0, answered)
    )


def estimate(request: Search, items: int, calls: int = 1) -> Effort:
    """Bound what a search will do.

    Args:
        request: the search.
        items: labelled items that it will get.
        calls: model calls of the detector per item.

    Returns:
        The sum over the cross-validation and the search on all items.
    """
    predictors = len(entry_of(request.detector.detector).prompts)
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
