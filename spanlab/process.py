"""How an answer was generated: the graph of texts that led to it."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Self

from pydantic import model_validator

from spanlab.fields import Frozen, Name, unique


class ProcessNode(Frozen):
    """One text in the making of an answer; ``sources`` are the ids of what it was made from."""

    id: Name
    text: str
    stage: str
    sources: tuple[Name, ...] = ()


class Process(Frozen):
    """How an answer was generated: a directed acyclic graph of texts."""

    nodes: tuple[ProcessNode, ...]

    @model_validator(mode="after")
    def _is_a_dag(self) -> Self:
        ids = [node.id for node in self.nodes]
        unique(ids, "process node id")
        known = set(ids)
        for node in self.nodes:
            for source in node.sources:
                if source not in known:
                    raise ValueError(f"node {node.id!r} names an unknown source {source!r}")
        try:
            TopologicalSorter({node.id: node.sources for node in self.nodes}).prepare()
        except CycleError as error:
            raise ValueError(f"the process has a cycle: {' → '.join(error.args[1])}") from error
        return self
