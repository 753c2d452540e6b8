"""Which retriever, and how it is asked: a choice that can be kept as JSON, without any key."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)

from spanlab.base.errors import UsageError
from spanlab.base.fields import FrozenModel
from spanlab.base.inbound import brought, foreign
from spanlab.base.options import problem
from spanlab.base.settings import ModelSettings, Settings
from spanlab.models import Meter, ModelChoice, answer_cache, language_model
from spanlab.models.resolving import ModelLayers
from spanlab.search.base import PER_SEARCH, GivenPassages, Retriever
from spanlab.search.endpoint import SearchEndpoint, price_per_search
from spanlab.search.provider import ProviderName
from spanlab.search.providers import PROVIDERS
from spanlab.search.results import ResultShape
from spanlab.search.search import SearchApi
from spanlab.search.search_model import SearchModelRetriever, search_choice
from spanlab.search.source import KIND, PassageSource, source_kinds

WRITER = "retrieval"  # the role of the model that writes claims and translates
SEARCHER = "search"  # and of a search model


class _SourceSpec(FrozenModel):
    kind: str

    @model_serializer(mode="wrap")
    def _kind_is_always_written(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {"kind": self.kind, **write(self)}

    @abstractmethod
    def _open(self, meter: Meter, settings: Settings) -> Retriever:
        """Build the retriever, without what writes or translates its queries."""


class GivenSpec(_SourceSpec):
    """The passages that an item has; nothing is searched for."""

    kind: Literal["given"] = "given"

    def _open(self, meter: Meter, settings: Settings) -> Retriever:
        return GivenPassages()


class _SearchSource(_SourceSpec):
    """What searches: ``queries`` says for what, the item's question or every claim of its answer.

    With ``translate`` that is put into English first; the answer stays as it is. ``writer`` is the
    model that writes claims and translates (else SPANLAB_MODEL_RETRIEVAL or SPANLAB_MODEL). ``k``
    is how many passages each query gives at most.
    """

    queries: Literal["question", "claims"] = "question"
    translate: bool = False
    writer: ModelChoice | None = None
    k: Annotated[int, Field(ge=1, le=100)] = PER_SEARCH


class _InCorpus(_SearchSource):
    """What searches files of this machine; ``what_it_is`` says to people what ``corpus`` is."""

    corpus: Path
    what_it_is: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _has_a_corpus(cls, fields: object) -> object:
        if isinstance(fields, Mapping) and fields.get("corpus") is None:
            raise ValueError(f"name {cls.what_it_is}")
        return fields


class Bm25Spec(_InCorpus):
    """A local corpus; ``corpus`` is the index that `spanlab index` has written."""

    kind: Literal["bm25"] = "bm25"
    what_it_is = "the index (--corpus) that `spanlab index CORPUS -o INDEX` has written"

    def _open(self, meter: Meter, settings: Settings) -> Retriever:
        from spanlab.search.local_search import bm25

        return bm25(self.corpus, k=self.k)


class AveritecSpec(_InCorpus):
    """AVeriTeC's knowledge store; ``corpus`` is the folder with a file of documents per claim."""

    kind: Literal["averitec"] = "averitec"
    what_it_is = "the folder (--corpus) with a file of documents for every claim"

    def _open(self, meter: Meter, settings: Settings) -> Retriever:
        from spanlab.search.local_search import KnowledgeStore

        return KnowledgeStore(self.corpus, settings.home / "cache" / "averitec", self.k)


class WebSpec(_SearchSource):
    """A search model; without ``model`` the environment names it."""

    kind: Literal["web"] = "web"
    model: ModelChoice | None = None

    def _open(self, meter: Meter, settings: Settings) -> Retriever:
        cache = answer_cache(settings, "retrieval")
        return SearchModelRetriever(self.model or search_choice(), meter, cache, self.k)


class SearchSpec(_SearchSource):
    """A search service: a known one by name, or any other by its address and its results' form.

    What is left out the environment says; no key is sent to a ``url`` that stands here.
    """

    kind: Literal["search"] = "search"
    provider: ProviderName | None = None
    url: str | None = None
    shape: ResultShape | None = None

    def _open(self, meter: Meter, settings: Settings) -> Retriever:
        cache = answer_cache(settings, "retrieval")
        return SearchApi(self.endpoint(), cache, k=self.k, meter=meter, name=self.provider or "")

    def price(self) -> float:
        """Return what a search costs in US dollars.

        Raises:
            UsageError: the environment names something else than a price.
        """
        return price_per_search(PROVIDERS[self.provider] if self.provider else None)

    def endpoint(self) -> SearchEndpoint:
        """Return the endpoint of the search service.

        Raises:
            UsageError: no address or key is named, or something in the environment is unusable.
        """
        if self.provider is not None:
            return SearchEndpoint.of(self.provider, url=self.url)
        return SearchEndpoint.read(url=self.url, shape=self.shape)


