"""How files are to be read: what people can set, and where remarks and rejects go."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from spanlab.base.errors import InputError, UsageError, unreadable
from spanlab.base.fields import message_of
from spanlab.base.options import Option, OptionModel, option
from spanlab.formats.recipes import recipe_in
from spanlab.schema import Question, Response


@dataclass(frozen=True)
class RejectedRecord:
    """A record that could not be read.

    ``line`` is the 1-based line (JSON Lines, CSV) or record number (other formats); ``reason`` is
    the whole message of the error that a strict read would have raised; ``raw`` is the record as
    text; ``kind`` is the same for what is wrong in the same way, and empty for a call that failed.
    ``error`` is what a strict read would have raised.
    """

    file: str
    line: int
    reason: str
    raw: str
    kind: str = ""
    error: InputError | None = field(default=None, compare=False, repr=False)


class ControlResponse(NamedTuple):
    """A response in a control of another tool's form, with the kind of that control."""

    name: str
    control: str  # "choices", "rating", "number" or "textarea"
    of_span: bool
    response: Response


class ControlTally:
    """Questions told from the responses of an export that comes without a configuration."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[ControlResponse, dict[Response, None]]] = {}

    def add(self, response: ControlResponse) -> None:
        """Count a response; a name stays the kind of control that it was first seen as."""
        first_response, values = self._shown.setdefault(response.name, (response, {}))
        if response.control == first_response.control != "textarea":
            values[response.response] = None

    def questions(self) -> tuple[dict[str, tuple[Question, ...]], tuple[str, ...]]:
        """Return the questions by scope, and the names of controls whose responses tell too little.

        Options are those that somebody chose, a rating goes to 5 at least, and another scale from
        the least to the greatest value. One option is no choice, and one value no scale.
        """
        by_scope: dict[str, list[Question]] = {"attributes": [], "questions": []}
        unclear = []
        for name, (first_response, values) in self._shown.items():
            numbers = [value for value in values if isinstance(value, int)]
            kinds: dict[str, dict[str, Any]] = {
                "choices": {"options": tuple(values)},
                "rating": {"kind": "scale", "high": max((5, *numbers))},
                "number": {
                    "kind": "scale",
                    "low": min(numbers, default=0),
                    "high": max(numbers, default=0),
                },
                "textarea": {"kind": "text"},
            }
            try:
                question = Question(name=name, **kinds[first_response.control])
            except ValidationError:
                unclear.append(name)
            else:
                by_scope["attributes" if first_response.of_span else "questions"].append(question)
        return {where: tuple(questions) for where, questions in by_scope.items()}, tuple(unclear)


def _warn(message: str) -> None:
    """Warn at the line of a script or notebook that has this read."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("spanlab."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def format_titles() -> dict[str, str]:
    """Return what the choices of a format are called on screen."""
    from spanlab.formats.registry import (
        titles,  # whose readers are told how to read by what is here
    )

    return titles()


def mapping_in(pairs: Iterable[str], usage: str) -> dict[str, str]:
    """Return ``name=value`` pairs as a dict.

    Raises:
        UsageError: one is none; says what is ``wanted``.
    """
    parts = {pair: pair.partition("=") for pair in pairs}
    for pair, (name, sign, value) in parts.items():
        if not (name and sign and value):
            raise UsageError(f"{usage}, got {pair!r}")
    return {name: value for name, _, value in parts.values()}


