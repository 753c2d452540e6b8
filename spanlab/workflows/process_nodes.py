"""The texts that led to an answer, as far as somebody looks at them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spanlab.schema import Item, ProcessNode, SharedProcess

if TYPE_CHECKING:
    from spanlab.storage import Store


@dataclass(frozen=True)
class NodeText:
    """A node of a process with the stage that it belongs to."""

    id: str
    stage: str
    text: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Stages:
    """How many nodes each stage of a process has, earliest first, and the node of the answer."""

    sizes: Mapping[str, int]
    terminal: str


def stages_of(item: Item) -> Stages | None:
    """Return the stages of the process that an item came from; None if it says of none.

    Args:
        item: as ``Store.record`` returns it; at most one row of the database is read.
    """
    process = item.process
    if process is None:
        return None
    if isinstance(process, SharedProcess):
        opened = process.opened()
        return Stages(opened.sizes(), process.terminal)
    return Stages(process.sizes(), process.terminal.id)


def nodes_of(store: Store, dataset: str, item_id: str, ids: Collection[str]) -> list[NodeText]:
    """Return some nodes of the process that an item came from; no others are read.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        item_id: an item of it.
        ids: of nodes, such as those that a trail names.

    Returns:
        The nodes in the order asked for; those that there are not are left out, all if the item
        has no process.

    Raises:
        NotFoundError: there is no such dataset or item.
    """
    process = store.record(dataset, item_id).item.process
    found: dict[str, ProcessNode] = {}
    if isinstance(process, SharedProcess):
        found = {} if process.source is None else {n.id: n for n in process.source.find(ids)}
    elif process is not None:
        found = {
            node.id: node.model_copy(update={"stage": process.stage_of(node.id)})
            for node in (process.by_id[each] for each in ids if each in process.by_id)
        }
    return [
        NodeText(node.id, node.stage, node.text, node.sources)
        for node in (found[each] for each in dict.fromkeys(ids) if each in found)
    ]
