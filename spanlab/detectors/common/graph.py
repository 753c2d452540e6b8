"""A small knowledge graph in memory: entities, and any number of relations between two of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz, process, utils

from spanlab.lm.lenient import ReplyModel, Text

ALIKE = 85.0  # similarity (0 to 100) from which a name asked for means a name of the graph
MOST_NAMES = 3  # names of the graph that one name asked for may mean
MOST_RELATIONS = 40  # relations that one look-up returns


class Edge(NamedTuple):
    """A relation from one entity to another, all three in words."""

    subject: str
    relation: str
    object: str

    def __str__(self) -> str:
        return f"{self.subject} – {self.relation} – {self.object}"


class Relation(ReplyModel):
    """One relation between two entities, in words of the passages."""

    subject: Text
    relation: Text
    object: Text


def edges_of(relations: Iterable[Relation]) -> Iterator[Edge]:
    """Yield the relations of a model's reply that name all three parts."""
    for each in relations:
        edge = Edge(each.subject.strip(), each.relation.strip(), each.object.strip())
        if all(edge):
            yield edge


class Graph:
    """A directed multigraph that is looked up by names, tolerant in their spelling.

    Args:
        edges: relations in order; the same one twice counts once, different ones between the same
            two entities all stay.
    """

    def __init__(self, edges: Iterable[Edge]) -> None:
        self.edges = tuple(dict.fromkeys(edges))
        self._by_name: dict[str, list[int]] = defaultdict(list)
        for index, edge in enumerate(self.edges):
            for name in dict.fromkeys(edge):
                self._by_name[name].append(index)
        self._names = {name: utils.default_process(name) for name in self._by_name}

    @property
    def entities(self) -> tuple[str, ...]:
        """The entities, in the order in which the relations name them."""
        return tuple(dict.fromkeys(name for edge in self.edges for name in (edge[0], edge[2])))

    def look_up(self, names: Sequence[str]) -> tuple[Edge, ...]:
        """Return the relations of the entities, or of the kind, that names mean.

        Args:
            names: entities or relations, spelled more or less as in the graph.

        Returns:
            At most ``MOST_RELATIONS`` relations in the graph's order; empty if no name is known.
        """
        found: set[int] = set()
        for name in names:
            for known in self._meant(name):
                found.update(self._by_name[known])
        return tuple(self.edges[index] for index in sorted(found)[:MOST_RELATIONS])

    def _meant(self, name: str) -> list[str]:
        asked = utils.default_process(name)
        if not asked:
            return []
        matches = process.extract(
            asked, self._names, scorer=fuzz.WRatio, limit=MOST_NAMES, score_cutoff=ALIKE
        )
        exact = [known for _, score, known in matches if score == 100.0]
        return exact or [known for _, _, known in matches]
