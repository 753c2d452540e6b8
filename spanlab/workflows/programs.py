"""Tuned prompts: what there is, how two differ, which one a detector uses."""

from __future__ import annotations

from spanlab.detectors import entry_of, members
from spanlab.programs import Demo, HeldOut, Predictor, Program, Programs, PromptChange, compare
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
