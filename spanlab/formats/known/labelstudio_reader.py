"""Label Studio's JSON export.

A task has ``data`` (the texts), ``annotations`` (of people) and ``predictions`` (of models), each
with a ``result`` of regions. A region of a text has ``start``, ``end``, ``labels`` and usually the
quoted ``text``. Choices, ratings, numbers and text areas are responses: attributes of the region
whose ``id`` they have, else of the whole answer. What else a result holds (relations, several
choices at once) is left out, and said.

People become persons under their e-mail address, name or number, models detectors under their
version; a ground truth is gold, decided by who made it. What was exported from here keeps the names
and notes that Label Studio has no place for (``data.spanlab``). The short exports (JSON-MIN, CSV)
are read as tasks: see ``tasks_of``. A skipped task is skipped. A person's own mark counts
as 1.0, whatever score the prediction had that it was taken from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from spanlab.base.errors import InputError
from spanlab.doors import Export
from spanlab.formats import reader
from spanlab.formats.cells import passages_in, wrong_and_right
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.guess import guess
from spanlab.formats.json_rows import names_in_first
from spanlab.formats.known.csv_table import CsvReader
from spanlab.formats.known.jsonl import is_citation
from spanlab.formats.known.labelstudio_tasks import (
    KEYS,
    LABEL,
    OWN,
    SHOWN,
    ExportedTask,
    OwnAnnotation,
    TaskAnnotation,
    TaskRegion,
    TaskResult,
    tasks_of,
)
from spanlab.formats.known.labelstudio_writer import tasks
from spanlab.formats.quotes import OffsetReader, OffsetUnit, RegionPlace, span_at
from spanlab.formats.read_options import ControlResponse, ReadOptions
from spanlab.formats.reader import FormatEntry, checked, language, text_of
from spanlab.formats.verdict_columns import verdict_in
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Citation,
    Item,
    Record,
    Response,
    Responses,
    Span,
    Status,
)

GOLD = "gold"  # whose annotations are gold labels
_UNNAMED_MODEL = "prediction"
_TRUTH = (
    "{n} marked as ground truth became gold labels, decided by who made them, and are no longer "
    "among those of people"
)
_AGAIN = "{n} of tasks by an annotator who has one there, kept under names of their own"
_OF_ITEM = frozenset(("id", "lang", "question", "passages"))  # fields that its data may have
_PEOPLE = frozenset((AnnotatorKind.PERSON, AnnotatorKind.GOLD))
_RESPONSES: TypeAdapter[Responses] = TypeAdapter(Responses)
_RESPONSE_TYPES = frozenset({"choices", "rating", "number", "textarea"})


class _MarkedRegion(NamedTuple):
    region: TaskRegion
    place: RegionPlace
    attributes: Responses


class LabelStudioReader(reader.FormatReader):
    """Reads an export, twice: which text was labelled shows only in all of it."""

    signatures = (
        frozenset(("data", "annotations")),
        frozenset(("data", "predictions")),
        frozenset(("data", "completions")),
        frozenset(("data", "id")),
        KEYS,
    )
    in_tables = True  # its short export
    # … in which a task's data, of whatever format it was, stands beside who annotated it.
    before = frozenset(("spanlab", "mushroom", "claims", "multihop", "ragtruth"))
    maps_columns = True

    @classmethod
    def recognises(cls, record: Mapping[str, object]) -> bool:
        """Say whether a record is a task; a list in ``data`` is of other things."""
        return super().recognises(record) and not isinstance(record.get("data"), list)

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._answer = ""  # the field of data that was labelled
        self._unit = OffsetUnit.CODE_POINTS
        self._other: dict[str, int] = {}
        self._is_short = False
        self._names_lost = False  # of people in an export of ours

    def rows(self) -> Iterator[FileRow]:
        """Yield the tasks.

        Raises:
            InputError: the file is not JSON, or it is not clear which text was labelled.
        """
        survey = _Survey()
        for row in self._tasks():
            survey.add(row)
        if survey.data:
            self._answer = _labelled_field(survey, self._options, self._file)
            self._unit = survey.offset_unit(self._answer)
        yield from self._tasks()

    def _tasks(self) -> Iterator[FileRow]:
        """Yield the tasks of an export; of a short one they are made from all its rows."""
        is_json = self._file.head().lstrip()[:1] in (b"{", b"[")
        if is_json and not names_in_first(self._file) >= KEYS:
            yield from self._file.rows()
            return
        self._is_short = True
        rows = self._file.rows() if is_json else CsvReader(self._file, self._options).given()
        records = [from_json(row.raw) for row in self._file.held(rows, "the export")]
        for number, task in enumerate(tasks_of(records), start=1):
            yield self._file.row(number, to_json(task), "task")

    def _record(self, row: FileRow) -> Record:
        task = ExportedTask.model_validate_json(row.raw)
        item = checked(_item(task, self._answer, row, self._options))
        self._names_lost |= self._is_short and any(told.kind in _PEOPLE for told in task.own())
        if task.only_numbered:
            self._leave("annotations or predictions that are only numbers here", task.only_numbered)
        annotations = [*self._by_people(task), *self._by_models(task)]
        named = tuple(_uniquely_named(annotations))
        pairs = zip(annotations, named, strict=True)
        self.count("annotation", _AGAIN, *(a.annotator for given, a in pairs if a is not given))
        return Record(item=item, annotations=named)

    def _remarks(self) -> Iterator[str]:
        if self._names_lost:
            yield (
                "its annotators, in JSON-MIN also its ids, are those of Label Studio; ours come "
                "back with its JSON, not in JSON-MIN and CSV"
            )
        if self._other:
            kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self._other.items()))
            yield f"left out what marks no span: {kinds}"

    def _by_people(self, task: ExportedTask) -> Iterator[Annotation]:
        own = [told for told in task.own() if told.kind in _PEOPLE]
        for index, person in enumerate(task.annotations):
            told = _take_own(person, own, task.own())
            is_gold = person.ground_truth or person.name() == GOLD
            if is_gold and told is None and person.name() != GOLD:
                self.count("annotation", _TRUTH, n=1)
            name = told.name if told is not None else person.name()
            yield self._annotation(
                task,
                person,
                f"annotations.{index}",
                told,
                1.0 if is_gold else None,
                annotator=GOLD if is_gold and told is None else name,
                kind=AnnotatorKind.GOLD if is_gold else AnnotatorKind.PERSON,
                status=Status.SKIPPED if person.was_cancelled else Status.DONE,
                decided_by=person.name() if is_gold and person.name() not in (GOLD, name) else None,
            )

    def _by_models(self, task: ExportedTask) -> Iterator[Annotation]:
        own = task.own()
        for index, model in enumerate(task.predictions):
            score = self._share(1.0 if model.score is None else model.score)
            number = model.number()
            told = own[number] if number is not None and number < len(own) else None
            name = model.model_version or _UNNAMED_MODEL
            about = {"annotator": name, "kind": AnnotatorKind.DETECTOR}
            yield self._annotation(task, model, f"predictions.{index}", told, score, **about)

    def _annotation(
        self,
        task: ExportedTask,
        result: TaskResult,
        field: str,
        told: OwnAnnotation | None,
        score: float | None,
        **about: Any,
    ) -> Annotation:
        marked, responses = self._read_regions(task, result, field)
        spans = tuple(self._spans(str(task.data[self._answer]), marked, score, told))
        if told is not None:
            about |= {"answer_prob": told.answer_prob, "note": told.note}
            about["hard"] = told.hard_labels(spans)
        else:
            spans, about["claims"] = wrong_and_right(spans)
        verdict = _verdict(result)
        return Annotation(answer_hallucinated=verdict, spans=spans, responses=responses, **about)

    def _leave(self, kind: str, n: int = 1) -> None:
        self._other[kind] = self._other.get(kind, 0) + n

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
            if place is None and "startOffset" in region.value:
                self._check_text(task, region, f"{field}.result.{number}.value")
            if place is not None and not elsewhere:
                attributes = responses.get(region.id, {}) if region.id is not None else {}
                regions.append(_MarkedRegion(region, place, _RESPONSES.validate_python(attributes)))
            else:
                kind = f"labels of {region.to_name}" if elsewhere else region.type
                self._leave(kind)
        return regions, _RESPONSES.validate_python(responses[None])

    def _check_text(self, task: ExportedTask, region: TaskRegion, field: str) -> None:
        """Refuse a mark that is not in a text: an answer without it would count as clean."""
        if isinstance(task.data.get(region.to_name or "", []), str):
            return
        raise InputError(
            "this mark is in a dialogue, or in a page without its offsets in the text",
            field=field,
            found=region.value,
            expected="start and end, or globalOffsets, in the one text that is labelled",
        )

    def _read_responses(self, result: TaskResult) -> dict[str | int | None, dict[str, Response]]:
        """Return what was responded by the region, None for the whole answer."""
        regions = {region.id for region in result.result if region.type not in _RESPONSE_TYPES}
        responses: dict[str | int | None, dict[str, Response]] = {None: {}}
        for region in result.result:
            if region.type not in _RESPONSE_TYPES or _is_verdict(region):
                continue
            response = region.response() if region.from_name else None
            is_general = "start" not in region.value
            if (
                response is None
                or region.from_name is None
                or not (is_general or region.id in regions)
            ):
                self._leave(region.type)
                continue
            responses.setdefault(None if is_general else region.id, {})[region.from_name] = response
            if self._options.on_response is not None:
                kind = region.type
                self._options.on_response(
                    ControlResponse(region.from_name, kind, not is_general, response)
                )
        return responses

    def _spans(
        self,
        answer: str,
        marked: list[_MarkedRegion],
        score: float | None,
        told: OwnAnnotation | None,
    ) -> Iterator[Span]:
        """Yield a span per region and label; ``score`` is for those without, None for no scores."""
        unlabelled = told.unlabelled if told is not None else ()
        places = [self._cut(mark.place, answer) for mark in marked]
        extents = OffsetReader(answer).extents(places, self._unit)
        for (region, place, attributes), (start, end) in zip(marked, extents, strict=True):
            prob = 1.0
            if score is not None:
                prob = score if region.score is None else self._share(region.score)
            for named in region.labels():
                label = None if named == LABEL and region.own_number() in unlabelled else named
                note = region.note()
                span = span_at(answer, start, end, place.field, prob=prob, label=label, note=note)
                yield span.model_copy(update={"attributes": attributes}) if attributes else span

    def _share(self, score: float) -> float:
        """Return a score as a probability; models that give more than 1 give percent."""
        if score <= 1:
            return score
        self.count("region", "{n} had a score above 1, which was read as percent", n=1)
        return score / 100

    def _cut(self, place: RegionPlace, answer: str) -> RegionPlace:
        """Return a place that ends with the text, where Label Studio's ends one beyond it."""
        ruler = OffsetReader(answer)
        shorter = place._replace(end=place.end - 1, quoted=None)
        last = place._replace(start=place.end - 2, end=place.end - 1, quoted=None)
        beyond = place._replace(start=place.end - 1, quoted=None)
        if (
            ruler.fits(place)
            or ruler.fits(beyond)
            or not (ruler.fits(shorter) and ruler.fits(last))
        ):
            return place
        self.count("region", "{n} ended one character past the text and were cut", n=1)
        return shorter


