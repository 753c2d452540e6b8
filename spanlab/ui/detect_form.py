"""What the Detect page asks before detectors start: which ones, with what, on how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st
from pydantic import JsonValue

from spanlab.schema import DatasetSummary
from spanlab.ui.common import kept, plain, server_files
from spanlab.ui.limits import cost_limit, rate_limit, whole_number
from spanlab.ui.messages import errors_shown
from spanlab.ui.model_check import model_check
from spanlab.ui.model_setup import model_problem, model_setup, set_up_model
from spanlab.ui.option_form import model_options_form, options_form
from spanlab.workflows.choosing import (
    Broken,
    Choice,
    Entry,
    asks_models,
    installed,
    is_ensemble,
    models_of,
)
from spanlab.workflows.environment import ModelEnvironment
from spanlab.workflows.passage_sources import PROVIDERS, Provider, SourceKind, Sources, provider_of
from spanlab.workflows.requesting import RunForm, usual_concurrency
from spanlab.workflows.session_keys import ModelChoice

_SOURCES: dict[str, SourceKind] = {
    "The item's own": "given",
    "A local corpus": "bm25",
    "AVeriTeC's knowledge store": "averitec",
    **{provider.title: name for name, provider in PROVIDERS.items()},
    "A search model": "web",
    "A search API": "search",
}
_ABOUT_SOURCES: dict[SourceKind, str] = {
    "given": "Passages that came with an item, or were found for it before.",
    "bm25": "The best passages of an index that `spanlab index CORPUS -o INDEX` has written, by "
    "the words they share (BM25). Needs no network.",
    "averitec": "A folder with a file of documents for every claim, found before the claim's date. "
    "Pages are not read anew. Needs no network.",
    "web": "A model that searches the web, such as Perplexity's sonar-pro; the pages it cites "
    "become passages. One more call per question.",
    "search": "An address that answers a search with results as JSON. Set SPANLAB_SEARCH_URL and "
    "its key where the app runs, or give an address that needs none.",
}
# Sources that are files of the server: what is asked for.
_FILES: dict[SourceKind, tuple[str, str]] = {
    "bm25": ("Index", "path of the index"),
    "averitec": ("Folder", "path of the folder"),
}


def run_form(summary: DatasetSummary, here: ModelEnvironment) -> RunForm:
    """Ask what is to be done with a dataset.

    Args:
        summary: the dataset.
        here: what the environment says about models.

    Returns:
        What is filled in now, complete or not.
    """
    left, right = st.columns([1.15, 1], gap="large")
    with left:
        chosen, options = _detectors()
    asking = [name for name in chosen if asks_models(name)]
    with right:
        if not asking:
            _heading("Model and passages")
            st.caption(
                "No language model is asked: the passages that an item has are read."
                if chosen
                else "Depends on the detectors: choose at least one."
            )
            model: str | ModelChoice = ""
            one_model, price, sources, asked = False, "", Sources(), dict[str, JsonValue]()
        else:
            model, one_model, price = _model(asking, here)
            asked = model_options_form(asking, "detect")
            if here.problem is None:
                models = Choice(tuple(asking), model, one_model, price, model_options=asked)
                model_check(models)
            sources = _passages(here)
    choice = Choice(chosen, model, one_model, price, sources, options=options, model_options=asked)
    return _bounds(RunForm(summary.name, choice), bool(asking))


def _detectors() -> tuple[tuple[str, ...], dict[str, JsonValue]]:
    _heading("Detectors")
    chosen: list[str] = []
    options: dict[str, JsonValue] = {}
    for name, found in installed().items():
        if _offer(name, found):
            chosen.append(name)
            options |= options_form(name, "detect")
    return tuple(chosen), options


def _offer(name: str, found: Entry | Broken) -> bool:
    with st.container(gap=None):
        if isinstance(found, Broken):
            st.checkbox(name, disabled=True)
            st.caption(f"Cannot be used: {plain(f'{found.problem} ({found.package})')}")
            return False
        chosen = st.checkbox(name, **kept(f"detect.{name}"))
        st.caption(f"{_sentence(found.what)} Needs {plain(found.needs)}.")
    return chosen


def _model(asking: Sequence[str], here: ModelEnvironment) -> tuple[str | ModelChoice, bool, str]:
    _heading("Model")
    model_problem(here)
    name, cost = st.columns([1.4, 1])
    model = name.text_input(
        "Model",
        here.model,
        placeholder="for example gpt-4o-mini",
        help="As the endpoint calls it. SPANLAB_MODEL, where the app runs, fills this in.",
        **kept("detect.model"),
    )
    price = cost.text_input(
        "Price per million tokens (optional)",
        here.price,
        placeholder="0.15,0.075,0.60",
        help="US dollars per million tokens: input, cached input, output. Only with a price can "
        "cost be shown and limited. SPANLAB_PRICE fills this in.",
        **kept("detect.price"),
    )
    model_setup(here)
    one_model = False
    for ensemble in filter(is_ensemble, asking):
        own = ", ".join(models_of(ensemble))
        one_model = st.checkbox(
            f"Use this model for all members of {ensemble}",
            help=f"Otherwise each uses its own: {own}.",
            **kept(f"detect.one-model.{ensemble}"),
        )
    return set_up_model(model or ""), one_model, price or ""


def _passages(here: ModelEnvironment) -> Sources:
    _heading("Passages")
    files = server_files()
    kinds = [name for name, kind in _SOURCES.items() if kind not in _FILES or files is not None]
    label = st.selectbox("Source of passages", kinds, **kept("detect.sources"))
    kind = _SOURCES[label or "The item's own"]
    provider = provider_of(kind)
    st.caption(plain(_ABOUT_SOURCES[kind] if provider is None else _about(provider, here)))
    if kind == "given":
        return Sources()
    corpus = url = model = ""
    if kind in _FILES and files is not None:
        what, example = _FILES[kind]
        named = st.text_input(what, placeholder=example, **kept(f"detect.{what.lower()}"))
        with errors_shown():
            corpus = str(files.path(named)) if named else ""
    elif kind == "web":
        model = st.text_input("Search model", "sonar-pro", **kept("detect.searcher"))
        state = "is set" if here.has_search_key else "is not set"
        st.caption(plain(f"API key: {here.search_key_name} {state}"))
    elif provider is None or not provider.address:
        url = st.text_input(
            "Address (optional)",
            placeholder="https://…",
            help="Of the API. A key of the environment is not sent to an address typed here.",
            **kept("detect.search-url"),
        )
    claims = st.radio(
        "Search queries",
        ["The question", "Every claim of the answer"],
        horizontal=True,
        help="Claims cover what the question never asked, with one more call per item.",
        **kept("detect.queries"),
    )
    translate = st.checkbox(
        "Translate queries into English",
        help="Puts what is searched for into English first, with one more call; the answer stays "
        "in its language.",
        **kept("detect.translate"),
    )
    number = st.number_input("Passages per search", 1, 100, 5, **kept("detect.k"))
    return Sources(
        kind, claims != "The question", translate, corpus or "", url or "", model or "", int(number)
    )


def _about(provider: Provider, here: ModelEnvironment) -> str:
    """Say what a search service needs and costs."""
    needed = [name for name in (provider.key, *provider.environment.values()) if name]
    if not provider.address:
        needed.append(provider.variable)
    states = [
        f"{name} is {'set' if name in here.search_variables else 'not set'}" for name in needed
    ]
    dollars = f"about ${provider.price * 1000:g} per 1,000 searches" if provider.price else "free"
    parts = [f"{provider.title}: {dollars}", provider.quota, *states]
    return f"{'; '.join(filter(None, parts))}."


def _bounds(form: RunForm, asking: bool) -> RunForm:
    """Ask for limits, which most runs do without."""
    with st.expander("Limits and concurrency", icon=":material/tune:"):
        how_many, how_fast, vote = st.columns(3)
        with how_many:
            limit = whole_number("Maximum items", "detect.limit")
            failed = st.checkbox(
                "Only items that failed",
                help="Those on which one of these detectors failed before.",
                **kept("detect.only-failed"),
            )
        with how_fast:
            fast = whole_number(
                "Concurrent items",
                "detect.concurrency",
                empty=str(usual_concurrency(form.choice.detectors)),
                about="More go faster, as far as the endpoint lets you.",
            )
        name = vote.text_input(
            "Vote of these detectors (optional)",
            placeholder="name of the vote",
            help="Counts which share of the detectors marks each character.",
            **kept("detect.vote"),
        )
        form = replace(
            form, limit=limit, only_failed=failed, concurrency=fast, vote=(name or "").strip()
        )
        if not asking:
            return form
        pace, calls, tokens, cost = st.columns(4)
        with pace:
            rate = rate_limit("detect.rate")
        with calls:
            most_searches = whole_number("Maximum searches", "detect.searches")
            most_calls = whole_number("Maximum calls", "detect.calls")
        with tokens:
            most_tokens = whole_number("Maximum tokens", "detect.tokens")
        with cost:
            most_cost = cost_limit("detect.cost")
    return replace(
        form,
        rate=rate,
        budget_calls=most_calls,
        budget_tokens=most_tokens,
        budget_cost=most_cost,
        budget_searches=most_searches,
    )


def _heading(text: str) -> None:
    st.subheader(text, anchor=False)


def _sentence(text: str) -> str:
    return f"{plain(text[:1].upper() + text[1:])}."
