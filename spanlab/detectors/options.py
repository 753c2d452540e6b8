"""Options, such as a detector's own, as the fields of a form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, JsonValue

from spanlab.detectors.registry import entry_of

OptionKind = Literal["flag", "choice", "number", "integer", "path", "servers", "text"]
_KINDS: dict[str, OptionKind] = {
    "boolean": "flag",
    "number": "number",
    "integer": "integer",
    "path": "path",
    "servers": "servers",
}


@dataclass(frozen=True)
class OptionField:
    """One option: ``low`` and ``high`` bound a number; ``choices`` are all values of a choice.

    A path names a file or folder of the machine that detectors run on; servers are names of tool
    servers, separated by commas. ``label`` is what it is called on the screen.
    """

    name: str
    label: str
    kind: OptionKind
    default: JsonValue
    about: str = ""
    choices: tuple[JsonValue, ...] = ()
    low: float | None = None
    high: float | None = None

    @property
    def shown(self) -> str:
        """The option with its default, as the command line takes it."""
        return self.name if self.default is None else f"{self.name}={self.default}"


def fields_of(name: str) -> tuple[OptionField, ...]:
    """Return the options of a detector; none for an ensemble, whose members have their own.

    Raises:
        UsageError: no detector is called so.
    """
    return fields_in(entry_of(name).options)


def fields_in(options: type[BaseModel]) -> tuple[OptionField, ...]:
    """Return the fields of a model of options."""
    schema = options.model_json_schema()
    named = schema.get("$defs", {})
    return tuple(_field(each, rule, named) for each, rule in schema["properties"].items())


def _field(name: str, rule: dict[str, Any], named: dict[str, Any]) -> OptionField:
    inner = next((one for one in rule.get("anyOf", ()) if one.get("type") != "null"), rule)
    if "$ref" in inner:
        inner = named[inner["$ref"].rpartition("/")[2]]
    choices = tuple(inner.get("enum", ()))
    if inner.get("type") == "boolean" and rule.get("default") is None:
        choices = (True, False)  # or neither
    words = name.replace("_", " ")
    title = rule.get("title", words.title())
    form = rule.get("format", "")
    kind = form if form in _KINDS else inner.get("type", "")
    return OptionField(
        name=name,
        label=words.capitalize() if title == words.title() else title,
        kind="choice" if choices else _KINDS.get(kind, "text"),
        default=rule.get("default"),
        about=rule.get("description") or inner.get("description", ""),
        choices=choices,
        low=inner.get("minimum", inner.get("exclusiveMinimum")),
        high=inner.get("maximum", inner.get("exclusiveMaximum")),
    )
