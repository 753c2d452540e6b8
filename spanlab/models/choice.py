"""Which model to ask, where, how, and at what price: data alone, without the key.

The name of an option may stand alone (``temperature``) or after the role, the detector or the
annotator that it is for (``judge.temperature``, ``ucsc-kg.judge.temperature``).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field, JsonValue, ValidationError, field_validator

from spanlab.base.errors import UnnamedModelError, UsageError
from spanlab.base.fields import FrozenModel, message_of
from spanlab.base.settings import EndpointSettings, ModelSettings
from spanlab.schema import Name

_PATH = "/chat/completions"
_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com")
_AT_AZURE = (
    "at Azure an address is https://NAME.openai.azure.com/openai/v1 or "
    "https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=VERSION"
)


@dataclass(frozen=True)
class EndpointAddress:
    """The address of an endpoint.

    ``base`` lacks a trailing slash and the part that calls add; ``query`` stands behind it, and is
    empty but for Azure's ``api-version``.
    """

    base: str
    query: str = ""

    @classmethod
    def parse(cls, text: str) -> EndpointAddress:
        """Read an address.

        Raises:
            ValueError: it is none, or holds what might be a key.
        """
        parts = urlsplit(text)
        host, path = parts.hostname or "", parts.path.rstrip("/").removesuffix(_PATH)
        if parts.scheme not in {"http", "https"} or not host:
            raise ValueError("an endpoint's address begins with http:// or https:// and has a host")
        if "@" in parts.netloc or {name for name, _ in parse_qsl(parts.query)} - {"api-version"}:
            raise ValueError("keep keys and passwords out of the address: set api_key_env instead")
        deployed = "/openai/deployments/" in path and parts.query
        if host.endswith(_AZURE) and not (deployed or path.endswith("/openai/v1")):
            raise ValueError(_AT_AZURE)
        return cls(f"{parts.scheme}://{parts.netloc}{path}", parts.query)

    def __str__(self) -> str:
        return f"{self.base}?{self.query}" if self.query else self.base

    def completed(self, url: str) -> str:
        """Return a URL below ``base`` with the query behind it."""
        return f"{url}?{self.query}" if self.query else url


Options = Mapping[str, JsonValue]  # by name, with or without what it is for
_SENT = ("temperature", "max_tokens", "top_p", "seed", "reasoning_effort")  # as the protocol names


class ModelOptions(FrozenModel):
    """How a model is asked; None leaves it to the endpoint."""

    temperature: (
        Annotated[float, Field(ge=0.0, le=2.0, description="Sampling temperature.")] | None
    ) = None
    top_p: (
        Annotated[float, Field(gt=0.0, le=1.0, description="Nucleus sampling (top_p).")] | None
    ) = None
    seed: Annotated[int, Field(description="Random seed for sampling.")] | None = None
    max_tokens: (
        Annotated[int, Field(ge=1, description="Most tokens of an answer, reasoning included.")]
        | None
    ) = None
    timeout: float = Field(
        120.0, gt=0.0, le=3600.0, description="Seconds that one attempt may take."
    )
    reasoning_effort: (
        Annotated[Name, Field(description="Reasoning effort: low, medium, high.")] | None
    ) = None
    structured: (
        Annotated[
            bool, Field(description="Ask for JSON by a schema, if the endpoint takes schemas.")
        ]
        | None
    ) = None

    window: (
        Annotated[
            int,
            Field(
                ge=1000,
                description="Context window in tokens. By default what check-model found.",
            ),
        ]
        | None
    ) = None

    @property
    def chosen(self) -> dict[str, JsonValue]:
        """The options that were set, also those set to None."""
        names = self.model_fields_set.intersection(ModelOptions.model_fields)
        return {name: getattr(self, name) for name in names}

    @property
    def sent(self) -> dict[str, JsonValue]:
        """The options that a request states, without those left to the endpoint."""
        values = {name: getattr(self, name) for name in _SENT}
        return {name: value for name, value in values.items() if value is not None}


class DetectorModelOptions(ModelOptions):
    """What can be chosen for the models of a detector, which says itself whether they think."""

    thinking: (
        Annotated[bool, Field(description="Let the model think in words before it answers.")] | None
    ) = None


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


def options_of_environment(environ: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the options in SPANLAB_MODEL_OPTIONS: ``name=value``, with commas between.

    Raises:
        UsageError: it holds something else.
    """
    given = ModelSettings.read(environ).model_options
    return parse_pairs(filter(str.strip, given.split(",")), ModelSettings.variable("model_options"))


