"""Tuned prompts: tables of them, their import, and which one a detector uses."""

from __future__ import annotations

from pathlib import Path

from spanlab.base.errors import InputError, UsageError
from spanlab.base.settings import Settings
from spanlab.detection import check_tunable, entry_of, members
from spanlab.models.programs import ProgramRegistry
from spanlab.output.figures import figure
from spanlab.output.tables import (
    LANGUAGE,
    Column,
    MeanInterval,
    ResultTable,
    columns_of,
    fact_table,
    write_cell,
)
from spanlab.schema import (
    OWNER,
    Actor,
    HeldOut,
    Permission,
    TunedProgram,
)


def use(name: str, member: str | None = None, *, actor: Actor = OWNER) -> str:
    """Let the detector or member that a program was tuned for use it, or another member.

    Args:
        name: the program.
        member: of an ensemble; None for whom it was tuned for.
        actor: who asks; a lead of all datasets.

    Returns:
        Who uses it from now on.

    Raises:
        NotFoundError: there is no such program.
        UsageError: there is no such member, or it is another detector.
    """
    programs = registry(actor=actor)
    owner = member or programs.load(name).owner
    programs.choose(owner, name, _detector(owner))
    return owner


def take(path: Path, name: str | None = None, *, actor: Actor = OWNER) -> TunedProgram:
    """Import a program from a file that an export wrote.

    Args:
        path: the file.
        name: what to call it here; None for its own name.
        actor: who asks; a lead of all datasets.

    Raises:
        InputError: it is no program, or its prompts are not those of its detector.
        UsageError: its detector or member is not known here, or the name is taken.
    """
    return registry(actor=actor).take(path, name, _check_fits)


def _check_fits(program: TunedProgram) -> None:
    check_tunable(program.detector)
    if program.member is not None and _detector(program.member) != program.detector:
        raise UsageError(
            f"{program.member!r} is not a {program.detector!r}, as the tuned prompt says"
        )
    entry = entry_of(program.detector)
    prompts = (*entry.prompts, *entry.generator_prompts)
    for name in program.predictors:
        if name not in prompts:
            raise InputError(
                f"{program.detector} has no prompt of this name",
                field=f"predictors.{name}",
                expected=" or ".join(prompts),
            )


def unuse(owner: str, *, actor: Actor = OWNER) -> None:
    """Let a detector or a member of an ensemble use its built-in prompt again.

    Raises:
        UsageError: nobody is called so.
    """
    _detector(owner)
    registry(actor=actor).choose(owner, None)


def _detector(owner: str) -> str:
    member = members().get(owner)
    return member.detector if member is not None else entry_of(owner).name


def registry(settings: Settings | None = None, *, actor: Actor = OWNER) -> ProgramRegistry:
    """Return the registry that the environment (or ``settings``) names.

    Raises:
        AccessError: the actor is no lead of all datasets.
    """
    actor.require(Permission.ADMINISTER)
    return ProgramRegistry((settings or Settings.read()).programs)


def program_table(programs: ProgramRegistry) -> ResultTable:
    """Return a line per program, the newest first; a star marks those that are used."""
    return ResultTable(
        key="programs",
        title="",
        columns=(
            Column(key="used", title=""),
            *columns_of("text", "Name", "Detector", "Metric", "Held out", "Model", "Made"),
        ),
        rows=tuple(
            (
                *("*" if programs.users(program.name) else "", program.name, program.owner),
                *(program.metric, held_out_in_brief(program.held_out), program.task_model),
                program.created[:16].replace("T", " "),
            )
            for program in programs
        ),
        remarks=tuple(f"broken: {error}" for error in programs.broken),
        empty="no tuned prompts yet; `spanlab optimize` makes them",
    )


def program_tables(program: TunedProgram) -> tuple[ResultTable, ...]:
    """Return the origin of a program and its held-out scores as tables."""
    facts = {
        "detector": program.detector,
        **({"member": program.member} if program.member else {}),
        "strategy": f"{program.strategy}, for {program.metric}",
        "models": f"{program.task_model}, prompts by {program.prompt_model}",
        "tuned on": f"{program.items} items of {program.dataset} ({program.labels})",
        "languages": ", ".join(program.languages),
        "made": program.created,
        "from": program.parent or "the detector's own prompt",
        **({"note": program.note} if program.note else {}),
    }
    origin = fact_table("program", f"Program {program.name}", facts)
    origin = origin.model_copy(update={"remarks": (held_out_in_words(program.held_out),)})
    return (origin,) if program.held_out is None else (origin, held_out_table(program.held_out))


def held_out_table(held_out: HeldOut) -> ResultTable:
    """Return the scores of the untuned and the tuned prompt by language."""
    return ResultTable(
        key="held-out",
        title="Held out, by language",
        columns=(
            LANGUAGE,
            *columns_of("score", "Untuned", "Tuned"),
            *columns_of("difference", "Difference"),
        ),
        rows=tuple(
            (lang, before, after, after - before)
            for lang, (before, after) in held_out.languages.items()
        ),
    )


def held_out_in_words(held_out: HeldOut | None) -> str:
    """Return a program's result on held-out items in words and figures."""
    if held_out is None:
        return "not measured on held-out items: whether it is better is unknown"
    base, tuned, difference = held_out.baseline, held_out.tuned, held_out.difference
    verdict = (
        "better than the untuned prompt"
        if held_out.better
        else "is not significantly better than the untuned prompt"
    )
    score = "macro F1 " if held_out.is_macro_f1 else ""
    ends = MeanInterval(mean=difference.mean, low=difference.low, high=difference.high)
    shown = write_cell(ends, Column(key="difference", title="", unit="difference"))
    return (
        f"{verdict}: {score}{figure(base.mean)} → {figure(tuned.mean)} on {held_out.items} "
        f"held-out {held_out.unit} ({held_out.folds} folds), difference {shown}, "
        f"p = {figure(held_out.p)}"
    )


def held_out_in_brief(held_out: HeldOut | None) -> str:
    """Return a tuned prompt's result on held-out items: ``0.400 → 0.500, not significant``."""
    if held_out is None:
        return "not measured"
    sure = "" if held_out.better else ", not significant"
    return f"{figure(held_out.baseline.mean)} → {figure(held_out.tuned.mean)}{sure}"
