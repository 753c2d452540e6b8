"""A process that is stored apart from its items: read node by node, shared by any number of them.

Its items say where they end in it (``SharedProcess``); where its nodes lie, in a database or in
the memory of a reader, is a ``NodeSource``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Protocol, Self

from pydantic import PrivateAttr

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.base.fields import FrozenModel, Name
from spanlab.schema.process import NodeTable, ProcessNode


class NodeSource(Protocol):
    """Where the nodes of a process lie; every node that it returns names its stage."""

    def sizes(self) -> Mapping[str, int]:
        """Return how many nodes each stage has, earliest stage first."""
        ...

    def find(self, nodes: Collection[str]) -> list[ProcessNode]:
        """Return the nodes with these ids, in any order; those that are not there are left out."""
        ...

    def all(self) -> Iterator[ProcessNode]:
        """Yield all nodes, in the order in which they came."""
        ...


class SharedProcess(FrozenModel):
    """The process of a dataset that an item came from, and the node of it that is the answer."""

    id: Name
    terminal: Name
    _source: NodeSource | None = PrivateAttr(default=None)

    def among(self, source: NodeSource | None) -> Self:
        """Return the same with its nodes at hand (None: without)."""
        copy = self.model_copy()
        copy._source = source
        return copy

    @property
    def source(self) -> NodeSource | None:
        """Where its nodes lie, None if that is not known here."""
        return self._source

    def opened(self) -> StoredProcess:
        """Return the process, of which nothing is read yet.

        Raises:
            UsageError: its nodes are not at hand.
        """
        if self._source is None:
            raise UsageError(f"the nodes of the process {self.id!r} are not at hand here")
        return StoredProcess(self._source, self.terminal)

    # Where the nodes lie is no part of what it says, and neither sent nor copied with it.

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedProcess) and (self.id, self.terminal) == (
            other.id,
            other.terminal,
        )

    def __hash__(self) -> int:
        return hash((self.id, self.terminal))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def __getstate__(self) -> dict[Any, Any]:
        return {**super().__getstate__(), "__pydantic_private__": {"_source": None}}


class StoredProcess:
    """A process of which only those nodes are read that are asked for; see ``process.Graph``.

    Args:
        source: where its nodes lie.
        terminal: the id of the node that holds the answer.
    """

    def __init__(self, source: NodeSource, terminal: str) -> None:
        self._source = source
        self._terminal = terminal
        self._known = _LoadedNodes(source)
        self._stages: tuple[str, ...] = ()

    @property
    def by_id(self) -> Mapping[str, ProcessNode]:
        """The nodes by id; one that was not read yet is read when it is asked for."""
        return self._known

    @property
    def terminal(self) -> ProcessNode:
        """The node that holds the answer."""
        return self._known[self._terminal]

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages, earliest first."""
        self._stages = self._stages or tuple(self._source.sizes())
        return self._stages

    def stage_of(self, node: str) -> str:
        """Return the stage of a node."""
        return self._known[node].stage

    def read(self, nodes: Collection[str]) -> list[ProcessNode]:
        """Return nodes by their ids, in this order; those not read yet are read at once."""
        self._known.fetch(nodes)
        return [self._known[node] for node in nodes]

    def sizes(self) -> Mapping[str, int]:
        """Return how many nodes each stage has, earliest stage first."""
        return self._source.sizes()


class NodesInMemory:
    """The nodes of a process that a reader holds; see ``NodeSource``."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes

    def sizes(self) -> Mapping[str, int]:
        """Return how many nodes each stage has, earliest stage first."""
        return self._nodes.sizes()

    def find(self, nodes: Collection[str]) -> list[ProcessNode]:
        """Return the nodes with these ids that there are."""
        return [self._staged(node) for node in nodes if node in self._nodes.by_id]

    def all(self) -> Iterator[ProcessNode]:
        """Yield all nodes, in the order in which they came."""
        return map(self._staged, self._nodes.by_id)

    def _staged(self, name: str) -> ProcessNode:
        node = self._nodes.by_id[name]
        if node.stage:
            return node
        return node.model_copy(update={"stage": self._nodes.stage_of(name)})


class _LoadedNodes(dict[str, ProcessNode]):
    """The nodes read so far; any other is read when it is looked up."""

    def __init__(self, source: NodeSource) -> None:
        super().__init__()
        self._source = source

    def fetch(self, nodes: Collection[str]) -> None:
        missing = [node for node in nodes if node not in self]
        if missing:
            self.update((node.id, node) for node in self._source.find(missing))

    def __missing__(self, node: str) -> ProcessNode:
        self.fetch([node])
        if node not in self:
            raise NotFoundError(f"the process has no node {node!r}")
        return self[node]
