"""The specifications that a selection of detectors amounts to, checked and completed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from spanlab.detectors import DetectorSpec, EnsembleSpec, Spec, asks_models, entry_of, spec_of
from spanlab.detectors.entry import options_of
from spanlab.errors import UnnamedModelError, UsageError
from spanlab.lm import DetectorModelOptions, ModelChoice, ModelOptions, TokenPrice
from spanlab.lm.building import dspy_has_model
from spanlab.lm.choice import addressed, of_environment
from spanlab.options import Option, options_in
from spanlab.retrievers import GivenSpec, PassageSource, RetrieverSpec, WebSpec, specified
from spanlab.retrievers.search_model import search_choice
from spanlab.retrievers.spec import SEARCHER, WRITER
from spanlab.workflows.detection.selection import DetectorSelection, is_ensemble, specs_in

# How a member of an ensemble asks its model: it keeps that with another model, too.
_MANNER = set(ModelOptions.model_fields) - {"structured", "window"}


def specifications(
    choice: DetectorSelection, environ: Mapping[str, str] = os.environ
) -> tuple[Spec, ...]:
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
    single = [one for spec in specs for one in specs_in(spec)]
    asking = any(asks_models(spec.detector) for spec in single)
    if choice.config is not None and not any(map(is_ensemble, choice.detectors)):
        raise UsageError("a configuration (--config) is for an ensemble, such as ucsc")
    about_models = choice.model or choice.price or choice.program or choice.model_options
    about_passages = choice.retriever is not None or choice.passages != PassageSource()
    if not asking and (about_models or about_passages):
        names = " and ".join(map(repr, choice.detectors))
        raise UsageError(f"{names} asks no model: it takes no model, program or retriever")
    _check_options(choice.options, single)
    _check_addresses(choice.model_options, single)
    retriever = _retriever(choice, environ) if asking else None
    completed = tuple(_completed(spec, choice, retriever, environ) for spec in specs)
    for one in (member for spec in completed for member in specs_in(spec)):
        _check_required(one)
    return completed


def models_of(name: str) -> tuple[str, ...]:
    """Return the models that a detector's members name themselves, each once."""
    models = (spec.model for spec in specs_in(spec_of(name)))
    return tuple(dict.fromkeys(model.model for model in models if model is not None))


def model_fields(names: Iterable[str]) -> dict[str, tuple[Option, ...]]:
    """Return what can be chosen of the models that detectors ask, by what it is for.

    Args:
        names: of detectors and ensembles.

    Returns:
        Fields for all models (""), for each detector and annotator, and for each role and role of
        a detector where there is more than one.
    """
    specs = [one for name in names for one in specs_in(spec_of(name)) if asks_models(one.detector)]
    fields = options_in(DetectorModelOptions)
    several = {spec.detector for spec in specs if len(entry_of(spec.detector).roles) > 1}
    found = {"": fields}
    for spec in specs:
        for owner, whole in _addresses([spec]).items():
            if whole:
                found[owner] = fields
            elif spec.detector in several:
                found[owner] = tuple(field for field in fields if field.name != "thinking")
    return found


def _named(name: str, choice: DetectorSelection) -> Spec:
    if choice.config is not None and is_ensemble(name):
        return EnsembleSpec.read(choice.config)
    return spec_of(name)


def _completed(
    spec: Spec,
    choice: DetectorSelection,
    retriever: RetrieverSpec | None,
    environ: Mapping[str, str],
) -> Spec:
    if isinstance(spec, EnsembleSpec):
        members = tuple(_detector(member, choice, retriever, environ) for member in spec.members)
        return spec.model_copy(update={"members": members})
    return _detector(spec, choice, retriever, environ)


def _detector(
    spec: DetectorSpec,
    choice: DetectorSelection,
    retriever: RetrieverSpec | None,
    environ: Mapping[str, str],
) -> DetectorSpec:
    changes: dict[str, object] = {}
    if options := _options(spec, choice.options):
        changes["options"] = spec.options | options
    if asks_models(spec.detector):
        changes |= _models(spec, choice, environ)
        changes["retriever"] = spec.retriever or retriever
        changes["reasoning"] = spec.thinks(environ, choice.model_options)
        changes["program"] = choice.program.strip() or spec.program
    return spec.model_copy(update=changes)


def _models(
    spec: DetectorSpec, choice: DetectorSelection, environ: Mapping[str, str]
) -> dict[str, ModelChoice | dict[str, ModelChoice]]:
    """Return the detector's model, and those of the roles that ask another one."""
    roles = entry_of(spec.detector).roles
    try:
        main = _model(spec, spec.model, roles[0], choice, environ)
    except UnnamedModelError:
        if dspy_has_model() and not choice.model_options:  # of a script; it has options of its own
            return {}
        raise
    found = {
        role: _model(spec, spec.models.get(role, spec.model), role, choice, environ)
        for role in roles
    }
    others = {role: model for role, model in found.items() if model != main}
    return {"model": main, "models": others}


