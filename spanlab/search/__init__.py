"""Retrievers: from a query to passages that an answer can be judged by.

    given ─────────────── the passages an item came with
    bm25 ──────────────── a local corpus, indexed by `spanlab index`
    averitec ──────────── AVeriTeC's knowledge store, a file of documents for every claim
    web ───────────────── a search model such as Perplexity Sonar, with its citations
    search ────────────── a search service by name (`providers`), or any search-results API
    wikipedia ─────────── articles by title, whole and by their parts, for agents
    translated, claims ── what any of them is asked: in English, or claim by claim

``search(query)`` is all that a provider has; ``retrieve`` and ``ensure`` ask it for an item. What
is found is stored with the item, under the retriever's name, and shared by all detectors.
"""

from __future__ import annotations

from spanlab.search.base import (
    GivenPassages,
    RetrievedPassages,
    Retriever,
    SearchQuery,
    ensure,
    retrieval_of,
    retrieve,
)
from spanlab.search.results import ResultShape
from spanlab.search.source import PassageSource
from spanlab.search.spec import (
    AveritecSpec,
    Bm25Spec,
    GivenSpec,
    RetrieverSpec,
    SearchSpec,
    WebSpec,
    retriever,
    retriever_spec,
    specified,
)

__all__ = [
    "AveritecSpec",
    "Bm25Spec",
    "GivenPassages",
    "GivenSpec",
    "PassageSource",
    "ResultShape",
    "RetrievedPassages",
    "Retriever",
    "RetrieverSpec",
    "SearchQuery",
    "SearchSpec",
    "WebSpec",
    "ensure",
    "retrieval_of",
    "retrieve",
    "retriever",
    "retriever_spec",
    "specified",
]
