"""What models reply with, read leniently: a percentage is a probability, a missing one is none.

Only what carries the meaning has to be there. Everything here reaches the model as a JSON schema,
docstrings included, so they speak to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, model_validator

from spanlab.schema import Verdict

_SYNONYMS = {
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


class _Reply(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: object) -> object:
        """Take bare text for the first field, other names for ours, and fill what is missing."""
        fields = list(cls.model_fields)
        if not isinstance(data, Mapping):
            data = {fields[0]: data}
        return {name: _named(data, name) for name in fields}


def _named(data: Mapping[str, object], name: str) -> object:
    return next((data[each] for each in (name, *_SYNONYMS.get(name, ())) if each in data), None)


class Part(_Reply):
    """Words copied from the answer, why they are wrong, how likely a reader marks them (0 to 1)."""

    text: Text
    reason: Text
    probability: Prob


class Relation(_Reply):
    """One relation between two entities, in words of the passages."""

    subject: Text
    relation: Text
    object: Text


class Fact(_Reply):
    """An atomic fact, understandable by itself, and the words copied from the answer behind it."""

    fact: Text
    sentence: Text


class Words(_Reply):
    """Words copied from the answer."""

    text: Text


class Judgement(_Reply):
    """Names to look up next, or none and the verdict, why, and how sure it is from 0 to 1."""

    look_up: Texts
    verdict: Judged
    reason: Text
    confidence: Prob
