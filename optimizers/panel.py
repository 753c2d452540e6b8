"""Tuned prompts as pages show them: their scores, their texts, and what can be done with them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from optimizers.programs import held_out_in_brief, held_out_table, registry, take, unuse, use
from spanlab.output.figures import counted, figure
from spanlab.schema import Demo, HeldOut, PromptChange, TunedPredictor, TunedProgram, compare
from spanlab.ui.common import actor, plain
from spanlab.ui.messages import errors_shown, show_error
from spanlab.ui.tables import show_grid

_CHANGED = "spanlab.program-changed"
_LINES = {"+": "green", "-": "red"}


def show_programs() -> None:
    """Draw the registry: every program, how it compares, and what can be done with it."""
    st.header("Tuned prompts", anchor=False)
    programs = registry(actor=actor())
    st.caption(f"They are kept as JSON files in `{programs.folder}`.")
    with errors_shown():
        kept_programs = list(programs)
        for error in programs.broken:
            show_error(error)
        if not kept_programs:
            st.info(
                "No tuned prompts yet. Start a search above: what it finds is listed here.",
                icon=":material/lightbulb:",
            )
        for program in kept_programs:
            _draw_card(program, kept_programs)
    _import_program()


def show_held_out(held_out: HeldOut | None) -> None:
    """Draw how a tuned prompt scores on held-out items, in words, figures and by language."""
    if held_out is None:
        st.warning(
            "Not measured on held-out items: whether it is better is unknown.",
            icon=":material/help:",
        )
        return
    base, tuned, difference = held_out.baseline, held_out.tuned, held_out.difference
    low, high = figure(difference.low, signed=True), figure(difference.high, signed=True)
    sure = f"95 % of resamples between {low} and {high}"
    unit = held_out.unit
    if held_out.better:
        st.success(
            plain(f"Better than the untuned prompt on {unit} it has not seen: {sure}."),
            icon=":material/trending_up:",
        )
    else:
        st.warning(
            plain(f"It does not beat the untuned prompt on {unit} it has not seen: {sure}."),
            icon=":material/trending_flat:",
        )
    columns = st.columns(4)
    columns[0].metric("Untuned", figure(base.mean), help=_interval(base.low, base.high))
    columns[1].metric(
        "Tuned",
        figure(tuned.mean),
        figure(difference.mean, signed=True),
        help=_interval(tuned.low, tuned.high),
    )
    columns[2].metric(f"Held-out {unit}", f"{held_out.items:,}", help=f"{held_out.folds} folds")
    columns[3].metric("p-value (paired)", f"{held_out.p:.2g}")
    if held_out.is_macro_f1:
        classes = "verdicts" if unit == "claims" else "types of errors"
        st.caption(f"Figures are the macro F1 of the {classes}.")
    show_grid(held_out_table(held_out))


def show_prompts(predictors: Mapping[str, TunedPredictor], key: str) -> None:
    """Draw the instruction and the demonstrations of every predictor."""
    for name, predictor in predictors.items():
        st.caption(plain(name))
        st.code(predictor.instruction, language=None, wrap_lines=True)
        if predictor.demos:
            with st.expander(counted(len(predictor.demos), "demonstration"), key=f"{key}-{name}"):
                for demo in predictor.demos:
                    _draw_demo(demo)


def program_changed() -> bool:
    """Say whether a button has chosen a program since this was last asked."""
    return bool(st.session_state.pop(_CHANGED, False))


def use_button(program: TunedProgram, key: str) -> None:
    """Draw the button that makes a program its detector's own, or takes that back."""
    used = program.owner in registry(actor=actor()).users(program.name)
    st.button(
        f"{'Do not use' if used else 'Use'} it for {program.owner}",
        icon=":material/undo:" if used else ":material/check_circle:",
        type="secondary" if used else "primary",
        key=f"{'unuse' if used else 'use'}-{key}",
        on_click=_choose,
        args=(program, not used),
    )


