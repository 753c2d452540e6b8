"""Label Studio's tasks as its JSON has them: regions of texts, by people and models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from spanlab.formats.quotes import RegionPlace
from spanlab.schema import AnnotatorKind, Response, Status

_UNNAMED = "annotator"
OWN: Final = "spanlab"  # the field of data that is ours
SHOWN: Final = "context_shown"  # … and the one with the passages as people see them
_OWN_ID = re.compile(r"(\d+)-")  # of a region of ours: the annotation's number, then its own


class _OpenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", protected_namespaces=())


def _listed(value: object) -> object:
    return () if value is None else value


Score = Annotated[float, Field(ge=0, le=100)] | None  # a probability, or percent


class TaskRegion(_OpenModel):
    """A labelled part of a text, or of something else; or a response in a control."""

    id: str | int | None = None
    value: dict[str, JsonValue] = {}
    from_name: str | None = None
    to_name: str | None = None
    type: str = ""
    score: Score = None
    meta: dict[str, JsonValue] | None = None

    def place(self, field: str) -> RegionPlace | None:
        """Return where the region is, or None if it is not a part of a text."""
        # Of HTML the offsets in the whole text stand apart; "start" is a place in its markup.
        inside = self.value.get("globalOffsets")
        offsets = inside if isinstance(inside, dict) else self.value
        start, end, quoted = (*map(offsets.get, ("start", "end")), self.value.get("text"))
        if not (isinstance(start, int) and isinstance(end, int)):
            return None
        return RegionPlace(start, end, quoted if isinstance(quoted, str) else None, field)

    def labels(self) -> tuple[str | None, ...]:
        """Return the labels; one None for a region without any."""
        labels = self.value.get("labels", self.value.get(self.type))
        return tuple(map(str, labels)) if isinstance(labels, list) and labels else (None,)

    def response(self) -> Response | None:
        """Return the response; None for none, and for several at once."""
        content = self.value.get("text" if self.type == "textarea" else self.type)
        if self.type == "textarea":
            lines = content if isinstance(content, list) else [content or ""]
            return "\n".join(map(str, lines)) or None
        if self.type == "choices":
            value = content[0] if isinstance(content, list) and len(content) == 1 else None
            return value if isinstance(value, str) else None
        if isinstance(content, float) and content.is_integer():
            return int(content)
        return int(content) if isinstance(content, int) else None

    def note(self) -> str | None:
        """Return what was written beside the region."""
        text = (self.meta or {}).get("text")
        return "\n".join(map(str, text)) if isinstance(text, list) and text else None


class TaskResult(_OpenModel):
    """The regions and responses of one person or model."""

    result: Annotated[tuple[TaskRegion, ...], BeforeValidator(_listed)] = ()

    def number(self) -> int | None:
        """Return which annotation of our own export this was, counted from 0; None for others."""
        ids = (_OWN_ID.match(str(region.id)) for region in self.result)
        return next((int(own[1]) for own in ids if own), None)


class TaskAnnotation(TaskResult):
    """What a person marked in a task."""

    completed_by: int | str | dict[str, JsonValue] | None = None
    created_username: str | None = None
    was_cancelled: bool = False
    ground_truth: bool = False

    def name(self) -> str:
        """Return the e-mail address, the name or else the number of the person."""
        person = self.completed_by
        if isinstance(person, dict):
            names = (str(person.get(key) or "") for key in ("first_name", "last_name"))
            full_name = " ".join(names).strip()
            person = str(person.get("email") or full_name or person.get("id") or "")
        return str(person or self.created_username or _UNNAMED)


class PredictionResult(TaskResult):
    """What a model marked in a task."""

    model_version: str | None = None
    score: Score = None


class OwnAnnotation(_OpenModel):
    """What our own export says of an annotation that Label Studio has no place for."""

    name: str
    kind: AnnotatorKind
    status: Status
    note: str | None = None


_OWN: TypeAdapter[tuple[OwnAnnotation, ...]] = TypeAdapter(tuple[OwnAnnotation, ...])


class ExportedTask(_OpenModel):
    """An exported task: its texts, and what people and models marked in them."""

    data: dict[str, JsonValue]
    annotations: tuple[TaskAnnotation, ...] = ()
    predictions: tuple[PredictionResult, ...] = ()
    only_numbered: int = 0

    @model_validator(mode="before")
    @classmethod
    def _in_one_form(cls, task: Any) -> Any:
        """Read old exports' ``completions``, and count what is only a number in the database."""
        if not isinstance(task, dict):
            return task
        task = {name: value for name, value in task.items() if value is not None}
        if "completions" in task and not task.get("annotations"):
            task["annotations"] = task.pop("completions")
        n_numbers = 0
        for name in ("annotations", "predictions"):
            listed = task.get(name)
            if isinstance(listed, list):
                task[name] = [each for each in listed if not isinstance(each, int)]
                n_numbers += len(listed) - len(task[name])
        return {**task, "only_numbered": n_numbers} if n_numbers else task

    def own(self) -> tuple[OwnAnnotation, ...]:
        """Return what our own export says of its annotations, in their order; () for others."""
        told = self.data.get(OWN)
        try:
            return _OWN.validate_python(told) if told is not None else ()
        except ValidationError:
            return ()

    def places(self) -> Iterator[tuple[str | None, RegionPlace]]:
        """Yield the name of the labelled text and the place of each region."""
        for kind, results in (("annotations", self.annotations), ("predictions", self.predictions)):
            for index, result in enumerate(results):
                for number, region in enumerate(result.result):
                    place = region.place(f"{kind}.{index}.result.{number}.value")
                    if place is not None:
                        yield region.to_name, place
