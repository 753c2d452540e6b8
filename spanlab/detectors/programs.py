"""A detector's prompts as data: instruction and demonstrations of every predictor, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel, JsonValue

from spanlab.errors import InputError
from spanlab.schema import Demo, Predictor

if TYPE_CHECKING:
    import dspy

_KEPT = "augmented"  # dspy's mark of a demonstration that a model made itself


def program_state(program: dspy.Module) -> dict[str, Predictor]:
    """Return the prompts of a program.

    Args:
        program: a module with named predictors.

    Returns:
        Instruction and demonstrations by predictor name; a demonstration has the fields of its
        predictor alone. The name is the same whether a predictor reasons first or not.
    """
    return {
        name: Predictor(
            instruction=predictor.signature.instructions,
            demos=tuple(_plain(demo, predictor) for demo in predictor.demos),
        )
        for name, predictor in _predictors(program)
    }


def apply_program(program: dspy.Module, state: Mapping[str, Predictor]) -> None:
    """Give a program the prompts that ``program_state`` returned; nothing in them is run.

    Args:
        program: the program to change; predictors that ``state`` does not name stay as they are.
            Its ``earlier_fields``, if it has any, say by predictor what fields were once called.
        state: instruction and demonstrations by predictor name.

    Raises:
        InputError: it names a predictor that the program does not have.
    """
    own = dict(_predictors(program))
    for name, prompt in state.items():
        if name not in own:
            raise InputError(
                "a program for another detector",
                field=f"predictors.{name}",
                expected=f"one of {', '.join(own)}",
            )
        predictor = own[name]
        predictor.signature = predictor.signature.with_instructions(prompt.instruction)
        earlier = getattr(program, "earlier_fields", {}).get(name, {})
        demos = ({earlier.get(key, key): demo[key] for key in demo} for demo in prompt.demos)
        predictor.demos = [_plain(demo, predictor) for demo in demos]


def add_guidance(program: dspy.Module, name: str, guidance: str) -> None:
    """Add sentences to the end of one predictor's instruction."""
    predictor = dict(_predictors(program))[name]
    instruction = f"{predictor.signature.instructions.rstrip()}\n\n{guidance.strip()}"
    predictor.signature = predictor.signature.with_instructions(instruction)


def _predictors(program: dspy.Module) -> Iterator[tuple[str, dspy.Predict]]:
    for name, predictor in program.named_predictors():
        yield name.removesuffix(".predict"), predictor


def _plain(demo: Mapping[str, object], predictor: dspy.Predict) -> Demo:
    fields = {*predictor.signature.fields, _KEPT}
    return {name: _json(value) for name, value in demo.items() if name in fields}


def _json(value: object) -> JsonValue:
    if isinstance(value, BaseModel):
        return cast(JsonValue, value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        return {str(name): _json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)
