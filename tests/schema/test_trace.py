"""What a record says of its making: retrievals and traces point only at what is there."""

from __future__ import annotations

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    AnswerPlace,
    FactStep,
    Item,
    PairStep,
    Passage,
    PassageQuote,
    QuoteStep,
    Record,
    RemarkStep,
    Retrieval,
    Step,
    renumbered,
)

ITEM = Item(id="oslo", answer="Oslo is large.", passages=(Passage(text="Oslo is a city."),))


def test_a_retrieval_names_passages_of_its_item() -> None:
    with pytest.raises(ValidationError, match=r"retrievals.0: passage 1 does not exist"):
        Item(
            id="a",
            answer="b",
            passages=ITEM.passages,
            retrievals=(Retrieval(retriever="r", passages=(1,)),),
        )


def test_one_retriever_is_asked_the_same_once() -> None:
    one, other = Retrieval(retriever="r"), Retrieval(retriever="r", query="b?")
    assert Item(id="a", answer="b", retrievals=(one, other)).retrievals == (one, other)
    with pytest.raises(ValidationError, match="a retriever was asked the same twice"):
        Item(id="a", answer="b", retrievals=(one, one))


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(QuoteStep(text="big", places=(AnswerPlace(start=8, end=15),)), id="quote"),
        pytest.param(
            FactStep(text="big", verdict="refuted", places=(AnswerPlace(start=8, end=15),)),
            id="fact",
        ),
    ],
)
def test_a_place_in_a_trace_lies_in_the_answer(step: QuoteStep | FactStep) -> None:
    annotation = Annotation(annotator="d", kind=AnnotatorKind.DETECTOR, trace=(step,))
    with pytest.raises(ValidationError, match=r"annotations.0.trace.0: end 15 is past"):
        Record(item=ITEM, annotations=(annotation,))


@pytest.mark.parametrize(("passage", "end"), [(0, 16), (1, 1)], ids=["too-long", "no-passage"])
def test_what_an_answer_was_read_from_is_there(passage: int, end: int) -> None:
    read = PassageQuote(passage=passage, start=0, end=end)
    step = PairStep(question="?", answer=".", searched="?", window=read)
    annotation = Annotation(annotator="d", kind=AnnotatorKind.DETECTOR, trace=(step,))
    with pytest.raises(ValidationError, match=f"trace.0: no passage {passage} has {end} char"):
        Record(item=ITEM, annotations=(annotation,))


def test_a_step_is_known_by_its_kind() -> None:
    steps = TypeAdapter(list[Step])
    written = steps.dump_json([RemarkStep(text="so")], exclude_defaults=True)
    assert written == b'[{"kind":"remark","text":"so"}]'
    assert steps.validate_json(written) == [RemarkStep(text="so")]
    with pytest.raises(ValidationError, match=r"0.text\n  Field required"):
        steps.validate_json(b'[{"kind":"remark"}]')
    with pytest.raises(ValidationError, match="a step of a trace is an object with its kind"):
        steps.validate_json(b'[{"text":"so"}]')


def test_a_step_of_a_package_that_is_gone_is_kept_as_it_came() -> None:
    steps = TypeAdapter(list[Step])
    written = b'[{"kind":"guess","passages":"all","places":[{"end":900}],"of":{"a":[1.50,null]}}]'
    (step,) = steps.validate_json(written)
    assert (step.kind, step.claim) == ("guess", None)
    assert json.loads(steps.dump_json([step])) == json.loads(written)
    said = Annotation(annotator="d", kind=AnnotatorKind.DETECTOR, trace=(step,))
    record = Record(item=ITEM, annotations=(said,))
    assert Record.model_validate_json(record.model_dump_json(exclude_defaults=True)) == record
    assert renumbered(said, {0: 1}).trace == (step,)


@pytest.mark.system("mermaid", "safe", "ucsc", "veritrail")
def test_the_schema_for_other_programs_has_the_steps_of_systems() -> None:
    schema = Annotation.model_json_schema()
    kinds = schema["properties"]["trace"]["items"]["discriminator"]["mapping"]
    assert {"query", "calls", "thought", "reasoning", "revision", "trail"} <= kinds.keys()
    assert "RevisionStep" in schema["$defs"]