def _draw_card(program: TunedProgram, everybody: list[TunedProgram]) -> None:
    used = bool(registry(actor=actor()).users(program.name))
    with st.container(border=True, key=f"program-{program.name}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**{plain(program.name)}**", width="content")
            if used:
                st.badge("In use", icon=":material/check:", color="green")
        st.caption(plain(_describe_program(program)))
        with st.container(horizontal=True, gap="small"):
            use_button(program, program.name)
            st.download_button(
                "Export",
                partial(_export, program.name),
                file_name=f"{program.name}.json",
                mime="application/json",
                icon=":material/download:",
                key=f"export-{program.name}",
                on_click="ignore",
            )
            st.button(
                "Remove",
                icon=":material/delete:",
                key=f"remove-{program.name}",
                on_click=_remove,
                args=(program.name,),
            )
        with st.expander("Scores, prompts and differences", key=f"more-{program.name}"):
            show_held_out(program.held_out)
            show_prompts(program.predictors, program.name)
            _draw_differences(program, everybody)


def _describe_program(program: TunedProgram) -> str:
    worth = f"{program.metric} {held_out_in_brief(program.held_out)}"
    return (
        f"{program.detector} · {worth} · {program.task_model} · "
        f"{counted(program.items, 'item')} of {program.dataset} ({program.labels}) · "
        f"{program.created[:16].replace('T', ' ')}"
    )


def _draw_differences(program: TunedProgram, everybody: list[TunedProgram]) -> None:
    other_programs = {
        other.name: other
        for other in everybody
        if other.name != program.name and other.detector == program.detector
    }
    if not other_programs:
        return
    other_name = st.selectbox("Compared with", list(other_programs), key=f"compare-{program.name}")
    if other_name:
        _show_changes(compare(other_programs[other_name], program))


def show_changes(untuned: Mapping[str, TunedPredictor], program: TunedProgram) -> None:
    """Draw how a program's prompts differ from those that its search began with."""
    first_program = program.model_copy(update={"name": "untuned", "predictors": dict(untuned)})
    _show_changes(compare(first_program, program))


def _show_changes(changes: Sequence[PromptChange]) -> None:
    if not changes:
        st.caption("The same prompts.")
    for change in changes:
        _draw_change(change)


def _draw_change(change: PromptChange) -> None:
    st.caption(plain(change.predictor))
    st.code("\n".join(change.diff), language="diff", wrap_lines=True)
    for sign, demos in (("-", change.removed), ("+", change.added)):
        for demo in demos:
            st.markdown(f":{_LINES[sign]}[{plain(sign)} demonstration]")
            _draw_demo(demo)


def _draw_demo(demo: Demo) -> None:
    lines = [
        f"{field}: {value if isinstance(value, str) else repr(value)}"
        for field, value in demo.items()
        if field != "augmented"
    ]
    st.code("\n\n".join(lines), language=None, wrap_lines=True)
    if demo.get("augmented"):
        st.caption("made by the model itself")


def _import_program() -> None:
    """Let people import a program from a file; hostile ones are refused."""
    with st.popover("Import a tuned prompt", icon=":material/upload_file:"):
        upload = st.file_uploader("A file that was exported from here", type="json")
        clicked = st.button("Import", disabled=upload is None, key="import-program")
    if not clicked or upload is None:
        return
    with errors_shown("Nothing was imported."), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(upload.name).name
        path.write_bytes(upload.getvalue())
        program = take(path, actor=actor())
        st.toast(plain(f"Imported {program.name}"), icon=":material/check:")
        st.rerun()


def _export(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "program.json"
        registry(actor=actor()).give(name, target)
        return target.read_bytes()


def _choose(program: TunedProgram, used: bool) -> None:
    st.session_state[_CHANGED] = True
    with errors_shown():
        if used:
            use(program.name, actor=actor())
        else:
            unuse(program.owner, actor=actor())


def _remove(name: str) -> None:
    with errors_shown():
        registry(actor=actor()).remove(name)


def _interval(low: float, high: float) -> str:
    return f"95 % interval {figure(low)} to {figure(high)}"
