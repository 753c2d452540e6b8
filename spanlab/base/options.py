"""What people can set, defined once: the fields of models, from which every side is made.

A field made by ``option`` says what it is called, what it means, how it is bounded and where it may
be set. Commands (``cli/inputs.py``), pages (``detection/options_form.py``), keywords in Python and
the JSON of jobs all come from it, so a new option is one field.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, Field, JsonValue, ValidationError

from spanlab.base.errors import UsageError
from spanlab.base.fields import FrozenModel, message_of

OptionKind = Literal[
    "flag", "choice", "number", "integer", "path", "servers", "list", "pairs", "text"
]
Side = Literal["command", "page", "python"]
SIDES: frozenset[Side] = frozenset({"command", "page", "python"})
_KINDS: dict[str, OptionKind] = {
    "boolean": "flag",
    "number": "number",
    "integer": "integer",
    "path": "path",
    "servers": "servers",
    "array": "list",
    "object": "pairs",
}
_OURS = "spanlab"  # what a field's JSON schema says of an option, beside its title and bounds


@dataclass(frozen=True)
class Option:
    """One option, as every side needs it.

    Attributes:
        name: the field's.
        label: what it is called on the screen.
        kind: a path names a file or folder of the machine that detectors run on; servers are names
            of tool servers, with commas between; pairs are repeated NAME=VALUE.
        default: None for none.
        about: what it means, in a sentence.
        choices: all values of a choice, or of the parts of a list; empty for any.
        low: the smallest number; None for any.
        above: whether a number must be greater than ``low``.
        high: the largest number.
        path: the field inside its model, such as ("budget", "calls").
        flags: what the command line calls it, the usual name last.
        group: options that stand together on a page.
        sides: where it may be set.
        titles: what the choices are called on the screen.
        placeholder: what an empty field shows.
        commas: whether the command line takes a list as one text with commas between.
        listed_by: the command that lists it, where those that take it do not.
    """

    name: str
    label: str
    kind: OptionKind
    default: JsonValue
    about: str = ""
    choices: tuple[JsonValue, ...] = ()
    low: float | None = None
    high: float | None = None
    path: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    group: str = ""
    sides: frozenset[Side] = SIDES
    titles: Mapping[str, str] | None = None
    placeholder: str = "default"
    commas: bool = False
    above: bool = False
    listed_by: str = ""

    @property
    def shown(self) -> str:
        """The option with its default, as ``--option`` takes it."""
        return self.name if self.default is None else f"{self.name}={self.default}"

    @property
    def keyword(self) -> str:
        """What the option is called in Python: its flag, with underscores."""
        return self.flags[-1].partition("/")[0].removeprefix("--").replace("-", "_")


def option(  # noqa: PLR0913  # all by name: what an option is
    default: Any,
    *,
    title: str,
    help: str,  # noqa: A002  # as typer and argparse call it
    flags: str = "",
    group: str = "",
    sides: Collection[str] = SIDES,
    titles: Mapping[str, str] | Callable[[], Mapping[str, str]] | None = None,
    placeholder: str = "default",
    commas: bool = False,
    **bounds: Any,
) -> Any:
    """Return a field that people can set.

    Args:
        default: its value unless somebody sets it.
        title: what it is called on the screen.
        help: what it means, in a sentence or two.
        flags: what the command line calls it, with spaces between several; the last is the usual
            one. Empty for the field's name. A flag has its opposite behind a stroke.
        group: options that stand together on a page.
        sides: where it may be set.
        titles: of a choice, what each value is called on the screen; a function is asked when the
            option is, and the values it knows stand in ``help`` for ``{choices}``.
        placeholder: what an empty field shows.
        commas: whether the command line takes a list as one text with commas between.
        **bounds: further arguments of ``pydantic.Field``, such as ``ge`` and ``le``.
    """
    ours: dict[str, Any] = {
        "flags": flags.split(),
        "group": group,
        "sides": sorted(sides),
        "titles": None if titles is None or callable(titles) else dict(titles),
        "placeholder": placeholder,
        "commas": commas,
    }

    described = _Described(ours, help, titles if callable(titles) else None)
    return Field(default, title=title, description=help, json_schema_extra=described, **bounds)


@dataclass(frozen=True)
class _Described:
    """What a field's JSON schema says of an option; ``titles`` are asked for each time."""

    ours: Mapping[str, Any]
    about: str
    titles: Callable[[], Mapping[str, str]] | None

    def __call__(self, schema: dict[str, Any]) -> None:
        """Write it there."""
        schema[_OURS] = self.ours
        if self.titles is not None:
            known, schema["description"] = self.known()
            schema[_OURS] = {**self.ours, "titles": known}

    def known(self) -> tuple[dict[str, str], str]:
        """Return the titles of now, and what the option means with them."""
        known = dict(self.titles()) if self.titles is not None else {}
        return known, self.about.format(choices=", ".join(known))


