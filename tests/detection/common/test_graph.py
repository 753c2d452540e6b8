"""The knowledge graph is looked up by names that need not be spelled as they are in it."""

from __future__ import annotations

import pytest

from spanlab.detection.entities import MOST_RELATIONS, EntityEdge, EntityGraph

EDGES = [
    EntityEdge("Marie Curie", "born in", "Warsaw"),
    EntityEdge("Marie Curie", "worked in", "Paris"),
    EntityEdge("Marie Curie", "died in", "Passy"),
    EntityEdge("Pierre Curie", "born in", "Paris"),
]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        pytest.param("Marie Curie", [0, 1, 2], id="as-it-stands"),
        pytest.param("marie curie", [0, 1, 2], id="other-case"),
        pytest.param("Marie Courie", [0, 1, 2], id="a-slip"),
        pytest.param("Paris", [1, 3], id="an-object"),
        pytest.param("born in", [0, 3], id="a-relation"),
        pytest.param("Tokyo", [], id="unknown"),
        pytest.param("", [], id="empty"),
        pytest.param("…", [], id="no-letters"),
    ],
)
def test_names_are_found(name: str, found: list[int]) -> None:
    assert EntityGraph(EDGES).look_up([name]) == tuple(EDGES[index] for index in found)


def test_the_same_relation_counts_once_and_different_ones_all_stay() -> None:
    edges = [EntityEdge("A", "met", "B"), EntityEdge("A", "met", "B"), EntityEdge("A", "knew", "B")]
    graph = EntityGraph(edges)
    assert graph.edges == (EntityEdge("A", "met", "B"), EntityEdge("A", "knew", "B"))
    assert graph.entities == ("A", "B")


def test_a_look_up_is_bounded() -> None:
    graph = EntityGraph(EntityEdge("hub", "has", f"spoke {number}") for number in range(100))
    assert len(graph.look_up(["hub"])) == MOST_RELATIONS


def test_an_empty_graph_knows_nothing() -> None:
    assert EntityGraph([]).look_up(["anything"]) == ()
