"""Tuned programs: their registry, as JSON files in one directory, and the prompts of a module.

A program holds the instruction and demonstrations of every predictor of one detector, and its
origin. One file per program, ``<name>.json``, and ``defaults.json`` for the program that each
detector uses unless told otherwise. JSON only: loading a program runs no code, and a file that does
not fit the format is refused.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel, JsonValue

from spanlab.base.errors import InputError, NotFoundError, UsageError
from spanlab.base.settings import read_json
from spanlab.schema import Demo, TunedPredictor, TunedProgram
from spanlab.schema.programs import PROGRAM_NAME

if TYPE_CHECKING:
    import dspy


_DEFAULTS = "defaults"


class ProgramRegistry:
    """The programs in one directory, which need not exist until something is saved."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __iter__(self) -> Iterator[TunedProgram]:
        """Yield all programs, newest first; ``broken`` says what other files there are."""
        programs = [file for file in self._files() if isinstance(file, TunedProgram)]
        yield from sorted(
            programs, key=lambda program: (program.created, program.name), reverse=True
        )

    def __contains__(self, name: object) -> bool:
        """Say whether a program, or a broken file in its place, has this name."""
        return any(path.stem == name for path in self.folder.glob("*.json"))

    @property
    def broken(self) -> tuple[InputError, ...]:
        """Why files in the directory cannot be used, one error for each; empty if all can be."""
        return tuple(file for file in self._files() if isinstance(file, InputError))

    def _files(self) -> Iterator[TunedProgram | InputError]:
        for path in sorted(self.folder.glob("*.json")):
            try:
                if path.stem == _DEFAULTS:
                    self._defaults()
                else:
                    yield _stored(path)
            except InputError as error:
                yield error

    def load(self, name: str) -> TunedProgram:
        """Return the program of this name.

        Raises:
            NotFoundError: there is none; lists those there are.
            InputError: its file is damaged.
        """
        path = self._path(name)
        if not path.is_file():
            names = ", ".join(program.name for program in self) or "none yet"
            raise NotFoundError(f"no tuned prompt named {name!r}; available: {names}")
        return _stored(path)

    def save(self, program: TunedProgram) -> None:
        """Keep a program; its file appears whole or not at all.

        Raises:
            UsageError: another program has its name.
        """
        if program.name == _DEFAULTS:
            raise UsageError(f"{_DEFAULTS!r} cannot name a tuned prompt: it lists the defaults")
        path = self._path(program.name)
        if path.exists():
            if _stored(path) == program:
                return
            raise UsageError(f"a tuned prompt called {program.name!r} exists; choose another name")
        _write(path, _dump(program))

    def remove(self, name: str) -> None:
        """Delete a program; whoever used it by default goes back to the detector's own prompt.

        Raises:
            NotFoundError: there is none of this name.
        """
        if not self._path(name).is_file():
            self.load(name)  # which says what there is; a file that is broken goes unread
        for owner in self.users(name):
            self.choose(owner, None)
        self._path(name).unlink()

    def default(self, owner: str) -> str | None:
        """Return the program that a detector or member uses by default, None for its own prompt."""
        return self._defaults().get(owner)

    def users(self, name: str) -> tuple[str, ...]:
        """Return the detectors and members of ensembles that use a program by default.

        Nobody does if the list of defaults is broken, which ``broken`` says.
        """
        try:
            return tuple(owner for owner, chosen in self._defaults().items() if chosen == name)
        except InputError:
            return ()

    def choose(self, owner: str, name: str | None, detector: str | None = None) -> None:
        """Let a detector, or a member of an ensemble, use a program by default.

        Args:
            owner: the detector or member.
            name: the program; None goes back to the detector's own prompt.
            detector: what a member is; None for a detector.

        Raises:
            NotFoundError: there is no such program.
            UsageError: it was made for another detector.
        """
        chosen = dict(self._defaults())
        chosen.pop(owner, None)
        if name is not None:
            program = self.load(name)
            if program.detector != (detector or owner):
                raise UsageError(
                    f"{name!r} is a tuned prompt of {program.detector!r}, not {owner!r}"
                )
            chosen[owner] = name
        _write(self._path(_DEFAULTS), json.dumps(chosen, indent=2, sort_keys=True).encode())

    def take(
        self,
        path: Path,
        name: str | None = None,
        check: Callable[[TunedProgram], None] | None = None,
    ) -> TunedProgram:
        """Import a program from an exported file, under ``name`` (None: under its own name).

        Args:
            path: the file.
            name: what to call it here.
            check: raises if the program cannot be used here.

        Raises:
            InputError: the file is no program: too large, not JSON, unknown or missing fields.
            UsageError: the name is taken or cannot be a name.
        """
        program = read_json(TunedProgram, path, "a tuned prompt of spanlab")
        if check is not None:
            check(program)
        if name is not None:
            self._path(name)
            program = program.model_copy(update={"name": name})
        self.save(program)
        return program

    def give(self, name: str, target: Path) -> None:
        """Export a program to a file, for `take` elsewhere.

        Raises:
            NotFoundError: there is no such program.
        """
        _write(target, _dump(self.load(name)))

    def _path(self, name: str) -> Path:
        if not PROGRAM_NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot name a tuned prompt; "
                "lower-case letters, digits, '.', '_' and '-' can, up to 100 of them"
            )
        return self.folder / f"{name}.json"

    def _defaults(self) -> Mapping[str, str]:
        path = self._path(_DEFAULTS)
        if not path.exists():
            return {}
        try:
            chosen = json.loads(path.read_bytes())
        except ValueError as error:
            raise InputError(f"not JSON: {error}", file=path) from error
        if isinstance(chosen, dict) and all(isinstance(name, str) for name in chosen.values()):
            return chosen
        raise InputError("not a list of defaults", file=path, expected='{"detector": "program", …}')


def _stored(path: Path) -> TunedProgram:
    """Return the program in a file of the registry, called as the file is."""
    program = read_json(TunedProgram, path, "a tuned prompt of spanlab")
    return program.model_copy(update={"name": path.stem})


def _dump(program: TunedProgram) -> bytes:
    return program.model_dump_json(indent=2, exclude_defaults=True).encode() + b"\n"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


_KEPT = "augmented"  # dspy's mark of a demonstration that a model made itself


def program_state(program: dspy.Module) -> dict[str, TunedPredictor]:
    """Return the prompts of a program.

    Args:
        program: a module with named predictors.

    Returns:
        Instruction and demonstrations by predictor name; a demonstration has the fields of its
        predictor alone. The name is the same whether a predictor reasons first or not.
    """
    return {
        name: TunedPredictor(
            instruction=predictor.signature.instructions,
            demos=tuple(_plain(demo, predictor) for demo in predictor.demos),
        )
        for name, predictor in _predictors(program)
    }


def apply_program(program: dspy.Module, state: Mapping[str, TunedPredictor]) -> None:
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
                "a tuned prompt for another detector",
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
        return {str(name): _json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)
