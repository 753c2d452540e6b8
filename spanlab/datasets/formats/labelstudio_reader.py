"""Label Studio's JSON export.

A task has ``data`` (the texts), ``annotations`` (of people) and ``predictions`` (of models), each
with a ``result`` of regions. A region of a text has ``start``, ``end``, ``labels`` and usually the
quoted ``text``. Choices, ratings, numbers and text areas are responses: attributes of the region
whose ``id`` they have, else of the whole answer. What else a result holds (relations, several
choices at once) is left out, and said.

People become persons under their e-mail address, name or number, models detectors under their
version. A skipped task is skipped. A person's own mark counts as 1.0, whatever score the
prediction had that it was taken from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError

from spanlab.datasets import reader
from spanlab.datasets.columns import map_columns
from spanlab.datasets.files import FileRow, InputFile
from spanlab.datasets.formats.labelstudio_tasks import ExportedTask, TaskRegion, TaskResult
from spanlab.datasets.quotes import OffsetReader, OffsetUnit, RegionPlace, span_at
from spanlab.datasets.read_options import ControlResponse, ReadOptions
from spanlab.datasets.reader import checked, language, passages_of, text_of
from spanlab.errors import InputError
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Item,
    Record,
    Response,
    Responses,
    Span,
    Status,
)

GOLD = "gold"  # whose annotations are gold labels
_UNNAMED_MODEL = "prediction"
_RESPONSES: TypeAdapter[Responses] = TypeAdapter(Responses)
_RESPONSE_TYPES = frozenset({"choices", "rating", "number", "textarea"})


class _MarkedRegion(NamedTuple):
    region: TaskRegion
    place: RegionPlace
    attributes: Responses


class LabelStudioReader(reader.FormatReader):
    """Reads an export, twice: which text was labelled shows only in all of it."""

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._answer = ""  # the field of data that was labelled
        self._unit = OffsetUnit.CODE_POINTS
        self._other: dict[str, int] = {}

    def rows(self) -> Iterator[FileRow]:
        """Yield the tasks.

        Raises:
            InputError: the file is not JSON, or it is not clear which text was labelled.
        """
        survey = _Survey()
        for row in self._file.rows():
            survey.add(row)
        if survey.data:
            self._answer = _labelled_field(survey, self._options, self._file)
            self._unit = survey.offset_unit(self._answer)
        yield from self._file.rows()

    def _record(self, row: FileRow) -> Record:
        task = ExportedTask.model_validate_json(row.raw)
        item = checked(_item(task, self._answer, row, self._options))
        annotations = [*self._by_people(task, item.answer), *self._by_models(task, item.answer)]
        return Record(item=item, annotations=tuple(_uniquely_named(annotations)))

    def finish(self) -> None:
        """Say what the export holds that is not about spans."""
        if self._other:
            kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self._other.items()))
            self._options.on_warning(f"{self._file.name}: left out what marks no span: {kinds}")

    def _by_people(self, task: ExportedTask, answer: str) -> Iterator[Annotation]:
        for index, person in enumerate(task.annotations):
            name = person.name()
            gold = name == GOLD
            marked, responses = self._read_regions(task, person, f"annotations.{index}")
            yield Annotation(
                annotator=name,
                kind=AnnotatorKind.GOLD if gold else AnnotatorKind.PERSON,
                status=Status.SKIPPED if person.was_cancelled else Status.DONE,
                spans=tuple(_spans(answer, marked, self._unit, 1.0 if gold else None)),
                responses=responses,
            )

    def _by_models(self, task: ExportedTask, answer: str) -> Iterator[Annotation]:
        for index, model in enumerate(task.predictions):
            marked, responses = self._read_regions(task, model, f"predictions.{index}")
            score = 1.0 if model.score is None else model.score
            yield Annotation(
                annotator=model.model_version or _UNNAMED_MODEL,
                kind=AnnotatorKind.DETECTOR,
                spans=tuple(_spans(answer, marked, self._unit, score)),
                responses=responses,
            )

    def _read_regions(
        self, task: ExportedTask, result: TaskResult, field: str
    ) -> tuple[list[_MarkedRegion], Responses]:
        """Return the regions of the answer, and responses on all of it; the rest is counted."""
        regions = []
        responses = self._read_responses(result)
        for number, region in enumerate(result.result):
            if region.type in _RESPONSE_TYPES:
                continue
            place = region.place(f"{field}.result.{number}.value")
            # A text's name is free, so another text is meant only where it names its field.
            elsewhere = region.to_name != self._answer and region.to_name in task.data
            if place is not None and not elsewhere:
                attributes = responses.get(region.id, {}) if region.id is not None else {}
                regions.append(_MarkedRegion(region, place, _RESPONSES.validate_python(attributes)))
            else:
                kind = f"labels of {region.to_name}" if elsewhere else region.type
                self._other[kind] = self._other.get(kind, 0) + 1
        return regions, _RESPONSES.validate_python(responses[None])

    def _read_responses(self, result: TaskResult) -> dict[str | int | None, dict[str, Response]]:
        """Return what was responded by the region, None for the whole answer."""
        regions = {region.id for region in result.result if region.type not in _RESPONSE_TYPES}
        responses: dict[str | int | None, dict[str, Response]] = {None: {}}
        for region in result.result:
            if region.type not in _RESPONSE_TYPES:
                continue
            response = region.response() if region.from_name else None
            is_general = "start" not in region.value
            if (
                response is None
                or region.from_name is None
                or not (is_general or region.id in regions)
            ):
                self._other[region.type] = self._other.get(region.type, 0) + 1
                continue
            responses.setdefault(None if is_general else region.id, {})[region.from_name] = response
            if self._options.on_response is not None:
                kind = region.type
                self._options.on_response(
                    ControlResponse(region.from_name, kind, not is_general, response)
                )
        return responses


def _spans(
    answer: str, marked: list[_MarkedRegion], counting: OffsetUnit, score: float | None
) -> Iterator[Span]:
    """Yield a span per region and label; ``score`` is for those without, None for no scores."""
    extents = OffsetReader(answer).extents([mark.place for mark in marked], counting)
    for (region, place, attributes), (start, end) in zip(marked, extents, strict=True):
        prob = 1.0
        if score is not None:
            prob = score if region.score is None else region.score
        for label in region.labels():
            note = region.note()
            span = span_at(answer, start, end, place.field, prob=prob, label=label, note=note)
            yield span.model_copy(update={"attributes": attributes}) if attributes else span


def _item(task: ExportedTask, field: str, row: FileRow, options: ReadOptions) -> Item:
    answer = task.data.get(field)
    if not isinstance(answer, str):
        raise InputError(
            "there is no text to label", field=f"data.{field}", found=answer, expected="a text"
        )
    other_fields = [key for key in task.data if key != field]
    mapping = {name: key for name, key in (options.columns or {}).items() if name != "answer"}
    names = map_columns(other_fields, mapping, needed=None)
    names.pop("answer", None)
    names.pop("spans", None)
    names.pop("messages", None)
    data = {name: task.data[column] for name, column in names.items()}
    meta = data_meta if isinstance(data_meta := task.data.get("meta"), dict) else {}
    used = {field, *names.values(), *(["meta"] if meta else [])}
    other_data = {key: value for key, value in task.data.items() if key not in used}
    return Item(
        id=text_of(data.get("id")) or f"task-{_extra(task).get('id', row.line)}",
        lang=language(text_of(data.get("lang"))),
        question=text_of(data.get("question")) or "",
        answer=answer,
        passages=passages_of(data.get("passages"), f"data.{names.get('passages')}"),
        meta={**meta, **other_data, **({"task": _extra(task)} if task.model_extra else {})},
    )


def _extra(task: ExportedTask) -> dict[str, JsonValue]:
    return task.model_extra or {}


def _uniquely_named(annotations: list[Annotation]) -> Iterator[Annotation]:
    """Yield the annotations, an annotator's second one of a task as "name 2"."""
    n_seen: Counter[str] = Counter()
    for annotation in annotations:
        n_seen[annotation.annotator] += 1
        if n_seen[annotation.annotator] == 1:
            yield annotation
        else:
            name = f"{annotation.annotator} {n_seen[annotation.annotator]}"
            yield annotation.model_copy(update={"annotator": name})


