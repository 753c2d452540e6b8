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

from spanlab import _former

__getattr__ = _former.found_in(__name__, "base", "results", "source", "spec")
