"""Tuned prompts: what there is, how two differ, which one a detector uses."""

from __future__ import annotations

from spanlab.programs import Change, Demo, HeldOut, Predictor, Program, Programs, compare
from spanlab.settings import Settings

__all__ = [
    "Change",
    "Demo",
    "HeldOut",
    "Predictor",
    "Program",
    "Programs",
    "compare",
    "registry",
]


def registry(settings: Settings | None = None) -> Programs:
    """Return the registry that the environment (or ``settings``) names."""
    return Programs((settings or Settings.read()).programs)
