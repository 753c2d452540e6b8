"""How an answer was generated: the graph of texts that led to it.

After Metropolitansky et al. 2025, "VeriTrail: Closed-Domain Hallucination Detection with
Traceability", §2: nodes are texts, an edge says that one text was read to write another. Roots are
source text, the one node that no other was made from is the answer. Stages have an order and grow
along every edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Self

from pydantic import model_validator

from spanlab.fields import Frozen, Name, unique


class ProcessNode(Frozen):
    """One text in the making of an answer.

    ``sources`` are the ids of what it was made from. ``stage`` names the step that made it; empty
    in a process whose stages are counted instead.
    """

    id: Name
    text: str
    stage: str = ""
    sources: tuple[Name, ...] = ()


class Process(Frozen):
    """How an answer was generated: a directed acyclic graph of texts that ends in one.

    Either every node names its stage, and the edges give the order of the stages, or none does:
    then the stages are "1" for the roots and, for every other node, one more than the highest of
    its sources.
    """

    nodes: tuple[ProcessNode, ...]

    @model_validator(mode="after")
    def _is_a_dag_with_one_end(self) -> Self:
        unique((node.id for node in self.nodes), "process node id")
        for node in self.nodes:
            for source in node.sources:
                if source not in self.by_id:
                    raise ValueError(f"node {node.id!r} names an unknown source {source!r}")
        _in_order({node.id: node.sources for node in self.nodes}, "the process has a cycle")
        if len(self._ends) != 1:
            named = ", ".join(repr(node.id) for node in self._ends[:3]) or "it has no nodes"
            raise ValueError(f"a process ends in one node, the answer; no other reads: {named}")
        self._check_stages()
        return self

    def _check_stages(self) -> None:
        without = next((node for node in self.nodes if not node.stage), None)
        if without is None:
            for node in self.nodes:
                for source in node.sources:
                    if self.by_id[source].stage == node.stage:
                        raise ValueError(
                            f"node {node.id!r} has the stage {node.stage!r} of its source "
                            f"{source!r}; stages grow along every edge"
                        )
        elif any(node.stage for node in self.nodes):
            raise ValueError(f"node {without.id!r} has no stage, but others have one")
        _ = self.stages  # whose order must exist

    @cached_property
    def by_id(self) -> Mapping[str, ProcessNode]:
        """The nodes by id."""
        return {node.id: node for node in self.nodes}

    @cached_property
    def terminal(self) -> ProcessNode:
        """The node that holds the answer: no other was made from it."""
        return self._ends[0]

    @cached_property
    def _ends(self) -> Sequence[ProcessNode]:
        read = {source for node in self.nodes for source in node.sources}
        return [node for node in self.nodes if node.id not in read]

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """The stages, earliest first."""
        if self._levels:
            return tuple(str(level + 1) for level in range(max(self._levels.values()) + 1))
        before: dict[str, set[str]] = {node.stage: set() for node in self.nodes}
        for node in self.nodes:
            before[node.stage].update(self.by_id[source].stage for source in node.sources)
        return _in_order(before, "the stages contradict each other")

    def stage_of(self, node: str) -> str:
        """Return the stage of a node."""
        return str(self._levels[node] + 1) if self._levels else self.by_id[node].stage

    @cached_property
    def _levels(self) -> Mapping[str, int]:
        """The longest path from a root by node; empty where nodes name their stages."""
        if self.nodes and self.nodes[0].stage:
            return {}
        levels: dict[str, int] = {}
        order = TopologicalSorter({node.id: node.sources for node in self.nodes}).static_order()
        for node in order:
            levels[node] = max((levels[each] + 1 for each in self.by_id[node].sources), default=0)
        return levels


def _in_order(before: Mapping[str, Iterable[str]], problem: str) -> tuple[str, ...]:
    """Return names such that each comes after those before it.

    Raises:
        ValueError: there is no such order; ``problem`` and a cycle say why.
    """
    try:
        return tuple(TopologicalSorter(before).static_order())
    except CycleError as error:
        raise ValueError(f"{problem}: {' → '.join(error.args[1])}") from error
