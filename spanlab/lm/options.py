"""How a language model is asked, and where that is chosen: by name, for all models or for some.

A name may stand alone (``temperature``) or after the role, the detector or the annotator that it is
for (``judge.temperature``, ``ucsc-kg.temperature``, ``ucsc-kg.judge.temperature``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated

from pydantic import Field, JsonValue, ValidationError

from spanlab.errors import UsageError
from spanlab.schema import Frozen, Name

VARIABLE = "SPANLAB_MODEL_OPTIONS"
Options = Mapping[str, JsonValue]  # by name, with or without what it is for
_SENT = ("temperature", "max_tokens", "top_p", "seed", "reasoning_effort")  # as the protocol names


class ModelOptions(Frozen):
    """How a model is asked; None leaves it to the endpoint."""

    temperature: (
        Annotated[float, Field(ge=0.0, le=2.0, description="How freely tokens are drawn.")] | None
    ) = None
    top_p: (
        Annotated[
            float, Field(gt=0.0, le=1.0, description="Only the likeliest tokens up to this sum.")
        ]
        | None
    ) = None
    seed: Annotated[int, Field(description="Of the drawing of tokens.")] | None = None
    max_tokens: (
        Annotated[int, Field(ge=1, description="Of an answer, thinking included.")] | None
    ) = None
    timeout: Annotated[
        float, Field(gt=0.0, le=3600.0, description="Seconds that one attempt may take.")
    ] = 120.0
    reasoning_effort: (
        Annotated[Name, Field(description="Of reasoning models: low, medium, high.")] | None
    ) = None
    structured: (
        Annotated[
            bool, Field(description="Ask for JSON by a schema, if the endpoint takes schemas.")
        ]
        | None
    ) = None

    window: (
        Annotated[
            int,
            Field(
                ge=1000,
                description="Tokens that prompt and answer may have together; without it what "
                "check-model found.",
            ),
        ]
        | None
    ) = None

    @property
    def chosen(self) -> dict[str, JsonValue]:
        """The options that were set, also those set to None."""
        names = self.model_fields_set.intersection(ModelOptions.model_fields)
        return {name: getattr(self, name) for name in names}

    @property
    def sent(self) -> dict[str, JsonValue]:
        """What a request says of them, without what is left to the endpoint."""
        values = {name: getattr(self, name) for name in _SENT}
        return {name: value for name, value in values.items() if value is not None}


class DetectorModelOptions(ModelOptions):
    """What can be chosen for the models of a detector, which says itself whether they think."""

    thinking: (
        Annotated[bool, Field(description="Let the model think in words before it answers.")] | None
    ) = None


def pairs(texts: Iterable[str], source: str) -> dict[str, JsonValue]:
    """Read ``name=value`` texts; "none" as a value leaves the option to the endpoint.

    Args:
        texts: one option each.
        source: what an error names: a command's option, or an environment variable.

    Raises:
        UsageError: one has no name, no value, or a name or value that no option has.
    """
    found: dict[str, JsonValue] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or not equals:
            raise UsageError(f"{source} takes NAME=VALUE, such as temperature=0.2, not {text!r}")
        found[name] = None if value.lower() in {"", "none"} else value
    for key, given in found.items():
        _checked({key.rpartition(".")[2]: given}, source)
    return found


def of_environment(environ: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the options in SPANLAB_MODEL_OPTIONS: ``name=value``, with commas between.

    Raises:
        UsageError: it holds something else.
    """
    return pairs(filter(str.strip, environ.get(VARIABLE, "").split(",")), VARIABLE)


def addressed(options: Options, addresses: Iterable[str]) -> DetectorModelOptions:
    """Return the options for a model that has these addresses, of which later ones outweigh.

    Args:
        options: by name, with or without an address.
        addresses: roles, detectors, annotators and pairs of them; "" for what is for all models.

    Raises:
        UsageError: an option is unknown or has a wrong value.
    """
    found: dict[str, JsonValue] = {}
    for address in addresses:
        for key, value in options.items():
            owner, _, name = key.rpartition(".")
            if owner == address:
                found[name] = value
    return _checked(found, "a model option")


def _checked(options: Options, source: str) -> DetectorModelOptions:
    try:
        return DetectorModelOptions.model_validate(options)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    known = list(DetectorModelOptions.model_fields)
    if name in known:
        message = first["msg"][:1].lower() + first["msg"][1:]
        raise UsageError(f"{source}: {name} is {first['input']!r}: {message}")
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise UsageError(f"{source}: models have no option {name!r}{hint} ({', '.join(known)})")
