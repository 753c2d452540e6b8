"""A task of Label Studio, as far as we look at it; what it says beyond that is kept."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, JsonValue

from spanlab.datasets.quotes import RegionPlace
from spanlab.schema import Probability

_UNNAMED = "annotator"


class _Loose(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=())


class Region(_Loose):
    """A labelled part of something."""

    value: dict[str, JsonValue] = {}
    to_name: str | None = None
    type: str = ""
    score: Probability | None = None
    meta: dict[str, JsonValue] | None = None

    def place(self, field: str) -> RegionPlace | None:
        """Return where the region is, or None if it is not a part of a text."""
        start, end, quoted = (self.value.get(key) for key in ("start", "end", "text"))
        if not (isinstance(start, int) and isinstance(end, int)):
            return None
        return RegionPlace(start, end, quoted if isinstance(quoted, str) else None, field)

    def labels(self) -> tuple[str | None, ...]:
        """Return the labels; one None for a region without any."""
        labels = self.value.get("labels", self.value.get(self.type))
        return tuple(map(str, labels)) if isinstance(labels, list) and labels else (None,)

    def note(self) -> str | None:
        """Return what was written beside the region."""
        text = (self.meta or {}).get("text")
        return "\n".join(map(str, text)) if isinstance(text, list) and text else None


class Result(_Loose):
    """What one person or model marked."""

    result: tuple[Region, ...] = ()


class Person(Result):
    """An annotation."""

    completed_by: int | str | dict[str, JsonValue] | None = None
    created_username: str | None = None
    was_cancelled: bool = False

    def name(self) -> str:
        """Return the e-mail address, the name or else the number of the person."""
        who = self.completed_by
        if isinstance(who, dict):
            full = " ".join(str(who.get(key) or "") for key in ("first_name", "last_name")).strip()
            who = str(who.get("email") or full or who.get("id") or "")
        return str(who or self.created_username or _UNNAMED)


class PredictionResult(Result):
    """A prediction."""

    model_version: str | None = None
    score: Probability | None = None


class Task(_Loose):
    """A task."""

    data: dict[str, JsonValue]
    annotations: tuple[Person, ...] = ()
    predictions: tuple[PredictionResult, ...] = ()

    def places(self) -> Iterator[tuple[str | None, RegionPlace]]:
        """Yield the name of the labelled text and the place of each region."""
        for kind, results in (("annotations", self.annotations), ("predictions", self.predictions)):
            for index, one in enumerate(results):
                for number, region in enumerate(one.result):
                    place = region.place(f"{kind}.{index}.result.{number}.value")
                    if place is not None:
                        yield region.to_name, place
