"""Where a search API is, how it wants its key, and how its answers look."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from pydantic import JsonValue

from spanlab.base.errors import MissingKeyError, UsageError
from spanlab.base.redaction import remember
from spanlab.base.settings import WebSearchSettings
from spanlab.search.base import SearchQuery
from spanlab.search.provider import FEWEST, ProviderName, SearchService, ServiceRequest
from spanlab.search.providers import PROVIDERS
from spanlab.search.results import ResultShape

_URL = WebSearchSettings.variable("search_url")
_LONGEST = 2_000  # characters of a query, URL-encoded up to 18,000
_LOOKS_LIKE = "https://api.example.com/search?q={query}"


@dataclass(frozen=True)
class SearchEndpoint:
    """The address of a search API, how it is asked, and how its answers look.

    Without a ``provider``, ``url`` has ``{query}`` where the query goes, ``{k}`` where the number
    of results does, and ``{before}`` where the day does before which they must be published (ISO,
    or nothing). One without ``{query}`` gets it as JSON, ``{"query": …}``, by POST. ``header``
    carries the key: ``Authorization`` after the word Bearer, any other alone. ``named`` are
    parameters that the environment sets. ``timeout`` is in seconds and holds for one attempt;
    ``retries`` attempts may follow the first. ``price`` is of a search, in US dollars;
    ``rate`` is how many searches a minute may begin, None for any number.
    """

    url: str = field(repr=False)  # some services want the key in it
    header: str = "Authorization"
    key: str = field(default="", repr=False)
    shape: ResultShape = field(default_factory=ResultShape)
    timeout: float = 30.0
    retries: int = 3
    price: float = 0.0
    rate: float | None = None
    provider: SearchService | None = None
    named: Mapping[str, JsonValue] = field(default_factory=dict)
    # That hold the address and the key, for messages.
    variables: tuple[str, str] = (_URL, WebSearchSettings.variable("search_api_key"))

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in {"http", "https"} or not self.host:
            raise UsageError(f"{self.variables[0]} is not an address: it looks like {_LOOKS_LIKE}")

    @property
    def host(self) -> str:
        """Host and port, as messages and names have them."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def moved(self) -> bool:
        """Whether a known service is asked elsewhere than at its usual address."""
        return self.provider is not None and self.url != self.provider.address

    def number_to_ask(self, k: int) -> int:
        """Return how many results to ask for where ``k`` are wanted."""
        return max(k, FEWEST) if self.provider is None else self.provider.number_to_ask(k)

    def cut(self, text: str) -> str:
        """Return a query on one line, as long as the API takes it."""
        if self.provider is not None:
            return self.provider.cut(text)
        return " ".join(text.split())[:_LONGEST]

    def request(self, query: SearchQuery) -> ServiceRequest:
        """Return the request for a query with ``k``."""
        if self.provider is not None:
            return self.provider.request(query, self.url, self.named)
        before = query.before.isoformat() if query.before else ""
        filled = self.url.replace("{k}", str(query.k)).replace("{before}", before)
        if "{query}" in filled:
            return ServiceRequest(filled.replace("{query}", quote(query.text, "")), None)
        return ServiceRequest(filled, {"query": query.text})

    @classmethod
    def read(
        cls,
        environ: Mapping[str, str] = os.environ,
        *,
        url: str | None = None,
        shape: ResultShape | None = None,
    ) -> SearchEndpoint:
        """Return the search API of the environment; see ``WebSearchSettings``.

        Args:
            environ: the environment variables.
            url: goes before the environment's, and without the key: that is for the environment's.
            shape: goes before the environment's.

        Raises:
            UsageError: no address is named, or a variable holds something unusable.
        """
        settings = WebSearchSettings.read(environ)
        address = url or settings.search_url
        if not address:
            raise UsageError(f"no search API is named: set {_URL}, such as {_LOOKS_LIKE}")
        key = settings.search_api_key if address == settings.search_url else ""
        remember(key)
        return cls(
            url=address,
            header=settings.search_key_header,
            key=key,
            shape=shape or _shape(settings.search_fields),
            price=settings.price_per_search or 0.0,
            rate=settings.searches_per_minute or None,
        )

    @classmethod
    def of(
        cls,
        name: ProviderName,
        environ: Mapping[str, str] = os.environ,
        *,
        url: str | None = None,
    ) -> SearchEndpoint:
        """Return the endpoint of a known service, with its key from the environment.

        Args:
            name: which service.
            environ: the environment variables.
            url: of its API, in place of the usual one; it gets no key.

        Raises:
            MissingKeyError: the service needs a key, or another value, and none is set.
            UsageError: it is everybody's own and no address is named, or that is none.
        """
        provider = PROVIDERS[name]
        moved = environ.get(provider.variable, "").strip()
        address = url or moved or provider.address
        if not address:
            raise UsageError(
                f"{provider.title}: name the address of its API (--search-url), "
                f"here or in {provider.variable}"
            )
        if name == "searxng" and not urlsplit(address).path.rstrip("/").endswith("/search"):
            address = address.rstrip("/") + "/search"
        key = environ.get(provider.key, "").strip() if provider.key and not url else ""
        named = {field: environ.get(place, "") for field, place in provider.environment.items()}
        if address == provider.address:
            needed = {provider.key: key} if provider.key and provider.needs_key else {}
            needed |= {place: named[field] for field, place in provider.environment.items()}
            missing = [place for place, value in needed.items() if not value]
            if missing:
                raise MissingKeyError(f"no key for {provider.title}: set {' and '.join(missing)}")
        remember(key)
        return cls(
            url=address,
            header=provider.header,
            key=key,
            shape=provider.shape,
            price=price_per_search(provider, environ),
            rate=WebSearchSettings.read(environ).searches_per_minute or None,
            provider=provider,
            named={field: value for field, value in named.items() if value},
            variables=(provider.variable, provider.key or provider.variable),
        )


def price_per_search(
    provider: SearchService | None, environ: Mapping[str, str] = os.environ
) -> float:
    """Return what a search costs in US dollars: ``SPANLAB_PRICE_PER_SEARCH``, or the list price.

    Args:
        provider: a known service; None for an unknown one, free unless the variable is set.
        environ: the environment variables.

    Raises:
        UsageError: the variable holds no price.
    """
    set_price = WebSearchSettings.read(environ).price_per_search
    listed = provider.price if provider is not None else 0.0
    return listed if set_price is None else set_price


def _shape(text: str) -> ResultShape:
    """Read ``results=data.items,text=body``; empty text is the shape of the usual services."""
    fields: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, sign, path = (part.strip() for part in pair.partition("="))
        if name not in ResultShape.model_fields or not sign or not path:
            variable = WebSearchSettings.variable("search_fields")
            raise UsageError(
                f"{variable} wants {', '.join(ResultShape.model_fields)} with paths, "
                f"such as results=data.items,text=body, not {pair!r}"
            )
        fields[name] = path
    return ResultShape(**fields)
