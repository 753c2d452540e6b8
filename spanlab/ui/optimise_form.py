"""What the Optimise page asks before a search: what is tuned, on whose labels, and how long."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import streamlit as st

from optimizers.choosing import TuningForm, metrics_of, tunable, tunable_members
from spanlab.schema import DatasetSummary
from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import kept
from spanlab.ui.limits import cost_limit, rate_limit, whole_number
from spanlab.ui.model_setup import is_set_up, model_problem, model_setup, set_up_model
from spanlab.ui.option_form import model_options_form, options_form
from spanlab.workflows.choosing import Choice
from spanlab.workflows.environment import ModelEnvironment
from spanlab.workflows.programs import registry

_METRICS = {
    "iou": "IoU of the marked characters",
    "corr": "Corr of the probabilities",
    "max-iou": "MaxIoU, the best with any one annotator",
    "iou+corr": "mean of IoU and Corr",
    "all": "mean of all three",
    "verdict-f1": "macro F1 of verdicts on claims",
    "type-f1": "macro F1 of types of errors in steps",
    "answer-f1": "F1 of the generator's answers to questions",
}
_HELP = {
    "verdict-f1": "Trials on claims are scored by the share of right verdicts; macro F1 is "
    "measured on held-out claims.",
    "type-f1": "Trials on steps are scored by the share of right types; macro F1 is measured on "
    "held-out steps. For answers the prompts of `spanlab reason` are tuned, on questions whose "
    "right answers the dataset has.",
}
_LABELS: dict[str, Literal["gold", "reviewed", "vote"]] = {
    "Gold labels of the dataset": "gold",
    "What people have reviewed": "reviewed",
    "A vote of annotators": "vote",
}
_EFFORTS: dict[str, Literal["light", "medium", "heavy"] | None] = {
    "Light": "light",
    "Medium": "medium",
    "Heavy": "heavy",
    "Custom": None,
}
_TRANSFER: dict[str, Literal["each", "others", "pooled"]] = {
    "items of that language": "each",
    "items of all languages": "pooled",
    "items of the other languages": "others",
}
_OWN = "The detector's own prompt"
_FOLDS = [0, *range(2, 11)]  # one would hold nothing out


def tuning_form(summary: DatasetSummary, here: ModelEnvironment) -> TuningForm:
    """Ask what is to be tuned on a dataset.

    Args:
        summary: the dataset.
        here: what the environment says about models.

    Returns:
        What is filled in now, complete or not.
    """
    form = TuningForm(summary.name, Choice(("ucsc-extract",)))
    left, right = st.columns(2, gap="large")
    with left:
        form = _what(form)
        form = _whose(form, summary)
    with right:
        form = _models(form, here)
        form = _how(form)
    return _bounds(form, summary)


def _what(form: TuningForm) -> TuningForm:
    st.markdown("##### Prompt")
    members = tunable_members()
    detector = st.selectbox(
        "Detector",
        [*tunable(), *members],
        help="Or a member of an ensemble: what is found for it is used by it alone.",
        **kept("optimise.detector"),
    )
    member = str(detector) if detector in members else ""
    metrics = metrics_of(str(detector))
    kind = member or (metrics[0] if metrics[0] in _HELP else "")
    metric = st.selectbox(
        "Metric to optimise",
        metrics,
        metrics.index(members[member].metric) if member else 0,
        format_func=lambda name: _METRICS.get(name, name),
        help=_HELP.get(kind),
        **kept(f"optimise.metric.{kind}" if kind else "optimise.metric"),
    )
    programs = [program.name for program in registry() if program.owner == detector]
    begin = st.selectbox(
        "Starting program",
        [_OWN, *programs],
        help="A program found earlier can be tuned further.",
        **kept("optimise.begin"),
    )
    program = "" if begin in {None, _OWN} else str(begin)
    if member:
        choice = Choice((members[member].ensemble,), program=program)
        return replace(form, choice=choice, member=member, metric=metric or "")
    detectors = (detector,) if detector else form.choice.detectors
    options = options_form(detectors[0], "optimise")
    choice = Choice(detectors, program=program, options=options)
    return replace(form, choice=choice, metric=metric or form.metric)


def _whose(form: TuningForm, summary: DatasetSummary) -> TuningForm:
    st.markdown("##### Labels")
    choice = st.selectbox("Reference labels", list(_LABELS), **kept("optimise.labels"))
    labels = _LABELS[choice or next(iter(_LABELS))]
    annotators: list[str] = []
    if labels != "gold":
        able = [who for who in summary.annotators if labels == "vote" or who.kind == "person"]
        chosen = choose_annotators(
            able,
            key=f"optimise-{labels}-{summary.name}",
            default=[] if labels == "vote" else None,
        )
        everybody = labels == "reviewed" and len(chosen) == len(able)
        annotators = [] if everybody else list(chosen)
    languages = st.multiselect(
        "Languages",
        sorted(summary.languages),
        placeholder="all languages",
        **kept("optimise.languages"),
    )
    return replace(form, labels=labels, annotators=tuple(annotators), languages=tuple(languages))


def _models(form: TuningForm, here: ModelEnvironment) -> TuningForm:
    st.markdown("##### Models")
    model_problem(here)
    task, prompt = st.columns(2)
    member = tunable_members().get(form.member)
    model = task.text_input(
        "Task model",
        "" if member else here.model,
        placeholder=member.model if member else "for example gpt-4o-mini",
        help="The model that the detector will ask.",
        **kept(f"optimise.model.{form.member}" if member else "optimise.model"),
    )
    writer = prompt.text_input(
        "Prompt model (optional)",
        placeholder="the task model",
        help="Writes new instructions; a larger one pays.",
        **kept("optimise.prompt-model"),
    )
    price = st.text_input(
        "Price per million tokens (optional)",
        here.price,
        placeholder="0.15,0.075,0.60",
        help="US dollars per million tokens: input, cached input, output.",
        **kept("optimise.price"),
    )
    model_setup(here)
    asked = model_options_form(form.choice.detectors, "optimise")
    own = member.model if member and is_set_up() else ""
    task_model, prompt_model = set_up_model(model or own), set_up_model(writer or "")
    choice = replace(form.choice, model=task_model, price=price or "", model_options=asked)
    return replace(form, choice=choice, prompt_model=prompt_model)


def _how(form: TuningForm) -> TuningForm:
    st.markdown("##### Search")
    strategy = st.radio(
        "Optimiser",
        ["MIPROv2", "GEPA"],
        captions=["instructions and demonstrations", "instructions, from feedback"],
        horizontal=True,
        **kept("optimise.strategy"),
    )
    effort, number = st.columns([1.4, 1])
    chosen = effort.selectbox("Effort", list(_EFFORTS), **kept("optimise.effort"))
    auto = _EFFORTS[chosen or "Light"]
    trials = None
    if auto is None:
        trials = int(
            number.number_input("Candidate prompts", 1, 200, 10, **kept("optimise.trials"))
        )
    folds = st.selectbox(
        "Cross-validation folds",
        _FOLDS,
        _FOLDS.index(form.folds),
        format_func=lambda number: f"{number} folds" if number else "none",
        help="Each fold is held out once: only scores on items that the search has not seen tell "
        "what a prompt is worth. None measures nothing and is quicker.",
        **kept("optimise.folds"),
    )
    return replace(
        form,
        strategy="gepa" if strategy == "GEPA" else "mipro",
        auto=auto,
        trials=trials,
        folds=folds or 0,
    )


def _bounds(form: TuningForm, summary: DatasetSummary) -> TuningForm:
    with st.expander("Language, limits and concurrency", icon=":material/tune:"):
        target, transfer, name = st.columns(3)
        lang = target.text_input(
            "Target language (optional)",
            placeholder=", ".join(sorted(summary.languages)[:4]) + " …",
            help="Also one without labels: it then learns from the others.",
            **kept("optimise.target"),
        )
        how = transfer.selectbox(
            "Training items", list(_TRANSFER), disabled=not lang, **kept("optimise.transfer")
        )
        called = name.text_input(
            "Program name (optional)", placeholder="chosen for you", **kept("optimise.name")
        )
        most, fast, pace = st.columns(3)
        with most:
            limit = whole_number("Maximum items", "optimise.limit", least=4)
        threads = fast.number_input(
            "Concurrent calls", 1, 256, form.threads, **kept("optimise.threads")
        )
        with pace:
            rate = rate_limit("optimise.rate")
        calls, searches, cost = st.columns(3)
        with calls:
            most_calls = whole_number("Maximum calls", "optimise.calls")
        with searches:
            most_searches = whole_number("Maximum searches", "optimise.searches")
        with cost:
            most_cost = cost_limit("optimise.cost")
    return replace(
        form,
        target=(lang or "").strip(),
        transfer=_TRANSFER[how] if lang and how else "each",
        name=(called or "").strip(),
        limit=limit,
        threads=int(threads),
        rate=rate,
        budget_calls=most_calls,
        budget_searches=most_searches,
        budget_cost=most_cost,
    )
