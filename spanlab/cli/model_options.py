"""Options of detectors that ask models: which model, which passages, how much it may cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spanlab.errors import UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from spanlab.workflows.choosing import Choice

RetrieverKind = Literal[
    "given",
    "bm25",
    "averitec",
    "arxiv",
    "brave",
    "google",
    "mediawiki",
    "perplexity",
    "pubmed",
    "searxng",
    "semantic-scholar",
    "serper",
    "tavily",
    "wikipedia",
    "web",
    "search",
]
Detectors = Annotated[
    list[str],
    typer.Option("--detector", help="Which detector, e.g. offline or ucsc-extract. Repeatable."),
]
Checked = Annotated[
    list[str] | None,
    typer.Option("--detector", help="Whose models (default: ucsc-extract). Repeatable."),
]
Model = Annotated[
    str | None, typer.Option(help="The model that detectors ask (default: SPANLAB_MODEL).")
]
Retriever = Annotated[
    RetrieverKind | None,
    typer.Option(
        "--search",
        "--retriever",
        help="Where passages come from: the item (given, the default), a local index (bm25), "
        "AVeriTeC's knowledge store (averitec), a search service by name, a search model (web), "
        "or any search API (search).",
    ),
]
SearchUrl = Annotated[
    str | None,
    typer.Option(
        help="The address of the search API, such as that of your SearXNG; it gets no key "
        "(default: SPANLAB_SEARXNG_URL and so on, or the service's own)."
    ),
]
Corpus = Annotated[
    Path | None,
    typer.Option(
        help="For --search bm25: what `spanlab index` has written; for averitec: the folder with "
        "a file of documents for every claim."
    ),
]
Claims = Annotated[
    bool, typer.Option("--claims", help="Search for each claim of the answer, not the question.")
]
English = Annotated[
    bool, typer.Option("--english", help="Put what is searched for into English first.")
]
Config = Annotated[
    Path | None, typer.Option(help="An ensemble of your own, as JSON, in place of ucsc's members.")
]
Program = Annotated[
    str | None, typer.Option(help="A tuned prompt of the registry; none: the detector's own.")
]
MaxCalls = Annotated[int | None, typer.Option(min=1, help="Stop after so many model calls.")]
MaxSearches = Annotated[
    int | None,
    typer.Option(min=1, help="Stop after so many searches of services and calls of tool servers."),
]
MaxCost = Annotated[
    float | None, typer.Option(min=0.0, help="Stop when model calls cost so many US dollars.")
]
Again = Annotated[
    bool,
    typer.Option("--again", help="Also what is done, and also if a job under way does the same."),
]
Rate = Annotated[
    float | None,
    typer.Option(help="At most so many model calls a minute, of all workers together."),
]
Price = Annotated[
    str | None,
    typer.Option(
        help="The model's price: input,cached,output in US dollars per million tokens "
        "(default: SPANLAB_PRICE)."
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help="An option of the detector: NAME=VALUE, or DETECTOR.NAME=VALUE; `spanlab detectors` "
        "lists them. Repeatable.",
    ),
]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model-option",
        help="How models are asked: NAME=VALUE, for some of them ROLE.NAME=VALUE, "
        "DETECTOR.NAME=VALUE or DETECTOR.ROLE.NAME=VALUE. Names: temperature, top_p, seed, "
        "max_tokens, timeout, reasoning_effort, structured, window, thinking; the value none "
        "leaves one to the endpoint (default: SPANLAB_MODEL_OPTIONS, with commas between). "
        "Repeatable.",
    ),
]


def choice(
    detector: Sequence[str],
    model: str | None = None,
    retriever: RetrieverKind | None = None,
    corpus: Path | None = None,
    claims: bool = False,
    english: bool = False,
    config: Path | None = None,
    program: str | None = None,
    price: str | None = None,
    option: Sequence[str] | None = None,
    model_option: Sequence[str] | None = None,
    search_url: str | None = None,
) -> Choice:
    """Return what these options choose; each parameter is the option of its name.

    Raises:
        UsageError: an ``--option`` or a ``--model-option`` has no name or no value.
    """
    from spanlab.lm.options import pairs
    from spanlab.workflows.choosing import Choice
    from spanlab.workflows.passage_sources import Sources

    return Choice(
        detectors=tuple(detector),
        model=model or "",
        price=price or "",
        sources=Sources(retriever or "given", claims, english, str(corpus or ""), search_url or ""),
        program=program or "",
        config=config,
        options=option_pairs(option or ()),
        model_options=pairs(model_option or (), "--model-option"),
    )


def option_pairs(options: Sequence[str]) -> dict[str, JsonValue]:
    """Return options of detectors by name.

    Raises:
        UsageError: one has no name or no value.
    """
    found: dict[str, JsonValue] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not name.strip() or not equals:
            raise UsageError(f"--option takes NAME=VALUE, such as floor=0.9, not {option!r}")
        found[name.strip()] = value.strip()
    return found
