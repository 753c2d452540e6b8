"""What the Detect page asks before detectors start: which ones, with what, on how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import streamlit as st
from pydantic import JsonValue

from spanlab.base.errors import UnderWayError
from spanlab.base.options import options_in
from spanlab.detection.entry import (
    GROUPS,
    BrokenDetector,
    DetectorEntry,
    asks_models,
    entries,
    entry_of,
    installed,
)
from spanlab.detection.estimate import typical_cost
from spanlab.detection.models import SEARCH_KEY, ModelEnvironment
from spanlab.detection.models_panel import (
    ask_model_name,
    draw_model_check,
    draw_model_problem,
    draw_model_setup,
    environment,
    set_up_model,
)
from spanlab.detection.options_form import ask, model_options_form, options_form
from spanlab.detection.request import RunOptions, usual_concurrency
from spanlab.detection.selection import DetectorSelection, is_ensemble
from spanlab.detection.specifications import models_of
from spanlab.jobs import Jobs
from spanlab.jobs.summary import progress_in_words
from spanlab.search.provider import SearchService
from spanlab.search.source import PassageSource, source_kinds
from spanlab.ui.common import actor, kept, plain, server_files
from spanlab.ui.messages import errors_shown

_CALLS = tuple(option.keyword for option in options_in(RunOptions) if option.group == "Model calls")


def run_form() -> dict[str, Any]:
    """Ask what is to be done with a dataset.

    Returns:
        What is filled in now, complete or not: values of ``RunOptions``.
    """
    filled: dict[str, Any] = {}
    _offer_presets()
    filled["detectors"], filled["options"] = _ask_detectors()
    if asking := [name for name in filled["detectors"] if asks_models(name)]:
        left, right = st.columns([1, 1.15], gap="large")
        here = environment()
        with left:
            filled |= _ask_passages(here)
        with right:
            models = ask_model(asking, here)
            models["model_options"] = model_options_form(asking, "detect")
            if here.problem is None:
                draw_model_check(DetectorSelection(detectors=tuple(asking), **models))
            filled |= models
    return filled | _ask_limits(filled["detectors"], bool(asking))


_PRESET = "spanlab.detect.preset"


def _offer_presets() -> None:
    """Offer the few choices that fit most runs; a choice of one's own is none of them."""
    offered = presets()
    chosen = [name for name in installed() if _is_chosen(name)]
    st.session_state[_PRESET] = next(
        (title for title, name in offered.items() if chosen == [name]), None
    )
    st.radio(
        "Detectors, and cost per answer",
        list(offered),
        captions=[_describe_preset(name) for name in offered.values()],
        index=None,
        horizontal=True,
        key=_PRESET,
        on_change=_take_preset,
    )


def presets() -> dict[str, str]:
    """Return the detectors that fit most uses, by the titles that people choose."""
    return {entry.preset: entry.name for entry in entries() if entry.preset}


def _describe_preset(name: str) -> str:
    entry = entry_of(name)
    return f"{plain(entry.title or name)}: {plain(typical_cost(entry))}"


def _take_preset() -> None:
    preset = presets()[st.session_state[_PRESET]]
    for name in installed():
        st.session_state[kept(f"detect.{name}")["key"]] = name == preset
    if is_ensemble(preset):  # its members' own models are several that few people have
        st.session_state[kept(f"detect.one-model.{preset}")["key"]] = True


def _ask_detectors() -> tuple[tuple[str, ...], dict[str, JsonValue]]:
    names: list[str] = []
    offered = sorted(installed().items(), key=lambda named_entry: _group_number(named_entry[1]))
    n_rare = sum(_is_rare(entry) for _, entry in offered)
    with st.expander(
        f"All {len(offered) - n_rare} detectors", key="detectors", icon=":material/checklist:"
    ):
        shown = st.toggle(
            f"And {n_rare} more: baselines, and those that need a checkpoint or another package",
            **kept("detect.rare"),
        )
        for group, members in groupby(offered, lambda named_entry: _group_number(named_entry[1])):
            common = [one for one in members if shown or not _is_rare(one[1]) or _is_chosen(one[0])]
            if common:
                st.markdown(f"**{_GROUPS[group]}**")
            names += [name for name, entry in common if _offer(name, entry)]
    options: dict[str, JsonValue] = {}
    for name in names:
        options |= options_form(name, "detect")
    return tuple(names), options


_GROUPS = (*(f"Needs {group}" for group in GROUPS), "Cannot be used")


def _group_number(entry: DetectorEntry | BrokenDetector) -> int:
    return len(GROUPS) if isinstance(entry, BrokenDetector) else GROUPS.index(entry.group)


def _is_rare(entry: DetectorEntry | BrokenDetector) -> bool:
    """Say whether most people have no use for a detector: it is shown on request."""
    return isinstance(entry, BrokenDetector) or entry.baseline or bool(entry.required)


def _is_chosen(name: str) -> bool:
    return bool(st.session_state.get(kept(f"detect.{name}")["key"]))


