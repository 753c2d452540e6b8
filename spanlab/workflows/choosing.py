"""What people can choose for a run of detectors, and the request that their choice makes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from pydantic import ValidationError

from spanlab.detectors import (
    Broken,
    DetectorSpec,
    EnsembleSpec,
    Entry,
    Spec,
    asks_models,
    entry_of,
    installed,
    spec_of,
)
from spanlab.errors import UsageError
from spanlab.lm import Budget, ModelChoice, Price
from spanlab.retrievers import RetrieverSpec, retriever_spec
from spanlab.schema import Status
from spanlab.workflows.requesting import problem
from spanlab.workflows.runs import RunRequest

if TYPE_CHECKING:
    from spanlab.storage import Store

__all__ = [
    "Broken",
    "Entry",
    "Sources",
    "Surroundings",
    "Wish",
    "asks_models",
    "installed",
    "is_ensemble",
    "models_of",
    "request_of",
    "surroundings",
]

SourceKind = Literal["given", "bm25", "web", "search"]

_OPENAI = "https://api.openai.com/v1"
_KEY = "OPENAI_API_KEY"
_SEARCH_KEY = "SPANLAB_SEARCH_API_KEY"
_PAGE = 1000  # ids read at once


@dataclass(frozen=True)
class Surroundings:
    """What the environment says about language models; never a key.

    ``model`` and ``price`` are empty if it says nothing. ``endpoint`` is the address of the API
    without user, password and query. ``problem`` says what has to be done before any model can be
    asked, None if nothing has.
    """

    model: str
    price: str
    endpoint: str
    key_name: str
    has_key: bool
    problem: str | None
    search_key_name: str = _SEARCH_KEY
    has_search_key: bool = False


@dataclass(frozen=True)
class Sources:
    """Where passages come from; see ``RetrieverSpec``. ``corpus`` is the path of an index."""

    kind: SourceKind = "given"
    claims: bool = False
    translate: bool = False
    corpus: str = ""
    url: str = ""
    model: str = ""
    k: int = 5


@dataclass(frozen=True)
class Wish:
    """What somebody filled in; empty texts are what was left out.

    ``model`` is asked by all detectors; an ensemble's members keep their own unless
    ``one_model``. ``price`` is "input,cached,output" in US dollars per million tokens.
    ``only_failed`` takes up nothing but items that one of the detectors failed on. ``rate`` is how
    many model calls may begin in a minute.
    """

    dataset: str
    detectors: tuple[str, ...] = ()
    model: str = ""
    one_model: bool = False
    price: str = ""
    sources: Sources = Sources()
    concurrency: int = 8
    limit: int | None = None
    only_failed: bool = False
    budget_calls: int | None = None
    budget_tokens: int | None = None
    budget_cost: float | None = None
    rate: float | None = None
    vote: str = ""


def is_ensemble(name: str) -> bool:
    """Say whether a name stands for several detectors and their vote."""
    return entry_of(name).members is not None


def models_of(name: str) -> tuple[str, ...]:
    """Return the models that a detector's members name themselves, each once."""
    spec = spec_of(name)
    members = spec.members if isinstance(spec, EnsembleSpec) else (spec,)
    return tuple(dict.fromkeys(each.model.model for each in members if each.model))


def surroundings(environ: Mapping[str, str] = os.environ) -> Surroundings:
    """Return what the environment says about language models."""
    url = environ.get("OPENAI_BASE_URL", "").strip()
    has_key = bool(environ.get(_KEY, "").strip())
    problem = None
    if find_spec("dspy") is None:
        problem = "Detectors that ask a model need more packages: pip install 'spanlab[llm]'."
    elif not has_key and not url:
        problem = (
            f"No language model can be reached yet: set {_KEY} to a key of OpenAI, or "
            "OPENAI_BASE_URL to another endpoint of the same protocol, and start the app again."
        )
    return Surroundings(
        model=environ.get("SPANLAB_MODEL", "").strip(),
        price=environ.get("SPANLAB_PRICE", "").strip(),
        endpoint=_bare(url) if url else _OPENAI,
        key_name=_KEY,
        has_key=has_key,
        problem=problem,
        has_search_key=bool(environ.get(_SEARCH_KEY, "").strip()),
    )


