"""Detectors as people select them: with models, passages and options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, JsonValue

from spanlab.base.errors import UsageError
from spanlab.base.options import OptionModel, option
from spanlab.detection import DetectorSpec, EnsembleSpec, Spec, asks_models, entry_of
from spanlab.models import DetectorModelOptions, ModelChoice
from spanlab.models.resolving import ModelLayers, parse_pairs
from spanlab.search.source import PassageSource
from spanlab.search.spec import RetrieverSpec


def _option_pairs(options: object) -> object:
    """Read the texts of --option; what is a mapping stays."""
    if isinstance(options, Mapping) or not isinstance(options, Sequence):
        return options
    read: dict[str, JsonValue] = {}
    for text in map(str, options):
        name, equals, value = text.partition("=")
        if not name.strip() or not equals:
            raise UsageError(f"--option must be NAME=VALUE, such as floor=0.9, got {text!r}")
        read[name.strip()] = value.strip()
    return read


def _model_option_pairs(options: object) -> object:
    if isinstance(options, Mapping) or not isinstance(options, Sequence):
        return options
    return parse_pairs(map(str, options), "--model-option")


DetectorOption = Annotated[Mapping[str, JsonValue], BeforeValidator(_option_pairs)]
ModelOption = Annotated[Mapping[str, JsonValue], BeforeValidator(_model_option_pairs)]


class DetectorSelection(OptionModel):
    """Selected detectors with their models, passages and options; empty texts take the default.

    Attributes:
        one_model: whether ``model`` takes the place of the models that an ensemble's members name.
        passages: where they come from, for every detector that names no retriever itself.
        retriever: the same as a specification, which then counts.
        model_options: by names of ``DetectorModelOptions``; for some models by "role.name",
            "detector.name" or "detector.role.name".
    """

    detectors: tuple[str, ...] = option(
        (),
        title="Detectors",
        help="A detector, such as offline or ucsc-extract. Repeatable.",
        flags="--detector",
    )
    model: str | ModelChoice = option(
        "",
        title="Model",
        help="The model that detectors ask (default: SPANLAB_MODEL).",
        group="Model",
        placeholder="for example gpt-4o-mini",
    )
    one_model: bool = option(
        True,
        title="Use this model for all members",
        help="Of an ensemble; otherwise each uses its own.",
        group="Model",
        sides=("page", "python"),
    )
    passages: PassageSource = PassageSource()
    retriever: RetrieverSpec | None = option(
        None, title="Retriever", help="A specification of a retriever.", sides=frozenset({"python"})
    )
    config: Path | None = option(
        None,
        title="Configuration",
        help="An ensemble of your own, as JSON, in place of ucsc's members.",
        sides=("command", "python"),
    )
    program: str = option(
        "",
        title="Tuned prompt",
        help="A tuned prompt (see `spanlab programs`); none: the detector's own prompt.",
        sides=("command", "python"),
    )
    price: str = option(
        "",
        title="Price per million tokens (optional)",
        help="The model's price: input,cached,output in US dollars per million tokens (default: "
        "SPANLAB_PRICE). Only with a price can cost be shown and limited.",
        group="Model",
        placeholder="0.15,0.075,0.60",
    )
    options: DetectorOption = option(
        {},
        title="Options",
        help="An option of the detector: NAME=VALUE, or DETECTOR.NAME=VALUE; `spanlab detectors` "
        "lists them. Repeatable.",
        flags="--option",
    )
    model_options: ModelOption = option(
        {},
        title="Model options",
        help="How models are asked: NAME=VALUE, for some of them ROLE.NAME=VALUE, "
        "DETECTOR.NAME=VALUE or DETECTOR.ROLE.NAME=VALUE. Names: "
        f"{', '.join(DetectorModelOptions.model_fields)}; the value none leaves one to the "
        "endpoint (default: SPANLAB_MODEL_OPTIONS, separated by commas). Repeatable.",
        flags="--model-option",
    )

    def layers(self, environ: Mapping[str, str] = os.environ) -> ModelLayers:
        """Return what is said of models here and by the environment."""
        return ModelLayers(environ, self.model, self.price, self.model_options, self.one_model)


def is_ensemble(name: str) -> bool:
    """Say whether a name stands for several detectors and their vote."""
    return entry_of(name).members is not None


def with_seed(spec: DetectorSpec, seed: int) -> DetectorSpec:
    """Return a detector whose models draw by a seed, so that the cache has no answers for it."""

    def seeded(model: ModelChoice | None) -> ModelChoice | None:
        return model and model.model_copy(update={"seed": seed})

    models = {role: seeded(model) for role, model in spec.models.items()}
    return spec.model_copy(update={"model": seeded(spec.model), "models": models})


def repeat_detectors(specs: Iterable[Spec], repeats: int) -> tuple[Spec, ...]:
    """Repeat detectors: each NAME is followed by NAME-2 and so on, with seeds of their own.

    Args:
        specs: the detectors.
        repeats: how often each one is to run, 1 or more.

    Raises:
        UsageError: one asks no model, and would mark the same again, or is an ensemble.
    """
    repeated_specs: list[Spec] = []
    for spec in specs:
        if repeats > 1 and (isinstance(spec, EnsembleSpec) or not asks_models(spec.detector)):
            raise UsageError(
                f"{spec.signs!r} is not repeated: only single detectors that ask models"
            )
        repeated_specs.append(spec)
        for number in range(2, repeats + 1):
            assert isinstance(spec, DetectorSpec)
            repeat = spec.model_copy(update={"name": f"{spec.signs}-{number}"})
            repeated_specs.append(with_seed(repeat, number - 1))
    return tuple(repeated_specs)
