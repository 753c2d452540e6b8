"""Label Studio's tasks as its JSON has them: regions of texts, by people and models.

Its short exports, JSON-MIN and CSV, have a row for each annotation, which become tasks, too. A row
has the task's data, ``annotator``, ``annotation_id``, and a column for each control: labels as
``[{"start", "end", "text", "labels"}]``, ratings and numbers as ``[{"rating": 4}]``, texts as
``{"text": […]}``. A single choice is a plain word; that a column is a choice shows where rows of
one task differ in it, for all tasks. Who skipped a task, and what belongs to which region, is in
the long export alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from spanlab.formats.reader import parse_list, whole
from spanlab.schema import AnnotatorKind, Interval, Probability, Response, Span, Status

_UNNAMED = "annotator"
OWN: Final = "spanlab"  # the field of data that is ours
LABEL: Final = "Hallucination"  # of a span without one: Label Studio shows no region without
SHOWN: Final = "context_shown"  # … and the one with the passages as people see them
_OWN_ID = re.compile(r"(\d+)-(\d+)?")  # of a region of ours: the annotation's number, then its own


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
        start, end = (whole(offsets.get(name)) for name in ("start", "end"))
        quoted = self.value.get("text")
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

    def own_number(self) -> int | None:
        """Return which span of our own export this was, counted from 0; None for others."""
        own = _OWN_ID.match(str(self.id))
        return int(own[2]) if own and own[2] else None

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
    was_cancelled: bool | None = False
    ground_truth: bool | None = False

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
    answer_prob: Probability | None = None
    unlabelled: tuple[int, ...] = ()  # numbers of its spans that have no label
    hard: tuple[tuple[int, int], ...] | None = None
    places: tuple[tuple[int, int], ...] = ()  # of the spans that the hard labels belong to

    def hard_labels(self, spans: Sequence[Span]) -> tuple[Interval, ...] | None:
        """Return the hard labels; None without any, or where somebody has moved the spans."""
        if self.hard is None or self.places != tuple((span.start, span.end) for span in spans):
            return None
        return tuple(Interval(start=start, end=end) for start, end in self.hard)


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


KEYS: Final = frozenset(("annotation_id", "annotator"))
_OF_ROW: Final = KEYS | {"created_at", "updated_at", "lead_time"}
_TYPES: Final = ("labels", "rating", "number", "choices", "text")


def tasks_of(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the tasks that rows are of, in their order, each with all its annotations."""
    by_task: dict[str, list[Mapping[str, Any]]] = {}
    for number, row in enumerate(rows):
        by_task.setdefault(str(row.get("id", f"row {number}")), []).append(row)
    controls = dict.fromkeys(
        column
        for task_rows in by_task.values()
        for column in dict.fromkeys(name for row in task_rows for name in row)
        if column not in _OF_ROW and _is_control(column, task_rows)
    )
    return [_task(name, task_rows, controls) for name, task_rows in by_task.items()]


def _task(name: str, rows: list[Mapping[str, Any]], controls: Collection[str]) -> dict[str, Any]:
    columns = dict.fromkeys(column for row in rows for column in row if column not in _OF_ROW)
    data = {
        column: _plain(next((row[column] for row in rows if row.get(column)), None))
        for column in columns
        if column not in controls
    }
    return {
        "id": name,
        "data": {column: value for column, value in data.items() if value is not None},
        "annotations": [_annotation(row, controls) for row in rows],
    }


def _is_control(column: str, rows: list[Mapping[str, Any]]) -> bool:
    values = [row.get(column) for row in rows]
    if any(_results(value) for value in values if value not in (None, "")):
        return True
    return column != "id" and len({str(value or "") for value in values}) > 1


def _plain(value: Any) -> Any:
    """Return a value of a task's data; in CSV objects and lists are JSON."""
    is_json = isinstance(value, str) and value[:2] in ('{"', "[{", '["')
    return parse_list(f"[{value}]")[0] if is_json else value


def _annotation(row: Mapping[str, Any], controls: Iterable[str]) -> dict[str, Any]:
    results = [
        {"from_name": column, "type": kind, "value": value}
        for column in controls
        if row.get(column) not in (None, "")
        for kind, value in _results(row[column]) or [("choices", {"choices": [row[column]]})]
    ]
    return {"completed_by": row.get("annotator"), "result": results}


def _results(cell: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return what a cell holds by the types of results; nothing for a plain value."""
    cell = parse_list(f"[{cell}]")[0] if isinstance(cell, str) and cell[:1] == "{" else cell
    parts = parse_list(cell)
    results = []
    for part in parts if isinstance(parts, list) else [parts]:
        kind = next((kind for kind in _TYPES if isinstance(part, dict) and kind in part), None)
        if kind is None or ("start" in part) != (kind == "labels"):
            return []
        if kind == "text" and not isinstance(part["text"], list):
            return []  # a passage of the task's data
        results.append(("textarea" if kind == "text" else kind, part))
    return results
