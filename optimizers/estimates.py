"""Upper bounds for an optimisation before it starts: evaluations, calls, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from optimizers.examples import LabelledItem
from optimizers.held_out import split_in_folds
from optimizers.preparing import choose_examples
from optimizers.request import Optimisation, PromptSearch
from optimizers.strategies import (
    CANDIDATES,
    MANY,
    MINIBATCH,
    REFLECTED,
    n_candidates,
    n_evaluations,
    n_trials,
)
from optimizers.units import units
from spanlab.detection import entry_of
from spanlab.detection.estimate import ModelDemand, detector_demands, retriever_demands
from spanlab.schema import Item, Unit
from spanlab.storage import Store

_VAL_SIZE = {"light": 100, "medium": 300, "heavy": 1000}  # DSPy's bound on items to choose by
_FULL_EVERY = 5  # minibatch trials between two full evaluations
_SUMMARY_CALLS = 12  # of the prompt model, to describe data and program


@dataclass(frozen=True)
class SearchEffort:
    """Upper bounds of ``trials``, of calls by purpose, and of ``searches`` by search services.

    Answers that the cache holds cost nothing, so a run usually costs less.
    """

    trials: int
    task_calls: int
    prompt_calls: int
    retrieval_calls: int = 0
    searches: int = 0

    @property
    def calls(self) -> int:
        """All calls."""
        return self.task_calls + self.prompt_calls + self.retrieval_calls


@dataclass(frozen=True)
class SearchEstimate:
    """Upper bounds for a search.

    ``items`` is the number of labelled items, or what ``unit`` says, ``languages`` how many of them
    in each. ``cost`` is in US dollars, None where no price is known.
    """

    items: int
    languages: dict[str, int]
    effort: SearchEffort
    cost: float | None
    unit: Unit = "items"


def estimate_search(store: Store, request: Optimisation) -> SearchEstimate:
    """Return upper bounds for a search; asks no model.

    Raises:
        UsageError: there are no labels, or too few of them, or no such detector.
        NotFoundError: there is no such dataset.
    """
    search = request.search
    examples = choose_examples(store.records(request.dataset), search)
    if search.folds and search.target is None:
        split_in_folds(
            examples, search.folds, search.seed, search.unit
        )  # says so if there are too few
    plan = plan_search(search, len(examples))
    demands = [list(detector_demands(_answer(example), search.detector)) for example in examples]
    source = search.detector.retriever
    items = {example.item.id: example.item for example in examples}.values()
    retrieval = [call for item in items if source for call in retriever_demands(item, source)]
    effort = SearchEffort(
        trials=plan.trials,
        task_calls=round(
            plan.upper_bound([sum(call.number for call in calls) for calls in demands])
        ),
        prompt_calls=plan.prompt_calls,
        retrieval_calls=sum(call.number for call in retrieval),
        searches=round(
            plan.upper_bound([sum(call.searches for call in calls) for calls in demands])
        )
        + sum(call.searches for call in retrieval),
    )
    return SearchEstimate(
        items=len(examples),
        languages=dict(sorted(Counter(example.item.lang for example in examples).items())),
        effort=effort,
        cost=_cost(search, plan, demands, retrieval),
        unit=search.unit,
    )


def _answer(labelled: LabelledItem) -> Item:
    """Return the item that a detector reads: the whole item, or one whose answer is the part."""
    return (
        labelled.item.model_copy(update={"answer": labelled.part.text})
        if labelled.part
        else labelled.item
    )


class SearchPlan(NamedTuple):
    """Upper bounds of a search; ``evaluations`` are pairs: how often, and on how many items."""

    trials: int
    evaluations: tuple[tuple[int, int], ...]
    prompt_calls: int

    def upper_bound(self, weights: Sequence[float]) -> float:
        """Return an upper bound of a sum over all evaluations: each on the items that weigh most.

        Args:
            weights: calls, tokens or dollars of the detector on each labelled item.
        """
        heaviest = [0.0, *accumulate(sorted(weights, reverse=True))]
        return sum(times * heaviest[min(items, len(weights))] for times, items in self.evaluations)


def plan_search(search: PromptSearch, items: int) -> SearchPlan:
    """Plan a search on a number of labelled items: cross-validation, then all items."""
    entry, is_built = entry_of(search.detector.detector), units()[search.unit].build is not None
    predictors = len(entry.generator_prompts if is_built else entry.prompts)
    fold_sizes = [items - items // search.folds] * search.folds if search.folds else []
    rounds = [_ROUNDS[search.strategy](search, size, predictors) for size in (*fold_sizes, items)]
    held_out = ((2, items),) if search.folds else ()
    return SearchPlan(
        trials=sum(plan.trials for plan in rounds) + 2 * search.folds,
        evaluations=(*(part for plan in rounds for part in plan.evaluations), *held_out),
        prompt_calls=sum(plan.prompt_calls for plan in rounds),
    )


def _plan_mipro(search: PromptSearch, items: int, predictors: int) -> SearchPlan:
    learn, choose = -(-items // 2), items // 2
    candidates = (
        n_candidates(search.trials)
        if search.auto is None and search.trials is not None
        else CANDIDATES[search.auto or "light"]
    )
    if search.auto is not None:
        choose = min(choose, _VAL_SIZE[search.auto])
    demonstrations = search.bootstrapped + search.labelled > 0
    trials = search.trials or n_trials(
        search.auto or "light", predictors, demonstrations=demonstrations
    )
    bootstrapping = ((candidates - 2, learn),) if demonstrations else ()
    prompt_calls = _SUMMARY_CALLS + candidates * predictors
    if choose <= MANY:
        return SearchPlan(trials + 1, ((trials + 1, choose), *bootstrapping), prompt_calls)
    full = trials // _FULL_EVERY + 1 + (trials % _FULL_EVERY != 0)
    evaluations = ((trials, MINIBATCH), (full + 1, choose), *bootstrapping)
    return SearchPlan(trials + full + 1, evaluations, prompt_calls)


def _plan_gepa(search: PromptSearch, items: int, predictors: int) -> SearchPlan:
    choose = items // 2
    budget = n_evaluations(search.auto, search.trials, choose, predictors)
    rounds = max(budget - choose, 0) // (2 * REFLECTED) + 1  # before and after a reflection
    # The last round may begin with one evaluation left, and ends with one on all items. Those on
    # a few items go through all of them in turn.
    evaluated = budget + 2 * REFLECTED + choose
    evaluations = ((evaluated // choose, choose), (1, evaluated % choose)) if choose else ()
    return SearchPlan(budget // max(choose, 1) + 2 * rounds, evaluations, rounds)


_ROUNDS = {"mipro": _plan_mipro, "gepa": _plan_gepa}


def _cost(
    search: PromptSearch,
    plan: SearchPlan,
    demands: Sequence[Sequence[ModelDemand]],
    retrieval: Sequence[ModelDemand],
) -> float | None:
    prompt = search.prompt_model or search.detector.model
    all_demands = [*retrieval, *(call for calls in demands for call in calls)]
    priced = all(call.cost() is not None for call in all_demands)
    if not priced or prompt is None or prompt.price is None:
        return None
    # A demonstration is as long as an item.
    lengths = 1 + max(search.labelled, search.bootstrapped) * (search.strategy == "mipro")
    items = [sum(call.cost(lengths) or 0.0 for call in calls) for calls in demands]
    longest = max(
        (call.asked // max(call.number, 1) for calls in demands for call in calls), default=0
    )
    return (
        sum(call.cost() or 0.0 for call in retrieval)
        + plan.upper_bound(items)
        + plan.prompt_calls * prompt.price.of(longest * lengths, 0, longest)
    )
