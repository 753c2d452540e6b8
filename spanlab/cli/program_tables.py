"""Tuned prompts as text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from spanlab.cli.tables import aligned
from spanlab.results import figure
from spanlab.schema import HeldOut, Program, PromptChange
from spanlab.workflows.programs import Programs
from spanlab.workflows.wording import measured


def listed(programs: Programs) -> str:
    """Return one line per program, or what to do where there is none."""
    found = list(programs)
    broken = [f"broken: {error}" for error in programs.broken]
    if not found:
        return "\n".join([*broken, "no programs yet; `spanlab optimize` makes them"])
    rows = [["", "name", "detector", "metric", "held out", "model", "made"]]
    rows += [
        [
            "*" if programs.users(program.name) else "",
            program.name,
            program.owner,
            program.metric,
            measured(program.held_out),
            program.task_model,
            program.created[:16].replace("T", " "),
        ]
        for program in found
    ]
    return "\n".join([aligned(rows, left=len(rows[0])), *broken])


def shown(program: Program) -> str:
    """Return where a program comes from, its scores and its prompts."""
    facts = [
        ["detector", program.detector],
        *([["member", program.member]] if program.member else []),
        ["strategy", f"{program.strategy}, for {program.metric}"],
        ["models", f"{program.task_model}, prompts by {program.prompt_model}"],
        ["tuned on", f"{program.items} items of {program.dataset} ({program.labels})"],
        ["languages", ", ".join(program.languages)],
        ["made", program.created],
        ["from", program.parent or "the detector's own prompt"],
    ]
    parts = [aligned([["program", program.name], *facts], left=2), worth(program.held_out)]
    if program.note:
        parts.append(program.note)
    for name, predictor in program.predictors.items():
        parts.append(f"{name}, {len(predictor.demos)} demonstrations:\n\n{predictor.instruction}")
    return "\n\n".join(parts)


def worth(held_out: HeldOut | None) -> str:
    """Return a program's result on held-out items in words and figures."""
    if held_out is None:
        return "not measured on held-out items: whether it is better is unknown"
    base, tuned, difference = held_out.baseline, held_out.tuned, held_out.difference
    verdict = (
        "better than the untuned prompt"
        if held_out.better
        else "does not beat the untuned prompt beyond chance"
    )
    mean, low, high = (
        figure(value, signed=True) for value in (difference.mean, difference.low, difference.high)
    )
    languages = ", ".join(
        f"{lang} {figure(before)} → {figure(after)}"
        for lang, (before, after) in held_out.languages.items()
    )
    return (
        f"{verdict}: {'macro F1 ' if held_out.is_macro_f1 else ''}"
        f"{figure(base.mean)} → {figure(tuned.mean)} "
        f"on {held_out.items} held-out {held_out.unit} ({held_out.folds} folds), "
        f"difference {mean} [{low}, {high}], p = {held_out.p:.3g}\n{languages}"
    )


def compared(changes: Sequence[PromptChange]) -> str:
    """Return the differences of two programs, predictor by predictor."""
    if not changes:
        return "the same prompts"
    parts = []
    for change in changes:
        lines = [change.predictor, *change.diff]
        lines += [f"- demonstration {_demo(demo)}" for demo in change.removed]
        lines += [f"+ demonstration {_demo(demo)}" for demo in change.added]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _demo(demo: object) -> str:
    text = json.dumps(demo, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:299]}…"