class PackageSpec(_SearchSource):
    """A retriever that an installed package brings under a name."""

    kind: Literal["package"] = "package"
    name: str

    def _open(self, meter: Meter, settings: Settings) -> Retriever:
        create = brought(KIND, self.name)
        with foreign(f"the retriever {self.name!r} cannot be made", UsageError):
            package_retriever: Retriever = create(self.k)
            return package_retriever


_SPECS: dict[str, type[_SourceSpec]] = {
    "given": GivenSpec,
    "bm25": Bm25Spec,
    "averitec": AveritecSpec,
    "web": WebSpec,
    "search": SearchSpec,
    "package": PackageSpec,
}
_FIELDS = {name for spec in _SPECS.values() for name in spec.model_fields}


def _of_one_kind(fields: object) -> object:
    """Leave out fields of other kinds: one class had all of them, and so has stored JSON."""
    if not isinstance(fields, Mapping):
        return fields
    kind = str(fields.get("kind", "given"))
    if kind == "given" and (fields.get("queries") == "claims" or fields.get("translate")):
        raise ValueError("the given passages are not asked for: no claims, no translation")
    own = _SPECS[kind].model_fields if kind in _SPECS else _FIELDS
    own_fields = {name: fields[name] for name in fields if name in own or name not in _FIELDS}
    return {"kind": kind} | own_fields


RetrieverSpec = Annotated[
    Annotated[
        GivenSpec | Bm25Spec | AveritecSpec | WebSpec | SearchSpec | PackageSpec,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_of_one_kind),
]
_ANY: TypeAdapter[RetrieverSpec] = TypeAdapter(RetrieverSpec)


def writing_model(layers: ModelLayers | None = None) -> ModelChoice:
    """Return the model that writes claims and translates; its own variable goes before the chosen.

    Args:
        layers: what is said of models; None reads the environment.

    Raises:
        UsageError: nothing names one, or an option or an address is unusable.
    """
    layers = layers or ModelLayers()
    if layers.environ.get(ModelSettings.variable("model", WRITER), "").strip():
        layers = replace(layers, model="")
    return layers.resolve(roles=(WRITER,), addresses=("", WRITER))


def retriever_spec(fields: Mapping[str, object]) -> RetrieverSpec:
    """Return the specification that fields amount to, ``kind`` among them.

    Raises:
        pydantic.ValidationError: there is no such kind, or a field does not fit.
    """
    return _ANY.validate_python(fields)


# What not every source has, as messages name it.
_OWN = {
    "corpus": "a corpus (--corpus)",
    "url": "an address (--search-url)",
    "model": "a model (--search-model)",
}


def specified(source: PassageSource) -> RetrieverSpec | None:
    """Return the retriever that a source amounts to; None for the passages that items have.

    Raises:
        UsageError: something is missing, does not fit, or belongs to another source.
    """
    if source.kind == "given":
        if source != PassageSource():
            raise UsageError(
                "passages that an item has are not searched: a corpus, an address, claims and "
                "English queries go with another source (--search)"
            )
        return None
    kind = source.kind if source.kind in _SPECS else "package"
    fields: dict[str, object] = {
        "kind": "search" if source.kind in PROVIDERS else kind,
        "name": source.kind,
        "provider": source.kind if source.kind in PROVIDERS else None,
        "queries": "claims" if source.claims else "question",
        "translate": source.translate,
        "corpus": source.corpus,
        "url": source.url.strip() or None,
        "k": source.k,
    }
    try:
        source_spec = retriever_spec(fields)
    except ValidationError as error:
        raise UsageError(f"passages from {source.kind}: {problem(error)}") from None
    for name, title in _OWN.items():
        if getattr(source, name) and name not in source_kinds()[source.kind].takes:
            raise UsageError(f"passages from {source.kind}: {title} needs another source")
    return source_spec


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
    source = spec._open(meter, settings)
    if isinstance(spec, GivenSpec) or (spec.queries == "question" and not spec.translate):
        return source
    lm = language_model(
        spec.writer or writing_model(), meter, cache=answer_cache(settings, "models")
    )
    if spec.queries == "claims":
        from spanlab.search.queries import ClaimQueries

        return ClaimQueries(source, lm, english=spec.translate)
    from spanlab.search.queries import EnglishQueries

    return EnglishQueries(source, lm)
