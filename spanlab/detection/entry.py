"""What a detector says of itself, and which detectors are installed.

A room offers a detector at its door (``spanlab.doors``), a package by an entry point of the group
``spanlab.detectors``. Its name is the detector's, its object a ``DetectorEntry`` in a module that
is quick to load:

    [project.entry-points."spanlab.detectors"]
    shouting = "my_package.entry:ENTRY"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from pydantic import JsonValue, ValidationError, ValidatorFunctionWrapHandler, field_validator

from spanlab import doors
from spanlab.base.errors import UsageError
from spanlab.base.fields import FrozenModel, message_of
from spanlab.base.inbound import is_end
from spanlab.base.options import Option, options_in
from spanlab.models import ModelOptions

GROUPS = ("nothing", "a model", "a model and a search", "a checkpoint")  # what detectors need


class BrokenDetector(NamedTuple):
    """An installed detector that cannot be used: ``problem`` says why."""

    name: str
    package: str
    problem: str


@cache
def installed() -> Mapping[str, DetectorEntry | BrokenDetector]:
    """Return all installed detectors by name: spanlab's own first, ensembles last.

    Of the others, what needs neither a model nor an option comes first, before all what has a
    ``preset``; what needs an option comes last.
    """
    by_name: dict[str, DetectorEntry | BrokenDetector] = {}
    for offer in doors.offers("detectors"):
        name = offer.name if offer.name not in by_name else f"{offer.name} ({offer.package})"
        by_name[name] = _read(offer, taken=name != offer.name)
    return MappingProxyType(dict(sorted(by_name.items(), key=lambda item: _rank(item[1]))))


def entries() -> tuple[DetectorEntry, ...]:
    """Return the detectors that can be used, in the order of ``installed``."""
    return tuple(entry for entry in installed().values() if isinstance(entry, DetectorEntry))


def entry_of(name: str) -> DetectorEntry:
    """Return what the detector or ensemble of this name says of itself.

    Raises:
        UsageError: none is called so, and the message lists those there are; or it is broken.
    """
    known_entry = installed().get(name)
    if isinstance(known_entry, DetectorEntry):
        return known_entry
    if known_entry is not None:
        raise UsageError(
            f"{name!r} of the package {known_entry.package} is broken: {known_entry.problem}"
        )
    names = [entry.name for entry in entries()]
    close = get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    all_names = ", ".join(names) or "none: install spanlab again"
    raise UsageError(f"no detector named {name!r}; available: {all_names}{hint}")


def options_of(name: str) -> tuple[Option, ...]:
    """Return the options of a detector; none for an ensemble, whose members have their own.

    Raises:
        UsageError: no detector is called so.
    """
    return options_in(entry_of(name).options)


def asks_models(name: str) -> bool:
    """Say whether a detector, or a member of an ensemble, asks language models.

    Raises:
        UsageError: no detector is called so.
    """
    return entry_of(name).asks_models


def tunable() -> tuple[str, ...]:
    """Return the names of the detectors that have prompts to tune.

    Those tuned on spans come before those on claims; among them one that asks a single model comes
    first.
    """
    in_order = sorted(entries(), key=lambda entry: (entry.tuned_on == "claims", len(entry.roles)))
    return tuple(entry.name for entry in in_order if entry.prompts)


def check_tunable(name: str) -> None:
    """Refuse a detector that has no prompts to tune.

    Raises:
        UsageError: it has none, and the message lists those that have; or it is unknown.
    """
    if not entry_of(name).prompts:
        raise UsageError(
            f"{name!r} has no prompts of its own to tune (tunable: {', '.join(tunable())})"
        )


def _read(offer: doors.Offer, *, taken: bool) -> DetectorEntry | BrokenDetector:
    try:
        if taken:
            raise UsageError("another package has a detector of this name")
        entry = offer.load()
        if not isinstance(entry, DetectorEntry):
            raise UsageError(f"{offer.value} is not a DetectorEntry")
        if entry.name != offer.name:
            raise UsageError(
                f"{offer.value} has the name {entry.name!r}, not the one that it is offered by"
            )
        if (entry.create is None) == (entry.members is None):
            raise UsageError(f"{offer.value} has to have either create or members")
        entry.options()  # all have defaults
        entry.options.model_json_schema()  # from which forms are made
    except BaseException as error:  # whatever breaks there, the others can be used
        if is_end(error):
            raise
        reason = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
        return BrokenDetector(offer.name, offer.package, reason)
    return entry


def _rank(entry: DetectorEntry | BrokenDetector) -> int:
    if not isinstance(entry, DetectorEntry):
        return 2
    if entry.members is not None:
        return 4
    if entry.required or entry.asks_models:
        return 3 if entry.required else 2
    return 0 if entry.preset else 1


JUDGE = "judge"  # the role of the model that decides what is hallucinated

# Tokens, for estimates of what a detector will cost.
INSTRUCTION = 450  # of an instruction with the form of the answer
THINKING = 400  # that a model thinks in, if it is asked to
_AS_IT_COMES = ModelOptions()


class PromptSize(NamedTuple):
    """Tokens of what a prompt shows of an item."""

    passages: int
    question: int
    answer: int

    @property
    def whole(self) -> int:
        """All of it, with the instruction."""
        return INSTRUCTION + self.passages + self.question + self.answer


class CallEstimate(NamedTuple):
    """So many model calls for an item; ``asked`` and ``answered`` are the tokens of each."""

    number: int
    asked: int
    answered: int
    role: str = JUDGE


class DetectorOptions(FrozenModel):
    """A detector's own options: none, unless a subclass adds fields; all of them have defaults.

    Command lines and forms write values as texts. Here, and only here, a text that a field does
    not take as it is becomes the value that it is written for: 4, true, "none", or a list with
    commas between.
    """

    @field_validator("*", mode="wrap")
    @classmethod
    def _reads_texts(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            for meant in _meant_by(value):
                with suppress(ValidationError):
                    return handler(meant)
            raise


def _meant_by(value: Any) -> Iterator[JsonValue]:
    """Yield what a text may be written for; nothing for what is no text."""
    if not isinstance(value, str):
        return
    with suppress(ValueError, RecursionError):
        yield json.loads(value)
    if value.strip().casefold() == "none":
        yield None
    yield [part.strip() for part in value.split(",") if part.strip()]


class ChosenOptions(Protocol):
    """What a detector's costs depend on in a ``DetectorSpec``."""

    @property
    def options(self) -> Mapping[str, JsonValue]:
        """The detector's own options."""

    @property
    def reasoning(self) -> bool:
        """Whether its prompts ask for reasons before the answer."""


