"""Tuned prompts: what there is, how two differ, which one a detector uses."""

from __future__ import annotations

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
]


def registry(settings: Settings | None = None) -> Programs:
    """Return the registry that the environment (or ``settings``) names."""
    return Programs((settings or Settings.read()).programs)
