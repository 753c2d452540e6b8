"""The options that say where passages come from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator

from spanlab.base.inbound import offered
from spanlab.base.options import OptionModel, option
from spanlab.search.base import PER_SEARCH
from spanlab.search.provider import SearchService
from spanlab.search.providers import PROVIDERS


class SourceKind(NamedTuple):
    """A kind of source of passages.

    Attributes:
        title: what it is called on the screen.
        about: what it is and needs; empty where the search service says so itself.
        takes: the options of ``PassageSource`` that go with it.
        corpus: what its files are called, for those on this machine.
        service: the search service that it is.
    """

    title: str
    about: str = ""
    takes: frozenset[str] = frozenset()
    corpus: str = ""
    service: SearchService | None = None


KIND: Final = "retrievers"  # under which packages offer them; each makes a retriever, given k
_SEARCHED = frozenset({"claims", "translate", "k"})
SOURCE_KINDS: Final[Mapping[str, SourceKind]] = {
    "given": SourceKind(
        "The item's own", "Passages that came with an item, or were found for it before."
    ),
    "bm25": SourceKind(
        "A local corpus",
        "The best passages of an index that `spanlab index CORPUS -o INDEX` has written, by the "
        "words they share (BM25). Needs no network.",
        _SEARCHED | {"corpus"},
        "Index",
    ),
    "averitec": SourceKind(
        "AVeriTeC's knowledge store",
        "A folder with a file of documents for every claim, found before the claim's date. Pages "
        "are not fetched again. Needs no network.",
        _SEARCHED | {"corpus"},
        "Folder",
    ),
    **{
        str(name): SourceKind(service.title, "", _SEARCHED | {"url"}, service=service)
        for name, service in PROVIDERS.items()
    },
    "web": SourceKind(
        "A search model",
        "A model that searches the web, such as Perplexity's sonar-pro; the pages it cites become "
        "passages. One more call per question.",
        _SEARCHED | {"model"},
    ),
    "search": SourceKind(
        "A search API",
        "An address that answers a search with results as JSON. Set SPANLAB_SEARCH_URL and its key "
        "where the app runs, or give an address that needs none.",
        _SEARCHED | {"url"},
    ),
}


@cache
def source_kinds() -> Mapping[str, SourceKind]:
    """Return the kinds of sources by name, with the retrievers that installed packages bring."""
    names = sorted(set(offered(KIND)) - SOURCE_KINDS.keys())
    about = "Brought by an installed package."
    return {**SOURCE_KINDS, **{name: SourceKind(name, about, _SEARCHED) for name in names}}


def _check_kind(kind: str) -> str:
    if kind not in source_kinds():
        raise ValueError(
            f"passages cannot come from {kind!r}; available: {', '.join(source_kinds())}"
        )
    return kind


class _KindSchema:
    def __get_pydantic_json_schema__(self, *_: object) -> dict[str, object]:
        return {"type": "string", "enum": list(source_kinds())}


KindName = Annotated[str, AfterValidator(_check_kind), _KindSchema()]


class PassageSource(OptionModel):
    """Where passages come from, and what is searched for; ``specified`` makes a retriever of it."""

    kind: KindName = option(
        "given",
        title="Source of passages",
        help="Where passages come from: the item (given, the default), a local index (bm25), "
        "AVeriTeC's knowledge store (averitec), a search service by name, a search model (web), "
        "any search API (search), or what an installed package brings.",
        flags="--retriever --search",
        group="Passages",
        titles={name: kind.title for name, kind in SOURCE_KINDS.items()},
    )
    corpus: Path | None = option(
        None,
        title="Index or folder",
        help="For bm25: an index that `spanlab index` wrote. For averitec: the folder of the "
        "knowledge store, with a file of documents for every claim.",
        flags="--corpus",
        group="Passages",
    )
    url: str = option(
        "",
        title="Address (optional)",
        help="Address of the search API, such as your SearXNG. No key of the environment is sent "
        "to it (default: SPANLAB_SEARXNG_URL and so on, or the service's own).",
        flags="--search-url",
        group="Passages",
        placeholder="https://…",
    )
    model: str = option(
        "",
        title="Search model",
        help="The model that searches, if one does (web; default: SPANLAB_SEARCH_MODEL).",
        flags="--search-model",
        group="Passages",
        placeholder="sonar-pro",
    )
    claims: bool = option(
        False,
        title="Search queries",
        help="Search for each claim of the answer, in place of the question. This costs one more "
        "call per item.",
        flags="--claims",
        group="Passages",
        titles={"false": "The question", "true": "Every claim of the answer"},
    )
    translate: bool = option(
        False,
        title="Translate queries into English",
        help="Translate queries into English first. This costs one more call. The answer is not "
        "translated.",
        flags="--english",
        group="Passages",
    )
    k: int = option(
        PER_SEARCH,
        title="Passages per search",
        help="How many passages each search gives at most.",
        flags="--passages-per-search",
        group="Passages",
        ge=1,
        le=100,
    )