def _no_calls(_size: PromptSize, _spec: ChosenOptions) -> Iterable[CallEstimate]:
    return ()


def _no_searches(_size: PromptSize, _spec: ChosenOptions) -> int:
    return 0


def _nothing_learnt(_options: DetectorOptions) -> Iterable[str]:
    return ()


def _no_data(_options: DetectorOptions) -> Iterable[Path]:
    return ()


@dataclass(frozen=True, kw_only=True)
class DetectorEntry:
    """A detector, or an ensemble of detectors.

    Attributes:
        name: what it is asked for by, the name of its entry point.
        what: what it does, in one clause.
        title: what it does, in two or three words: people see it beside the name.
        needs: what it needs beside the item, in one clause.
        create: builds it from a ``DetectorKit``: a callable, or its place as
            ``package.module:name``, so that what is slow to load is loaded when it is built. None
            for an ensemble.
        options: the model of its own options.
        roles: the roles of the language models it asks; empty if it asks none.
        asked: how its models are asked unless something else is chosen.
        prompts: the names of the predictors that an optimiser can tune; empty if there are none.
        generator_prompts: the predictors of a generator that it verifies, which can be tuned on
            questions with right answers; none for most.
        tuned_on: what its prompts are tuned on: "spans" of answers, "claims" (verdicts on them, for
            a ``ClaimDetector`` whose ``program`` has the predictors), or another unit that a room
            offers under "subjects".
        estimate: the most model calls that an item of this size will take.
        searches: the most searches that it makes for an item by itself, beside those for the
            item's passages; none for most.
        data: the files that its findings depend on with these options of its own, such as a trained
            model: certificates are bound to what they hold.
        learnt: of its model with these options of its own, the ``answer_hash`` of each answer that
            the model was trained on; empty where nothing was, or it is not known.
        members: for an ensemble, the JSON file of an ``EnsembleSpec``.
        reads_pages: whether it reads web pages, through ``DetectorKit.pages``.
        required: options that have to be set: without them it cannot be built.
        batches: whether it makes a ``BatchDetector``, which is quicker with many items at once.
        fit: the place of the function that lets it learn from the reviews of a dataset, as
            ``package.module:name``; ``detection.fits.learn`` says what it takes. None if it does
            not learn; otherwise its options are ``FitOptions``.
        baseline: whether it is there to compare others with; the page Detect folds it.
        preset: the choice under which the page Detect offers it before all others; mostly none.
    """

    name: str
    what: str
    needs: str
    create: str | Callable[..., object] | None = None
    options: type[DetectorOptions] = DetectorOptions
    roles: tuple[str, ...] = ()
    asked: ModelOptions = _AS_IT_COMES
    prompts: tuple[str, ...] = ()
    generator_prompts: tuple[str, ...] = ()
    tuned_on: str = "spans"
    estimate: Callable[[PromptSize, ChosenOptions], Iterable[CallEstimate]] = _no_calls
    searches: Callable[[PromptSize, ChosenOptions], int] = _no_searches
    data: Callable[[Any], Iterable[Path]] = _no_data
    learnt: Callable[[Any], Iterable[str]] = _nothing_learnt
    members: Path | None = None
    reads_pages: bool = False
    required: tuple[str, ...] = ()
    batches: bool = False
    title: str = ""
    preset: str = ""
    baseline: bool = False
    fit: str | None = None

    @property
    def group(self) -> str:
        """What it needs, in the words by which people choose: one of ``GROUPS``."""
        if self.required:
            return "a checkpoint"
        if not self.asks_models:
            return "nothing"
        return "a model and a search" if self.reads_pages else "a model"

    @property
    def module(self) -> str | None:
        """The module that the detector is built by; None for an ensemble."""
        if callable(self.create):
            return self.create.__module__
        return self.create and self.create.partition(":")[0]

    @property
    def asks_models(self) -> bool:
        """Whether it, or a member of it, asks language models."""
        return bool(self.roles) or self.members is not None

    def checked(self, options: Mapping[str, Any]) -> dict[str, JsonValue]:
        """Return options as the detector's own model reads them; texts may stand for numbers.

        Raises:
            UsageError: an option is unknown or has a wrong value; says what would be right.
        """
        try:
            read = self.options.model_validate(options)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            named, *inner = (str(part) for part in first["loc"] or ("",))
            if first["type"] == "extra_forbidden" and not inner:
                raise UsageError(self._unknown(named)) from None
            message = message_of(first)
            raise UsageError(
                f"option {named!r} of {self.name!r} is {first['input']!r}: "
                f"{message[:1].lower()}{message[1:]}"
            ) from None
        return read.model_dump(mode="json", exclude_unset=True)

    def _unknown(self, option: str) -> str:
        option_names = list(self.options.model_fields)
        close = get_close_matches(option, option_names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        has = f"it has {', '.join(option_names)}" if option_names else "it has none"
        return f"{self.name!r} has no option {option!r}{hint} ({has})"
