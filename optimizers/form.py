"""What the Optimise page asks before a search: what is tuned, on whose labels, and how long."""

from __future__ import annotations

from typing import Any, get_args

import streamlit as st

from optimizers.choosing import SearchOptions, metrics_of, tunable_members
from optimizers.examples import LabelSource
from optimizers.programs import registry
from optimizers.request import Auto
from spanlab.base.options import options_in
from spanlab.detection.entry import tunable
from spanlab.detection.models import ModelEnvironment
from spanlab.detection.models_panel import (
    ask_model_name,
    draw_model_problem,
    draw_model_setup,
    is_set_up,
    set_up_model,
)
from spanlab.detection.options_form import ask, model_options_form, options_form
from spanlab.schema import DatasetSummary
from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import actor, kept

_HELP = {
    "verdict-f1": "Trials on claims are scored by the share of right verdicts; macro F1 is "
    "measured on held-out claims.",
    "type-f1": "Trials on steps are scored by the share of right types; macro F1 is measured on "
    "held-out steps. The prompts that write answers are tuned where the dataset has "
    "right answers.",
}
_OWN = "The detector's own prompt"
_FOLDS = (0, *range(2, 11))  # one would hold nothing out
_CALLS = tuple(
    option.keyword for option in options_in(SearchOptions) if option.group == "Model calls"
)


def search_form(summary: DatasetSummary, environment: ModelEnvironment) -> dict[str, Any]:
    """Ask what is to be tuned on a dataset.

    Args:
        summary: the dataset.
        environment: what the environment says about models.

    Returns:
        What is filled in now, complete or not: values of ``SearchOptions``.
    """
    left, right = st.columns(2, gap="large")
    with left:
        filled = _ask_prompt() | _ask_labels(summary) | _ask_search()
    with right:
        filled |= _ask_models(filled, environment)
    return filled | _ask_limits(summary)


def _ask_prompt() -> dict[str, Any]:
    st.header("Prompt", anchor=False)
    members = tunable_members()
    detector = st.selectbox(
        "Detector",
        [*tunable(), *members],
        help="Or a member of an ensemble: what is found for it is used by it alone.",
        **kept("optimise.detector"),
    )
    detector = str(detector or "ucsc-extract")
    member = detector if detector in members else ""
    metrics = metrics_of(detector)
    kind = member or (metrics[0] if metrics[0] in _HELP else "")
    metric = {"kind": "choice", "choices": metrics, "about": _HELP.get(kind, "")}
    metric["default"] = members[member].metric if member else metrics[0]
    left, right = st.columns(2)
    with left:  # of another kind the choice is another one, which keeps its own value
        filled = ask(SearchOptions, f"optimise.{kind}".strip("."), "metric", metric=metric)
    programs = [program.name for program in registry(actor=actor()) if program.owner == detector]
    begin = right.selectbox(
        "Start from",
        [_OWN, *programs],
        help="A tuned prompt found earlier can be tuned further.",
        **kept("optimise.begin"),
    )
    filled["program"] = "" if begin in {None, _OWN} else str(begin)
    if member:
        return {**filled, "member": member, "detectors": (members[member].ensemble,)}
    return {**filled, "detectors": (detector,), "options": options_form(detector, "optimise")}


def _ask_labels(summary: DatasetSummary) -> dict[str, Any]:
    st.header("Labels", anchor=False)
    left, right = st.columns(2)
    with left:
        filled: dict[str, Any] = ask(LabelSource, "optimise", "labels")
    labels = filled["labels"]
    if labels != "gold":
        candidates = [
            annotator
            for annotator in summary.annotators
            if labels == "vote" or annotator.kind == "person"
        ]
        names = choose_annotators(
            candidates,
            key=f"optimise-{labels}-{summary.name}",
            default=[] if labels == "vote" else None,
        )
        everybody = labels == "reviewed" and len(names) == len(candidates)
        filled["annotators"] = () if everybody else tuple(names)
    filled["languages"] = right.multiselect(
        "Languages",
        sorted(summary.languages),
        placeholder="all languages",
        **kept("optimise.languages"),
    )
    return filled


def _ask_models(filled: dict[str, Any], environment: ModelEnvironment) -> dict[str, Any]:
    st.header("Models", anchor=False)
    draw_model_problem(environment)
    task, prompt = st.columns(2)
    member = tunable_members().get(filled.get("member", ""))
    with task:
        model = ask_model_name(
            "Task model",
            "" if member else environment.model,
            f"The model that the detector will ask{f'; empty: {member.model}' if member else ''}.",
            f"optimise.model.{filled['member']}" if member else "optimise.model",
        )
    with prompt:
        models: dict[str, Any] = ask(SearchOptions, "optimise", "prompt_model")
    models |= ask(SearchOptions, "optimise", "price", price={"default": environment.price})
    draw_model_setup(environment)
    models["model_options"] = model_options_form(filled["detectors"], "optimise")
    own = member.model if member and is_set_up() else ""
    models["model"] = set_up_model(model or own)
    models["prompt_model"] = set_up_model(str(models["prompt_model"]))
    return models


def _ask_search() -> dict[str, Any]:
    st.header("Search", anchor=False)
    left, right = st.columns(2)
    with left:
        filled: dict[str, Any] = ask(SearchOptions, "optimise", "strategy")
    with right:
        every = {"choices": (*get_args(Auto), "")}
        filled |= ask(SearchOptions, "optimise", "auto", auto=every)
    if not filled["auto"]:
        with right:
            filled |= ask(SearchOptions, "optimise", "trials", trials={"default": 10})
        filled["auto"] = None
    titles = {str(number): f"{number} folds" if number else "none" for number in _FOLDS}
    folds = {"kind": "choice", "choices": _FOLDS, "titles": titles}
    with left:
        return filled | ask(SearchOptions, "optimise", "folds", folds=folds)


def _ask_limits(summary: DatasetSummary) -> dict[str, Any]:
    target_hint = {"placeholder": ", ".join(sorted(summary.languages)[:4]) + " …"}
    filled: dict[str, Any] = {}
    with st.expander("Language, limits and concurrency", key="limits", icon=":material/tune:"):
        keywords = ("target", "transfer", "name", "limit", "concurrency", *_CALLS)
        columns = st.columns(3)
        for number, keyword in enumerate(keywords):
            with columns[number % 3]:
                filled |= ask(SearchOptions, "optimise", keyword, target=target_hint)
    if not filled["target"]:
        filled["transfer"] = "each"
    return filled
