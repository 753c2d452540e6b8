"""How an answer was generated: the graph of texts that led to it.

After Metropolitansky et al. 2025, "VeriTrail: Closed-Domain Hallucination Detection with
Traceability", §2: nodes are texts, an edge says that one text was read to write another. Roots are
source text, the one node that no other was made from is the answer. Stages have an order and grow
along every edge.

A process of its own is part of its item (``Process``); a large one, or one that many answers came
from, is stored apart from them (``shared_process``). Detectors read both alike (``ProcessGraph``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Protocol, Self

from pydantic import model_validator

from spanlab.base.fields import FrozenModel, Name


class ProcessNode(FrozenModel):
    """One text in the making of an answer.

    ``sources`` are the ids of what it was made from. ``stage`` names the step that made it; empty
    in a process whose stages are counted instead.
    """

    id: Name
    text: str
    stage: str = ""
    sources: tuple[Name, ...] = ()


class ProcessGraph(Protocol):
    """A process as detectors read it: only the nodes that they ask for need to be at hand."""

    @property
    def terminal(self) -> ProcessNode:
        """The node that holds the answer."""
        ...

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages, earliest first."""
        ...

    @property
    def by_id(self) -> Mapping[str, ProcessNode]:
        """The nodes by id."""
        ...

    def stage_of(self, node: str) -> str:
        """Return the stage of a node."""
        ...

    def read(self, nodes: Collection[str]) -> list[ProcessNode]:
        """Return nodes by their ids, in this order; blocks where they lie in a database."""
        ...

    def sizes(self) -> Mapping[str, int]:
        """Return how many nodes each stage has, earliest stage first."""
        ...


class BadNodeError(ValueError):
    """What is wrong with a process; ``node`` is the id of the node where it shows."""

    def __init__(self, what: str, node: str) -> None:
        super().__init__(what)
        self.node = node


class NodeTable:
    """The texts of a process, which may end in several answers.

    Either every node names its stage, and the edges give the order of the stages, or none does:
    then the stages are "1" for the roots and, for every other node, one more than the highest of
    its sources.

    Args:
        nodes: in any order.

    Raises:
        BadNodeError: an id occurs twice, a source is unknown, there is a cycle, some nodes name
            their stage and some do not, or a stage does not grow along an edge.
    """

    def __init__(self, nodes: Iterable[ProcessNode]) -> None:
        self.by_id: dict[str, ProcessNode] = {}
        for node in nodes:
            if node.id in self.by_id:
                raise BadNodeError(f"process node {node.id!r} already exists", node.id)
            self.by_id[node.id] = node
        for node in self.by_id.values():
            for source in node.sources:
                if source not in self.by_id:
                    what = f"node {node.id!r} names an unknown source {source!r}"
                    raise BadNodeError(what, node.id)
        order = _in_order({node.id: node.sources for node in self.by_id.values()}, "the process")
        self._levels = self._counted(order) if self._names_no_stages() else {}
        self.stages = self._stages()

    @cached_property
    def ends(self) -> Sequence[ProcessNode]:
        """The nodes that no other was made from."""
        read = {source for node in self.by_id.values() for source in node.sources}
        return [node for node in self.by_id.values() if node.id not in read]

    def stage_of(self, node: str) -> str:
        """Return the stage of a node."""
        return str(self._levels[node] + 1) if self._levels else self.by_id[node].stage

    def sizes(self) -> dict[str, int]:
        """Return how many nodes each stage has, earliest stage first."""
        counts = Counter(map(self.stage_of, self.by_id))
        return {stage: counts[stage] for stage in self.stages}

    def _names_no_stages(self) -> bool:
        without = next((node.id for node in self.by_id.values() if not node.stage), None)
        if without is not None and any(node.stage for node in self.by_id.values()):
            raise BadNodeError(f"node {without!r} has no stage, but others have one", without)
        return without is not None

    def _counted(self, order: Iterable[str]) -> dict[str, int]:
        """Return the longest path from a root by node."""
        levels: dict[str, int] = {}
        for node in order:
            levels[node] = max(
                (levels[source] + 1 for source in self.by_id[node].sources), default=0
            )
        return levels

    def _stages(self) -> tuple[str, ...]:
        if self._levels:
            return tuple(str(level + 1) for level in range(max(self._levels.values()) + 1))
        before: dict[str, dict[str, None]] = {node.stage: {} for node in self.by_id.values()}
        latest: dict[str, str] = {}  # a node of each stage, to say where a contradiction shows
        for node in self.by_id.values():
            for source in node.sources:
                stage = self.by_id[source].stage
                if stage == node.stage:
                    raise BadNodeError(
                        f"node {node.id!r} has the stage {stage!r} of its source {source!r}; "
                        "stages grow along every edge",
                        node.id,
                    )
                before[node.stage][stage] = None
                latest[node.stage] = node.id
        return _in_order(before, "the order of stages", latest)


class Process(FrozenModel):
    """How an answer was generated: a directed acyclic graph of texts that ends in one."""

    nodes: tuple[ProcessNode, ...]

    @model_validator(mode="after")
    def _is_a_dag_with_one_end(self) -> Self:
        if len(self._checked.ends) != 1:
            named = ", ".join(repr(node.id) for node in self._checked.ends[:3]) or "it has no nodes"
            raise ValueError(f"a process ends in one node, the answer; no other reads: {named}")
        return self

    @cached_property
    def _checked(self) -> NodeTable:
        return NodeTable(self.nodes)

    @property
    def by_id(self) -> Mapping[str, ProcessNode]:
        """The nodes by id."""
        return self._checked.by_id

    @property
    def terminal(self) -> ProcessNode:
        """The node that holds the answer: no other was made from it."""
        return self._checked.ends[0]

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages, earliest first."""
        return self._checked.stages

    def stage_of(self, node: str) -> str:
        """Return the stage of a node."""
        return self._checked.stage_of(node)

    def read(self, nodes: Collection[str]) -> list[ProcessNode]:
        """Return nodes by their ids, in this order."""
        return [self.by_id[node] for node in nodes]

    def sizes(self) -> dict[str, int]:
        """Return how many nodes each stage has, earliest stage first."""
        return self._checked.sizes()


def roots_of(process: ProcessGraph) -> list[ProcessNode]:
    """Return the source texts that lead to the answer, found from there; reads all on the way."""
    roots: dict[str, ProcessNode] = {}
    nodes_read = dict.fromkeys(process.terminal.sources)
    waiting = list(nodes_read)
    while waiting:
        nodes = process.read(waiting)
        roots.update((node.id, node) for node in nodes if not node.sources)
        new = dict.fromkeys(
            source for node in nodes for source in node.sources if source not in nodes_read
        )
        nodes_read |= new
        waiting = list(new)
    return list(roots.values())


def _in_order(
    before: Mapping[str, Iterable[str]], what: str, at: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return names such that each comes after those before it.

    Raises:
        BadNodeError: there is no such order. ``at`` says at which node that shows; by default the
            names are nodes.
    """
    try:
        return tuple(TopologicalSorter(before).static_order())
    except CycleError as error:
        cycle: list[str] = error.args[1]
        where = next((name for name in cycle if at is None or name in at), cycle[0])
        problem = "has a cycle" if at is None else "contradicts itself"
        raise BadNodeError(
            f"{what} {problem}: {' → '.join(cycle)}", at[where] if at else where
        ) from error
