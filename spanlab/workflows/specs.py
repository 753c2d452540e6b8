"""From a detector's name, as people type it, to the specification of what is to be built."""

from __future__ import annotations

from pathlib import Path

from spanlab.detectors import DetectorSpec, EnsembleSpec, Spec, asks_models, spec_of
from spanlab.errors import UsageError
from spanlab.lm import ModelChoice
from spanlab.retrievers import RetrieverSpec

__all__ = ["as_json", "chosen"]

_MANNERS = ("temperature", "seed", "max_tokens")  # of an ensemble's member, good for any model


def chosen(
    name: str,
    *,
    model: str | ModelChoice | None = None,
    retriever: RetrieverSpec | None = None,
    config: Path | None = None,
) -> Spec:
    """Return the specification of a detector or an ensemble.

    Args:
        name: a detector, or an ensemble.
        model: the model to ask; for an ensemble it takes the place of every member's own. None
            leaves it to the environment and the ensemble's configuration.
        retriever: where passages come from, for every detector that has no own.
        config: a JSON file with the ensemble to take instead of the shipped one; it keeps ``name``.

    Raises:
        UsageError: no detector has that name, or it has no use for the rest.
        InputError: the file is no ensemble.
    """
    spec = spec_of(name)
    if config is not None:
        if not isinstance(spec, EnsembleSpec):
            raise UsageError(f"a configuration names an ensemble's members; {name!r} is none")
        spec = EnsembleSpec.read(config).model_copy(update={"name": name})
    if isinstance(spec, EnsembleSpec):
        members = tuple(_with(member, model, retriever) for member in spec.members)
        return spec.model_copy(update={"members": members})
    if not asks_models(name) and (model is not None or retriever is not None):
        raise UsageError(f"{name!r} asks no model and retrieves nothing")
    return _with(spec, model, retriever)


def as_json(spec: Spec) -> str:
    """Return a specification as JSON to read and change, without what it leaves to defaults."""
    return spec.model_dump_json(indent=2, exclude_unset=True)


def _with(
    spec: DetectorSpec, model: str | ModelChoice | None, retriever: RetrieverSpec | None
) -> DetectorSpec:
    update: dict[str, object] = {}
    if model is not None:
        choice = ModelChoice.read(model=model) if isinstance(model, str) else model
        if spec.model is not None:
            choice = choice.model_copy(
                update={each: getattr(spec.model, each) for each in _MANNERS}
            )
        update["model"] = choice
    if retriever is not None and spec.retriever is None:
        update["retriever"] = retriever
    return spec.model_copy(update=update)
