"""The stages of a process, as far as an item tells them without reading it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spanlab.schema import (
    Item,
    SharedProcess,
)


@dataclass(frozen=True)
class StageNodes:
    """How many nodes each stage of a process has, earliest first, and the node of the answer."""

    sizes: Mapping[str, int]
    terminal: str


def stages_of(item: Item) -> StageNodes | None:
    """Return the stages of the process that an item came from; None if it has no process.

    Args:
        item: as ``Store.record`` returns it; at most one row of the database is read.
    """
    process = item.process
    if process is None:
        return None
    if isinstance(process, SharedProcess):
        opened = process.opened()
        return StageNodes(opened.sizes(), process.terminal)
    return StageNodes(process.sizes(), process.terminal.id)
