"""The results of a search so far, as its job stores them and pages draw them."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from spanlab.fields import Frozen
from spanlab.programs import HeldOut, Predictor, Unit

Stage = Literal["search", "baseline", "held-out"]


class Trial(Frozen):
    """A candidate prompt and its score.

    ``fold`` is 1-based, 0 for the search on all items. ``number`` counts the evaluations of a
    search from 1. ``score`` is the mean metric over ``items``; ``full`` tells evaluations on all
    items that candidates are chosen by from those on a few of them. ``predictors`` is empty where
    only the score is kept.
    """

    fold: int
    number: int
    stage: Stage
    score: float
    items: int
    full: bool
    predictors: dict[str, Predictor] = Field(default_factory=dict)


class Curve(Frozen):
    """The trials of all folds, and the best prompt of the latest one.

    ``items`` counts the labelled items, or what ``unit`` says; scores of claims and steps are
    accuracies. ``untuned`` are the prompts that the latest search began with. ``program`` and
    ``held_out`` are what a finished job has saved.
    """

    items: int = 0
    unit: Unit = "items"
    trials: tuple[Trial, ...] = ()
    untuned: dict[str, Predictor] = Field(default_factory=dict)
    best: Trial | None = None
    program: str | None = None
    held_out: HeldOut | None = None

    def without_fold(self, fold: int) -> Self:
        """Return the curve without the trials of a fold, which begins anew."""
        kept = tuple(trial for trial in self.trials if trial.fold != fold)
        return self.model_copy(update={"trials": kept})

    def with_trial(self, trial: Trial) -> Self:
        """Return the curve with one more trial."""
        bare = trial.model_copy(update={"predictors": {}})
        changes: dict[str, object] = {"trials": (*self.trials, bare)}
        if trial.stage == "search":
            if trial.number == 1:  # the prompt that the search begins with
                changes["untuned"] = trial.predictors
            if trial.full and self._is_best(trial):
                changes["best"] = trial
        return self.model_copy(update=changes)

    def _is_best(self, trial: Trial) -> bool:
        best = self.best
        return best is None or best.fold != trial.fold or trial.score > best.score
