"""The verifier of steps is tuned on people's spans of wrong steps."""

from __future__ import annotations

from collections.abc import Callable

from reasoning_script import inputs

from optimizers.examples import Labelled
from optimizers.tuning import Tuner
from optimizers.watching import Event
from spanlab.detectors import DetectorSpec
from spanlab.labels import Extent, Labels, Soft
from spanlab.schema import Item, Passage
from spanlab.testing import Ask, ModelServer, Reply, say_fields

Ready = Callable[..., tuple[Tuner, list[Event]]]


def verifier(ask: Ask) -> Reply:
    """Find the wrong step only where the instruction asks for strictness."""
    if "proposed_instruction" in ask.text:
        return say_fields(proposed_instruction="Verify the last step strictly.")
    if "`[[ ## ruling ## ]]`" not in ask.text:
        return say_fields(observations="none", summary="none", tip="none")
    is_strict = "strictly" in ask.text
    last = inputs(ask)["steps"].splitlines()[-1]
    errors = ["Contradictory"] if is_strict and "Rome" in last else []
    return say_fields(ruling={"diagnosis": "d", "errors": errors, "guidance": "g"})


def labelled(number: int) -> Labelled:
    wrong = f"According to Passage 1, number {number} is in Rome."
    answer = f"Step 1: {wrong} (Attribution)\nStep 2: ####ANSWER: Rome (Final Answer)"
    passages = (Passage(text="It is in Paris."),)
    item = Item(
        id=f"i{number}", lang="en", question=f"Where is {number}?", answer=answer, passages=passages
    )
    place = Extent(8, 8 + len(wrong))
    rome = answer.rindex("####")
    places = (place, Extent(rome, rome + len("####ANSWER: Rome")))
    soft = tuple(Soft(each.start, each.end, 1.0) for each in places)
    return Labelled(item, Labels(item.id, "en", soft, places, (places,), len(answer)))


def test_the_instruction_that_finds_wrong_steps_wins(
    ready: Ready, model_server: ModelServer
) -> None:
    model_server.script(verifier)
    tuner, _ = ready(detector=DetectorSpec(detector="safe"))
    program = tuner.run([labelled(number) for number in range(8)])
    assert "strictly" in program.predictors["verify"].instruction
    assert program.held_out is not None
    assert program.held_out.tuned.mean > program.held_out.baseline.mean
