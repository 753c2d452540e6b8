"""`ucsc-revise`: what a model changes when it corrects the answer becomes spans."""

from __future__ import annotations

import pytest
from detector_cases import ANSWER, TOWER, Make, detect

from spanlab.schema import Status
from spanlab.testing import ModelServer, say_fields
from spanlab.trace import RevisionStep

RIGHT = ANSWER.replace("1989", "1889").replace("Ada Smith", "Gustave Eiffel")


def test_replaced_words_become_spans(model_server: ModelServer, make: Make) -> None:
    model_server.script(lambda ask: say_fields(revised=RIGHT))
    said = detect(make("ucsc-revise")).annotation
    assert " ".join(span.text for span in said.spans) == "1989 Ada Smith"
    assert RevisionStep(text=RIGHT) in said.trace
    assert all(span.evidence[0].passage == 1 for span in said.spans)
    assert all(0 < span.prob <= 1 for span in said.spans)


def test_an_unchanged_answer_means_done_without_spans(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(lambda ask: say_fields(revised=ANSWER))
    said = detect(make("ucsc-revise")).annotation
    assert (said.status, said.spans) == (Status.DONE, ())


def test_the_probability_can_be_given(model_server: ModelServer, make: Make) -> None:
    model_server.script(lambda ask: say_fields(revised=RIGHT))
    said = detect(make("ucsc-revise", options={"prob": 0.7})).annotation
    assert {span.prob for span in said.spans} == {0.7}


def test_chinese_is_compared_by_character(model_server: ModelServer, make: Make) -> None:
    answer = "这座塔建于一九八九年。"
    model_server.script(lambda ask: say_fields(revised=answer.replace("九八九", "八八九")))
    item = TOWER.model_copy(update={"answer": answer, "lang": "zh"})
    spans = detect(make("ucsc-revise"), item).annotation.spans
    assert [(span.start, span.text) for span in spans] == [(6, "九")]


@pytest.mark.parametrize("empty", ["", "  "], ids=["empty", "blank"])
def test_an_empty_revision_is_a_failure_and_marks_nothing(
    empty: str, model_server: ModelServer, make: Make
) -> None:
    """A failed judgement is a state."""
    model_server.script(lambda ask: say_fields(revised=empty))
    said = detect(make("ucsc-revise")).annotation
    assert (said.status, said.spans) == (Status.FAILED, ())
    assert said.note == "the model returned an empty revision; retry the item"


def test_the_instruction_asks_for_few_changes_and_leaves_spelling_alone(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(lambda ask: say_fields(revised=ANSWER))
    detect(make("ucsc-revise"))
    instruction = " ".join(model_server.requests[0].text.split())
    assert "with the fewest possible changes" in instruction
    assert "Do not correct spelling" in instruction
