"""The specifications that a selection of detectors amounts to, checked and completed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from spanlab.base.errors import UsageError
from spanlab.base.options import Option, options_in
from spanlab.detection import (
    DetectorSpec,
    EnsembleSpec,
    Spec,
    asks_models,
    entry_of,
    spec_of,
    specs_in,
)
from spanlab.detection.common.fit_options import FITTED, NO_FIT
from spanlab.detection.entry import options_of
from spanlab.detection.selection import DetectorSelection, is_ensemble
from spanlab.models import DetectorModelOptions, ModelChoice
from spanlab.models.resolving import ModelLayers, options_for
from spanlab.search.search_model import search_choice
from spanlab.search.source import PassageSource
from spanlab.search.spec import (
    SEARCHER,
    WRITER,
    GivenSpec,
    RetrieverSpec,
    WebSpec,
    specified,
    writing_model,
)

_FIT_ID = re.compile("@[0-9a-f]{8}$")


def specifications(
    choice: DetectorSelection, environ: Mapping[str, str] = os.environ
) -> tuple[Spec, ...]:
    """Return a complete specification of each detector that was chosen.

    Models and endpoints of the environment are written into them: they hold for the whole run,
    on whatever machine its parts are worked on.

    Args:
        choice: the detectors, with their options, models and passages.
        environ: environment variables, which name models and endpoints where the choice does not.

    Raises:
        UsageError: something is missing or does not fit; says what would be right.
        InputError: the configuration is no ensemble.
    """
    if not choice.detectors:
        raise UsageError("choose at least one detector")
    specs = [_read_spec(name, choice) for name in choice.detectors]
    detectors = [detector for spec in specs for detector in specs_in(spec)]
    choice = _with_fits(choice, detectors)
    asking = any(asks_models(spec.detector) for spec in detectors)
    if choice.config is not None and not any(map(is_ensemble, choice.detectors)):
        raise UsageError("a configuration (--config) is for an ensemble, such as ucsc")
    about_models = choice.model or choice.price or choice.program or choice.model_options
    about_passages = choice.retriever is not None or choice.passages != PassageSource()
    if not asking and (about_models or about_passages):
        names = " and ".join(map(repr, choice.detectors))
        raise UsageError(f"{names} asks no model: it takes no model, tuned prompt or retriever")
    _check_options(choice.options, detectors)
    retriever, layers = None, choice.layers(environ)
    if asking:
        _check_addresses(choice.model_options, detectors)
        retriever = _retriever(choice, layers)
    completed = tuple(_complete(spec, choice, retriever, layers) for spec in specs)
    for spec in completed:
        for detector in specs_in(spec):
            _check_required(detector)
    return completed


def remarks_on(specs: Iterable[Spec]) -> tuple[str, ...]:
    """Return a remark on each detector that could search for evidence, and is given no search."""
    detectors = (detector for spec in specs for detector in specs_in(spec))
    return tuple(
        f"{spec.signs} has no search: it judges by the passages that items have"
        for spec in detectors
        if entry_of(spec.detector).reads_pages
        and isinstance(spec.retriever, GivenSpec | None)
        and not spec.options.get("tools")  # which search, too
    )


def models_of(name: str) -> tuple[str, ...]:
    """Return the models that a detector's members name themselves, each once."""
    models = (spec.model for spec in specs_in(spec_of(name)))
    return tuple(dict.fromkeys(model.model for model in models if model is not None))


def model_fields(names: Iterable[str]) -> dict[str, tuple[Option, ...]]:
    """Return the options of the models that detectors ask, by the models they are for.

    Args:
        names: names of detectors and ensembles.

    Returns:
        Fields for all models (""), for each detector and annotator, and for each role and role of
        a detector where there is more than one.
    """
    specs = [
        spec for name in names for spec in specs_in(spec_of(name)) if asks_models(spec.detector)
    ]
    fields = options_in(DetectorModelOptions)
    several = {spec.detector for spec in specs if len(entry_of(spec.detector).roles) > 1}
    fields_by_owner = {"": fields}
    for spec in specs:
        for owner, is_whole_detector in _addresses([spec]).items():
            if is_whole_detector:
                fields_by_owner[owner] = fields
            elif spec.detector in several:
                fields_by_owner[owner] = tuple(
                    field for field in fields if field.name != "thinking"
                )
    return fields_by_owner


def _read_spec(name: str, choice: DetectorSelection) -> Spec:
    if choice.config is not None and is_ensemble(name):
        return EnsembleSpec.read(choice.config)
    return spec_of(name)


def _complete(
    spec: Spec, choice: DetectorSelection, retriever: RetrieverSpec | None, layers: ModelLayers
) -> Spec:
    if isinstance(spec, EnsembleSpec):
        members = tuple(_detector(member, choice, retriever, layers) for member in spec.members)
        return spec.model_copy(update={"members": members})
    return _detector(spec, choice, retriever, layers)


