"""Tuned prompts: what there is, how two differ, which one a detector uses."""

from __future__ import annotations

from pathlib import Path

from spanlab.detectors import check_tunable, entry_of, members
from spanlab.errors import InputError, UsageError
from spanlab.programs import Programs
from spanlab.schema import Demo, HeldOut, Predictor, Program, PromptChange, compare
from spanlab.settings import Settings

__all__ = [
    "Demo",
    "HeldOut",
    "Predictor",
    "Program",
    "Programs",
    "PromptChange",
    "compare",
    "registry",
    "take",
    "unuse",
    "use",
]


def use(name: str, member: str | None = None) -> str:
    """Let the detector or member that a program was tuned for use it, or another member.

    Args:
        name: the program.
        member: of an ensemble; None for whom it was tuned for.

    Returns:
        Who uses it from now on.

    Raises:
        NotFoundError: there is no such program.
        UsageError: there is no such member, or it is another detector.
    """
    programs = registry()
    owner = member or programs.load(name).owner
    programs.choose(owner, name, _detector(owner))
    return owner


def take(path: Path, name: str | None = None) -> Program:
    """Import a program from a file that an export wrote.

    Args:
        path: the file.
        name: what to call it here; None for its own name.

    Raises:
        InputError: it is no program, or its prompts are not those of its detector.
        UsageError: its detector or member is not known here, or the name is taken.
    """
    return registry().take(path, name, _check_fits)


def _check_fits(program: Program) -> None:
    check_tunable(program.detector)
    if program.member is not None and _detector(program.member) != program.detector:
        raise UsageError(f"{program.member!r} is no {program.detector!r}, as the program says")
    entry = entry_of(program.detector)
    own = (*entry.prompts, *entry.generator_prompts)
    for name in program.predictors:
        if name not in own:
            raise InputError(
                f"{program.detector} has no prompt of this name",
                field=f"predictors.{name}",
                expected=" or ".join(own),
            )


def unuse(owner: str) -> None:
    """Let a detector or a member of an ensemble go back to the prompt that it comes with.

    Raises:
        UsageError: nobody is called so.
    """
    _detector(owner)
    registry().choose(owner, None)


def _detector(owner: str) -> str:
    found = members().get(owner)
    return found.detector if found is not None else entry_of(owner).name


def registry(settings: Settings | None = None) -> Programs:
    """Return the registry that the environment (or ``settings``) names."""
    return Programs((settings or Settings.read()).programs)
