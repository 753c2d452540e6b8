"""What people can choose for an optimisation, what that will come to, and the job it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from optimizers.estimates import Foreseen, foresee
from optimizers.examples import LabelSource, Transfer
from optimizers.metrics import TARGETS
from optimizers.preparing import resolved
from optimizers.request import Optimisation, Search
from spanlab.detectors import check_tunable, tunable
from spanlab.errors import UsageError
from spanlab.lm import ModelChoice, Price
from spanlab.workflows.choosing import Choice, Sources, specifications
from spanlab.workflows.programs import registry
from spanlab.workflows.requesting import budget_of, problem

__all__ = [
    "METRICS",
    "Foreseen",
    "TuningWish",
    "foresee",
    "free_name",
    "optimisation_of",
    "prompt_model_of",
    "tunable",
]

METRICS: tuple[str, ...] = tuple(TARGETS)


@dataclass(frozen=True)
class TuningWish:
    """What somebody filled in; empty texts are what was left out. See ``Search``."""

    dataset: str
    detector: str = "ucsc-extract"
    name: str = ""
    model: str = ""
    prompt_model: str = ""
    price: str = ""
    sources: Sources = field(default_factory=Sources)
    metric: str = "iou"
    strategy: Literal["mipro", "gepa"] = "mipro"
    auto: Literal["light", "medium", "heavy"] | None = "light"
    trials: int | None = None
    folds: int = 2
    labels: Literal["gold", "reviewed", "vote"] = "gold"
    annotators: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    target: str = ""
    transfer: Transfer = "each"
    begin: str = ""
    limit: int | None = None
    threads: int = 8
    budget_calls: int | None = None
    budget_cost: float | None = None
    rate: float | None = None


def free_name(detector: str, metric: str) -> str:
    """Return a program name that is not taken: the detector, the metric and a number."""
    stem = f"{detector}-{metric.replace('+', '-')}"
    taken = {program.name for program in registry()}
    number = 1
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"


def optimisation_of(wish: TuningWish) -> Optimisation:
    """Return the request that a wish amounts to.

    Raises:
        UsageError: something is missing or cannot be meant so; says what would be right.
    """
    check_tunable(wish.detector)
    choice = Choice(
        (wish.detector,), wish.model, price=wish.price, sources=wish.sources, program=wish.begin
    )
    (spec,) = specifications(choice)
    fields: Mapping[str, Any] = {
        "name": wish.name.strip() or free_name(wish.detector, wish.metric),
        "detector": spec,
        "prompt_model": prompt_model_of(wish.prompt_model, wish.price),
        "metric": wish.metric,
        "strategy": wish.strategy,
        "auto": wish.auto,
        "trials": wish.trials if wish.auto is None else None,
        "labels": LabelSource(kind=wish.labels, annotators=wish.annotators),
        "languages": wish.languages,
        "target": wish.target or None,
        "transfer": wish.transfer,
        "folds": wish.folds,
        "limit": wish.limit,
        "threads": wish.threads,
    }
    try:
        request = Optimisation(
            dataset=wish.dataset,
            search=Search.model_validate(fields),
            budget=budget_of(wish.budget_calls, wish.budget_cost),
            rate=wish.rate,
        )
    except ValidationError as error:
        raise UsageError(problem(error)) from None
    return resolved(request)


def prompt_model_of(model: str, price: str) -> ModelChoice | None:
    """Return the model that writes instructions; None, the detector's, for an empty name.

    Raises:
        UsageError: the price cannot be read.
    """
    if not model.strip():
        return None
    choice = ModelChoice.read(model=model.strip())
    return choice.model_copy(update={"price": Price.parse(price)}) if price.strip() else choice
