"""The request for an optimisation."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from optimizers.examples import LabelSource
from optimizers.metrics import check_metric, unit_of
from optimizers.splitting import Transfer
from spanlab.detectors.spec import DetectorSpec
from spanlab.errors import UsageError
from spanlab.lm import Budget, ModelChoice
from spanlab.schema import Frozen, Name, ProgramName, Rate, Unit

Auto = Literal["light", "medium", "heavy"]

# Huang et al. 2025, released settings.
TASK_TEMPERATURE: Final = 0.2
PROMPT_TEMPERATURE: Final = 1.0
SEED: Final = 9
THREADS: Final = 8  # calls under way at once, unless a search says otherwise


class Search(Frozen):
    """One optimisation: what is tuned, on whose labels, for which metric, with how many trials.

    Attributes:
        name: what the tuned program will be called.
        detector: what is tuned, with the model that will run it; its ``program``, if any, is
            where the search begins.
        prompt_model: writes new instructions; None takes the detector's model.
        metric: one of ``optimizers.metrics.METRICS`` that fits the detector.
        strategy: "mipro" searches instructions and demonstrations together, "gepa" lets the
            prompt model reflect on the feedback.
        auto: how much to try; None needs ``trials``.
        trials: number of candidate prompts to evaluate instead of ``auto``.
        labels: whose labels are the truth.
        languages: only items of these; empty for all.
        target: tune for this one language; ``transfer`` then says what is learnt from.
        transfer: see ``optimizers.splitting.transferred``.
        folds: cross-validate in so many folds, for held-out scores; 0 measures nothing.
        bootstrapped: most demonstrations made by the model itself, per predictor.
        labelled: most demonstrations made from the labels, per predictor.
        success: metric from which on an own answer is good enough to demonstrate, 0 to 1.
        threads: calls under way at once.
        limit: at most so many labelled items (claims, steps, questions), chosen by the seed;
            None for all.
        seed: of every random choice.
    """

    name: ProgramName
    detector: DetectorSpec
    prompt_model: ModelChoice | None = None
    metric: str = "iou"
    strategy: Literal["mipro", "gepa"] = "mipro"
    auto: Auto | None = "light"
    trials: Annotated[int, Field(ge=1, le=1000)] | None = None
    labels: LabelSource = LabelSource()
    languages: tuple[str, ...] = ()
    target: str | None = None
    transfer: Transfer = "each"
    folds: Annotated[int, Field(ge=0, le=20)] = 2
    bootstrapped: Annotated[int, Field(ge=0, le=16)] = 4
    labelled: Annotated[int, Field(ge=0, le=64)] = 16
    success: Annotated[float, Field(ge=0, le=1)] = 0.5
    threads: Annotated[int, Field(ge=1, le=256)] = THREADS
    limit: Annotated[int, Field(ge=1)] | None = None
    seed: int = SEED

    @model_validator(mode="after")
    def _is_one_budget(self) -> Self:
        if (self.auto is None) == (self.trials is None):
            raise ValueError("either auto (light, medium, heavy) or trials, not both")
        if self.folds == 1:
            raise ValueError("one fold holds nothing out; take 2 or more, or 0")
        try:
            check_metric(self.metric)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def unit(self) -> Unit:
        """What is labelled, learnt from and scored."""
        return unit_of(self.metric)


class Optimisation(Frozen):
    """A search as a job: its dataset, and the budget of its model calls.

    Attributes:
        dataset: where the labelled items are.
        search: what to do.
        budget: limits on all calls.
        rate: how many calls may begin in a minute; jobs keep it, searches that are none do not.
    """

    dataset: Name
    search: Search
    budget: Budget | None = None
    rate: Rate | None = None
