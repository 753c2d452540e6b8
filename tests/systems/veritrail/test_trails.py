"""The way of a claim through a process, as a picture needs it."""

from __future__ import annotations

from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Item,
    NodeQuote,
    NodesInMemory,
    NodeTable,
    Passage,
    Process,
    ProcessNode,
    SharedProcess,
)
from spanlab.systems.veritrail.trace import TrailStage, TrailStep, trails

NODES = (
    ProcessNode(id="t1", text="A met B.", stage="text"),
    ProcessNode(id="t2", text="It rained.", stage="text"),
    ProcessNode(id="s1", text="They met.", stage="summary", sources=("t1",)),
    ProcessNode(id="s2", text="Rain.", stage="summary", sources=("t2",)),
    ProcessNode(id="a", text="A met C in the rain.", stage="answer", sources=("s1", "s2")),
)
READ_ALL = (
    TrailStep(claim=0, round=1, checked=("s1", "s2"), verdict="not-supported"),
    TrailStep(
        claim=0,
        round=2,
        checked=("t1", "t2"),
        quotes=(NodeQuote(node="t1", start=0, end=8, text="A met B."),),
        verdict="not-supported",
        reason="It was B.",
    ),
)


def _found(*steps: TrailStep, claims: int = 1) -> Annotation:
    claim = Claim(text="A met C.", verdict="not-supported", error_stages=("answer",))
    return Annotation(
        annotator="veritrail", kind=AnnotatorKind.DETECTOR, claims=(claim,) * claims, trace=steps
    )


def _item(process: Process | SharedProcess | None) -> Item:
    return Item(id="i", answer="A met C in the rain.", process=process)


def test_nodes_that_led_to_evidence_are_on_the_path_though_nothing_is_quoted_of_them() -> None:
    (trail,) = trails(_item(Process(nodes=NODES)), _found(*READ_ALL))
    assert {node.id: node.sources for node in trail.nodes} == {
        "a": ("s1",),
        "s1": ("t1",),
        "t1": (),
    }
    assert [(quote.text, quote.round) for node in trail.nodes for quote in node.quotes] == [
        ("A met B.", 2)
    ]
    assert trail.stages == (
        TrailStage("text", nodes=2, read=2, error=False),
        TrailStage("summary", nodes=2, read=2, error=False),
        TrailStage("answer", nodes=1, read=0, error=True),
    )
    assert [(each.read, each.verdict, each.reason) for each in trail.rounds] == [
        (2, "not-supported", None),
        (2, "not-supported", "It was B."),
    ]


def test_a_shared_process_tells_the_same() -> None:
    shared = SharedProcess(id="p", terminal="a").among(NodesInMemory(NodeTable(NODES)))
    both = [trails(_item(each), _found(*READ_ALL)) for each in (shared, Process(nodes=NODES))]
    assert both[0] == both[1]


def test_passages_without_a_process_are_one_step() -> None:
    item = Item(id="i", answer="A met C.", passages=(Passage(text="A met B."),))
    step = TrailStep(claim=0, round=1, checked=("passage 1",), verdict="not-supported")
    (trail,) = trails(item, _found(step))
    assert [(stage.name, stage.nodes) for stage in trail.stages] == [("1", 1), ("2", 1)]
    assert [node.id for node in trail.nodes] == ["answer"]


def test_what_cannot_be_drawn_is_left_out() -> None:
    gone = TrailStep(claim=1, round=1, checked=("gone",), verdict="not-supported")
    beyond = TrailStep(claim=2, round=1, checked=("s1",), verdict="not-supported")
    no_claim = TrailStep(checked=("s1",), verdict="not-supported")
    annotation = _found(*READ_ALL, gone, beyond, no_claim, claims=2)
    found = trails(_item(Process(nodes=NODES)), annotation)
    assert [trail.claim for trail in found] == [0]
    without = SharedProcess(id="p", terminal="a")
    assert trails(_item(without), annotation) == []