class OptionModel(FrozenModel):
    """Options that belong together; a field may be such a model itself."""

    @classmethod
    def further_options(cls) -> tuple[Option, ...]:
        """Return options that are known only when they are asked for, each with its path."""
        return ()

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Self:
        """Return the model with these values.

        Args:
            values: by the option's keyword (its flag with underscores), or the field's name; where
                a list of texts is meant, one text will do.

        Raises:
            UsageError: there is no such option, or a value does not fit; says what would be right.
        """
        options = options_in(cls)
        paths = {inner.keyword: inner.path for inner in options}
        lists = {inner.path for inner in options if inner.kind == "list"}
        nested: dict[str, Any] = {}
        for name, value in values.items():
            path = paths.get(name) or ((name,) if name in cls.model_fields else None)
            if path is None:
                names = ", ".join(sorted(paths))
                raise UsageError(f"no option named {name!r}; available: {names}")
            inner = nested
            for part in path[:-1]:
                inner = inner.setdefault(part, {})
            inner[path[-1]] = (value,) if path in lists and isinstance(value, str) else value
        return cls.of(**nested)

    @classmethod
    def of(cls, other: BaseModel | None = None, /, **fields: Any) -> Self:
        """Return the model with all that another one has under the same names.

        Args:
            other: such as the options that a request is made from; None for none.
            **fields: further fields, which count over the other's.

        Raises:
            UsageError: a field is missing or does not fit; says what would be right.
        """
        shared = {name: value for name, value in other or () if name in cls.model_fields}
        try:
            return cls.model_validate({**shared, **fields})
        except ValidationError as error:
            raise UsageError(problem(error)) from None

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Refuse options that are set, but mean nothing where they are.

        Args:
            reasons: by field, what is said behind its flag; the first that is set is named.

        Raises:
            UsageError: one is set.
        """
        flags = {inner.path: inner.flags[-1] for inner in options_in(type(self))}
        for name, reason in reasons.items():
            field = type(self).model_fields.get(name)
            if field is not None and getattr(self, name) != field.default:
                raise UsageError(f"{flags[name,]} {reason}")


def options_in(model: type[BaseModel]) -> tuple[Option, ...]:
    """Return the options of a model in reading order, those of models inside it in their place."""
    options: list[Option] = []
    for option, described in _options_in(model):
        if described is None:
            options.append(option)
        else:
            titles, about = described.known()
            options.append(replace(option, titles=titles, about=about))
    further = model.further_options() if issubclass(model, OptionModel) else ()
    return (*options, *further)


@cache  # a schema takes ten milliseconds, and a page asks for those of a dozen models
def _options_in(model: type[BaseModel]) -> tuple[tuple[Option, _Described | None], ...]:
    """Return the options of a model, each with what describes it if that has titles of now."""
    schema = model.model_json_schema()
    named = schema.get("$defs", {})
    options: list[tuple[Option, _Described | None]] = []
    for name, field in model.model_fields.items():
        if name not in schema["properties"]:
            continue  # nothing that people set, such as a function
        inside = _option_model(field.annotation)
        if inside is None:
            extra = field.json_schema_extra
            asked = extra if isinstance(extra, _Described) and extra.titles is not None else None
            options.append((_option(name, schema["properties"][name], named), asked))
        else:
            for inner, described in _options_in(inside):
                options.append((replace(inner, path=(name, *inner.path)), described))
    return tuple(options)


def problem(error: ValidationError) -> str:
    """Return in one clause what is wrong with a request, without its values."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = message_of(first)
    return f"{where}: {message}" if where else message


def _option_model(annotation: Any) -> type[OptionModel] | None:
    """Return the option model that a field holds, possibly beside other types."""
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, OptionModel):
            return kind
    return None


def _option(name: str, rule: dict[str, Any], named: dict[str, Any]) -> Option:
    inner = next((choice for choice in rule.get("anyOf", ()) if choice.get("type") != "null"), rule)
    if "$ref" in inner:
        inner = named[inner["$ref"].rpartition("/")[2]]
    parts = inner.get("items", {})
    if "$ref" in parts:
        parts = named[parts["$ref"].rpartition("/")[2]]
    choices = tuple(inner.get("enum", parts.get("enum", ())))
    if inner.get("type") == "boolean" and rule.get("default") is None:
        choices = (True, False)  # or neither
    words = name.replace("_", " ")
    title = rule.get("title", words.title())
    form = rule.get("format", inner.get("format", ""))
    kind = form if form in _KINDS else inner.get("type", "")
    ours = rule.get(_OURS, {})
    return Option(
        name=name,
        label=words.capitalize() if title == words.title() else title,
        kind=_KINDS.get(kind, "text") if not choices or kind == "array" else "choice",
        default=rule.get("default"),
        about=rule.get("description") or inner.get("description", ""),
        choices=choices,
        low=inner.get("minimum", inner.get("exclusiveMinimum")),
        above="exclusiveMinimum" in inner,
        high=inner.get("maximum", inner.get("exclusiveMaximum")),
        path=(name,),
        flags=tuple(ours.get("flags") or (f"--{name.replace('_', '-')}",)),
        group=ours.get("group", ""),
        sides=frozenset(ours.get("sides", SIDES)),
        titles=ours.get("titles"),
        placeholder=ours.get("placeholder", "default"),
        commas=ours.get("commas", False),
    )
