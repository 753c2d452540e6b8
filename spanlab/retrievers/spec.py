"""Which retriever, and how it is asked: a choice that can be kept as JSON, without any key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from spanlab.errors import UsageError
from spanlab.fields import Frozen
from spanlab.lm import Meter, ModelChoice
from spanlab.retrievers.base import Retriever
from spanlab.retrievers.given import given
from spanlab.retrievers.results import Shape
from spanlab.settings import Settings

WRITER = "retrieval"  # the role of the model that writes claims and translates


class RetrieverSpec(Frozen):
    """Where passages come from.

    ``queries`` says what is asked: the item's question, or every claim of its answer. With
    ``translate`` that is put into English first; the answer stays as it is. ``corpus`` is the
    index that ``bm25`` searches. ``model`` is the search model of ``web``; ``url`` and ``shape``
    are the address and the form of the results of ``search``: without them the environment says.
    ``writer`` is the model that writes claims and translates (else SPANLAB_MODEL_RETRIEVAL or
    SPANLAB_MODEL). ``k`` is how many passages each query gives at most.
    """

    kind: Literal["given", "bm25", "web", "search"] = "given"
    queries: Literal["question", "claims"] = "question"
    translate: bool = False
    corpus: Path | None = None
    model: ModelChoice | None = None
    url: str | None = None
    shape: Shape | None = None
    writer: ModelChoice | None = None
    k: Annotated[int, Field(ge=1, le=100)] = 5

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if self.kind == "bm25" and self.corpus is None:
            raise ValueError("bm25 needs a corpus: the index that `spanlab index` has written")
        if self.kind == "given" and (self.queries != "question" or self.translate):
            raise ValueError("the given passages are not asked for: no claims, no translation")
        return self


def retriever(spec: RetrieverSpec, meter: Meter, settings: Settings) -> Retriever:
    """Build the retriever that a specification describes.

    Args:
        spec: which one.
        meter: counts the model calls it makes and stops them at its budget.
        settings: what was fetched is kept below ``settings.home``.

    Raises:
        UsageError: something it needs is not installed or not named.
        InputError: the index cannot be used.
        StoreError: the cache cannot be used.
    """
    found = _BUILDERS[spec.kind](spec, meter, settings)
    if spec.queries == "question" and not spec.translate:
        return found
    from spanlab.lm import language_model

    choice = spec.writer or ModelChoice.read(role=WRITER)
    lm = language_model(choice, meter, cache=settings.home / "cache" / "models")
    if spec.queries == "claims":
        from spanlab.retrievers.claims import claim_queries

        return claim_queries(found, lm, english=spec.translate)
    from spanlab.retrievers.translation import translated

    return translated(found, lm)


def _given(_spec: RetrieverSpec, _meter: Meter, _settings: Settings) -> Retriever:
    return given()


def _bm25(spec: RetrieverSpec, _meter: Meter, _settings: Settings) -> Retriever:
    from spanlab.retrievers.bm25 import bm25

    if spec.corpus is None:
        raise UsageError("bm25 needs a corpus: the index that `spanlab index` has written")
    return bm25(spec.corpus, k=spec.k)


def _web(spec: RetrieverSpec, meter: Meter, settings: Settings) -> Retriever:
    from spanlab.lm.search import search_choice
    from spanlab.retrievers.web import web

    return web(spec.model or search_choice(), meter, cache=_cache(settings), k=spec.k)


def _search(spec: RetrieverSpec, _meter: Meter, settings: Settings) -> Retriever:
    from spanlab.retrievers.endpoint import Endpoint
    from spanlab.retrievers.search import search_api

    endpoint = Endpoint.read(url=spec.url, shape=spec.shape)
    return search_api(endpoint, cache=_cache(settings), k=spec.k)


def _cache(settings: Settings) -> Path:
    return settings.home / "cache" / "retrieval"


_BUILDERS: dict[str, Callable[[RetrieverSpec, Meter, Settings], Retriever]] = {
    "given": _given,
    "bm25": _bm25,
    "web": _web,
    "search": _search,
}
