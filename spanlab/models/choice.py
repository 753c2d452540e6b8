"""Which model to ask, where, how, and at what price: data alone, without the key."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field, JsonValue, field_validator

from spanlab.base.errors import UsageError
from spanlab.base.fields import FrozenModel
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


OPENAI = "https://api.openai.com/v1"
KEY, BASE_URL = map(EndpointSettings.variable, ("api_key", "base_url"))
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


class ModelOrigins(FrozenModel):
    """Where a model's name and address come from, and what its price is set by, for messages.

    That is a variable, or what people know the value by that they have given themselves.
    """

    name: str = "the model's name"
    address: str = "the endpoint's address"
    price: str = ModelSettings.variable("price")


USUAL_ORIGINS = ModelOrigins()


class ModelChoice(ModelOptions):
    """A model of an OpenAI-compatible endpoint and how to call it.

    ``api_key_env`` is the *name* of the environment variable that holds the key; the key itself
    is never stored. Without ``base_url`` the endpoint is OpenAI's own. ``base_url_env`` names a
    variable that holds the address; where it is unset, the model is asked at the general endpoint,
    with the general key. ``retries`` is how many attempts may follow the first one.
    ``structured`` says that the endpoint takes JSON schemas (``response_format``); the answer is
    then asked for as JSON at once. Models that differ in their ``origins`` alone are equal.
    """

    model: Name
    base_url: str | None = None
    base_url_env: Name | None = None
    api_key_env: Name = KEY
    retries: int = Field(4, ge=0, le=20)
    price: TokenPrice | None = None
    origins: ModelOrigins = Field(USUAL_ORIGINS, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModelChoice) and all(
            getattr(self, name) == getattr(other, name)
            for name in ModelChoice.model_fields
            if name != "origins"
        )

    def __hash__(self) -> int:
        return hash((self.model, self.base_url))

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
