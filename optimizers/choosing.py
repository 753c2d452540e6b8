"""The options of an optimisation that people set, and the request that they amount to."""

from __future__ import annotations

from typing import NamedTuple

from optimizers.preparing import DRAWING, resolve
from optimizers.programs import registry
from optimizers.request import Optimisation, PromptSearch, SearchSettings
from optimizers.units import metrics_for, units
from spanlab.base.errors import UsageError
from spanlab.base.options import option
from spanlab.detection import (
    DetectorSpec,
    check_tunable,
    entries,
    entry_of,
    spec_of,
    specs_in,
    tunable,
)
from spanlab.detection.selection import DetectorSelection, is_ensemble
from spanlab.detection.specifications import specifications
from spanlab.models import ModelChoice
from spanlab.models.resolving import ModelLayers
from spanlab.schema.usage import CallLimits


class SearchOptions(CallLimits, SearchSettings, DetectorSelection):
    """What people set of an optimisation; empty texts are what was left out.

    Of ``detectors`` there is one; its ``program`` is where the search begins. Without ``metric`` it
    is what the member is for, or the first of ``metrics_of``.
    """

    name: str = option(
        "",
        title="Name of the tuned prompt (optional)",
        help="Name of the tuned prompt.",
        group="Limits",
        placeholder="chosen for you",
    )
    member: str = option(
        "", title="Member", help="The member of an ensemble, such as ucsc, to tune."
    )
    prompt_model: str | ModelChoice = option(
        "",
        title="Prompt model (optional)",
        help="Writes new instructions (default: the task's model). A larger model helps.",
        placeholder="the task model",
    )
    metric: str = option(
        "",
        title="Metric to optimise",
        help="iou, corr, max-iou, iou+corr, all or another of spans (default: what the member is "
        "for, or iou); verdict-f1 for detectors that judge claims; type-f1 (types of errors in "
        "steps) or answer-f1 (the generator of `spanlab reason`, on questions) for safe.",
        titles={name: title for unit in units().values() for name, title in unit.metrics.items()},
    )


def metrics_of(detector: str) -> tuple[str, ...]:
    """Return what a detector or a member of an ensemble can be tuned for, the usual one first.

    Raises:
        UsageError: no detector is called so.
    """
    members = tunable_members()
    return metrics_for(entry_of(members[detector].detector if detector in members else detector))


def free_name(detector: str, metric: str) -> str:
    """Return a program name that is not taken: the detector, the metric and a number."""
    stem = f"{detector}-{metric.replace('+', '-')}"
    programs = registry()
    number = 1
    while f"{stem}-{number}" in programs:
        number += 1
    return f"{stem}-{number}"


def optimisation_of(dataset: str, options: SearchOptions) -> Optimisation:
    """Return the request for an optimisation with the given options.

    Args:
        dataset: name of the dataset with the labelled items.
        options: the options that were set.

    Raises:
        UsageError: something is missing or cannot be meant so; says what would be right.
    """
    _check_together(options)
    spec = _tuned_spec(options)
    metric = options.metric or spec.metric or metrics_of(spec.detector)[0]
    search = PromptSearch.of(
        options,
        name=options.name.strip() or free_name(spec.signs, metric),
        metric=metric,
        detector=spec,
        prompt_model=_prompt_model(options),
    )
    return resolve(Optimisation.of(options, dataset=dataset, search=search))


def _check_together(options: SearchOptions) -> None:
    """Refuse options that would have no effect."""
    if options.transfer != "each" and not options.target:
        raise UsageError(
            f"'{options.transfer}' (--transfer) says what is learnt from for one language: "
            "name it (--target)"
        )
    if options.labels.annotators and options.labels.kind == "gold":
        raise UsageError(
            "gold labels are nobody's: with annotators, take reviewed labels or a vote (--labels)"
        )


class EnsembleMember(NamedTuple):
    """A member of an ensemble: its ensemble's name, its detector, its metric and its model."""

    ensemble: str
    detector: str
    metric: str
    model: str


def tunable_members() -> dict[str, EnsembleMember]:
    """Return the members of the installed ensembles that have prompts to tune, by name."""
    names = tunable()
    specs = (spec_of(entry.name) for entry in entries() if entry.members is not None)
    return {
        member.signs: EnsembleMember(
            spec.signs,
            member.detector,
            member.metric or metrics_for(entry_of(member.detector))[0],
            member.model.model if member.model else "",
        )
        for spec in specs
        for member in specs_in(spec)
        if member.detector in names
    }


def _tuned_spec(options: SearchOptions) -> DetectorSpec:
    """Return the specification of what is to be tuned, a detector or a member of an ensemble.

    Raises:
        UsageError: the detector has no prompts, or the ensemble no such member.
    """
    (name,) = options.detectors
    if not (options.member and is_ensemble(name)):
        if options.member:
            raise UsageError(f"{name!r} is not an ensemble: it has no member {options.member!r}")
        check_tunable(name)
    (spec,) = specifications(options)
    members = {member.signs: member for member in specs_in(spec)}
    member = members.get(options.member or name)
    if member is None:
        raise UsageError(f"{name!r} has no member {options.member!r} (it has {', '.join(members)})")
    check_tunable(member.detector)
    return member


def _prompt_model(options: SearchOptions) -> ModelChoice | None:
    """Return the model that writes instructions, asked as all models are but for how it draws.

    Raises:
        UsageError: price or options cannot be read.
    """
    given = options.prompt_model
    if not isinstance(given, ModelChoice) and not given.strip():
        return None
    model = ModelLayers(model=given, price=options.price, options=options.model_options).resolve()
    return model.model_copy(update={name: getattr(given, name, None) for name in DRAWING})
