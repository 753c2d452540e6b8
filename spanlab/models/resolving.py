"""The one way from what people choose to the model that is asked: ``ModelLayers.resolve``.

The environment gives way to what a specification names itself, such as a member in an ensemble's
file, and that to what was chosen on a command line, on a page or in a call.

The name of an option may stand alone (``temperature``) or after the role, the detector or the
annotator that it is for (``judge.temperature``, ``ucsc-kg.judge.temperature``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from pydantic import JsonValue, ValidationError

from spanlab.base.errors import UnnamedModelError, UsageError
from spanlab.base.fields import message_of
from spanlab.base.settings import EndpointSettings, ModelSettings
from spanlab.models.choice import (
    BASE_URL,
    KEY,
    USUAL_ORIGINS,
    DetectorModelOptions,
    EndpointAddress,
    ModelChoice,
    ModelOptions,
    ModelOrigins,
    TokenPrice,
)

Options = Mapping[str, JsonValue]  # by name, with or without what it is for
_NO_OPTIONS: Final = ModelOptions()
_PLACE: Final = ("base_url", "base_url_env", "api_key_env", "origins")
# How a member of an ensemble asks its model: it keeps that with another model, too.
_MANNER: Final = set(ModelOptions.model_fields) - {"structured", "window"}


@dataclass(frozen=True)
class ModelLayers:
    """What is said of models beside a specification: by the environment, and by people.

    Attributes:
        environ: the environment variables.
        model: the model that was chosen: its name, or with its endpoint; empty for none.
        price: its price, as ``TokenPrice.parse`` reads it; empty for none.
        options: how models are to be asked.
        one_model: whether ``model`` takes the place of one that a specification names.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    model: str | ModelChoice = ""
    price: str = ""
    options: Options = field(default_factory=dict)
    one_model: bool = True

    @property
    def general_options(self) -> dict[str, JsonValue]:
        """The options in SPANLAB_MODEL_OPTIONS: ``name=value``, with commas between.

        Raises:
            UsageError: it holds something else.
        """
        given = ModelSettings.read(self.environ).model_options.split(",")
        return parse_pairs(filter(str.strip, given), ModelSettings.variable("model_options"))

    def resolve(
        self,
        own: ModelChoice | None = None,
        *,
        roles: Sequence[str] = (),
        addresses: Iterable[str] = ("",),
        defaults: ModelOptions = _NO_OPTIONS,
    ) -> ModelChoice:
        """Return which model is asked, where and how, and what says so (``origins``).

        Args:
            own: the model that a specification names.
            roles: what the model is for, the first first, such as "judge" and "ucsc-kg": then
                SPANLAB_MODEL_JUDGE goes before SPANLAB_MODEL_UCSC_KG and that before SPANLAB_MODEL.
            addresses: see ``options_for``.
            defaults: the options that count least.

        Raises:
            UnnamedModelError: nothing names a model.
            UsageError: a variable, the price or an option is unusable.
        """
        is_chosen = isinstance(self.model, ModelChoice) or bool(self.model.strip())
        if own is None or (is_chosen and self.one_model):
            model = self._named(roles)
            manner = {} if own is None else own.chosen
            kept = {name: manner[name] for name in _MANNER & set(manner) - set(model.chosen)}
            model = model.model_copy(update=kept)
        elif isinstance(self.model, ModelChoice) and own.base_url is None:
            # It was set up for all that has no address.
            place = {name: getattr(self.model, name) for name in _PLACE}
            model = own.model_copy(update=place)
        else:
            model = own
        return self.asked(self._located(model), addresses, defaults)

    def asked(
        self, model: ModelChoice, addresses: Iterable[str], defaults: ModelOptions = _NO_OPTIONS
    ) -> ModelChoice:
        """Return a model with its options: ``defaults``, the environment's, its own, the chosen.

        Raises:
            UsageError: an option is unusable.
        """
        addresses = tuple(addresses)
        general, chosen = (
            options_for(options, addresses) for options in (self.general_options, self.options)
        )
        layers = (defaults, general, model, chosen)
        return model.model_copy(
            update={name: value for layer in layers for name, value in layer.chosen.items()}
        )

    def _named(self, roles: Sequence[str]) -> ModelChoice:
        """Return the chosen model, else the environment's, at the price that holds for it."""
        if isinstance(self.model, ModelChoice):
            model, price = self.model, self.price
        else:
            settings, chosen = ModelSettings.read(self.environ, roles), self.model.strip()
            if not (chosen or settings.model):
                raise UnnamedModelError(
                    "no language model is named: set SPANLAB_MODEL, for example to gpt-4o-mini"
                )
            origins = USUAL_ORIGINS
            if not chosen:
                named_by = ModelSettings.set_by("model", self.environ, roles)
                origins = ModelOrigins(name=named_by)
            try:
                model = ModelChoice(model=chosen or settings.model, origins=origins)
            except ValidationError as error:
                problem = message_of(error.errors(include_input=False)[0])
                raise UsageError(f"{origins.name}: {problem}") from None
            price = self.price.strip() or settings.price
        if not price.strip():
            return model
        return model.model_copy(update={"price": TokenPrice.parse(price)})

    def _located(self, model: ModelChoice) -> ModelChoice:
        """Return a model with its address: its own, that of its own variable, or the general one.

        Where its own variable is unset, the general endpoint gets the general key.
        """
        if model.base_url is not None:
            return model
        variable = model.base_url_env or ""
        address, place = self.environ.get(variable, "").strip(), {}
        if not address:
            variable = BASE_URL
            address = EndpointSettings.read(self.environ).base_url
            if model.base_url_env:
                place = {"base_url_env": None, "api_key_env": KEY}
        try:
            url = str(EndpointAddress.parse(address)) if address else None
        except ValueError as error:
            raise UsageError(f"{variable}: {error}") from None
        origins = model.origins.model_copy(update={"address": variable})
        return model.model_copy(update={**place, "base_url": url, "origins": origins})


