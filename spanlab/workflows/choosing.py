"""What somebody chooses of detectors, and the specifications that the choice amounts to.

The command line, the pages and Python each gather a ``Choice``; ``specifications`` alone reads it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import JsonValue, ValidationError

from spanlab.detectors import (
    Broken,
    DetectorSpec,
    EnsembleSpec,
    Entry,
    Spec,
    asks_models,
    entry_of,
    installed,
    spec_of,
)
from spanlab.detectors.options import OptionField, fields_of
from spanlab.errors import UsageError
from spanlab.lm import ModelChoice, Price
from spanlab.retrievers import GivenSpec, RetrieverSpec, WebSpec, retriever_spec
from spanlab.retrievers.spec import WRITER

__all__ = [
    "Broken",
    "Choice",
    "Entry",
    "OptionField",
    "SourceKind",
    "Sources",
    "asks_models",
    "fields_of",
    "installed",
    "is_ensemble",
    "models_of",
    "specifications",
]

SourceKind = Literal["given", "bm25", "web", "search"]

# How a member of an ensemble calls its model: it keeps that with another model, too.
_MANNER = ("temperature", "timeout", "seed", "max_tokens")


@dataclass(frozen=True)
class Sources:
    """Where passages come from; see ``RetrieverSpec``. ``corpus`` is the path of an index."""

    kind: SourceKind = "given"
    claims: bool = False
    translate: bool = False
    corpus: str = ""
    url: str = ""
    model: str = ""
    k: int = 5


@dataclass(frozen=True)
class Choice:
    """Detectors and what they work with; empty texts are what was left to defaults.

    Attributes:
        detectors: names of detectors and ensembles.
        model: the model that they ask; else the environment names it.
        one_model: whether ``model`` takes the place of the models that an ensemble's members name.
        price: of that model, "input,cached,output" in US dollars per million tokens.
        sources: where passages come from, for every detector that names no retriever itself.
        program: a tuned prompt of the registry; "none" for the detector's own prompt.
        config: a JSON file with the ensemble to take instead of the one chosen.
        options: the detectors' own options by name, or for one detector by "detector.name".
    """

    detectors: tuple[str, ...] = ()
    model: str | ModelChoice = ""
    one_model: bool = True
    price: str = ""
    sources: Sources | RetrieverSpec = field(default_factory=Sources)
    program: str = ""
    config: Path | None = None
    options: Mapping[str, JsonValue] = field(default_factory=dict)


def specifications(choice: Choice, environ: Mapping[str, str] = os.environ) -> tuple[Spec, ...]:
    """Return the specifications that a choice amounts to, one for each of its detectors.

    What the environment names now is written into them: it holds for the whole run, wherever its
    parts are worked on.

    Args:
        choice: what was chosen.
        environ: names models and endpoints where the choice does not.

    Raises:
        UsageError: something is missing or does not fit; says what would be right.
        InputError: the configuration is no ensemble.
    """
    if not choice.detectors:
        raise UsageError("choose at least one detector")
    specs = [_named(name, choice) for name in choice.detectors]
    single = [one for spec in specs for one in _parts(spec)]
    asking = any(asks_models(spec.detector) for spec in single)
    if choice.config is not None and not any(map(is_ensemble, choice.detectors)):
        raise UsageError("a configuration (--config) is for an ensemble, such as ucsc")
    if not asking and (
        choice.model or choice.price or choice.program or choice.sources != Sources()
    ):
        names = " and ".join(map(repr, choice.detectors))
        raise UsageError(f"{names} asks no model: it takes no model, program or retriever")
    _check_options(choice.options, single)
    retriever = _retriever(choice, environ) if asking else None
    return tuple(_completed(spec, choice, retriever, environ) for spec in specs)


def is_ensemble(name: str) -> bool:
    """Say whether a name stands for several detectors and their vote."""
    return entry_of(name).members is not None


def models_of(name: str) -> tuple[str, ...]:
    """Return the models that a detector's members name themselves, each once."""
    models = (spec.model for spec in _parts(spec_of(name)))
    return tuple(dict.fromkeys(model.model for model in models if model is not None))


def _named(name: str, choice: Choice) -> Spec:
    if choice.config is not None and is_ensemble(name):
        return EnsembleSpec.read(choice.config)
    return spec_of(name)


def _parts(spec: Spec) -> tuple[DetectorSpec, ...]:
    return spec.members if isinstance(spec, EnsembleSpec) else (spec,)


def _completed(
    spec: Spec, choice: Choice, retriever: RetrieverSpec | None, environ: Mapping[str, str]
) -> Spec:
    if isinstance(spec, EnsembleSpec):
        members = tuple(_detector(each, choice, retriever, environ) for each in spec.members)
        return spec.model_copy(update={"members": members})
    return _detector(spec, choice, retriever, environ)


