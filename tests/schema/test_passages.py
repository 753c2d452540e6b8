"""Passages are only ever appended, and evidence follows them."""

from __future__ import annotations

import pytest

from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Evidence,
    Item,
    PairStep,
    Passage,
    PassageQuote,
    QueryStep,
    Record,
    RemarkStep,
    Retrieval,
    Span,
    joined,
    merged,
    renumbered,
)

A, B, C, D = (Passage(text=text) for text in ("alpha", "beta", "gamma", "delta"))


def asked(retriever: str, *queries: str) -> Retrieval:
    return Retrieval(retriever=retriever, queries=queries)


def test_found_passages_are_appended_and_noted() -> None:
    item = joined(_item(A), asked("web", "why?"), [B, C])
    assert item.passages == (A, B, C)
    assert item.retrievals == (Retrieval(retriever="web", queries=("why?",), passages=(1, 2)),)


def test_a_passage_the_item_has_is_pointed_to_instead_of_repeated() -> None:
    item = joined(_item(A, B), asked("web", "why?"), [B, C, B, A])
    assert item.passages == (A, B, C)
    assert item.retrievals[0].passages == (1, 2, 0)


def test_the_same_words_from_another_page_are_another_passage() -> None:
    elsewhere = Passage(text="alpha", url="https://b.example")
    assert joined(_item(A), asked("web"), [elsewhere]).passages == (A, elsewhere)


def test_nothing_found_is_noted() -> None:
    item = joined(_item(), asked("web", "why?"), [])
    assert (item.passages, item.retrievals) == (
        (),
        (Retrieval(retriever="web", queries=("why?",)),),
    )


def test_merging_keeps_what_stands_and_says_where_the_rest_went() -> None:
    stored = joined(_item(A), asked("one", "q"), [B])
    found = joined(_item(A), asked("two", "r"), [C, B, D])
    item, moved = merged(stored, found)
    assert item.passages == (A, B, C, D)
    assert moved == {0: 0, 1: 2, 2: 1, 3: 3}
    assert item.retrievals == (
        Retrieval(retriever="one", queries=("q",), passages=(1,)),
        Retrieval(retriever="two", queries=("r",), passages=(2, 1, 3)),
    )


def test_two_answers_of_one_retriever_become_one() -> None:
    stored, found = joined(_item(), asked("web", "q"), [A]), joined(_item(), asked("web", "q"), [B])
    assert merged(stored, found).item.retrievals == (
        Retrieval(retriever="web", queries=("q",), passages=(0, 1)),
    )


def test_merging_what_is_there_changes_nothing() -> None:
    stored = joined(_item(A, A), asked("web", "q"), [B])
    item, moved = merged(stored, stored)
    assert item is stored
    assert moved == {0: 0, 1: 1, 2: 2}  # also the passage that the item came with twice
    assert merged(stored, _item(A)).item is stored


def test_evidence_is_renumbered_wherever_it_stands() -> None:
    item = _item(A, B)
    quote = Evidence(start=0, end=4, text="beta", passage=1)
    read = PassageQuote(passage=1, start=0, end=4)
    span = Span.of(item.answer, 0, 3, evidence=(quote,))
    annotation = Annotation(
        annotator="det",
        kind=AnnotatorKind.DETECTOR,
        spans=(span,),
        rejected=(span,),
        claims=(Claim(text="c", source=span, evidence=(quote,)), Claim(text="d")),
        trace=(
            QueryStep(text="q", retriever="web", passages=(0, 1)),
            RemarkStep(text="r"),
            PairStep(question="q?", answer="a", searched="q", passages=(0,), window=read),
        ),
    )
    stored = _item(B, C, A)
    now = renumbered(annotation, merged(stored, item).moved)
    Record(item=stored, annotations=(now,))  # every quote is where it says
    assert {e.passage for s in (*now.spans, *now.rejected) for e in s.evidence} == {0}
    claim = now.claims[0]
    assert claim.source is not None
    assert [e.passage for e in (*claim.evidence, *claim.source.evidence)] == [0, 0]
    assert now.trace == (
        QueryStep(text="q", retriever="web", passages=(2, 0)),
        RemarkStep(text="r"),
        PairStep(
            question="q?",
            answer="a",
            searched="q",
            passages=(2,),
            window=PassageQuote(passage=0, start=0, end=4),
        ),
    )


def test_evidence_that_stays_is_the_same_annotation() -> None:
    quote = Evidence(start=0, end=5, text="alpha", passage=0)
    span = Span.of("the answer", 0, 3, evidence=(quote,))
    annotation = Annotation(annotator="det", kind=AnnotatorKind.DETECTOR, spans=(span,))
    assert renumbered(annotation, {0: 0, 1: 5}) is annotation
    with pytest.raises(ValueError, match="passage 0 does not exist, the item has 0"):
        renumbered(annotation, {})


def _item(*passages: Passage) -> Item:
    return Item(id="a", answer="the answer", passages=passages)
