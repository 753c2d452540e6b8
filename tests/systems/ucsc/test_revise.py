"""`ucsc-revise`: what a model changes when it corrects the answer becomes spans."""

from __future__ import annotations

import pytest
from detector_cases import ANSWER, TOWER, Make, detect

from spanlab.schema import Status
from spanlab.systems.ucsc.revise import revision_in
from spanlab.systems.ucsc.trace import RevisionStep
from spanlab.testing import ModelServer, in_turn, say, say_fields

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
    assert "do not correct spelling" in instruction


WRAPPED = {
    "tags": f"<corrected_answer>\n{RIGHT}\n</corrected_answer>",
    "a line before it": f"Here is the corrected answer:\n\n{RIGHT}",
    "a line before it, in one": f"Corrected answer: {RIGHT}",
    "remarks after it": f"{RIGHT}\n\nChanges: 1989 became 1889, Ada Smith became Gustave Eiffel.",
    "both": f"Sure!\n\nThe correction:\n\n“{RIGHT}”\n\nNote: not 1989 by Ada Smith in Paris.",
    "a fence": f"```text\n{RIGHT}\n```",
    "quotation marks": f'"{RIGHT}"',
}


@pytest.mark.parametrize("marked", [True, False], ids=["in its section", "bare"])
@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED.keys())
def test_a_revision_is_found_in_what_stands_around_it(
    text: str, marked: bool, model_server: ModelServer, make: Make
) -> None:
    model_server.script(lambda ask: say_fields(revised=text) if marked else say(text))
    said = detect(make("ucsc-revise")).annotation
    assert " ".join(span.text for span in said.spans) == "1989 Ada Smith"
    assert RevisionStep(text=RIGHT) in said.trace
    assert model_server.count == 1


REFUSALS = [
    "I cannot verify this answer because the passages do not say enough.",
    "I'm sorry, but I can't help with that.",
    "The answer is wrong: the passages give another year and another builder.",
    "N/A",
    "<corrected_answer></corrected_answer>",
]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_what_is_no_revision_is_asked_for_once_more_and_then_failed(
    refusal: str, model_server: ModelServer, make: Make
) -> None:
    model_server.script(lambda ask: say_fields(revised=refusal))
    said = detect(make("ucsc-revise")).annotation
    assert (said.status, said.spans) == (Status.FAILED, ())
    assert said.note is not None
    assert said.note.startswith(
        f"the model did not correct the answer, but said something else: “{refusal[:9]}"
    )
    first, second = model_server.requests
    assert "was no corrected answer" not in first.text
    assert "was no corrected answer" in second.text


def test_the_second_reply_counts_if_it_is_a_revision(model_server: ModelServer, make: Make) -> None:
    model_server.script(in_turn(say_fields(revised=REFUSALS[0]), say_fields(revised=RIGHT)))
    said = detect(make("ucsc-revise", reasoning=True)).annotation
    assert " ".join(span.text for span in said.spans) == "1989 Ada Smith"


@pytest.mark.parametrize(
    ("answer", "revised"),
    [
        pytest.param(
            "Ada Smith and 1989 others, I think.", "Gustave Eiffel, in 1889.", id="passages"
        ),
        pytest.param("Ada Smith.", "Jean Nouvel.", id="a short one"),
    ],
)
def test_a_wholly_wrong_answer_may_be_replaced(
    answer: str, revised: str, model_server: ModelServer, make: Make
) -> None:
    model_server.script(lambda ask: say_fields(revised=revised))
    said = detect(make("ucsc-revise"), TOWER.model_copy(update={"answer": answer})).annotation
    assert said.status is Status.DONE
    assert said.spans[0].text.startswith("Ada Smith")
    assert model_server.count == 1


@pytest.mark.parametrize("piece", [" ", "\n", "#", "*", "[", "{", '"', "```", "[[ ## "])
def test_a_revision_that_repeats_itself_without_end_is_read_soon(piece: str) -> None:
    revision_in("It was built in 1889.", piece * 60_000, "")