def _offer(name: str, entry: DetectorEntry | BrokenDetector) -> bool:
    with st.container(gap=None):
        if isinstance(entry, BrokenDetector):
            st.checkbox(name, disabled=True)
            st.caption(f"Cannot be used: {plain(f'{entry.problem} ({entry.package})')}")
            return False
        label = f"{plain(entry.title)} `{name}`" if entry.title else name
        is_chosen = st.checkbox(label, **kept(f"detect.{name}"))
        cost = plain(typical_cost(entry))
        st.caption(f"{_sentence(entry.what)} Needs {plain(entry.needs)}. Cost per answer: {cost}.")
    return is_chosen


def ask_model(asking: Sequence[str], here: ModelEnvironment | None = None) -> dict[str, Any]:
    """Ask which model these detectors are to ask, and where it is.

    Args:
        asking: names of detectors.
        here: what the environment says, if it was read already.

    Returns:
        Values of ``DetectorSelection``.
    """
    here = here or environment()
    _draw_heading("Model")
    draw_model_problem(here)
    name, cost = st.columns(2)
    with name:
        about = "The model that detectors ask."
        model = ask_model_name("Model", here.model, about, "detect.model")
    with cost:
        filled = ask(DetectorSelection, "detect", "price", price={"default": here.price})
    draw_model_setup(here)
    one_model = False
    for ensemble in filter(is_ensemble, asking):
        own = ", ".join(models_of(ensemble))
        one_model = st.checkbox(
            f"Use this model for all members of {ensemble}",
            help=f"Otherwise each uses its own: {own}.",
            **kept(f"detect.one-model.{ensemble}"),
        )
    return {**filled, "model": set_up_model(model), "one_model": one_model}


def _ask_passages(here: ModelEnvironment) -> dict[str, JsonValue]:
    _draw_heading("Passages")
    files = server_files()
    kinds = [name for name, kind in source_kinds().items() if not kind.corpus or files is not None]
    filled = ask(PassageSource, "detect", "search", search={"choices": tuple(kinds)})
    name = str(filled["search"])
    kind = source_kinds()[name]
    service = kind.service
    st.caption(plain(_describe_service(service, here) if service else kind.about))
    keywords = [
        option.keyword
        for option in options_in(PassageSource)
        if option.name in kind.takes and not (option.name == "url" and service and service.address)
    ]
    filled |= ask(PassageSource, "detect", *keywords, corpus={"label": kind.corpus})
    if "model" in kind.takes:
        state = "is set" if here.has_search_key else "is not set"
        st.caption(plain(f"API key: {SEARCH_KEY} {state}"))
    return filled


def _describe_service(provider: SearchService, here: ModelEnvironment) -> str:
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


def _ask_limits(detectors: tuple[str, ...], asking: bool) -> dict[str, JsonValue]:
    """Ask for limits, which most runs do without."""
    usual = {"placeholder": str(usual_concurrency(detectors))}
    with st.expander("Limits and concurrency", key="limits", icon=":material/tune:"):
        how_many, how_fast, vote = st.columns(3)
        with how_many:
            filled = ask(RunOptions, "detect", "limit", "only_failed")
        with how_fast:
            filled |= ask(RunOptions, "detect", "concurrency", concurrency=usual)
        with vote:
            filled |= ask(RunOptions, "detect", "vote")
        if asking:
            columns = st.columns(3)
            for number, keyword in enumerate(_CALLS):
                with columns[number % 3]:
                    filled |= ask(RunOptions, "detect", keyword)
    return filled


def _draw_heading(text: str) -> None:
    st.header(text, anchor=False)


def _sentence(text: str) -> str:
    return f"{plain(text[:1].upper() + text[1:])}."


_ASKED = "spanlab.start-again"


@dataclass(frozen=True)
class _StartQuestion:
    """Whether to start what a job under way does already; ``form`` is what was filled in."""

    form: str
    job_id: str
    submit: Callable[[bool], object]


def start_job(form: str, submit: Callable[[bool], object] | None) -> None:
    """Start a job, unless one under way does the same: then ask first.

    Args:
        form: what is filled in now; a question is dropped where that changes.
        submit: starts the job, with whether also if one under way does the same; None if nothing
            is to be started now.
    """
    with errors_shown("Nothing was started."):
        if submit is not None:
            st.session_state.pop(_ASKED, None)
            try:
                submit(False)
            except UnderWayError as error:
                st.session_state[_ASKED] = _StartQuestion(form, error.job_id, submit)
            else:
                st.rerun()
        question: _StartQuestion | None = st.session_state.get(_ASKED)
        if question is not None and question.form == form:
            _ask(question)


def _ask(question: _StartQuestion) -> None:
    view = Jobs(actor=actor()).find(question.job_id)
    if view.is_over:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(
            f"Nothing was started: {plain(view.title)} is under way with the same settings "
            f"({plain(progress_in_words(view))}, job {view.id}).",
            icon=":material/content_copy:",
        )
        start_again = st.button(
            "Start it once more",
            icon=":material/replay:",
            key="start-again",
            help="Both would do the same, and be paid for.",
        )
    if start_again:
        st.session_state.pop(_ASKED, None)
        question.submit(True)
        st.rerun()
