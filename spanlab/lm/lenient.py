"""The base of what models reply with, read leniently: "90%" is a probability, a missing one None.

A subclass of ``ReplyModel`` reaches the model as a JSON schema, docstring included, so that speaks
to the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, model_validator

from spanlab.fields import storable
from spanlab.schema import Verdict

_SYNONYMS = {  # what models call a field instead
    "confidence": ("probability", "prob", "score"),
    "look_up": ("lookup", "queries", "query"),
    "text": ("quote", "span", "words", "part"),
    "probability": ("prob", "confidence", "score"),
    "reason": ("explanation", "why", "rationale"),
    "subject": ("head", "source"),
    "relation": ("predicate", "property"),
    "object": ("tail", "target"),
    "fact": ("claim", "statement", "text"),
    "sentence": ("source", "quote"),
}
_UNDECIDED: Verdict = "not-enough-evidence"
_WORDS = {"certain": 1.0, "very high": 0.95, "high": 0.9, "medium": 0.6, "low": 0.3}


def probability(value: object) -> float | None:
    """Read a probability as models write it.

    Args:
        value: a number, or a text such as "0.9", "90%", "90 %" or "high". From 2 to 100 a number
            is taken for a percentage.

    Returns:
        A number in [0, 1]: what lies outside is moved to the nearer end. None if there is none.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        number = float(value)
    else:
        text = str(value).strip().casefold().replace(",", ".")
        if text in _WORDS:
            return _WORDS[text]
        try:
            number = float(text.removesuffix("%"))
        except ValueError:
            return None
        if text.endswith("%"):
            return min(max(number / 100, 0.0), 1.0) if math.isfinite(number) else None
    if 2 <= number <= 100:
        number /= 100
    return min(max(number, 0.0), 1.0) if math.isfinite(number) else None


def verdict(value: object) -> Verdict:
    """Read a verdict as models write it; what is none of the three is not enough evidence."""
    text = "" if value is None else str(value).casefold()
    if any(word in text for word in ("enough", "insufficient", "unsupported", "not support")):
        return _UNDECIDED
    if any(word in text for word in ("refut", "contradict", "false")):
        return "refuted"
    return "supported" if any(word in text for word in ("support", "true")) else _UNDECIDED


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [text for each in values if (text := _text(each).strip())]


Prob = Annotated[float | None, BeforeValidator(probability)]
Text = Annotated[str, BeforeValidator(_text)]
Texts = Annotated[list[str], BeforeValidator(_texts)]
Judged = Annotated[Verdict, BeforeValidator(verdict)]


class ReplyModel(BaseModel):
    """An object in a model's reply; bare text is its first field, and no field has to be there."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: object) -> object:
        """Take bare text for the first field, other names for ours, and fill what is missing."""
        fields = list(cls.model_fields)
        if not isinstance(data, Mapping):
            data = {fields[0]: data}
        return storable({name: _named(data, name) for name in fields})


def _named(data: Mapping[str, object], name: str) -> object:
    return next((data[each] for each in (name, *_SYNONYMS.get(name, ())) if each in data), None)