class _Survey:
    """What all tasks of an export together say about the text that was labelled."""

    def __init__(self) -> None:
        self.data: dict[str, JsonValue] = {}  # of the first task
        self.texts: list[str] = []  # its fields that hold text
        self._named: set[str | None] = set()  # what regions call the text they are of
        self._quoting = 0  # regions with a quote
        self._unfit: set[str] = set()  # fields in which a quote is not where it should be
        self._evidence: dict[str, set[OffsetUnit]] = {}  # how offsets in a field may count

    def add(self, row: FileRow) -> None:
        """Take a task into account; one that cannot be read is left to the reader to report."""
        try:
            task = ExportedTask.model_validate_json(row.raw)
        except (ValidationError, InputError):
            return
        if not self.data:
            self.data = task.data
            self.texts = [key for key, value in task.data.items() if isinstance(value, str)]
        places = list(task.places())
        self._named |= {name for name, _ in places}
        quoting = [place for _, place in places if place.quoted is not None]
        self._quoting += len(quoting)
        for field in self.texts:
            text = task.data.get(field)
            ruler = OffsetReader(text if isinstance(text, str) else "")
            if not all(map(ruler.fits, quoting)):
                self._unfit.add(field)
            if isinstance(text, str):
                evidence = ruler.evidence(place for _, place in places)
                self._evidence.setdefault(field, set()).update(evidence)

    def offset_unit(self, field: str) -> OffsetUnit:
        """Return what offsets in a field count."""
        only_utf16 = self._evidence.get(field) == {OffsetUnit.UTF16}
        return OffsetUnit.UTF16 if only_utf16 else OffsetUnit.CODE_POINTS

    def candidates(self) -> tuple[list[str], list[str], list[str]]:
        """Return the fields that regions name, all with text, and those that hold every quote."""
        named = [text for text in self.texts if self._named == {text}]
        fitting = [text for text in self.texts if self._quoting and text not in self._unfit]
        return named, self.texts, fitting


def _labelled_field(survey: _Survey, options: ReadOptions, file: InputFile) -> str:
    """Return the field of ``data`` that holds the labelled text."""
    field = (options.columns or {}).get("answer")
    if field is not None:
        if field not in survey.data:
            raise _no_text(file, survey.data, f"a field {field!r} of data")
        return field
    for candidates in survey.candidates():
        if len(candidates) == 1:
            return candidates[0]
    _, texts, fitting = survey.candidates()
    try:
        return map_columns(fitting or texts, None)["answer"]
    except InputError:
        raise _no_text(file, survey.data, "one text, or a mapping answer=FIELD") from None


def _no_text(file: InputFile, data: dict[str, JsonValue], expected: str) -> InputError:
    return InputError(
        "it is not clear which text was labelled",
        file=file.name,
        field="data",
        found=f"the fields {', '.join(map(repr, data))}",
        expected=expected,
    )
