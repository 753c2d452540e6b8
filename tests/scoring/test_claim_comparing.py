"""Verdicts of a dataset's annotators: scores against a reference, paired, and agreement."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from steps import step

from spanlab.output.tables import flat_rows
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Item,
    PairStep,
    Passage,
    RecallStep,
    Record,
    Step,
    Verdict,
)
from spanlab.scoring.annotator_tables import claim_table
from spanlab.scoring.verdicts import ClaimComparison, ClaimTally

KINDS = {
    "gold": AnnotatorKind.GOLD,
    "Ann": AnnotatorKind.PERSON,
    "Ben": AnnotatorKind.PERSON,
    "tool": AnnotatorKind.DETECTOR,
}
YES: Verdict = "supported"
NO: Verdict = "refuted"


def compared(*items: Mapping[str, list[Verdict | None]]) -> ClaimComparison:
    """Compare verdicts by annotator on the claims "claim 0", "claim 1", … of each item."""
    tally = ClaimTally(KINDS, "gold")
    for number, item in enumerate(items):
        annotations = tuple(
            Annotation(
                annotator=name,
                kind=KINDS[name],
                claims=tuple(
                    Claim(text=f"claim  {at}" if name == "Ben" else f"claim {at}", verdict=verdict)
                    for at, verdict in enumerate(verdicts)
                ),
            )
            for name, verdicts in item.items()
        )
        answer = Item(id=f"i{number}", answer="Paris.")
        tally.add(Record(item=answer, annotations=annotations))
    return tally.result()


def test_verdicts_are_scored_on_the_claims_of_the_reference() -> None:
    """Ann is right on 2 of 3; the tool lacks a claim, which counts as wrong, and adds another."""
    found = compared(
        {"gold": [YES, NO], "Ann": [YES, YES], "tool": [YES]},
        {"gold": [YES], "Ann": [YES], "tool": [YES, NO]},
    )
    scores = {one.name: one.report for one in found.scores}
    assert list(scores) == ["Ann", "tool"]
    assert scores["Ann"].n == 3
    assert scores["Ann"].accuracy.mean == pytest.approx(2 / 3)
    assert (scores["tool"].n, scores["tool"].unjudged) == (3, 1)
    assert found.n == 4


def test_two_annotators_are_compared_on_the_items_of_both() -> None:
    found = compared(
        {"gold": [YES, NO], "Ann": [YES, NO], "tool": [NO, NO]}, {"gold": [YES], "Ann": [NO]}
    )
    ann, tool = found.scores
    difference = ann.minus(tool)
    assert difference is not None
    assert difference.difference == pytest.approx(1 - 1 / 2)


@pytest.mark.system("mermaid")
def test_searches_are_counted_with_what_the_memory_spared() -> None:
    """Two calls of tools, one of them repeated; two questions, one answered from memory."""
    calls: tuple[Step, ...] = (
        RecallStep(entities=("Paris",), passages=(0, 1), notes=("a", "b")),
        step("thought", text="look", tool="search", passages=(2,), round=1),
        step("thought", text="again", tool="search", repeats=1, round=2),
        step("thought", text="so", round=3),
        PairStep(question="?", answer="!", searched="x", passages=(1,)),
        PairStep(question="?", answer="!", searched="x", passages=(2,)),
    )
    claims = (Claim(text="Paris is large.", verdict=YES),)
    annotations = [
        Annotation(annotator=name, kind=KINDS[name], claims=claims, trace=trace)
        for name, trace in (("gold", ()), ("tool", calls))
    ]
    tally = ClaimTally(KINDS, "gold")
    item = Item(id="a", answer="Paris.", passages=(Passage(text="p"),) * 3)
    tally.add(Record(item=item, annotations=tuple(annotations)))
    (tool,) = tally.result().scores
    assert (tool.searches, tool.recalled) == (2, 2)
    (row,) = flat_rows(claim_table([tool]))
    assert (row["Tool calls"], row["Recalled"]) == (2, 2)


def test_agreement_of_people_by_hand() -> None:
    """Four claims, two raters: 5 supported and 3 refuted, one claim disputed.

    Observed disagreement 2 of 8 values, expected 2·5·3 of 8·7: alpha = 1 - (2/8) / (30/56).
    White space within a claim makes no other claim of it; the tool is no person.
    """
    found = compared(
        {"Ann": [YES, YES, NO, YES], "Ben": [YES, YES, NO, NO], "tool": [NO, NO, NO, NO]}
    )
    assert found.persons.n == 4
    assert found.persons.alpha == pytest.approx(1 - (2 / 8) / (30 / 56))
    assert found.independent.n == 4
    assert found.independent.alpha != found.persons.alpha
    assert found.scores == ()


def test_not_supported_agrees_with_what_it_covers() -> None:
    found = compared({"Ann": ["not-supported", YES], "Ben": [NO, YES]})
    assert found.persons.alpha == 1.0
    assert compared({"Ann": [YES], "Ben": [YES]}).persons.alpha is None