def _is_verdict(region: TaskRegion) -> bool:
    """Say whether a choice judges the whole answer by its name and value."""
    return _called(region) is not None


def _called(region: TaskRegion) -> bool | None:
    if region.type != "choices" or "start" in region.value or not region.from_name:
        return None
    return verdict_in(region.from_name, region.response())


def _verdict(result: TaskResult) -> bool | None:
    """Return what a person or model says of the whole answer."""
    return next((said for region in result.result if (said := _called(region)) is not None), None)


def _take_own(
    person: TaskAnnotation, own: list[OwnAnnotation], all_own: Sequence[OwnAnnotation]
) -> OwnAnnotation | None:
    """Return, and take out of ``own``, what our export said of an annotation; None for others.

    Its regions say which it was; one without any is the next of ours that is as empty.
    """
    number = person.number()
    if number is not None:
        told = all_own[number] if number < len(all_own) else None
    elif person.result:
        told = None
    else:
        status = Status.SKIPPED if person.was_cancelled else Status.DONE
        kind = AnnotatorKind.GOLD if person.ground_truth else AnnotatorKind.PERSON
        told = next((o for o in own if (o.status, o.kind) == (status, kind)), None)
    if told in own:
        own.remove(told)
        return told
    return None


def _item(task: ExportedTask, field: str, row: FileRow, options: ReadOptions) -> Item:
    answer = task.data.get(field)
    if not isinstance(answer, str):
        raise InputError(
            "there is no text to label", field=f"data.{field}", found=answer, expected="a text"
        )
    other_fields = [key for key in task.data if key not in (field, OWN, SHOWN)]
    mapping = {name: key for name, key in (options.columns or {}).items() if name != "answer"}
    guessed = guess(other_fields, said=mapping)
    names = {name: column for name, column in guessed.items() if name in _OF_ITEM}
    data = {name: task.data[column] for name, column in names.items()}
    meta = data_meta if isinstance(data_meta := task.data.get("meta"), dict) else {}
    cited = task.data.get("citations")
    citations = cited if isinstance(cited, list) and all(map(is_citation, cited)) else ()
    used = {field, OWN, SHOWN, *names.values(), *(["meta"] if meta else [])}
    used |= {"citations"} if citations else set()
    other_data = {key: value for key, value in task.data.items() if key not in used}
    return Item(
        id=text_of(data.get("id")) or f"task-{_extra(task).get('id', row.line)}",
        lang=language(text_of(data.get("lang"))),
        question=text_of(data.get("question")) or "",
        answer=answer,
        passages=passages_in(data.get("passages"), f"data.{names.get('passages')}"),
        citations=[Citation.model_validate(citation) for citation in citations],
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
            self.texts = [
                key for key, value in task.data.items() if isinstance(value, str) and key != SHOWN
            ]
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
        return guess(fitting or texts)["answer"]
    except KeyError:
        raise _no_text(file, survey.data, "one text, or a mapping answer=FIELD") from None


def _no_text(file: InputFile, data: dict[str, JsonValue], expected: str) -> InputError:
    return InputError(
        "it is not clear which text was labelled",
        file=file.name,
        field="data",
        found=f"the fields {', '.join(map(repr, data))}",
        expected=expected,
    )


FORMAT = FormatEntry(
    name="labelstudio",
    title="Label Studio",
    reader=LabelStudioReader,
    chunks=tasks,
    asks=True,
    around=(b"[\n", b",\n", b"\n]\n"),
    export=Export(
        "Label Studio", "Spans as Label Studio imports them.", "json", "application/json"
    ),
    order=50,
)
