"""Where passages come from, as somebody chooses it, and the retriever that it amounts to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import ValidationError

from spanlab.errors import UsageError
from spanlab.lm import ModelChoice
from spanlab.retrievers import RetrieverSpec, retriever_spec
from spanlab.retrievers.provider import Provider, ProviderName
from spanlab.retrievers.providers import PROVIDERS

__all__ = ["PROVIDERS", "Provider", "SourceKind", "Sources", "provider_of", "read", "search_model"]

SourceKind = Literal["given", "bm25", "averitec", "web", "search"] | ProviderName

# What not every source has: how the command line and the pages name it.
_OPTIONS: Final = {
    "corpus": "a corpus (--corpus)",
    "url": "an address (--search-url)",
    "model": "a model",
}


@dataclass(frozen=True)
class Sources:
    """Where passages come from; see ``RetrieverSpec``.

    ``kind`` may be the name of a search service. ``corpus`` is the path of an index, ``url`` the
    address of a search API.
    """

    kind: SourceKind = "given"
    claims: bool = False
    translate: bool = False
    corpus: str = ""
    url: str = ""
    model: str = ""
    k: int = 5


def provider_of(kind: SourceKind) -> Provider | None:
    """Return the search service that a source of passages is; None for the other sources."""
    return {str(name): provider for name, provider in PROVIDERS.items()}.get(kind)


def read(sources: Sources) -> RetrieverSpec | None:
    """Return the retriever that a choice amounts to; None for the passages that items have.

    Raises:
        UsageError: something is missing, does not fit, or belongs to another source.
    """
    if sources.kind == "given":
        if sources != Sources():
            raise UsageError(
                "passages that an item has are not searched: --corpus, --search-url, --claims and "
                "--english go with another source (--search)"
            )
        return None
    provider = None if provider_of(sources.kind) is None else sources.kind
    fields = {
        "kind": "search" if provider else sources.kind,
        "provider": provider,
        "queries": "claims" if sources.claims else "question",
        "translate": sources.translate,
        "corpus": sources.corpus.strip() or None,
        "url": sources.url.strip() or None,
        "k": sources.k,
    }
    try:
        found = retriever_spec(fields)
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"passages from {sources.kind}: {message}") from None
    for name, title in _OPTIONS.items():
        if getattr(sources, name).strip() and not hasattr(found, name):
            raise UsageError(f"passages from {sources.kind}: {title} goes with another source")
    return found


def search_model(sources: Sources | RetrieverSpec, environ: Mapping[str, str]) -> ModelChoice:
    """Return the search model that is named, else that of the environment, with its endpoint."""
    from spanlab.lm.search import search_choice

    choice = search_choice(environ)
    named = sources.model.strip() if isinstance(sources, Sources) else ""
    if not named or named == choice.model:
        return choice
    return choice.model_copy(update={"model": named, "price": None})