def request_of(store: Store, wish: Wish, environ: Mapping[str, str] = os.environ) -> RunRequest:
    """Return the request that a wish amounts to.

    Args:
        store: the annotation database, asked for the items that failed.
        wish: what was filled in.
        environ: names models and endpoints where the wish does not.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: something is missing or cannot be meant so; says what would be right.
    """
    if not wish.detectors:
        raise UsageError("choose at least one detector")
    try:
        request = RunRequest(
            dataset=wish.dataset,
            detectors=tuple(_spec(name, wish, environ) for name in wish.detectors),
            vote=wish.vote.strip() or None,
            concurrency=wish.concurrency,
            limit=wish.limit,
            budget=_budget(wish),
            rate=wish.rate,
        )
    except ValidationError as error:
        raise UsageError(problem(error)) from None
    return _of_failed(store, request) if wish.only_failed else request


def _spec(name: str, wish: Wish, environ: Mapping[str, str]) -> Spec:
    spec = spec_of(name)
    if not asks_models(name):
        return spec
    sources = _retriever(wish, environ)
    if isinstance(spec, EnsembleSpec):
        members = tuple(_member(member, wish, sources, environ) for member in spec.members)
        return spec.model_copy(update={"members": members})
    return _asking(spec, wish, sources, environ)


def _member(
    spec: DetectorSpec, wish: Wish, sources: RetrieverSpec | None, environ: Mapping[str, str]
) -> DetectorSpec:
    if spec.model is None or wish.one_model:
        return _asking(spec, wish, sources, environ)
    here = ModelChoice.read(environ, model=spec.model.model)
    model = spec.model.model_copy(update={"base_url": spec.model.base_url or here.base_url})
    return spec.model_copy(update={"model": model, "retriever": spec.retriever or sources})


def _asking(
    spec: DetectorSpec, wish: Wish, sources: RetrieverSpec | None, environ: Mapping[str, str]
) -> DetectorSpec:
    choice = ModelChoice.read(environ, model=wish.model.strip() or None, role=spec.detector)
    own = {} if spec.model is None else spec.model.model_dump(exclude_unset=True)
    price = {"price": Price.parse(wish.price)} if wish.price.strip() else {}
    keep = {name: own[name] for name in _MANNERS & own.keys()}
    model = choice.model_copy(update={**keep, **price})
    return spec.model_copy(update={"model": model, "retriever": spec.retriever or sources})


_MANNERS = {"temperature", "seed", "max_tokens"}  # of a member, that hold for any model


def _retriever(wish: Wish, environ: Mapping[str, str]) -> RetrieverSpec | None:
    sources = wish.sources
    if sources.kind == "given":
        return None
    if sources.kind == "bm25" and not sources.corpus.strip():
        raise UsageError("name the index that `spanlab index CORPUS -o INDEX` has written")
    writer = None
    if sources.claims or sources.translate:
        writer = ModelChoice.read(environ, model=wish.model.strip() or None, role="retrieval")
    fields: dict[str, object] = {
        "kind": sources.kind,
        "queries": "claims" if sources.claims else "question",
        "translate": sources.translate,
        "corpus": sources.corpus.strip(),
        "url": sources.url.strip() or None,
        "model": _searcher(sources, environ) if sources.kind == "web" else None,
        "writer": writer,
        "k": sources.k,
    }
    return retriever_spec(fields)


def _searcher(sources: Sources, environ: Mapping[str, str]) -> ModelChoice:
    from spanlab.lm.search import search_choice

    choice, named = search_choice(environ), sources.model.strip()
    if not named or named == choice.model:
        return choice
    return choice.model_copy(update={"model": named, "price": None})


def _budget(wish: Wish) -> Budget | None:
    budget = Budget(calls=wish.budget_calls, tokens=wish.budget_tokens, cost=wish.budget_cost)
    return None if budget == Budget() else budget


def _of_failed(store: Store, request: RunRequest) -> RunRequest:
    failed: dict[str, None] = {}
    for spec in request.specs:
        failed |= dict.fromkeys(_failed_ids(store, request.dataset, spec.signs))
    if not failed:
        raise UsageError("none of these detectors failed on an item of this dataset")
    return request.model_copy(update={"items": tuple(failed)})


def _failed_ids(store: Store, dataset: str, annotator: str) -> list[str]:
    from spanlab.storage import QueueQuery

    query = QueueQuery(reviewer=annotator, status=Status.FAILED, limit=_PAGE)
    page = store.page(dataset, query)
    ids = [row.item_id for row in page.rows]
    while page.next is not None:
        page = store.page(dataset, replace(query, after=page.next))
        ids += [row.item_id for row in page.rows]
    return ids


def _bare(url: str) -> str:
    """Return an address without what may be a secret in it."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}".rstrip("/")
