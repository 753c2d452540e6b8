"""Retrievers: from an item to passages that its answer can be judged by.

    given ─────────────── the passages an item came with
    bm25 ──────────────── a local corpus, indexed by `spanlab index`
    web ───────────────── a search model such as Perplexity Sonar, with its citations
    search ────────────── a plain search-results API
    translated, claims ── what any of them is asked: in English, or claim by claim

What is found is stored with the item, under the retriever's name, and shared by all detectors.
"""

from __future__ import annotations

from spanlab.passages import Merged, merged, renumbered
from spanlab.retrievers.asking import ensure
from spanlab.retrievers.base import Found, Retriever
from spanlab.retrievers.given import given
from spanlab.retrievers.results import Shape
from spanlab.retrievers.spec import RetrieverSpec, retriever

__all__ = [
    "Found",
    "Merged",
    "Retriever",
    "RetrieverSpec",
    "Shape",
    "ensure",
    "given",
    "merged",
    "renumbered",
    "retriever",
]