def _columns(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value or None
    return mapping_in(value, "--column must be field=column, such as answer=response") or None


class ReadOptions(OptionModel):
    """How to read a file: what people can set, and where remarks and rejects go.

    Args:
        on_warning: called with each remark on something that was read otherwise than it stands.
        on_reject: called with each record that is wrong, and reading goes on; None is strict, the
            first wrong record raises ``InputError``.
        on_response: called with each response to something that a dataset may ask.
        on_questions: called with what a file says that its dataset asks: ``attributes`` of spans,
            ``questions`` on answers.
        on_fields: called once a file with its name and what each field of it became (the answer,
            passages, meta, …, or "left out"), by their names or paths.
        name: what to call the file in messages, such as the name of an upload.
        own: options that one format alone has, by name; as keywords they may stand among the
            others.
    """

    format: str = option(
        "auto",
        title="Format",
        help="How the files are written: {choices}; auto looks at the content.",
        titles=format_titles,
    )
    recipe: Path | None = option(
        None,
        title="Recipe",
        help="A TOML file that says how files of this kind are read: --dry-run writes one. What is "
        "said beside it goes before.",
        sides={"command", "python"},
    )
    contexts: Path | None = option(
        None,
        title="Passages",
        help="Passages for the items: a directory of <id>.context.txt files, or a JSONL with id "
        "and passages.",
        placeholder="/data/contexts",
    )
    columns: Annotated[Mapping[str, str] | None, BeforeValidator(_columns)] = option(
        None,
        title="Columns",
        help="Which column of a table, or field of JSON, is what: answer=output.text, "
        "messages=chat, passages=docs.content. Repeatable.",
        flags="--column",
    )
    common_labels: bool = option(
        False,
        title="Common labels",
        help="Rename the labels of RAGTruth, FAVA, FaithBench and the like to those of the set "
        "common: contradiction, unsupported addition.",
        sides={"command", "python"},
    )
    encoding: str | None = option(
        None,
        title="Encoding",
        help="Encoding of files that are not UTF-8: windows-1252, latin-1, utf-16 or another that "
        "Python knows.",
        placeholder="utf-8",
    )
    on_warning: SkipJsonSchema[Callable[[str], None]] = Field(_warn, exclude=True)
    on_reject: SkipJsonSchema[Callable[[RejectedRecord], None] | None] = Field(None, exclude=True)
    on_response: SkipJsonSchema[Callable[[ControlResponse], None] | None] = Field(
        None, exclude=True
    )
    on_questions: SkipJsonSchema[Callable[[Mapping[str, tuple[Question, ...]]], None]] = Field(
        lambda _: None, exclude=True
    )
    on_fields: SkipJsonSchema[Callable[[str, Mapping[str, str]], None]] = Field(
        lambda *_: None, exclude=True
    )
    name: SkipJsonSchema[str | None] = Field(None, exclude=True)
    own: SkipJsonSchema[Mapping[str, Any]] = Field(default_factory=dict)

    @classmethod
    def further_options(cls) -> tuple[Option, ...]:
        """Return the options that formats alone have."""
        from spanlab.formats.registry import options_of  # as above

        return options_of()

    def having(self, **options: Any) -> Self:
        """Return these options with others, also of formats, of which defaults are unsaid."""
        common = {name: options.pop(name) for name in [*options] if name in type(self).model_fields}
        own, unsaid = {**self.own, **options}, {o.name: o.default for o in self.further_options()}
        own = {name: value for name, value in own.items() if value not in (None, unsaid[name])}
        return self.model_copy(update={**common, "own": own})

    @field_validator("own")
    @classmethod
    def _check_own(cls, own: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the values as their options have them; raises UsageError for one that is wrong."""
        from spanlab.formats.registry import formats, reader_of  # as above

        made: dict[str, Any] = {}
        for model in dict.fromkeys(reader_of(name).own_options for name in formats() if own):
            fields = {name: value for name, value in own.items() if name in model.model_fields}
            made |= model.of(None, **fields).model_dump(exclude_unset=True)
        return made

    @model_validator(mode="before")
    @classmethod
    def _put_own_apart(cls, given: Any) -> Any:
        """Put options of formats into ``own``; what no format has either is refused as unknown."""
        others = given.keys() - cls.model_fields if isinstance(given, Mapping) else ()
        further = cls.further_options() if others else ()
        own = {o.name: given[o.name] for o in further if o.name in others}
        if not own:
            return given
        common = {name: value for name, value in given.items() if name not in own}
        return {**common, "own": {**own, **given.get("own", {})}}

    @model_validator(mode="before")
    @classmethod
    def _follow_recipe(cls, given: Any) -> Any:
        """Take from a recipe what is not given beside it; raises InputError for a wrong one."""
        path = given.get("recipe") if isinstance(given, Mapping) else None
        if not path:
            return given
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise unreadable(path, error) from None
        recipe = checked_recipe(content, str(path))
        columns = {**recipe.get("columns", {}), **(_columns(given.get("columns")) or {})}
        return {**recipe, **given, "columns": columns or None}


def checked_recipe(content: bytes, name: str) -> dict[str, Any]:
    """Return the options that a recipe has.

    Args:
        content: the recipe.
        name: what to call it in messages.

    Raises:
        InputError: it is no TOML, or an option is wrong or none of a recipe; names the field.
    """
    recipe = recipe_in(content, name)
    try:
        ReadOptions.model_validate(recipe)
    except UsageError as error:  # of an option that formats alone have, which it names
        field, _, what = str(error).partition(": ")
        if field not in recipe:
            raise InputError(str(error), file=name) from None
        raise InputError(what, file=name, field=field, found=recipe[field]) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise InputError(message_of(first), file=name, field=field, found=first["input"]) from None
    return recipe
