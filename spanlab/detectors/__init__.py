"""Detectors by name.

A detector is loaded when it is first asked for: naming them costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from importlib import import_module

from spanlab.detectors.base import Detector
from spanlab.errors import UsageError

__all__ = ["DETECTORS", "Detector", "detector"]

_MODULES = {"offline": "spanlab.detectors.offline"}  # each has a function create() -> Detector

DETECTORS = tuple(_MODULES)


@cache
def detector(name: str) -> Detector:
    """Return the detector that is called ``name``.

    Args:
        name: one of ``DETECTORS``.

    Returns:
        The detector, the same one every time.

    Raises:
        UsageError: no detector has that name; the message lists those there are.
    """
    if name not in _MODULES:
        close = get_close_matches(name, DETECTORS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"no detector is called {name!r}{hint} (known: {', '.join(DETECTORS)})")
    create: Callable[[], Detector] = import_module(_MODULES[name]).create
    return create()