def _detector(
    spec: DetectorSpec,
    choice: Choice,
    retriever: RetrieverSpec | None,
    environ: Mapping[str, str],
) -> DetectorSpec:
    changes: dict[str, object] = {}
    if options := _options(spec, choice.options):
        changes["options"] = spec.options | options
    if asks_models(spec.detector):
        changes |= _models(spec, choice, environ)
        changes["retriever"] = spec.retriever or retriever
        changes["program"] = choice.program.strip() or spec.program
    return spec.model_copy(update=changes)


def _models(
    spec: DetectorSpec, choice: Choice, environ: Mapping[str, str]
) -> dict[str, ModelChoice | dict[str, ModelChoice]]:
    """Return the detector's model, and those of the roles that ask another one."""
    roles = entry_of(spec.detector).roles
    main = _model(spec.model, choice, environ, (*roles[:1], spec.signs))
    found = {
        role: _model(spec.models.get(role, spec.model), choice, environ, (role, spec.signs))
        for role in roles
    }
    others = {role: model for role, model in found.items() if model != main}
    return {"model": main, "models": others}


def _model(
    own: ModelChoice | None, choice: Choice, environ: Mapping[str, str], role: tuple[str, ...]
) -> ModelChoice:
    if own is not None and not (choice.model and choice.one_model):
        return _at_endpoint(own, environ)
    chosen = _chosen(choice, environ, role)
    if own is None:
        return chosen
    kept = own.model_fields_set.intersection(_MANNER) - chosen.model_fields_set
    return chosen.model_copy(update={name: getattr(own, name) for name in kept})


def _chosen(choice: Choice, environ: Mapping[str, str], role: str | tuple[str, ...]) -> ModelChoice:
    """Return the chosen model, or that which the environment names for a role."""
    if isinstance(choice.model, ModelChoice):
        model = _at_endpoint(choice.model, environ)
    else:
        model = ModelChoice.read(environ, model=choice.model.strip() or None, role=role)
    if not choice.price.strip():
        return model
    return model.model_copy(update={"price": Price.parse(choice.price)})


def _at_endpoint(model: ModelChoice, environ: Mapping[str, str]) -> ModelChoice:
    """Return a model at the environment's endpoint, if it has no address of its own."""
    there = ModelChoice.read(environ, model=model.model).base_url
    return model.model_copy(update={"base_url": model.base_url or there})


def _retriever(choice: Choice, environ: Mapping[str, str]) -> RetrieverSpec | None:
    sources = choice.sources
    found = _read(sources) if isinstance(sources, Sources) else sources
    if found is None or isinstance(found, GivenSpec):
        return found
    changes: dict[str, object] = {}
    if found.writer is None and (found.queries == "claims" or found.translate):
        named = "" if environ.get(f"SPANLAB_MODEL_{WRITER.upper()}") else choice.model
        changes["writer"] = _chosen(Choice(model=named, price=choice.price), environ, WRITER)
    if isinstance(found, WebSpec):
        changes["model"] = found.model or _searcher(sources, environ)
    return found.model_copy(update=changes)


def _read(sources: Sources) -> RetrieverSpec | None:
    if sources.kind == "given":
        if sources != Sources():
            raise UsageError(
                "passages that an item has are not searched: an index (--corpus), --claims and "
                "--english go with another source (--retriever)"
            )
        return None
    if sources.kind == "bm25" and not sources.corpus.strip():
        raise UsageError(
            "name the index (--corpus) that `spanlab index CORPUS -o INDEX` has written"
        )
    fields = {
        "kind": sources.kind,
        "queries": "claims" if sources.claims else "question",
        "translate": sources.translate,
        "corpus": sources.corpus.strip() or None,
        "url": sources.url.strip() or None,
        "k": sources.k,
    }
    try:
        return retriever_spec(fields)
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"passages from {sources.kind}: {message}") from None


def _searcher(sources: Sources | RetrieverSpec, environ: Mapping[str, str]) -> ModelChoice:
    from spanlab.lm.search import search_choice

    choice = search_choice(environ)
    named = sources.model.strip() if isinstance(sources, Sources) else ""
    if not named or named == choice.model:
        return choice
    return choice.model_copy(update={"model": named, "price": None})


def _options(spec: DetectorSpec, options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return those of the chosen options that are a detector's own, as its model reads them."""
    entry, found = entry_of(spec.detector), {}
    for key, value in options.items():
        detector, _, name = key.rpartition(".")
        if detector == spec.detector or (not detector and name in entry.options.model_fields):
            found[name] = value
    return entry.checked(found)


def _check_options(options: Mapping[str, JsonValue], specs: Iterable[DetectorSpec]) -> None:
    """Refuse an option that none of the detectors has."""
    entries = {spec.detector: entry_of(spec.detector) for spec in specs}
    for key in options:
        detector, _, name = key.rpartition(".")
        if detector and detector not in entries:
            raise UsageError(f"the option {key!r} is of {detector!r}, which is not chosen")
        if not detector and not any(name in each.options.model_fields for each in entries.values()):
            has = [
                f"{one}.{each}" for one, its in entries.items() for each in its.options.model_fields
            ]
            known = f"there are {', '.join(has)}" if has else "there are none"
            raise UsageError(f"no chosen detector has an option {name!r} ({known})")
