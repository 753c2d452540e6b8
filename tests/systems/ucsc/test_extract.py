"""`ucsc-extract`: what a model quotes becomes spans with evidence, whatever else it writes."""

from __future__ import annotations

import json
from typing import Any

import dspy
import pytest
from detector_cases import ANSWER, TOWER, Make, detect

from spanlab.detection import Tunable
from spanlab.models import Meter, ModelChoice
from spanlab.schema import CallsStep, Passage, QueryStep, QuoteStep, RemarkStep, Status
from spanlab.schema.usage import Budget
from spanlab.testing import ModelServer, ScriptedReply, fail, in_turn, say, say_fields
from spanlab.text.quotes import ModelQuote

YEAR = {"text": "1989", "reason": "it was 1889", "probability": 0.9}


def test_quotes_become_spans_with_reason_and_the_sentence_that_comes_closest(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(
        lambda ask: say_fields(parts=[YEAR, {"text": "Ada Smith", "probability": 0.6}])
    )
    said = detect(make("ucsc-extract")).annotation
    assert said.status is Status.DONE
    assert [(span.text, span.start, span.prob, span.note) for span in said.spans] == [
        ("1989", ANSWER.index("1989"), 0.9, "it was 1889"),
        ("Ada Smith", ANSWER.index("Ada"), 0.6, None),
    ]
    for span in said.spans:
        assert [(quote.passage, quote.text) for quote in span.evidence] == [
            (1, "The tower was built in 1889 by Gustave Eiffel in Paris.")
        ]


def test_the_trace_tells_question_quotes_and_calls(model_server: ModelServer, make: Make) -> None:
    model_server.script(lambda ask: say_fields(parts=[YEAR, {"text": "on the Moon"}]))
    query, found, invented, calls = detect(make("ucsc-extract")).annotation.trace
    assert query == QueryStep(text=TOWER.question, retriever="given", passages=(0, 1))
    assert isinstance(found, QuoteStep)
    assert [(place.start, place.end) for place in found.places] == [(23, 27)]
    assert invented == QuoteStep(text="on the Moon"), "reported as not found, and marks nothing"
    assert isinstance(calls, CallsStep)
    assert (calls.calls, calls.from_cache) == (1, 0)
    paper = {"temperature": 0.2, "top_p": 0.7, "seed": 42}
    assert calls.options == paper
    assert paper.items() <= model_server.requests[0].body.items()


def test_repeated_word_maps_to_its_own_place(model_server: ModelServer, make: Make) -> None:
    """Repeated text maps to its own occurrence."""
    answer = "Rome is old, Rome is big, Rome is new."
    model_server.script(lambda ask: say_fields(parts=[{"text": "is big"}, {"text": "Rome"}]))
    item = TOWER.model_copy(update={"answer": answer})
    spans = detect(make("ucsc-extract"), item).annotation.spans
    assert [(span.start, span.text) for span in spans] == [(18, "is big"), (26, "Rome")]


def test_nothing_quoted_means_done_without_spans(model_server: ModelServer, make: Make) -> None:
    model_server.script(lambda ask: say_fields(parts=[]))
    said = detect(make("ucsc-extract")).annotation
    assert (said.status, said.spans, said.note) == (Status.DONE, (), None)


def test_passages_and_question_stand_before_the_answer(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(lambda ask: say_fields(parts=[]))
    detect(make("ucsc-extract"))
    prompt = model_server.requests[0].messages[-1]["content"]
    order = ["[1] Paris, 2024-05-01", "[2] Trees", TOWER.question, ANSWER]
    assert sorted(order, key=prompt.index) == order


def test_without_passages_the_model_is_told_so_and_so_is_the_reader(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(lambda ask: say_fields(parts=[YEAR]))
    said = detect(make("ucsc-extract"), TOWER.model_copy(update={"passages": ()})).annotation
    assert said.note == "no passages: the model judged the answer by what it knows"
    assert RemarkStep(text=said.note) in said.trace
    assert [span.text for span in said.spans] == ["1989"]
    assert "judge by what you know" in model_server.requests[0].messages[-1]["content"]


def test_an_empty_answer_costs_no_call(model_server: ModelServer, make: Make) -> None:
    said = detect(make("ucsc-extract"), TOWER.model_copy(update={"answer": " \n"})).annotation
    assert (said.status, said.note) == (
        Status.DONE,
        "the answer is empty: there is nothing to check",
    )
    assert model_server.count == 0


@pytest.mark.parametrize(
    ("part", "prob"),
    [
        pytest.param({"text": "1989", "probability": "90%"}, 0.9, id="percent-text"),
        pytest.param({"text": "1989", "probability": 90}, 0.9, id="percent-number"),
        pytest.param({"text": "1989", "probability": 1.2}, 1.0, id="above-one"),
        pytest.param({"text": "1989", "probability": -3}, 0.0, id="below-zero"),
        pytest.param({"text": "1989", "probability": "high"}, 0.9, id="in-words"),
        pytest.param({"text": "1989", "probability": None}, 1.0, id="null"),
        pytest.param({"text": "1989", "probability": "who knows"}, 1.0, id="nonsense"),
        pytest.param({"text": "1989", "probability": "nan"}, 1.0, id="not-a-number"),
        pytest.param({"text": "1989"}, 1.0, id="missing"),
        pytest.param({"quote": "1989", "confidence": 0.7}, 0.7, id="other-names"),
        pytest.param("1989", 1.0, id="bare-text"),
    ],
)
def test_probabilities_are_read_as_models_write_them(
    part: object, prob: float, model_server: ModelServer, make: Make
) -> None:
    """A failed judgement is a state, never a NaN among the numbers."""
    model_server.script(lambda ask: say_fields(parts=[part, {"text": None}, {}]))
    spans = detect(make("ucsc-extract")).annotation.spans
    assert [(span.text, span.prob) for span in spans] == [("1989", prob)]


BROKEN = [
    pytest.param(say("I would rather talk about towers."), id="prose"),
    pytest.param(say('[[ ## parts ## ]]\n{"text": '), id="half-an-object"),
    pytest.param(say("[[ ## parts ## ]]\n" + "[" * 3000), id="deep-nesting"),
    pytest.param(say("[[ ## parts ## ]]\nmaybe"), id="a-word"),
    pytest.param(say('{"answer": 42}'), id="another-field"),
]


def test_quotes_that_stand_nowhere_are_asked_for_again_and_then_fail_the_item(
    model_server: ModelServer, make: Make
) -> None:
    """A reply about another text is no clean answer."""
    copied = say_fields(parts=[{"text": "1817"}, {"text": "had trained in Sund"}])
    model_server.script(in_turn(copied, say_fields(parts=[YEAR])))
    assert [span.text for span in detect(make("ucsc-extract")).annotation.spans] == ["1989"]
    assert "quoted words that do not stand in the answer" in model_server.requests[-1].text
    model_server.script(lambda ask: copied)
    other = TOWER.model_copy(update={"question": "Who built it?"})  # not in the cache
    said = detect(make("ucsc-extract"), other).annotation
    assert (said.status, said.spans) == (Status.FAILED, ())
    assert "2 texts of which none is in the answer: “1817”" in (said.note or "")
    assert model_server.count == 4


@pytest.mark.parametrize("broken", BROKEN)
def test_an_answer_that_cannot_be_read_is_asked_for_once_more_as_json(
    broken: ScriptedReply, model_server: ModelServer, make: Make
) -> None:
    """Broken JSON from a model ends neither the run nor in a KeyError."""
    model_server.script(in_turn(broken, say(json.dumps({"parts": [YEAR]}))))
    said = detect(make("ucsc-extract")).annotation
    assert [span.text for span in said.spans] == ["1989"]
    assert model_server.count == 2


@pytest.mark.parametrize("broken", BROKEN)
def test_an_answer_that_stays_broken_fails_the_item_with_a_reason(
    broken: ScriptedReply, model_server: ModelServer, make: Make
) -> None:
    """A failed judgement is a state with a reason, and the trace keeps the rest."""
    model_server.script(lambda ask: broken)
    said = detect(make("ucsc-extract")).annotation
    assert (said.status, said.spans) == (Status.FAILED, ())
    assert said.note is not None
    assert said.note.startswith("the model's answer is not in the form asked for")
    assert [step.kind for step in said.trace] == ["query", "calls"]
    assert model_server.count == 2, "asked once more, and no further"


@pytest.mark.parametrize("nothing", ["", None], ids=["empty", "null"])
def test_an_empty_answer_of_the_model_fails_the_item(
    nothing: str | None, model_server: ModelServer, make: Make
) -> None:
    model_server.script(lambda ask: say(nothing))
    said = detect(make("ucsc-extract")).annotation
    assert said.status is Status.FAILED
    assert said.note == "the model's answer is empty; retry the failed items"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[{'text': '1989', 'probability': 0.5}", id="python-quotes-and-no-end"),
        pytest.param('```json\n[{"text": "1989", "probability": 0.5}]\n```', id="fenced"),
        pytest.param('[{"text": "1989", "probability": 0.5, "more": [1]},]', id="extra-fields"),
    ],
)
def test_nearly_right_json_is_read_as_it_was_meant(
    text: str, model_server: ModelServer, make: Make
) -> None:
    """Broken JSON from a model ends neither the run nor in a KeyError."""
    model_server.script(lambda ask: say(f"[[ ## parts ## ]]\n{text}"))
    spans = detect(make("ucsc-extract")).annotation.spans
    assert [(span.text, span.prob) for span in spans] == [("1989", 0.5)]


def test_a_refused_call_fails_this_item_and_not_the_next(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(
        in_turn(fail(402, "credits exhausted"), lambda ask: say_fields(parts=[YEAR]))
    )
    detector = make("ucsc-extract")
    first, second = detect(detector).annotation, detect(detector).annotation
    assert first.status is Status.FAILED
    assert first.note is not None
    assert first.note.startswith("credits exhausted")
    assert [step.kind for step in first.trace] == ["query"]
    assert [span.text for span in second.spans] == ["1989"]


def test_a_spent_budget_is_no_failure_of_the_item(model_server: ModelServer, make: Make) -> None:
    from spanlab.base.errors import BudgetError

    with pytest.raises(BudgetError):
        detect(make("ucsc-extract", Meter(Budget(calls=0))))


def test_of_long_passages_the_model_reads_what_comes_closest_and_the_trace_says_so(
    model_server: ModelServer, make: Make
) -> None:
    """Evidence in any piece of any passage counts, wherever it stands."""
    model_server.script(lambda ask: say_fields(parts=[YEAR]))
    evidence = "The tower was built in 1889 by Gustave Eiffel in Paris."
    long = Passage(text="Many words. " * 500 + evidence)
    item = TOWER.model_copy(update={"passages": (Passage(text="few words " * 90), long)})
    said = detect(make("ucsc-extract", context=2000), item).annotation
    remark = said.trace[1]
    assert isinstance(remark, RemarkStep)
    assert remark.text == (
        "the passages have 6,955 characters and the prompt takes 2,000: "
        "the model read 4 of 13 pieces, those closest to question and answer"
    )
    prompt = model_server.requests[0].messages[-1]["content"]
    assert evidence in prompt[: prompt.index("[[ ## question")]
    assert 1000 < prompt.index("[[ ## question") < 2100
    assert [quote.text for quote in said.spans[0].evidence] == [evidence]
    assert said.note is None


def test_reasoning_asks_for_thoughts_first(model_server: ModelServer, make: Make) -> None:
    model_server.script(lambda ask: say_fields(reasoning="Eiffel built it in 1889.", parts=[YEAR]))
    said = detect(make("ucsc-extract", reasoning=True)).annotation
    assert [span.text for span in said.spans] == ["1989"]
    prompt = model_server.requests[0].text
    assert prompt.rindex("[[ ## reasoning ## ]]") < prompt.rindex("[[ ## parts ## ]]")


def test_guidance_is_added_to_the_instruction(model_server: ModelServer, make: Make) -> None:
    model_server.script(lambda ask: say_fields(parts=[]))
    detect(make("ucsc-extract", guidance="Mark every name."))
    instruction = model_server.requests[0].text.partition("# Task")[2].partition("The inputs")[0]
    assert instruction.rstrip().endswith("Mark every name.")
    assert "as few words as carry the error" in instruction


def test_an_optimiser_finds_the_program_its_inputs_and_the_right_answer(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(lambda ask: say_fields(parts=[YEAR]))
    detector = make("ucsc-extract")
    assert isinstance(detector, Tunable)
    assert [name for name, _ in detector.program.named_predictors()] == ["extract"]
    assert list(detector.inputs(TOWER)) == ["passages", "question", "answer", "rule"]
    expected = detector.expected(TOWER, [ModelQuote("1989", 0.75)])
    said = detector.mark(TOWER, dspy.Prediction(**expected))
    assert [(span.text, span.prob) for span in said.spans] == [("1989", 0.75)]


def test_the_right_answer_of_a_demonstration_carries_a_reason(make: Make) -> None:
    detector: Any = make("ucsc-extract")
    sentence = ANSWER.replace("1989", "1889").replace("Ada Smith", "Gustave Eiffel")
    parts = detector.expected(
        TOWER, [ModelQuote(sentence), ModelQuote("Zeppelin"), ModelQuote("1989", 0.5, "so")]
    )
    assert [part.reason for part in parts["parts"]] == [
        "the passages say: “The tower was built in 1889 by Gustave Eiffel in Paris.”",
        "the passages do not say so",
        "so",
    ]


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("explain", [False, True])
def test_a_reason_is_asked_for_where_that_is_chosen(
    explain: bool, structured: bool, model_server: ModelServer, make: Make
) -> None:
    reply = {"parts": [YEAR]}
    model_server.script(lambda ask: say(json.dumps(reply)) if structured else say_fields(**reply))
    model = ModelChoice(model="m", base_url=model_server.url, structured=structured)
    found = detect(make("ucsc-extract", options={"explain": explain}, models={"judge": model}))
    assert [span.note for span in found.annotation.spans] == ["it was 1889"], "read all the same"
    (request,) = model_server.requests
    asked = json.dumps([request.body["messages"], request.body.get("response_format")])
    assert ("reason" in asked) == explain


@pytest.mark.parametrize("detector", ["ucsc-extract", "ucsc-revise", "ucsc-kg"])
def test_what_counts_as_unsupported_is_a_choice_that_the_prompt_states(
    detector: str, model_server: ModelServer, make: Make
) -> None:
    """Without passages it is what the model is certain of, whatever was chosen."""
    edge = {"subject": "tower", "relation": "in", "object": "Paris"}
    fact = {"fact": ANSWER, "sentence": ANSWER}
    model_server.script(
        lambda ask: say_fields(
            **{"parts": [], "revised": ANSWER, "relations": [edge], "facts": [fact]},
            judgement={"verdict": "supported"},
        )
    )
    rules = []
    for options, item in (
        ({}, TOWER),
        ({"unsupported": "passages"}, TOWER),
        ({"unsupported": "passages"}, TOWER.model_copy(update={"passages": ()})),
    ):
        detect(make(detector, options=options), item)
        prompt = str(model_server.requests[-1].messages[-1]["content"])
        rules.append(prompt.partition("[[ ## rule ## ]]")[2].partition("[[")[0].strip())
    certain, passages, without = rules
    assert ("even if you are certain" in passages) and certain != passages
    assert without == certain