def _detector(
    spec: DetectorSpec,
    choice: DetectorSelection,
    retriever: RetrieverSpec | None,
    layers: ModelLayers,
) -> DetectorSpec:
    changes: dict[str, object] = {}
    if options := _options(spec, choice.options):
        changes["options"] = spec.options | options
    if asks_models(spec.detector):
        # A model of dspy's has options of its own.
        models = spec.choices(layers, leaves_to_dspy=not choice.model_options)
        if models:
            main = next(iter(models.values()))
            others = {role: model for role, model in models.items() if model != main}
            changes |= {"model": main, "models": others}
        changes["retriever"] = spec.retriever or retriever
        changes["reasoning"] = spec.thinks(layers)
        changes["program"] = choice.program.strip() or spec.program
    return spec.model_copy(update=changes)


def _retriever(choice: DetectorSelection, layers: ModelLayers) -> RetrieverSpec | None:
    source = choice.retriever or specified(choice.passages)
    if source is None or isinstance(source, GivenSpec):
        return source
    changes: dict[str, object] = {}
    if source.writer is None and (source.queries == "claims" or source.translate):
        changes["writer"] = writing_model(layers)
    if isinstance(source, WebSpec):
        searcher = source.model or _search_model(choice.passages.model.strip(), layers.environ)
        changes["model"] = layers.asked(searcher, ("", SEARCHER))
    return source.model_copy(update=changes)


def _search_model(name: str, environ: Mapping[str, str]) -> ModelChoice:
    """Return the search model that is named, else that of the environment, with its endpoint."""
    choice = search_choice(environ)
    if not name or name == choice.model:
        return choice
    return choice.model_copy(update={"model": name, "price": None})


def _options(spec: DetectorSpec, options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the chosen options that are for one detector, checked by its option model."""
    entry, own_options = entry_of(spec.detector), {}
    for key, value in options.items():
        detector, _, name = key.rpartition(".")
        if detector == spec.detector or (not detector and name in entry.options.model_fields):
            own_options[name] = value
    return entry.checked(own_options)


def _check_addresses(options: Mapping[str, JsonValue], specs: Iterable[DetectorSpec]) -> None:
    """Refuse a model option that is for none of the detectors' models."""
    owners = _addresses(specs)
    for key in options:
        owner, _, name = key.rpartition(".")
        if owner not in owners:
            raise UsageError(
                f"the model option {key!r} is for {owner!r}, which is not chosen; "
                f"available: {', '.join(filter(None, owners))}"
            )
        if name == "thinking" and not owners[owner]:
            raise UsageError(f"{key!r}: a detector thinks first, or does not, in all its roles")
    options_for({key.rpartition(".")[2]: value for key, value in options.items()}, ("",))


def _with_fits(choice: DetectorSelection, specs: Iterable[DetectorSpec]) -> DetectorSelection:
    """Write the ids of fits in place of the datasets that options name."""
    named = [value for key, value in choice.options.items() if key.endswith(FITTED)]
    if all(value in ("", NO_FIT) or _FIT_ID.search(str(value)) for value in named):
        return choice
    from spanlab.detection.fits import options_with_fits
    from spanlab.storage import Store  # with the database: most detectors are chosen without

    with Store.open() as store:
        names = dict.fromkeys(spec.detector for spec in specs)
        options = options_with_fits(store, None, names, choice.options)
    return choice.model_copy(update={"options": options})


def _check_required(spec: DetectorSpec) -> None:
    """Refuse a detector that lacks an option without which it cannot be built."""
    for name in entry_of(spec.detector).required:
        if not spec.options.get(name):
            about = next(
                setting.about for setting in options_of(spec.detector) if setting.name == name
            )
            raise UsageError(f"{spec.detector!r} needs the option {name!r}: {about}")


def _addresses(specs: Iterable[DetectorSpec]) -> dict[str, bool]:
    """Return the names that model options can be for, with whether it is a whole detector."""
    addresses = {"": True, WRITER: False, SEARCHER: False}
    for spec in specs:
        whole_detectors = spec.addresses()
        for role in entry_of(spec.detector).roles:
            addresses |= {address: address in whole_detectors for address in spec.addresses(role)}
    return addresses


def _check_options(options: Mapping[str, JsonValue], specs: Iterable[DetectorSpec]) -> None:
    """Refuse an option that none of the detectors has."""
    entries = {spec.detector: entry_of(spec.detector) for spec in specs}
    for key in options:
        detector, _, name = key.rpartition(".")
        if detector and detector not in entries:
            raise UsageError(f"the option {key!r} is of {detector!r}, which is not chosen")
        if not detector and not any(
            name in entry.options.model_fields for entry in entries.values()
        ):
            has = [
                f"{detector}.{model_field}"
                for detector, entry in entries.items()
                for model_field in entry.options.model_fields
            ]
            existing = f"there are {', '.join(has)}" if has else "there are none"
            raise UsageError(f"no chosen detector has an option {name!r} ({existing})")
