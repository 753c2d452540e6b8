"""What annotators are asked: attributes of each span, questions on each answer; and responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from spanlab.base.fields import FrozenModel, Name, unique

_RESERVED = frozenset({"answer", "label"})  # what a configuration of Label Studio has already

# An option or a text, or a value of a scale.
Response = (
    Annotated[int, Field(strict=True, ge=-1_000_000, le=1_000_000)]
    | Annotated[str, Field(min_length=1, max_length=10_000)]
)

# By the names of the questions.
Responses = Annotated[Mapping[Name, Response], Field(max_length=200)]


class Question(FrozenModel):
    """What annotators are asked of an answer, or as an attribute of each of their spans.

    A choice has ``options``, a scale the whole numbers from ``low`` to ``high``, whose ends may
    have titles. An attribute is asked of spans with one of ``labels`` alone, empty for all.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$")]
    title: Annotated[str, Field(max_length=500)] = ""
    kind: Literal["choice", "scale", "text"] = "choice"
    options: Annotated[tuple[Name, ...], Field(max_length=200)] = ()
    low: Annotated[int, Field(ge=-1_000, le=1_000)] = 1
    high: Annotated[int, Field(ge=-1_000, le=1_000)] = 5
    low_title: Annotated[str, Field(max_length=100)] = ""
    high_title: Annotated[str, Field(max_length=100)] = ""
    required: bool = False
    labels: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.name in _RESERVED:
            raise ValueError(f"{self.name!r} cannot name a question, it means something else")
        unique(self.options, f"{self.name}: the option")
        if self.kind == "choice" and len(self.options) < 2:
            raise ValueError(f"{self.name}: a choice needs two options or more")
        if self.kind != "choice" and self.options:
            raise ValueError(f"{self.name}: only a choice has options, not a {self.kind}")
        if self.low >= self.high:
            raise ValueError(f"{self.name}: a scale goes up, not from {self.low} to {self.high}")
        return self

    @property
    def shown(self) -> str:
        """What people read: the title, else the name."""
        return self.title or self.name

    def is_asked_of(self, label: str | None) -> bool:
        """Say whether the attribute is asked of spans with this label."""
        return not self.labels or label in self.labels

    def is_answered_in(self, responses: Responses) -> bool:
        """Say whether one of these is a response to this question that it allows."""
        given = responses.get(self.name)
        return given is not None and self.problem(given) is None

    def problem(self, response: Response) -> str | None:
        """Say what is wrong with a response to this question and what would be right, if it is."""
        if self.kind == "choice" and response not in self.options:
            return f"{self.shown}: {response!r} is none of {', '.join(self.options)}"
        if self.kind == "text" and not isinstance(response, str):
            return f"{self.shown}: {response!r} is not a text"
        whole = isinstance(response, int) and self.low <= response <= self.high
        if self.kind == "scale" and not whole:
            return (
                f"{self.shown}: {response!r} is not a whole number from {self.low} to {self.high}"
            )
        return None