def parse_pairs(texts: Iterable[str], source: str) -> dict[str, JsonValue]:
    """Read ``name=value`` texts; "none" as a value leaves the option to the endpoint.

    Args:
        texts: one option each.
        source: what an error names: a command's option, or an environment variable.

    Raises:
        UsageError: one has no name, no value, or a name or value that no option has.
    """
    fields: dict[str, JsonValue] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or not equals:
            raise UsageError(f"{source} must be NAME=VALUE, such as temperature=0.2, got {text!r}")
        fields[name] = None if value.lower() in {"", "none"} else value
    for key, set_value in fields.items():
        _check_options({key.rpartition(".")[2]: set_value}, source)
    return fields


def options_for(options: Options, addresses: Iterable[str]) -> DetectorModelOptions:
    """Return the options for a model; later addresses override earlier ones.

    Args:
        options: by name, with or without an address.
        addresses: roles, detectors, annotators and pairs of them; "" for what is for all models.

    Raises:
        UsageError: an option is unknown or has a wrong value.
    """
    fields: dict[str, JsonValue] = {}
    for address in addresses:
        for key, value in options.items():
            owner, _, name = key.rpartition(".")
            if owner == address:
                fields[name] = value
    return _check_options(fields, "a model option")


def _check_options(options: Options, source: str) -> DetectorModelOptions:
    try:
        return DetectorModelOptions.model_validate(options)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
    name = str(problem["loc"][0])
    option_names = list(DetectorModelOptions.model_fields)
    if name in option_names:
        message = message_of(problem)
        message = message[:1].lower() + message[1:]
        raise UsageError(f"{source}: {name} is {problem['input']!r}: {message}")
    close = get_close_matches(name, option_names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise UsageError(f"{source}: models have no option {name!r}{hint} ({', '.join(option_names)})")
