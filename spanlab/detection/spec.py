"""Which detector, with which model, retriever and mapper: a choice that can be kept as JSON."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
    model_validator,
)

from spanlab.base.errors import DeprecatedWarning, UnnamedModelError, UsageError
from spanlab.base.fields import FrozenModel
from spanlab.base.settings import read_json
from spanlab.detection.entry import DetectorEntry, entries, entry_of, installed
from spanlab.models import ModelChoice
from spanlab.models.building import dspy_has_model
from spanlab.models.refusals import learnt_of
from spanlab.models.resolving import ModelLayers, options_for
from spanlab.schema import Name, unique
from spanlab.search.spec import RetrieverSpec

CONTEXT_BUDGET = 60_000  # characters of passages in a prompt: about 15,000 tokens of English


class DetectorSpec(FrozenModel):
    """A detector and what it works with.

    ``name`` signs the annotations (default: the detector's own name). ``models`` are language
    models for single roles of the detector, such as ``judge``; ``model`` is asked in all others,
    and without it the environment names one. Without ``retriever`` the item's own passages are
    read. ``program`` names a tuned prompt of the registry; "none" keeps the detector's own even
    where another is the default. The default of a detector with a ``name``, such as a member of an
    ensemble, is its own and not the detector's. ``reasoning`` lets the model think in words before
    it answers. ``guidance`` is added to the detector's instruction, unless a program takes its
    place. ``metric`` is what an optimisation aims at, unless told otherwise. ``context`` bounds the
    passages in a prompt, in characters. ``options`` are the detector's own, those of its entry's
    model.
    """

    detector: Name
    name: Name | None = None
    model: ModelChoice | None = None
    models: dict[str, ModelChoice] = Field(default_factory=dict)
    retriever: RetrieverSpec | None = None
    program: Name | None = None
    reasoning: bool = False
    guidance: str | None = None
    metric: Name | None = None
    context: Annotated[int, Field(ge=1000)] = CONTEXT_BUDGET
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("options")
    @classmethod
    def _are_the_detector_s_own(
        cls, options: dict[str, JsonValue], info: ValidationInfo
    ) -> dict[str, JsonValue]:
        entry = installed().get(info.data.get("detector", ""))
        if not isinstance(entry, DetectorEntry):
            return options  # the code that builds it says that there is no such detector
        try:
            return entry.checked(options)
        except UsageError as error:
            raise ValueError(str(error)) from None

    @field_validator("models")
    @classmethod
    def _are_for_roles_that_it_has(
        cls, models: dict[str, ModelChoice], info: ValidationInfo
    ) -> dict[str, ModelChoice]:
        entry = installed().get(info.data.get("detector", ""))
        unknown = set(models).difference(entry.roles) if isinstance(entry, DetectorEntry) else ()
        if isinstance(entry, DetectorEntry) and unknown:
            has = ", ".join(entry.roles) or "none"
            raise ValueError(f"{entry.name!r} has no role {min(unknown)!r} (it has {has})")
        return models

    @model_validator(mode="before")
    @classmethod
    def _reads_what_was_written_before_options(cls, data: Any) -> Any:
        """Take the former field ``mapper``, one for all detectors, as far as it concerns this."""
        if not isinstance(data, dict) or "mapper" not in data:
            return data
        message = "the field `mapper` of a detector goes in 2.0: give its values as `options`"
        warnings.warn(message, DeprecatedWarning, stacklevel=2)
        entry, mapper = installed().get(data.get("detector", "")), data["mapper"]
        option_fields = entry.options.model_fields if isinstance(entry, DetectorEntry) else {}
        others = {name: value for name, value in data.items() if name != "mapper"}
        return {
            "options": {name: mapper[name] for name in mapper if name in option_fields},
            **others,
        }

    @property
    def signs(self) -> str:
        """The annotator name of what it finds."""
        return self.name or self.detector

    def choices(
        self, layers: ModelLayers | None = None, *, leaves_to_dspy: bool
    ) -> dict[str, ModelChoice]:
        """Return the models of all roles; see ``choice``.

        Args:
            layers: as for ``choice``.
            leaves_to_dspy: whether, where nothing names a model, there are none if
                ``dspy.configure`` has one, which is asked then.

        Raises:
            UsageError: nothing names a model, or an option or an address is unusable.
        """
        try:
            return {role: self.choice(role, layers) for role in entry_of(self.detector).roles}
        except UnnamedModelError:
            if leaves_to_dspy and dspy_has_model():
                return {}
            raise

    def choice(self, role: str, layers: ModelLayers | None = None) -> ModelChoice:
        """Return the model that the detector asks in a role, where and how.

        Where nobody says otherwise, what a check has found counts: whether the endpoint takes
        schemas, and how many tokens the model takes.

        Args:
            role: one of its entry.
            layers: what is said beside this specification; None reads the environment.

        Raises:
            UsageError: nothing names a model, or an option or an address is unusable.
        """
        model = (layers or ModelLayers()).resolve(
            self.models.get(role, self.model),
            roles=(role, self.signs),
            addresses=self.addresses(role),
            defaults=entry_of(self.detector).asked,
        )
        learnt = learnt_of(model.endpoint, model.model)
        unset = {name: value for name, value in learnt.items() if getattr(model, name) is None}
        return model.model_copy(update=unset)

    def thinks(self, layers: ModelLayers | None = None) -> bool:
        """Say whether models think in words first: by the layers' order, for the whole detector.

        Raises:
            UsageError: an option is unusable.
        """
        layers = layers or ModelLayers()
        chosen, general = (
            options_for(options, self.addresses()).thinking
            for options in (layers.options, layers.general_options)
        )
        own = self.reasoning if "reasoning" in self.model_fields_set else None
        given = (choice for choice in (chosen, own, general) if choice is not None)
        return next(given, self.reasoning)

    def addresses(self, role: str = "") -> tuple[str, ...]:
        """Return what model options of this detector, and of a role, are addressed to.

        Those that say more stand later: all models, the role, the detector, the role in it, and
        both by the name that the detector signs with.
        """
        names = dict.fromkeys(("", self.detector, self.signs))
        parts = ((name, of) for name in names for of in dict.fromkeys(("", role)))
        return tuple(f"{name}.{of}".strip(".") for name, of in parts)


class EnsembleSpec(FrozenModel):
    """Detectors that vote: every member signs its own annotation, ``name`` signs the vote."""

    name: Name
    members: Annotated[tuple[DetectorSpec, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _everyone_signs_differently(self) -> Self:
        unique((self.name, *(member.signs for member in self.members)), "annotator")
        return self

    @property
    def signs(self) -> str:
        """The annotator name of the vote."""
        return self.name

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read an ensemble from a JSON file.

        Raises:
            InputError: the file cannot be read or is no ensemble; names the field.
        """
        return read_json(cls, path, "an ensemble of detectors")


Spec = DetectorSpec | EnsembleSpec


def spec_of(name: str) -> Spec:
    """Return the specification that a name alone stands for.

    Args:
        name: any detector or ensemble.

    Returns:
        The detector with everything else left to its defaults, or the ensemble as it comes.

    Raises:
        UsageError: no detector has that name.
        InputError: the ensemble's file is no ensemble.
    """
    members = entry_of(name).members
    return DetectorSpec(detector=name) if members is None else EnsembleSpec.read(members)


def members() -> dict[str, DetectorSpec]:
    """Return the members of the installed ensembles by the names that they sign with."""
    paths = (entry.members for entry in entries() if entry.members is not None)
    specs = (EnsembleSpec.read(path) for path in paths)
    return {member.signs: member for spec in specs for member in spec.members}


def specs_in(spec: Spec) -> tuple[DetectorSpec, ...]:
    """Return the detectors of a specification: an ensemble's members, or itself."""
    return spec.members if isinstance(spec, EnsembleSpec) else (spec,)
