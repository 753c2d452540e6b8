"""What every strategy works on: one round of search, from a program to a better one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from optimizers.metrics import ScoredAnswer
from optimizers.request import PROMPT_TEMPERATURE, PromptSearch

if TYPE_CHECKING:
    import dspy

Metric = Callable[..., float]


@dataclass(frozen=True)
class SearchRound:
    """One search: from which program, on which items, with which models.

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
    judged: Callable[[dspy.Example, dspy.Prediction], ScoredAnswer]
    task_lm: dspy.LM
    prompt_lm: dspy.LM
    patience: int = 1_000_000
    prompt_temperature: float = PROMPT_TEMPERATURE

    def metric(
        self, example: dspy.Example, prediction: dspy.Prediction, trace: object = None
    ) -> float:
        """Return how right a prediction is, as DSPy asks for it."""
        return self.judged(example, prediction).score


_STRATEGIES: Mapping[str, str] = {
    "mipro": "optimizers.mipro:search_by_mipro",
    "gepa": "optimizers.gepa:search_by_gepa",
}


def strategy(name: str) -> Callable[[SearchRound], dspy.Module]:
    """Return the search of this name, one of those that ``PromptSearch.strategy`` allows."""
    module, _, function = _STRATEGIES[name].partition(":")
    found: Callable[[SearchRound], dspy.Module] = getattr(import_module(module), function)
    return found
