"""The request for an optimisation, which is stored with its job as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, Self

from pydantic import model_validator

from optimizers.examples import LabelSource
from optimizers.held_out import Transfer
from optimizers.units import check_metric, unit_of
from spanlab.base.errors import UsageError
from spanlab.base.options import OptionModel, option
from spanlab.detection.spec import DetectorSpec
from spanlab.models import ModelChoice
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import Name, ProgramName, Unit
from spanlab.schema.job_request import JobRequest

if TYPE_CHECKING:
    from spanlab.base.settings import Settings

Auto = Literal["light", "medium", "heavy"]

# Huang et al. 2025, released settings.
TASK_TEMPERATURE: Final = 0.2
PROMPT_TEMPERATURE: Final = 1.0


class SearchSettings(OptionModel):
    """How a prompt is searched: for how long, on which items, and what is held out."""

    strategy: Literal["mipro", "gepa"] = option(
        "mipro",
        title="Optimiser",
        help="How prompts are searched: instructions and examples together (MIPROv2), or "
        "instructions from the prompt model's reflection on feedback (GEPA).",
        group="Search",
        titles={"mipro": "MIPROv2", "gepa": "GEPA"},
    )
    auto: Auto | None = option(
        "light",
        title="Effort",
        help="Effort of the search, unless a number of candidate prompts is given.",
        group="Search",
        titles={"light": "Light", "medium": "Medium", "heavy": "Heavy", "": "Custom"},
    )
    trials: int | None = option(
        None,
        title="Candidate prompts",
        help="Number of candidate prompts, in place of an effort.",
        group="Search",
        ge=1,
        le=1000,
    )
    folds: int = option(
        2,
        title="Cross-validation folds",
        help="Cross-validate in so many folds, each held out once: only scores on items that the "
        "search has not seen tell what a prompt is worth; 0 skips this evaluation.",
        group="Search",
        ge=0,
        le=20,
    )
    languages: tuple[str, ...] = option(
        (),
        title="Languages",
        help="Only items of this language. Repeatable.",
        flags="--lang",
        placeholder="all languages",
    )
    target: str | None = option(
        None,
        title="Target language (optional)",
        help="Tune for this language alone, also one without labels: it then learns from others.",
        group="Limits",
    )
    transfer: Transfer = option(
        "each",
        title="Training items",
        help="For a target language: learn from its own items, from all, or the others'.",
        group="Limits",
        titles={
            "each": "items of that language",
            "pooled": "items of all languages",
            "others": "items of the other languages",
        },
    )
    labels: LabelSource = LabelSource()
    bootstrapped: int = option(
        4,
        title="Examples by the model",
        help="Maximum examples that the model made itself, per predictor.",
        sides=("command", "python"),
        ge=0,
        le=16,
    )
    labelled: int = option(
        16,
        title="Examples from labels",
        help="Maximum examples made from the labels, per predictor.",
        sides=("command", "python"),
        ge=0,
        le=64,
    )
    success: float = option(
        0.5,
        title="Good enough to demonstrate",
        help="The lowest metric of a model's own answer that may become an example.",
        sides=("command", "python"),
        ge=0,
        le=1,
    )
    threads: int = option(
        8,
        title="Concurrent calls",
        help="Calls under way at once.",
        flags="--concurrency",
        group="Limits",
        ge=1,
        le=256,
    )
    limit: int | None = option(
        None,
        title="Maximum items",
        help="Maximum labelled items (claims, steps, questions), chosen by the seed.",
        group="Limits",
        placeholder="no limit",
        ge=1,
    )
    seed: int = option(
        9,  # Huang et al. 2025, released settings
        title="Seed",
        help="Seed of all random choices.",
        sides=("command", "python"),
    )

    @model_validator(mode="before")
    @classmethod
    def _trials_stand_for_an_effort(cls, fields: object) -> object:
        if isinstance(fields, Mapping) and fields.get("trials") and "auto" not in fields:
            return {**fields, "auto": None}
        return fields

    @model_validator(mode="after")
    def _is_one_effort(self) -> Self:
        if (self.auto is None) == (self.trials is None):
            raise ValueError("either auto (light, medium, heavy) or trials, not both")
        if self.folds == 1:
            raise ValueError("one fold holds nothing out; take 2 or more, or 0")
        return self


class PromptSearch(SearchSettings):
    """One optimisation: what is tuned, on whose labels, for which metric.

    Attributes:
        name: what the tuned program will be called.
        detector: what is tuned, with the model that will run it; its ``program``, if any, is
            where the search begins.
        prompt_model: writes new instructions; None takes the detector's model.
        metric: one of ``optimizers.units.metrics_for`` that fits the detector.
    """

    name: ProgramName
    detector: DetectorSpec
    prompt_model: ModelChoice | None = None
    metric: str = "iou"

    @model_validator(mode="after")
    def _has_a_known_metric(self) -> Self:
        try:
            check_metric(self.metric)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def unit(self) -> Unit:
        """What is labelled, learnt from and scored."""
        return unit_of(self.metric)


class Optimisation(JobRequest):
    """A search as a job: its dataset, and the limits on all calls.

    Attributes:
        dataset: where the labelled items are.
        search: what to do.
    """

    kind = "optimise"
    dataset: Name
    search: PromptSearch

    @property
    def title(self) -> str:
        """The detector, what it is tuned for, and the dataset."""
        return f"{self.search.detector.signs} for {self.search.metric} on {self.dataset}"

    def prepared(self, settings: Settings) -> Optimisation:
        """Return the request with the models that it leaves open, from the environment.

        Raises:
            NotFoundError: there is no such dataset, or no program to begin from.
            UsageError: the name is taken, nothing names a model, or the detector cannot be tuned.
        """
        from optimizers.preparing import build_tuner, resolve
        from optimizers.watching import StoppableMeter
        from spanlab.storage import Store
        from spanlab.storage.datasets import summary_of

        request = resolve(self)
        name = request.search.name
        if name in ProgramRegistry(settings.programs):
            raise UsageError(f"a tuned prompt called {name!r} exists; choose another name")
        with Store.open(settings) as store:
            summary_of(store, request.dataset)
        build_tuner(request, settings, StoppableMeter(), lambda event: None)
        return request
