"""What people can choose for an optimisation, its estimate, and the job that it becomes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import ValidationError

from optimizers.estimates import SearchEstimate, estimate_search
from optimizers.examples import LabelKind, LabelSource
from optimizers.metrics import METRICS
from optimizers.preparing import DRAWING, resolved
from optimizers.request import SEED, THREADS, Auto, Optimisation, Search
from optimizers.splitting import Transfer
from spanlab.detectors import DetectorSpec, check_tunable, entries, entry_of, spec_of, tunable
from spanlab.errors import UsageError
from spanlab.lm import ModelChoice, Price
from spanlab.lm.options import addressed, of_environment
from spanlab.workflows.choosing import Choice, is_ensemble, specifications, specs_in
from spanlab.workflows.programs import registry
from spanlab.workflows.requesting import budget_of, problem

__all__ = [
    "SearchEstimate",
    "TuningForm",
    "estimate_search",
    "free_name",
    "metrics_of",
    "optimisation_of",
    "tunable",
    "tunable_members",
]


@dataclass(frozen=True)
class TuningForm:
    """The form of an optimisation, filled in; empty texts are what was left out. See ``Search``.

    ``choice`` names one detector; its program is where the search begins. Of an ensemble
    ``member`` names the member that is tuned. Without ``metric`` it is what the member is for, or
    the first of ``metrics_of``.
    """

    dataset: str
    choice: Choice
    name: str = ""
    member: str = ""
    prompt_model: str | ModelChoice = ""
    metric: str = ""
    strategy: Literal["mipro", "gepa"] = "mipro"
    auto: Auto | None = "light"
    trials: int | None = None
    folds: int = 2
    labels: LabelKind = "gold"
    annotators: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    target: str = ""
    transfer: Transfer = "each"
    limit: int | None = None
    threads: int = THREADS
    seed: int = SEED
    budget_calls: int | None = None
    budget_cost: float | None = None
    budget_searches: int | None = None
    rate: float | None = None


def metrics_of(detector: str) -> tuple[str, ...]:
    """Return what a detector or a member of an ensemble can be tuned for, the usual one first.

    Raises:
        UsageError: no detector is called so.
    """
    members = tunable_members()
    return METRICS[
        entry_of(members[detector].detector if detector in members else detector).tuned_on
    ]


def free_name(detector: str, metric: str) -> str:
    """Return a program name that is not taken: the detector, the metric and a number."""
    stem = f"{detector}-{metric.replace('+', '-')}"
    taken = registry()
    number = 1
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"


def optimisation_of(form: TuningForm) -> Optimisation:
    """Return the request that a filled-in form amounts to.

    Raises:
        UsageError: something is missing or cannot be meant so; says what would be right.
    """
    _check_together(form)
    spec = _tuned(form)
    metric = form.metric or spec.metric or metrics_of(spec.detector)[0]
    same = ("strategy", "auto", "trials", "languages", "transfer", "folds", "limit")
    fields = {name: getattr(form, name) for name in (*same, "threads", "seed")} | {
        "name": form.name.strip() or free_name(spec.signs, metric),
        "metric": metric,
        "detector": spec,
        "prompt_model": _prompt_model(form),
        "labels": LabelSource(kind=form.labels, annotators=form.annotators),
        "target": form.target or None,
    }
    try:
        request = Optimisation(
            dataset=form.dataset,
            search=Search.model_validate(fields),
            budget=budget_of(form.budget_calls, form.budget_cost, searches=form.budget_searches),
            rate=form.rate,
        )
    except ValidationError as error:
        raise UsageError(problem(error)) from None
    return resolved(request)


def _check_together(form: TuningForm) -> None:
    """Refuse what would be left out without a word."""
    if form.transfer != "each" and not form.target:
        raise UsageError(
            f"'{form.transfer}' (--transfer) says what is learnt from for one language: "
            "name it (--target)"
        )
    if form.annotators and form.labels == "gold":
        raise UsageError(
            "gold labels are nobody's: with annotators, take reviewed labels or a vote (--labels)"
        )


class Member(NamedTuple):
    """A member of an ensemble: whose, which detector it is, its metric, the model that it asks."""

    ensemble: str
    detector: str
    metric: str
    model: str


def tunable_members() -> dict[str, Member]:
    """Return the members of the installed ensembles that have prompts to tune, by name."""
    names = tunable()
    specs = (spec_of(entry.name) for entry in entries() if entry.members is not None)
    return {
        each.signs: Member(
            spec.signs,
            each.detector,
            each.metric or METRICS[entry_of(each.detector).tuned_on][0],
            each.model.model if each.model else "",
        )
        for spec in specs
        for each in specs_in(spec)
        if each.detector in names
    }


def _tuned(form: TuningForm) -> DetectorSpec:
    """Return the specification of what is to be tuned, a detector or a member of an ensemble.

    Raises:
        UsageError: the detector has no prompts, or the ensemble no such member.
    """
    (name,) = form.choice.detectors
    if not (form.member and is_ensemble(name)):
        if form.member:
            raise UsageError(f"{name!r} is no ensemble: it has no member {form.member!r}")
        check_tunable(name)
    (spec,) = specifications(form.choice)
    found = {each.signs: each for each in specs_in(spec)}
    member = found.get(form.member or name)
    if member is None:
        raise UsageError(f"{name!r} has no member {form.member!r} (it has {', '.join(found)})")
    check_tunable(member.detector)
    return member


def _prompt_model(form: TuningForm) -> ModelChoice | None:
    """Return the model that writes instructions, asked as all models are but for how it draws.

    Raises:
        UsageError: price or options cannot be read.
    """
    named, price = form.prompt_model, form.choice.price.strip()
    if not isinstance(named, ModelChoice):
        if not named.strip():
            return None
        named = ModelChoice.read(model=named.strip())
    layers = (of_environment(os.environ), form.choice.model_options)
    chosen = {
        name: value
        for options in layers
        for name, value in addressed(options, ("",)).chosen.items()
        if name not in DRAWING
    }
    named = named.model_copy(update=chosen)
    return named.model_copy(update={"price": Price.parse(price)}) if price else named
