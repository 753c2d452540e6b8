"""From a specification to a detector that works."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from spanlab.detectors.base import Detector, ModelDetector
from spanlab.detectors.registry import DETECTORS, detector, factory
from spanlab.detectors.spec import DetectorSpec, EnsembleSpec, Spec
from spanlab.errors import UsageError
from spanlab.lm import Meter, ModelChoice, language_model
from spanlab.programs import Predictor, Programs
from spanlab.retrievers import RetrieverSpec, retriever
from spanlab.settings import Settings

if TYPE_CHECKING:
    from spanlab.detectors.common.modelled import Kit

OWN_PROMPT = "none"  # as a program's name: the detector's own prompt, whatever is its default


def build(
    spec: Spec, meter: Meter | None = None, settings: Settings | None = None
) -> Detector | ModelDetector:
    """Build what a specification describes.

    Args:
        spec: a detector or an ensemble.
        meter: counts the model calls and stops them at its budget; None counts for nobody.
        settings: where answers of models are cached and tuned prompts lie; None reads the
            environment.

    Returns:
        For ``offline`` a ``Detector``, for all others a ``ModelDetector``. It may be shared by any
        number of tasks.

    Raises:
        UsageError: no detector has that name, nothing names a model, or what language models need
            is not installed.
        MissingKeyError: the endpoint needs a key and none is set.
        NotFoundError: there is no such program.
        InputError: the program is damaged or another detector's.
    """
    meter, settings = meter or Meter(), settings or Settings.read()
    if isinstance(spec, EnsembleSpec):
        from spanlab.detectors.ensemble import Ensemble

        return Ensemble(spec, [_modelled(member, meter, settings) for member in spec.members])
    if spec.detector in DETECTORS:
        if spec.signs != spec.detector:
            raise UsageError(f"{spec.detector!r} signs with its own name, not {spec.name!r}")
        return detector(spec.detector)
    return _modelled(spec, meter, settings)


def _modelled(spec: DetectorSpec, meter: Meter, settings: Settings) -> ModelDetector:
    module = factory(spec.detector)
    choice = _choice(spec)
    lm = language_model(choice, meter, cache=settings.home / "cache" / "models")
    from spanlab.detectors.common.modelled import Kit

    found = retriever(spec.retriever or RetrieverSpec(), meter, settings)
    kit = Kit(spec, found, lm, meter, _prompts(spec, settings))
    create: Callable[[Kit], ModelDetector] = import_module(module).create
    return create(kit)


def _choice(spec: DetectorSpec, environ: Mapping[str, str] = os.environ) -> ModelChoice:
    """Return the model to ask; one without an address is at the environment's endpoint."""
    if spec.model is None:
        return ModelChoice.read(environ, role=spec.signs)
    if spec.model.base_url is not None:
        return spec.model
    there = ModelChoice.read(environ, model=spec.model.model).base_url
    return spec.model.model_copy(update={"base_url": there})


def _prompts(spec: DetectorSpec, settings: Settings) -> Mapping[str, Predictor] | None:
    """Return the prompts of the program that a specification or the registry chooses."""
    programs = Programs(settings.programs)
    # Guidance and a default program are two answers to one question; what is said here wins.
    default = None if spec.guidance else programs.default(spec.detector)
    name = spec.program or default
    if name is None or name == OWN_PROMPT:
        return None
    program = programs.load(name)
    if program.detector != spec.detector:
        raise UsageError(f"{name!r} is a program of {program.detector!r}, not {spec.detector!r}")
    return program.predictors
