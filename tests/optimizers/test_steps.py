"""The verifier is tuned on people's types of errors in steps, its generator on right answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from reasoning_script import inputs

from optimizers.examples import LabelSource, labelled_items
from optimizers.tuning import PromptTuner
from optimizers.watching import Event
from spanlab.detection import DetectorSpec
from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record, Span, TunedPredictor
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say_fields

tuning = pytest.importorskip("spanlab.systems.safe.tuning")

Ready = Callable[..., tuple[PromptTuner, list[Event]]]


def model(ask: ModelRequest) -> ScriptedReply:
    """Verify and reason well only where the instruction asks for strictness."""
    if "proposed_instruction" in ask.text:
        return say_fields(proposed_instruction="Go about it strictly.")
    is_strict = "strictly" in ask.text
    if "`[[ ## ruling ## ]]`" in ask.text:
        last = inputs(ask)["steps"].splitlines()[-1]
        errors = ["Contradictory"] if is_strict and "Rome" in last else []
        return say_fields(ruling={"diagnosis": "d", "errors": errors, "guidance": "g"})
    if "`[[ ## step ## ]]`" in ask.text:
        return say_fields(step=f"####ANSWER: {'Paris' if is_strict else 'Oslo'}")
    return say_fields(observations="none", summary="none", tip="none")


def record(number: int) -> Record:
    """A reasoning with two wrong steps, of a question whose right answer is known."""
    wrong = f"According to Passage 1, number {number} is in Rome."
    final = "####ANSWER: Rome"
    answer = f"Step 1: {wrong} (Attribution)\nStep 2: {final} (Final Answer)"
    item = Item(
        id=f"i{number}",
        lang="en",
        question=f"Where is {number}?",
        answer=answer,
        passages=(Passage(text="It is in Paris."),),
        meta={"answers": ["Paris"]},
    )
    spans = [
        Span.of(answer, answer.index(text), answer.index(text) + len(text), label=label)
        for text, label in ((wrong, "Contradictory"), (final, "Wrong Conclusion"))
    ]
    return Record(
        item=item, annotations=(Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=spans),)
    )


RECORDS = [record(number) for number in range(6)]
METRICS = {
    "iou": (labelled_items, "items", {"verify"}),
    "type-f1": (tuning.labelled_steps, "steps", {"verify"}),
    "answer-f1": (tuning.labelled_questions, "questions", {"next", "conclude"}),
}


@pytest.mark.parametrize("metric", METRICS)
def test_the_instruction_that_does_better_wins(
    ready: Ready, model_server: ModelServer, metric: str
) -> None:
    model_server.script(model)
    examples, unit, names = METRICS[metric]
    tuner, _ = ready(detector=DetectorSpec(detector="safe"), metric=metric)
    parent_predictors = {"verify": TunedPredictor(instruction="As it was.")}
    program = replace(tuner, parent_predictors=parent_predictors).run(
        list(examples(RECORDS, LabelSource()))
    )
    assert set(program.predictors) == {"verify", *names}
    assert any("strictly" in program.predictors[name].instruction for name in names)
    held_out = program.held_out
    assert held_out is not None
    assert (held_out.unit, held_out.tuned.mean) == (unit, 1.0)
    assert held_out.baseline.mean < 1.0


def test_of_steps_the_type_that_most_give_counts_and_a_tie_is_nobody_s() -> None:
    item = RECORDS[0].item
    first = Span.of(item.answer, 8, 20, label="Redundancy")
    judges = [
        Annotation(annotator=name, kind=AnnotatorKind.PERSON, spans=spans)
        for name, spans in (("a", (first,)), ("b", (first,)), ("c", ()))
    ]
    source = LabelSource(kind="reviewed")

    def found(*annotations: Annotation) -> list[tuple[int, str]]:
        examples = tuning.labelled_steps([Record(item=item, annotations=annotations)], source)
        return [(each.part.number, each.part.verdict) for each in examples if each.part]

    assert found(*judges) == [(1, "Redundancy"), (2, "right")]
    assert found(*judges[1:]) == [(2, "right")]
    assert found() == []
