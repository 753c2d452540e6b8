"""Each detector is a module of dspy's: called, composed, tuned, saved and loaded like any other."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from detector_cases import TOWER, Make, detect
from model_fixtures import KEY

import spanlab
from spanlab.base.errors import BudgetError, InputError, UsageError
from spanlab.base.settings import Settings
from spanlab.detection import DetectorResult, DetectorSpec, build, spec_of
from spanlab.models import Meter, ModelChoice, language_model
from spanlab.schema import Item, Record, Status
from spanlab.schema.usage import Budget
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail, say_fields

YEAR = {"text": "1989", "probability": 0.9}
PREDICTORS = {
    "ucsc-extract": ["program.extract"],
    "ucsc-kg": ["program.graph", "program.facts", "program.check", "program.words"],
    "ucsc-revise": ["program.revise"],
}


@pytest.fixture
def extract(model_server: ModelServer, make: Make) -> Any:
    """The extracting detector, whose model finds the wrong year."""
    model_server.script(lambda ask: say_fields(parts=[YEAR]))
    return make("ucsc-extract")


@pytest.mark.parametrize("name", ["ucsc-extract", "ucsc-kg", "ucsc-revise"])
def test_every_detector_is_a_module_with_named_predictors(name: str, make: Make) -> None:
    detector: Any = make(name)
    assert isinstance(detector, dspy.Module)
    assert [each for each, _ in detector.named_predictors()] == PREDICTORS[name]
    assert list(detector.dump_state()) == PREDICTORS[name]


def test_called_with_an_item_it_returns_what_detecting_returns(extract: Any) -> None:
    called = extract(item=TOWER)
    awaited = asyncio.run(extract.acall(item=TOWER))
    found = detect(extract)
    assert isinstance(called, dspy.Prediction)
    assert isinstance(found, DetectorResult)
    for prediction in (called, awaited):
        assert prediction.item == found.item == TOWER
        assert prediction.annotation.spans == found.annotation.spans
        kinds = [step.kind for step in prediction.annotation.trace]
        assert kinds == ["query", "quote", "calls"]


def test_called_with_the_texts_of_an_item_it_returns_spans(extract: Any) -> None:
    texts = [passage.text for passage in TOWER.passages]
    said = extract(answer=TOWER.answer, question=TOWER.question, passages=texts)
    assert [span.text for span in said.spans] == ["1989"]
    assert [passage.text for passage in said.item.passages] == texts
    example = dspy.Example(answer=TOWER.answer, passages=texts[0]).with_inputs("answer", "passages")

    def good(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> bool:
        return [span.text for span in prediction.spans] == ["1989"]

    evaluate = dspy.Evaluate(devset=[example], metric=good, num_threads=1, display_progress=False)
    assert evaluate(extract).score == 100.0
    for wrong in ({"question": "?"}, {"answer": TOWER.answer, "passages": [3]}, {"answer": 3}):
        with pytest.raises(InputError, match="item, or answer with question"):
            extract(**wrong)


def test_it_can_be_called_where_an_event_loop_runs(extract: Any) -> None:
    """As in a notebook."""

    async def cell() -> dspy.Prediction:
        return extract(item=TOWER)

    assert [span.text for span in asyncio.run(cell()).annotation.spans] == ["1989"]


def test_a_failing_model_makes_a_failed_annotation_and_no_exception(
    model_server: ModelServer, make: Make
) -> None:
    model_server.script(lambda ask: fail(402, "no funds"))
    detector: Any = make("ucsc-revise")
    said = detector(item=TOWER).annotation
    assert said.status is Status.FAILED
    assert said.note.startswith("credits exhausted")
    spent: Any = make("ucsc-revise", Meter(Budget(calls=0)))
    with pytest.raises(BudgetError):
        spent(item=TOWER)


def test_prompts_are_saved_and_loaded_as_json_without_a_key(
    extract: Any, make: Make, model_server: ModelServer, tmp_path: Path
) -> None:
    file = tmp_path / "prompts.json"
    predictor = extract.program.extract
    predictor.signature = predictor.signature.with_instructions("Spot the lies.")
    predictor.demos = [dspy.Example(answer="In 1910.", parts=[{"text": "1910"}])]
    extract.save(file)
    assert KEY not in file.read_text()
    assert list(json.loads(file.read_text())) == ["program.extract", "metadata"]
    other: Any = make("ucsc-extract")
    other.load(file)
    other(item=TOWER)
    prompt = model_server.requests[-1].text
    assert "Spot the lies." in prompt
    assert "In 1910." in prompt


def test_a_whole_detector_is_not_stored_because_it_holds_a_key(
    extract: Any, tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError, match="holds a key and open connections"):
        extract.save(tmp_path / "whole", save_program=True)
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.rglob("*.pkl"))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda module: module.deepcopy()])
def test_a_copy_has_prompts_of_its_own_and_the_same_model(copied: Any, extract: Any) -> None:
    other = copied(extract)
    predictor = other.program.extract
    predictor.signature = predictor.signature.with_instructions("Spot the lies.")
    assert extract.program.extract.signature.instructions.startswith("Find the wrong words")
    assert other.kit is extract.kit
    assert [span.text for span in other(item=TOWER).annotation.spans] == ["1989"]
    assert KEY not in repr(other) + repr(vars(other))


def test_it_is_evaluated_and_tuned_by_what_dspy_has(
    extract: Any, model_server: ModelServer
) -> None:
    def good(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> bool:
        texts = [span.text for span in prediction.annotation.spans]
        return texts == list(example.wrong)

    items = [TOWER.model_copy(update={"id": f"{number}"}) for number in range(4)]
    examples = [dspy.Example(item=item, wrong=["1989"]).with_inputs("item") for item in items]
    quiet = {"num_threads": 2, "display_progress": False}
    assert dspy.Evaluate(devset=examples, metric=good, **quiet)(extract).score == 100.0
    optimiser = dspy.BootstrapFewShot(metric=good, max_bootstrapped_demos=1, max_labeled_demos=0)
    tuned = optimiser.compile(extract, trainset=examples[:1])
    (demo,) = tuned.program.extract.demos
    assert demo.answer == TOWER.answer
    assert extract.program.extract.demos == []  # no demonstration but those of tuning
    tuned(item=items[1])
    roles = [message["role"] for message in model_server.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "user"]


@pytest.fixture
def unnamed(monkeypatch: pytest.MonkeyPatch, model_server: ModelServer) -> Iterator[None]:
    """A script in which dspy alone is told of a model."""
    for name in ("SPANLAB_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name)
    model_server.script(lambda ask: say_fields(parts=[YEAR]))
    where = {"api_base": model_server.url, "api_key": "any", "cache": False}
    dspy.configure(lm=dspy.LM("openai/of-dspy", **where))
    yield
    dspy.configure(lm=None)


@pytest.mark.usefixtures("unnamed")
def test_the_model_that_dspy_is_configured_with_counts_where_nothing_else_is_named(
    model_server: ModelServer, settings: Settings
) -> None:
    spec = DetectorSpec(detector="ucsc-extract")
    detector: Any = build(spec, settings=settings)
    assert [span.text for span in detector(item=TOWER).spans] == ["1989"]
    (record,) = spanlab.annotate([Record(item=TOWER)], "ucsc-extract")
    assert [span.text for span in record.annotations[0].spans] == ["1989"]
    named = ModelChoice(model="named", base_url=model_server.url)
    other: Any = build(spec.model_copy(update={"model": named}), settings=settings)
    other(item=TOWER)
    models = [ask.body["model"] for ask in model_server.requests]
    assert models == ["of-dspy", "of-dspy", "named"]
    with pytest.raises(UsageError, match="no language model is named"):  # nobody could count it
        spanlab.annotate([Record(item=TOWER)], "ucsc-extract", max_calls=9)
    dspy.configure(lm=None)
    with pytest.raises(UsageError, match="no language model is named"):
        build(spec, settings=settings)


def test_the_ensemble_is_a_module_whose_members_are_tuned_by_what_dspy_has(
    model_server: ModelServer, settings: Settings
) -> None:
    def reply(ask: ModelRequest) -> ScriptedReply:
        revised = TOWER.answer.replace("1989", "1889")
        extracts = "`[[ ## parts ## ]]`" in ask.text
        return say_fields(parts=[YEAR]) if extracts else say_fields(reasoning="", revised=revised)

    def good(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> bool:
        return [span.text for span in prediction.spans] == [example.wrong]

    model_server.script(reply)
    ucsc: Any = build(spec_of("ucsc"), settings=settings)
    said = ucsc(answer=TOWER.answer, question=TOWER.question, passages=[TOWER.passages[1].text])
    assert [(span.text, span.prob) for span in said.spans] == [("1989", 1.0)]
    assert [each.status for each in said.members] == ["done"] * 5
    assert [name for name, _ in ucsc.named_predictors()][::4] == [
        "members[0].program.extract",
        "members[4].program.revise.predict",
    ]
    fields = {"answer": TOWER.answer, "passages": [TOWER.passages[1].text], "wrong": "1989"}
    examples = [dspy.Example(**fields, question=f"{n}?") for n in range(2)]
    trainset = [each.with_inputs("answer", "passages", "question") for each in examples]
    evaluate = dspy.Evaluate(devset=trainset, metric=good, num_threads=2, display_progress=False)
    assert evaluate(ucsc).score == 100.0
    optimiser = dspy.BootstrapFewShot(metric=good, max_bootstrapped_demos=1, max_labeled_demos=0)
    tuned = optimiser.compile(ucsc, trainset=trainset[:1])
    assert [predictor.demos[0].answer for predictor in tuned.predictors()] == [TOWER.answer] * 5
    before = len(model_server.requests)
    tuned(**trainset[1].inputs())
    asked = [ask.text for ask in model_server.requests[before:]]
    assert len(asked) == 5
    assert all(text.count(TOWER.answer) == 2 for text in asked)


def test_an_optimiser_hears_every_call_and_a_run_keeps_none(extract: Any) -> None:
    heard: list[Any] = []
    with dspy.context(trace=heard):
        extract(item=TOWER)
        assert [predictor for predictor, _, _ in heard] == extract.predictors()
        detect(extract)
        assert len(heard) == 1


def test_another_model_can_be_given_to_its_predictors(
    extract: Any, model_server: ModelServer
) -> None:
    with dspy.context(lm=None):  # whatever dspy is configured with, it asks its own
        extract(item=TOWER)
    choice = ModelChoice(model="another", base_url=model_server.url)
    extract.set_lm(language_model(choice, Meter(), cache=None))
    extract(item=TOWER)
    assert [ask.body["model"] for ask in model_server.requests] == ["scripted", "another"]


def test_it_composes_with_other_modules(extract: Any) -> None:
    class Worst(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.detector = extract

        def forward(self, item: Item) -> dspy.Prediction:
            spans = self.detector(item=item).annotation.spans
            return dspy.Prediction(worst=max(spans, key=lambda span: span.prob).text)

    module = Worst()
    assert [name for name, _ in module.named_predictors()] == ["detector.program.extract"]
    assert module(item=TOWER).worst == "1989"
