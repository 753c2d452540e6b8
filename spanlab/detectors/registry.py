"""Which detectors are installed, and what each says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import NamedTuple

from spanlab.detectors.entry import Entry
from spanlab.errors import UsageError
from spanlab.inbound import is_end
from spanlab.options import Option, options_in

GROUP = "spanlab.detectors"
_OURS = "spanlab"  # the distribution whose detectors come first, and keep their names


class Broken(NamedTuple):
    """An installed detector that cannot be used: ``problem`` says why."""

    name: str
    package: str
    problem: str


@cache
def installed() -> Mapping[str, Entry | Broken]:
    """Return all installed detectors by name: spanlab's own first, ensembles last.

    Of the others, what needs neither a model nor an option comes first, what needs an option last.
    """
    found: dict[str, Entry | Broken] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda each: (not _is_ours(each), each)):
        name = point.name if point.name not in found else f"{point.name} ({_package(point)})"
        found[name] = _read(point, taken=name != point.name)
    return MappingProxyType(dict(sorted(found.items(), key=lambda each: _rank(each[1]))))


def entries() -> tuple[Entry, ...]:
    """Return the detectors that can be used, in the order of ``installed``."""
    return tuple(each for each in installed().values() if isinstance(each, Entry))


def entry_of(name: str) -> Entry:
    """Return what the detector or ensemble of this name says of itself.

    Raises:
        UsageError: none is called so, and the message lists those there are; or it is broken.
    """
    found = installed().get(name)
    if isinstance(found, Entry):
        return found
    if found is not None:
        raise UsageError(f"{name!r} of the package {found.package} is broken: {found.problem}")
    names = [entry.name for entry in entries()]
    close = get_close_matches(name, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    known = ", ".join(names) or "none: install spanlab again"
    raise UsageError(f"no detector is called {name!r}{hint} (known: {known})")


def options_of(name: str) -> tuple[Option, ...]:
    """Return the options of a detector; none for an ensemble, whose members have their own.

    Raises:
        UsageError: no detector is called so.
    """
    return options_in(entry_of(name).options)


def asks_models(name: str) -> bool:
    """Say whether a detector, or a member of an ensemble, asks language models.

    Raises:
        UsageError: no detector is called so.
    """
    return entry_of(name).asks_models


def tunable() -> tuple[str, ...]:
    """Return the names of the detectors that have prompts to tune.

    Those tuned on spans come before those on claims; among them one that asks a single model comes
    first.
    """
    found = sorted(entries(), key=lambda each: (each.tuned_on == "claims", len(each.roles)))
    return tuple(entry.name for entry in found if entry.prompts)


def check_tunable(name: str) -> None:
    """Refuse a detector that has no prompts to tune.

    Raises:
        UsageError: it has none, and the message lists those that have; or it is unknown.
    """
    if not entry_of(name).prompts:
        raise UsageError(
            f"{name!r} has no prompts of its own to tune (tunable: {', '.join(tunable())})"
        )


def _read(point: EntryPoint, *, taken: bool) -> Entry | Broken:
    try:
        if taken:
            raise UsageError("another package has a detector of this name")
        entry = point.load()
        if not isinstance(entry, Entry):
            raise UsageError(f"{point.value} is no spanlab.detectors.entry.Entry")
        if entry.name != point.name:
            raise UsageError(f"{point.value} has the name {entry.name!r}, not its entry point's")
        if (entry.create is None) == (entry.members is None):
            raise UsageError(f"{point.value} has to have either create or members")
        entry.options()  # all have defaults
        entry.options.model_json_schema()  # from which forms are made
    except BaseException as error:  # whatever breaks there, the others can be used
        if is_end(error):
            raise
        reason = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
        return Broken(point.name, _package(point), reason)
    return entry


def _is_ours(point: EntryPoint) -> bool:
    return _package(point) == _OURS


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "?"


def _rank(found: Entry | Broken) -> int:
    if not isinstance(found, Entry):
        return 1
    if found.members is not None:
        return 3
    return 2 if found.required else 1 if found.asks_models else 0
