"""Which model to ask, where, and how: data alone, without the key."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from spanlab.errors import UsageError
from spanlab.lm.addresses import EndpointAddress
from spanlab.lm.options import ModelOptions
from spanlab.schema import Frozen, Name

OPENAI = "https://api.openai.com/v1"
_KEY = "OPENAI_API_KEY"
Dollars = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class TokenPrice(Frozen):
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
    retries: Annotated[int, Field(ge=0, le=20)] = 4
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
            UsageError: nothing names a model, or a variable holds something unusable.
        """
        named = model or _look_up(environ, "SPANLAB_MODEL", role)
        if not named:
            raise UsageError(
                "no language model is named: pass --model NAME or set SPANLAB_MODEL, "
                "for example SPANLAB_MODEL=gpt-4o-mini"
            )
        price = _look_up(environ, "SPANLAB_PRICE", role)
        try:
            return cls(
                model=named,
                base_url=environ.get("OPENAI_BASE_URL") or None,
                price=TokenPrice.parse(price) if price else None,
            )
        except ValueError as error:
            raise UsageError(_first_problem(error)) from None


def _look_up(
    environ: Mapping[str, str], name: str, role: str | tuple[str, ...] | None
) -> str | None:
    roles = (role,) if isinstance(role, str) else role or ()
    special = (environ.get(f"{name}_{each.upper().replace('-', '_')}") for each in roles)
    return next(filter(None, special), environ.get(name))


def _first_problem(error: ValueError) -> str:
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False)[0]
    names = {"base_url": "OPENAI_BASE_URL", "model": "SPANLAB_MODEL"}
    field = str(first["loc"][0])
    return f"{names.get(field, field)}: {first['msg'].removeprefix('Value error, ')}"
