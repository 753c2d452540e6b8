"""The schema's rules as tables: what may be built, and what is refused with which words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from spanlab.oplog.operations import OPERATION
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Evidence,
    Interval,
    Item,
    Passage,
    Process,
    ProcessNode,
    Record,
    Retrieval,
    Span,
    Status,
)

ANSWER = "Bern 🎉 has 9 people."  # the emoji is one code point, at 5
PASSAGE = "Bern has 140,000 people."
BERN = {"start": 0, "end": 4, "text": "Bern"}
NINE = {"start": 11, "end": 12, "text": "9"}
MANY = {"start": 9, "end": 16, "text": "140,000", "passage": 0}
ITEM = {"id": "bern", "answer": ANSWER, "passages": [{"text": PASSAGE}]}
FIRST = {"id": "a", "text": "T", "stage": "source"}
SECOND = {"id": "b", "text": "T", "stage": "answer", "sources": ["a"]}


def person(**fields: Any) -> dict[str, Any]:
    return {"annotator": "Ada", "kind": "person", **fields}


def record(*annotations: Mapping[str, Any], **item: Any) -> Record:
    return Record.model_validate({"item": ITEM | item, "annotations": annotations})


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda text: Passage(text=text), id="passage"),
        pytest.param(lambda text: Item(id="i", answer=text), id="answer"),
        pytest.param(lambda text: Item(id=text, answer=""), id="id"),
        pytest.param(lambda text: Item(id="i", answer="", meta={"k": [text]}), id="meta"),
        pytest.param(lambda text: Span(start=0, end=2, text=text), id="quote"),
        pytest.param(lambda text: Claim(text=text), id="claim"),
        pytest.param(lambda text: Retrieval(retriever="r", queries=(text,)), id="query"),
        pytest.param(lambda text: Annotation.model_validate(person(note=text)), id="note"),
        pytest.param(
            lambda text: Annotation.model_validate(
                person(trace=[{"kind": "remark", "text": text}])
            ),
            id="trace",
        ),
        pytest.param(
            lambda text: OPERATION.validate_python({"kind": "note", "text": text}),
            id="operation",
        ),
    ],
)
def test_no_text_takes_half_an_emoji_which_no_store_takes(build: Callable[[str], object]) -> None:
    with pytest.raises(ValidationError, match="unicode"):
        build("x\ud83d")


# What may be built.


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        pytest.param(0, 4, "Bern", id="a word"),
        pytest.param(5, 6, "🎉", id="an emoji is one character"),
        pytest.param(0, len(ANSWER), ANSWER, id="the whole answer"),
    ],
)
def test_a_span_quotes_code_points(start: int, end: int, text: str) -> None:
    span = Span.of(ANSWER, start, end)
    assert (span.text, span.prob) == (text, 1.0)
    assert span.fits(ANSWER)
    assert not span.fits(f" {ANSWER}")


def test_a_record_keeps_everything_that_fits() -> None:
    said = person(
        spans=[NINE | {"prob": 0.5, "label": "number", "evidence": [MANY]}],
        hard=[{"start": 11, "end": 12}],
        rejected=[BERN],
        claims=[{"text": "It has 9 people.", "source": NINE, "evidence": [MANY]}],
    )
    full = record(said, process={"nodes": [FIRST, SECOND]}, meta={"temperature": 0.7})
    assert full == Record.model_validate_json(full.model_dump_json())
    assert full.by("Ada") is full.annotations[0]
    assert full.by("Ben") is None


def test_what_is_left_out_has_the_least_meaning() -> None:
    item = Item(id="a", answer="")
    assert (item.lang, item.question, item.passages, item.process) == ("und", "", (), None)
    said = Annotation(annotator="Ada", kind=AnnotatorKind.PERSON)
    assert (said.status, said.spans, said.hard) == (Status.DONE, (), None)


def test_nothing_that_is_built_can_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(Span.of(ANSWER, 0, 4), "prob", 0.1)  # noqa: B010 - mypy knows it already


# What is refused: a name of the case, what is built, and words of the message.
Build = Callable[..., object]
REFUSED: dict[str, list[tuple[str, Build, dict[str, Any], str]]] = {
    "spans": [
        ("empty", Span, BERN | {"end": 0, "text": ""}, "end 0 must be greater than start 0"),
        ("reversed", Span, BERN | {"start": 5}, "end 4 must be greater than start 5"),
        ("negative", Span, BERN | {"start": -1}, "greater than or equal to 0"),
        ("a fraction", Span, BERN | {"start": 0.5}, "valid integer"),
        ("a number as text", Span, BERN | {"start": "0"}, "valid integer"),
        ("wrong length", Span, BERN | {"end": 5}, "text 'Bern' has 4 characters, offsets [0, 5)"),
        ("UTF-16 units", Span, {"start": 5, "end": 7, "text": "🎉"}, "has 1 characters"),
        ("above one", Span, BERN | {"prob": 1.01}, "less than or equal to 1"),
        ("below nought", Span, BERN | {"prob": -0.01}, "greater than or equal to 0"),
        ("no number", Span, BERN | {"prob": float("nan")}, "finite number"),
        ("an empty label", Span, BERN | {"label": ""}, "at least 1 character"),
        ("a field nobody knows", Span, BERN | {"color": "red"}, "Extra inputs are not permitted"),
        ("evidence of no stance", Evidence, MANY | {"stance": "maybe"}, "'supports', 'refutes'"),
        ("an empty interval", Interval, {"start": 3, "end": 3}, "end 3 must be greater"),
    ],
    "items": [
        ("without id", Item, {"answer": "x"}, "Field required"),
        ("an empty id", Item, {"id": "", "answer": "x"}, "at least 1 character"),
        ("a line feed in an id", Item, {"id": "a\nb", "answer": "x"}, "match pattern"),
        ("a long id", Item, {"id": "x" * 201, "answer": "x"}, "at most 200 characters"),
        ("a number as id", Item, {"id": 1, "answer": "x"}, "valid string"),
        ("without answer", Item, {"id": "a"}, "Field required"),
        ("a language's name", Item, ITEM | {"lang": "English"}, "match pattern"),
        ("a locale", Item, ITEM | {"lang": "en_US"}, "match pattern"),
        ("a passage without text", Passage, {"title": "Bern"}, "Field required"),
    ],
    "annotations": [
        ("of nobody", Annotation, person(annotator=""), "at least 1 character"),
        ("of no kind", Annotation, person(kind="robot"), "'person', 'detector', 'vote'"),
        ("of no state", Annotation, person(status="open"), "'not-annotated', 'done', 'failed'"),
        ("failed without reason", Annotation, person(status="failed"), "needs a note"),
        ("failed with an empty one", Annotation, person(status="failed", note=""), "needs a note"),
        ("a claim without text", Claim, {"verdict": "supported"}, "Field required"),
        ("a verdict of its own", Claim, {"text": "x", "verdict": "true"}, "'supported'"),
    ],
    "retrievals": [
        ("of nothing", Retrieval, {"retriever": ""}, "at least 1 character"),
        (
            "a passage that is not there",
            Item,
            ITEM | {"retrievals": [{"retriever": "bm25", "passages": [0, 1]}]},
            "retrievals.0: passage 1 does not exist, the item has 1",
        ),
    ],
    "process": [
        ("without text", ProcessNode, {"id": "a"}, "Field required"),
        ("of nothing", Process, {"nodes": []}, "ends in one node, the answer; no other reads: it"),
        ("two ends", Process, {"nodes": [FIRST, FIRST | {"id": "b"}]}, "no other reads: 'a', 'b'"),
        (
            "a stage for some",
            Process,
            {"nodes": [FIRST, SECOND | {"stage": ""}]},
            "node 'b' has no stage, but others have one",
        ),
        (
            "the stage of a source",
            Process,
            {"nodes": [FIRST, SECOND | {"stage": FIRST["stage"]}]},
            "node 'b' has the stage 'source' of its source 'a'; stages grow along every edge",
        ),
        (
            "a stage before that of a source",
            Process,
            {"nodes": [FIRST, SECOND, FIRST | {"id": "c", "sources": ["b"]}]},
            "the order of stages contradicts itself: ",
        ),
        ("twice", Process, {"nodes": [FIRST, FIRST]}, "process node 'a' already exists"),
        ("an unknown source", Process, {"nodes": [SECOND]}, "'b' names an unknown source 'a'"),
        (
            "a cycle",
            Process,
            {"nodes": [FIRST | {"sources": ["b"]}, SECOND]},
            "the process has a cycle: a → b → a",
        ),
        ("itself", Process, {"nodes": [FIRST | {"sources": ["a"]}]}, "a cycle: a → a"),
    ],
}


@pytest.mark.parametrize(
    ("build", "fields", "words"),
    [
        pytest.param(build, fields, words, id=f"{part}: {name}")
        for part, cases in REFUSED.items()
        for name, build, fields, words in cases
    ],
)
def test_what_breaks_a_rule_is_refused(build: Build, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        build(**fields)
    assert words in str(refused.value)


ELSEWHERE = {"start": 1, "end": 5, "text": "Bern"}
OTHER = MANY | {"text": "150,000"}
LATE = {"start": 20, "end": 23}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param(
            {"spans": [BERN, ELSEWHERE]},
            "spans.1: quotes 'Bern' at [1, 5), but the answer has 'ern ' there",
            id="a span",
        ),
        pytest.param({"rejected": [ELSEWHERE]}, "rejected.0: quotes 'Bern'", id="a refused span"),
        pytest.param(
            {"spans": [NINE | {"evidence": [MANY | {"passage": 1}]}]},
            "spans.0.evidence.0: passage 1 does not exist, the item has 1",
            id="evidence in no passage",
        ),
        pytest.param(
            {"spans": [NINE | {"evidence": [OTHER]}]},
            "spans.0.evidence.0: quotes '150,000', but passage 0 has '140,000' there",
            id="evidence elsewhere",
        ),
        pytest.param(
            {"claims": [{"text": "x", "source": ELSEWHERE}]}, "claims.0.source: ", id="a claim"
        ),
        pytest.param(
            {"claims": [{"text": "x", "evidence": [OTHER]}]},
            "claims.0.evidence.0: ",
            id="a claim's evidence",
        ),
        pytest.param({"hard": [LATE]}, "hard.0: end 23 is past the answer's 20", id="a hard label"),
        pytest.param(
            {"trace": [{"kind": "quote", "text": "x", "places": [LATE]}]},
            "trace.0: end 23",
            id="a trace",
        ),
    ],
)
def test_what_does_not_fit_its_item_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        record(person(), person(annotator="Ben", **fields))
    assert f"annotations.1.{words}" in str(refused.value)


def test_an_annotator_speaks_once_of_an_item() -> None:
    with pytest.raises(ValidationError, match="annotator 'Ada' already exists"):
        record(person(), person(spans=[BERN]))
