"""A record that uses every field the schema has, for tests of whatever keeps records."""

from __future__ import annotations

from steps import step

from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    AnswerPlace,
    CallsStep,
    Citation,
    Claim,
    Evidence,
    FactStep,
    Interval,
    Item,
    NodeQuote,
    Passage,
    Process,
    ProcessNode,
    QueryStep,
    QuoteStep,
    Record,
    RelationStep,
    RemarkStep,
    Retrieval,
    Span,
    Status,
)

ANSWER = "Oslo 🇳🇴 became the capital in 1814.\r\nOslo has 3 million people."


def full_record() -> Record:
    """A record that uses every field the schema has."""
    passage = Passage(text="Oslo has 700,000 people.", title="Oslo", url="http://x", date="2024")
    evidence = Evidence(passage=0, start=9, end=16, text="700,000", stance="refutes", note="see")
    asked = {"attributes": {"severity": "major", "sure": 5}}
    wrong = Span.of(ANSWER, 46, 55, prob=0.75, label="Number", evidence=(evidence,))
    return Record(
        item=Item(
            id="a-1",
            lang="en",
            question="How large is Oslo?",
            answer=ANSWER,
            passages=(passage, Passage(text="bare")),
            process=Process(
                nodes=(
                    ProcessNode(id="q", text="?", stage="input"),
                    ProcessNode(id="a", text="!", stage="output", sources=("q",)),
                )
            ),
            retrievals=(
                Retrieval(retriever="bm25", queries=("Oslo?",), passages=(0, 1)),
                Retrieval(retriever="web"),
            ),
            citations=(Citation(start=0, end=4, passages=(0, 1)),),
            meta={"model": "m", "logits": [0.5, -1.25], "nested": {"none": None}},
        ),
        annotations=(
            Annotation(
                annotator="ada",
                kind=AnnotatorKind.PERSON,
                spans=(wrong.model_copy(update={"note": "no", "source": "offline", **asked}),),
                responses={"fluency": 3, "remark": "“fine”, 🎉"},
                rejected=(Span.of(ANSWER, 0, 4, prob=0.2),),
                claims=(Claim(text="Oslo is large.", verdict="refuted", suggested_by="offline"),),
                rejected_claims=(
                    Claim(text="Oslo is.", evidence=(evidence,), suggested_by="x", voters=("y",)),
                ),
                note="checked twice",
            ),
            Annotation(annotator="bo", kind=AnnotatorKind.PERSON),
            Annotation(annotator="cy", kind=AnnotatorKind.PERSON, status=Status.SKIPPED),
            Annotation(annotator="di", kind=AnnotatorKind.PERSON, status=Status.NOT_ANNOTATED),
            Annotation(
                annotator="offline",
                kind=AnnotatorKind.DETECTOR,
                spans=(wrong,),
                claims=(
                    Claim(text="Oslo is large."),
                    Claim(
                        text="Oslo has 3 million people.",
                        source=Span.of(ANSWER, 37, 63),
                        verdict="refuted",
                        prob=0.9,
                        evidence=(evidence,),
                        note="it has 700,000",
                        error_stages=("summary", "answer"),
                    ),
                ),
                trace=(
                    QueryStep(text="Oslo?", retriever="bm25", passages=(0, 1)),
                    QuoteStep(text="3 million", prob=0.9, places=(AnswerPlace(start=46, end=55),)),
                    QuoteStep(text="invented"),
                    RelationStep(subject="Oslo", relation="has", object="700,000 people"),
                    FactStep(text="Oslo has 3 million.", verdict="refuted", looked_up=("Oslo",)),
                    step(
                        "trail",
                        claim=1,
                        round=1,
                        checked=("a",),
                        quotes=(NodeQuote(node="a", start=0, end=4, text="Oslo"),),
                        summaries=("It has 700,000 people.",),
                        verdict="not-supported",
                    ),
                    step("revision", text="Oslo is the capital."),
                    RemarkStep(text="the model's JSON was repaired"),
                    CallsStep(model="m", calls=2, from_cache=1, cost=0.25),
                ),
            ),
            Annotation(
                annotator="broken",
                kind=AnnotatorKind.DETECTOR,
                status=Status.FAILED,
                note="no credits",
            ),
            Annotation(
                annotator="vote",
                kind=AnnotatorKind.VOTE,
                spans=(wrong,),
                hard=(Interval(start=46, end=55),),
                voters=("ada", "bo"),
            ),
            Annotation(annotator="eve", kind=AnnotatorKind.PERSON, spans=(wrong,), guidelines=2),
            Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=(wrong,), hard=()),
        ),
    )
