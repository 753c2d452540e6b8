"""Checkpoints of local encoders: which there are, and what is said of one."""

from __future__ import annotations

from spanlab.detectors.common.checkpoint import fetched_folder

__all__ = ["fetched_checkpoints"]


def fetched_checkpoints() -> tuple[str, ...]:
    """Return the names of the checkpoints that were fetched, in alphabetical order."""
    folder = fetched_folder()
    found = (each.name.replace("--", "/", 1) for each in folder.glob("*--*") if each.is_dir())
    return tuple(sorted(found))
