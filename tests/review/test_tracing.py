"""What a trace brings with it."""

from __future__ import annotations

from spanlab.review.traces import traced_annotation
from spanlab.schema import Annotation, AnnotatorKind, Claim, Evidence, Item, Passage, Record, Span
from spanlab.storage import Store


def test_a_trace_comes_with_the_evidence_of_its_spans_and_claims_once(store: Store) -> None:
    quote = Evidence(passage=0, start=0, end=4, text="Oslo", stance="refutes")
    item = Item(id="a", answer="Bergen", passages=(Passage(text="Oslo"),))
    span = Span.of(item.answer, 0, 6, evidence=(quote,))
    annotation = Annotation(
        annotator="d",
        kind=AnnotatorKind.DETECTOR,
        spans=(span,),
        claims=(Claim(text="Bergen", evidence=(quote,)),),
    )
    store.import_records("set", [Record(item=item, annotations=(annotation,))])
    found = traced_annotation(store, "set", "a", "d")
    assert found is not None
    assert found.evidence() == (quote,)
    assert traced_annotation(store, "set", "a", "nobody") is None
    assert traced_annotation(store, "set", "gone", "d") is None