def _model(
    spec: DetectorSpec,
    own: ModelChoice | None,
    role: str,
    choice: DetectorSelection,
    environ: Mapping[str, str],
) -> ModelChoice:
    model = own
    if model is None or (choice.model and choice.one_model):
        model = _chosen(choice, environ, (role, spec.signs))
        manner = own.chosen if own is not None else {}
        kept = {name: manner[name] for name in _MANNER & set(manner) - set(model.chosen)}
        model = model.model_copy(update=kept)
    elif isinstance(choice.model, ModelChoice) and own is not None and own.base_url is None:
        where = ("base_url", "base_url_env", "api_key_env")  # set up for all that has no address
        model = own.model_copy(update={name: getattr(choice.model, name) for name in where})
    return spec.asked(model, role, environ, choice.model_options)


def _chosen(
    choice: DetectorSelection, environ: Mapping[str, str], role: str | tuple[str, ...]
) -> ModelChoice:
    """Return the chosen model, or that which the environment names for a role."""
    if isinstance(choice.model, ModelChoice):
        model = choice.model.located(environ)
    else:
        model = ModelChoice.read(environ, model=choice.model.strip() or None, role=role)
    if not choice.price.strip():
        return model
    return model.model_copy(update={"price": TokenPrice.parse(choice.price)})


def _retriever(choice: DetectorSelection, environ: Mapping[str, str]) -> RetrieverSpec | None:
    source = choice.retriever or specified(choice.passages)
    if source is None or isinstance(source, GivenSpec):
        return source
    changes: dict[str, object] = {}
    if source.writer is None and (source.queries == "claims" or source.translate):
        named = "" if environ.get(f"SPANLAB_MODEL_{WRITER.upper()}") else choice.model
        writer = _chosen(DetectorSelection(model=named, price=choice.price), environ, WRITER)
        changes["writer"] = _asked(writer, WRITER, choice, environ)
    if isinstance(source, WebSpec):
        searcher = source.model or _search_model(choice.passages.model.strip(), environ)
        changes["model"] = _asked(searcher, SEARCHER, choice, environ)
    return source.model_copy(update=changes)


def _search_model(name: str, environ: Mapping[str, str]) -> ModelChoice:
    """Return the search model that is named, else that of the environment, with its endpoint."""
    choice = search_choice(environ)
    if not name or name == choice.model:
        return choice
    return choice.model_copy(update={"model": name, "price": None})


def _asked(
    model: ModelChoice, role: str, choice: DetectorSelection, environ: Mapping[str, str]
) -> ModelChoice:
    """Return how a model is asked in a role that is no detector's."""
    general, chosen = (
        addressed(options, ("", role)).chosen
        for options in (of_environment(environ), choice.model_options)
    )
    return model.model_copy(update=general | model.chosen | chosen)


def _options(spec: DetectorSpec, options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return those of the chosen options that are a detector's own, as its model reads them."""
    entry, found = entry_of(spec.detector), {}
    for key, value in options.items():
        detector, _, name = key.rpartition(".")
        if detector == spec.detector or (not detector and name in entry.options.model_fields):
            found[name] = value
    return entry.checked(found)


def _check_addresses(options: Mapping[str, JsonValue], specs: Iterable[DetectorSpec]) -> None:
    """Refuse a model option that is for none of the detectors' models."""
    known = _addresses(specs)
    for key in options:
        owner, _, name = key.rpartition(".")
        if owner not in known:
            raise UsageError(
                f"the model option {key!r} is for {owner!r}, which is not chosen "
                f"(there are {', '.join(filter(None, known))})"
            )
        if name == "thinking" and not known[owner]:
            raise UsageError(f"{key!r}: a detector thinks first, or does not, in all its roles")
    addressed({key.rpartition(".")[2]: value for key, value in options.items()}, ("",))


def _check_required(spec: DetectorSpec) -> None:
    """Refuse a detector that lacks an option without which it cannot be built."""
    for name in entry_of(spec.detector).required:
        if not spec.options.get(name):
            about = next(
                setting.about for setting in options_of(spec.detector) if setting.name == name
            )
            raise UsageError(
                f"{spec.detector!r} needs the option {name!r} (--option {name}=…): {about}"
            )


def _addresses(specs: Iterable[DetectorSpec]) -> dict[str, bool]:
    """Return what model options can be for; whether that is a whole detector, and not a role."""
    known = {"": True, WRITER: False, SEARCHER: False}
    for spec in specs:
        whole = spec.addresses()
        for role in entry_of(spec.detector).roles:
            known |= {address: address in whole for address in spec.addresses(role)}
    return known


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
                f"{one}.{model_field}"
                for one, its in entries.items()
                for model_field in its.options.model_fields
            ]
            known = f"there are {', '.join(has)}" if has else "there are none"
            raise UsageError(f"no chosen detector has an option {name!r} ({known})")