def options_for(options: Options, addresses: Iterable[str]) -> DetectorModelOptions:
    """Return the options for the model that has some addresses, of which later ones outweigh.

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


OPENAI = "https://api.openai.com/v1"
_KEY = EndpointSettings.variable("api_key")
Dollars = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class TokenPrice(FrozenModel):
    """What a model's tokens cost, in US dollars per million.

    ``cached`` is the price of input tokens that the provider found in its own prefix cache.
    """

    input: Dollars
    cached: Dollars
    output: Dollars

    @classmethod
    def parse(cls, text: str) -> TokenPrice:
        """Read ``"input,cached,output"``, for example ``"0.15,0.075,0.60"``.

        Raises:
            UsageError: it is not three numbers of at least 0.
        """
        try:
            paid, cached, output = (float(part) for part in text.split(","))
        except ValueError:
            paid = cached = output = math.nan
        if not all(0 <= value < math.inf for value in (paid, cached, output)):
            raise UsageError(
                f"the price {text!r} is not three amounts of US dollars per million tokens, "
                "input,cached,output, such as 0.15,0.075,0.60"
            )
        return cls(input=paid, cached=cached, output=output)

    def of(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """Return the US dollars of one call; ``cached_tokens`` are a part of ``input_tokens``."""
        fresh = max(input_tokens - cached_tokens, 0)
        paid = fresh * self.input + cached_tokens * self.cached + output_tokens * self.output
        return paid / 1_000_000


class ModelChoice(ModelOptions):
    """A model of an OpenAI-compatible endpoint and how to call it.

    ``api_key_env`` is the *name* of the environment variable that holds the key; the key itself
    is never stored. Without ``base_url`` the endpoint is OpenAI's own. ``base_url_env`` names a
    variable that holds the address; where it is unset, the model is asked at the general endpoint,
    with the general key. ``retries`` is how many attempts may follow the first one.
    ``structured`` says that the endpoint takes JSON schemas (``response_format``); the answer is
    then asked for as JSON at once.
    """

    model: Name
    base_url: str | None = None
    base_url_env: Name | None = None
    api_key_env: Name = _KEY
    retries: int = Field(4, ge=0, le=20)
    price: TokenPrice | None = None

    @field_validator("base_url")
    @classmethod
    def _an_address_without_a_password(cls, url: str | None) -> str | None:
        return None if url is None else str(EndpointAddress.parse(url))

    @property
    def endpoint(self) -> str:
        """The address of the API, without a trailing slash."""
        return self.base_url or OPENAI

    @property
    def host(self) -> str:
        """Host and port of the endpoint, as messages name it."""
        return urlsplit(self.endpoint).netloc

    def located(self, environ: Mapping[str, str] = os.environ) -> ModelChoice:
        """Return the model with its address, from the environment unless it has one.

        Raises:
            UsageError: the variable holds no address.
        """
        if self.base_url is not None:
            return self
        own = environ.get(self.base_url_env, "").strip() if self.base_url_env else ""
        if own:
            try:
                return self.model_copy(update={"base_url": str(EndpointAddress.parse(own))})
            except ValueError as error:
                raise UsageError(f"{self.base_url_env}: {error}") from None
        general = {"base_url": ModelChoice.read(environ, model=self.model).base_url}
        if self.base_url_env:
            general |= {"base_url_env": None, "api_key_env": _KEY}
        return self.model_copy(update=general)

    @classmethod
    def read(
        cls,
        environ: Mapping[str, str] = os.environ,
        *,
        model: str | None = None,
        role: str | tuple[str, ...] | None = None,
    ) -> ModelChoice:
        """Read ``SPANLAB_MODEL``, ``SPANLAB_PRICE`` and ``OPENAI_BASE_URL``.

        Args:
            environ: the environment variables.
            model: a model named by the user; it goes before the environment's.
            role: for what the model is wanted, for example ``ucsc-revise``; then
                ``SPANLAB_MODEL_UCSC_REVISE`` and ``SPANLAB_PRICE_UCSC_REVISE`` go before the
                general variables. Of several, the first that a variable names.

        Raises:
            UnnamedModelError: nothing names a model.
            UsageError: a variable holds something unusable.
        """
        settings = ModelSettings.read(environ, (role,) if isinstance(role, str) else role or ())
        named = model or settings.model
        if not named:
            raise UnnamedModelError(
                "no language model is named: pass --model NAME or set SPANLAB_MODEL, "
                "for example SPANLAB_MODEL=gpt-4o-mini"
            )
        try:
            return cls(
                model=named,
                base_url=EndpointSettings.read(environ).base_url or None,
                price=TokenPrice.parse(settings.price) if settings.price else None,
            )
        except ValueError as error:
            raise UsageError(_first_problem(error)) from None


def _first_problem(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    problem = error.errors(include_input=False)[0]
    names = {
        "base_url": EndpointSettings.variable("base_url"),
        "model": ModelSettings.variable("model"),
    }
    field = str(problem["loc"][0])
    return f"{names.get(field, field)}: {message_of(problem)}"
