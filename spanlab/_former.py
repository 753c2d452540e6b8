"""Modules under the names that they had in 1.0, for packages that were written for it.

The same module is given, so that a class of either name is one class. Each says once what it is
called now.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final
from warnings import warn

_NEW: Final = {
    "datasets": "formats",
    "datasets.formats": "formats.known",
    "detectors": "detection",
    "detectors.networks": "networks",
    "errors": "base.errors",
    "labels": "text.labels",
    "lm": "models",
    "options": "base.options",
    "results": "output.tables",
    "retrievers": "search",
    "scorers": "scoring",
    "services": "integrations",
    "settings": "base.settings",
}


class FormerNames(MetaPathFinder, Loader):
    """Finds modules by their former names; it stands first, as parts of them are files, too."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return what loads a module of a former name; None for any other name."""
        return ModuleSpec(fullname, self) if _name_now(fullname) is not None else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module as it is called now."""
        name = _name_now(spec.name)
        assert name is not None  # find_spec has looked
        warn(f"{spec.name} is called {name} now", DeprecationWarning, stacklevel=2)
        module = import_module(name)
        spec.loader_state = module.__spec__  # the import is about to write over it
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own specification back; it has run already."""
        former = module.__spec__
        if former is not None and former.loader_state is not None:
            module.__spec__ = former.loader_state


def install() -> None:
    """Let former names be imported in this process."""
    sys.meta_path.insert(0, FormerNames())


def found_in(room: str, *modules: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a room that programs of 1.0 import from.

    Args:
        room: the room, by its module.
        modules: those of its modules in which it finds a name, the first that has it.
    """

    def find(name: str) -> Any:
        for module in () if name.startswith("_") else modules:
            found = vars(import_module(f"{room}.{module}"))
            if name in found:
                return found[name]
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    return find


def _name_now(name: str) -> str | None:
    top, _, rest = name.partition(".")
    if top != "spanlab":
        return None
    parts = rest.split(".")
    for n in (2, 1):
        if (new := _NEW.get(".".join(parts[:n]))) is not None:
            return ".".join(("spanlab", new, *parts[n:]))
    return None
