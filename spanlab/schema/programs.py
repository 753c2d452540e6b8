"""A tuned program, its scores on held-out items, and the trials of the search for it."""

from __future__ import annotations

import re
from difflib import unified_diff
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, StringConstraints

from spanlab.base.fields import Count, FrozenModel, Name

PROGRAM_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
ProgramName = Annotated[str, StringConstraints(pattern=rf"^{PROGRAM_NAME.pattern}$")]
_SIGNIFICANT = 0.05
Demo = dict[str, JsonValue]  # a field's name and its value; "augmented" marks a bootstrapped one


class TunedPredictor(FrozenModel):
    """The instruction and demonstrations of one predictor of a detector."""

    instruction: Annotated[str, Field(min_length=1, max_length=50_000)]
    demos: Annotated[tuple[Demo, ...], Field(max_length=200)] = ()


Unit = Name  # of what a program is tuned and measured on: items, or what a room offers


class HeldOutScore(FrozenModel):
    """A mean, or a macro F1, with its 95 % interval over items that nothing was tuned on."""

    mean: float
    low: float
    high: float


class HeldOut(FrozenModel):
    """The untuned and the tuned prompt on the same held-out items.

    ``difference`` is tuned minus untuned, paired by item; ``p`` in (0, 1] is the chance of one at
    least as large if the two were equally good. ``languages`` maps a language to the two means.
    ``items`` counts what the ``unit`` says. With ``macro_f1`` all figures are macro F1s, as of
    verdicts on claims or types of errors in steps.
    """

    items: Count
    folds: Count
    baseline: HeldOutScore
    tuned: HeldOutScore
    difference: HeldOutScore
    p: float
    languages: dict[str, tuple[float, float]]
    unit: Unit = "items"
    macro_f1: bool = False

    @property
    def is_macro_f1(self) -> bool:
        """Whether the figures are macro F1s, not means over items."""
        # Programs of 1.0 do not say so.
        return self.macro_f1 or self.unit in {"claims", "steps"}

    @property
    def better(self) -> bool:
        """Whether the tuned prompt is better beyond doubt: by a test with p below .05."""
        return self.p < _SIGNIFICANT and self.difference.mean > 0


class TunedProgram(FrozenModel):
    """A tuned prompt of one detector, or of one ``member`` of an ensemble, and its origin.

    ``fingerprint`` identifies the labelled items it was tuned on (see
    ``optimizers.examples.fingerprint``), and ``learnt_from`` has the ``answer_hash`` of each.
    ``parent`` is the program that the search began from.
    ``held_out`` is None where no items were held out, so that it was never measured.
    """

    name: ProgramName
    detector: Name
    strategy: Literal["mipro", "gepa"]
    metric: str
    task_model: str
    prompt_model: str
    dataset: str
    labels: str
    languages: tuple[str, ...]
    items: Count
    fingerprint: str
    learnt_from: tuple[str, ...] = ()
    created: str
    parent: ProgramName | None = None
    member: Name | None = None
    search_score: float | None = None
    held_out: HeldOut | None = None
    note: str | None = None
    predictors: dict[str, TunedPredictor]

    @property
    def owner(self) -> str:
        """The member or the detector that it was tuned for."""
        return self.member or self.detector


class PromptChange(FrozenModel):
    """How one predictor differs between two programs; ``diff`` are the lines of a unified diff."""

    predictor: str
    diff: tuple[str, ...]
    removed: tuple[Demo, ...]
    added: tuple[Demo, ...]


def compare(before: TunedProgram, after: TunedProgram) -> tuple[PromptChange, ...]:
    """Return how the prompts of two programs differ, predictor by predictor.

    Returns:
        One change per predictor that differs; empty if the prompts are the same.
    """
    changes = []
    for name in dict.fromkeys((*before.predictors, *after.predictors)):
        old, new = before.predictors.get(name), after.predictors.get(name)
        if old == new:
            continue
        there, here = (predictor.demos if predictor else () for predictor in (old, new))
        was, is_ = (
            (predictor.instruction.splitlines() if predictor else []) for predictor in (old, new)
        )
        changes.append(
            PromptChange(
                predictor=name,
                diff=tuple(unified_diff(was, is_, before.name, after.name, n=99, lineterm="")),
                removed=tuple(demo for demo in there if demo not in here),
                added=tuple(demo for demo in here if demo not in there),
            )
        )
    return tuple(changes)


Stage = Literal["search", "baseline", "held-out"]


class SearchTrial(FrozenModel):
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
    predictors: dict[str, TunedPredictor] = Field(default_factory=dict)


class SearchCurve(FrozenModel):
    """The trials of all folds, and the best prompt of the latest one.

    ``items`` counts the labelled items, or what ``unit`` says; scores of claims and steps are
    accuracies. ``untuned`` are the prompts that the latest search began with. ``program`` and
    ``held_out`` are what a finished job has saved.
    """

    items: int = 0
    unit: Unit = "items"
    trials: tuple[SearchTrial, ...] = ()
    untuned: dict[str, TunedPredictor] = Field(default_factory=dict)
    best: SearchTrial | None = None
    program: str | None = None
    held_out: HeldOut | None = None

    def without_fold(self, fold: int) -> Self:
        """Return the curve without the trials of a fold, which begins anew."""
        kept = tuple(trial for trial in self.trials if trial.fold != fold)
        return self.model_copy(update={"trials": kept})

    def with_trial(self, trial: SearchTrial) -> Self:
        """Return the curve with one more trial."""
        bare = trial.model_copy(update={"predictors": {}})
        changes: dict[str, object] = {"trials": (*self.trials, bare)}
        if trial.stage == "search":
            if trial.number == 1:  # the prompt that the search begins with
                changes["untuned"] = trial.predictors
            if trial.full and self._is_best(trial):
                changes["best"] = trial
        return self.model_copy(update=changes)

    def _is_best(self, trial: SearchTrial) -> bool:
        best = self.best
        return best is None or best.fold != trial.fold or trial.score > best.score
