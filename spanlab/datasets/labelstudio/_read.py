"""Records out of Label Studio's JSON export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from spanlab.datasets import reader
from spanlab.datasets.columns import map_columns
from spanlab.datasets.files import File, Row
from spanlab.datasets.given import checked, language, passages_of, text_of
from spanlab.datasets.labelstudio._offsets import Counting, RegionPlace, Ruler
from spanlab.datasets.labelstudio._tasks import Region, Result, Task
from spanlab.datasets.options import ReadOptions
from spanlab.datasets.quotes import span_at
from spanlab.errors import InputError
from spanlab.schema import Annotation, Item, Kind, Record, Span, Status

GOLD = "gold"  # whose annotations are gold labels
_UNNAMED_MODEL = "prediction"


class _Marked(NamedTuple):
    region: Region
    place: RegionPlace


class LabelStudioReader(reader.Reader):
    """Reads an export. It is one JSON array, so it is held in memory as a whole."""

    def __init__(self, file: File, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._answer = ""  # the field of data that was labelled
        self._counting = Counting.CODE_POINTS
        self._other: dict[str, int] = {}

    def rows(self) -> Iterator[Row]:
        """Yield the tasks.

        Raises:
            InputError: the file is not JSON, or it is not clear which text was labelled.
        """
        rows = list(self._file.rows())
        tasks = [task for task in map(_task_or_none, rows) if task is not None]
        if tasks:
            self._answer = _labelled_field(tasks, self._options, self._file)
            self._counting = _counting(tasks, self._answer)
        yield from rows

    def _record(self, row: Row) -> Record:
        task = Task.model_validate_json(row.raw)
        item = checked(_item(task, self._answer, row, self._options))
        annotations = [*self._people(task, item.answer), *self._models(task, item.answer)]
        return Record(item=item, annotations=tuple(_uniquely_named(annotations)))

    def finish(self) -> None:
        """Say what the export holds that is not about spans."""
        if self._other:
            kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self._other.items()))
            self._options.on_warning(f"{self._file.name}: left out what marks no span: {kinds}")

    def _people(self, task: Task, answer: str) -> Iterator[Annotation]:
        for index, person in enumerate(task.annotations):
            name = person.name()
            gold = name == GOLD
            marked = self._marked(task, person, f"annotations.{index}")
            yield Annotation(
                annotator=name,
                kind=Kind.GOLD if gold else Kind.PERSON,
                status=Status.SKIPPED if person.was_cancelled else Status.DONE,
                spans=tuple(_spans(answer, marked, self._counting, 1.0 if gold else None)),
            )

    def _models(self, task: Task, answer: str) -> Iterator[Annotation]:
        for index, model in enumerate(task.predictions):
            marked = self._marked(task, model, f"predictions.{index}")
            score = 1.0 if model.score is None else model.score
            yield Annotation(
                annotator=model.model_version or _UNNAMED_MODEL,
                kind=Kind.DETECTOR,
                spans=tuple(_spans(answer, marked, self._counting, score)),
            )

    def _marked(self, task: Task, one: Result, field: str) -> list[_Marked]:
        """Return the regions of the answer; those of other things are counted."""
        marked = []
        for number, region in enumerate(one.result):
            place = region.place(f"{field}.result.{number}.value")
            # A text's name is free, so another text is meant only where it names its field.
            elsewhere = region.to_name != self._answer and region.to_name in task.data
            if place is not None and not elsewhere:
                marked.append(_Marked(region, place))
            else:
                what = f"labels of {region.to_name}" if elsewhere else region.type
                self._other[what] = self._other.get(what, 0) + 1
        return marked


def _spans(
    answer: str, marked: list[_Marked], counting: Counting, score: float | None
) -> Iterator[Span]:
    """Yield a span per region and label; ``score`` is for those without, None for no scores."""
    extents = Ruler(answer).extents([place for _, place in marked], counting)
    for (region, place), extent in zip(marked, extents, strict=True):
        prob = 1.0
        if score is not None:
            prob = score if region.score is None else region.score
        for label in region.labels():
            note = region.note()
            yield span_at(answer, *extent, place.field, prob=prob, label=label, note=note)


def _item(task: Task, field: str, row: Row, options: ReadOptions) -> Item:
    answer = task.data.get(field)
    if not isinstance(answer, str):
        raise InputError(
            "there is no text to label", field=f"data.{field}", found=answer, expected="a text"
        )
    others = [key for key in task.data if key != field]
    wanted = {name: key for name, key in (options.columns or {}).items() if name != "answer"}
    names = map_columns(others, wanted, needed=None)
    names.pop("answer", None)
    names.pop("spans", None)
    data = {name: task.data[column] for name, column in names.items()}
    meta = data_meta if isinstance(data_meta := task.data.get("meta"), dict) else {}
    used = {field, *names.values(), *(["meta"] if meta else [])}
    rest = {key: value for key, value in task.data.items() if key not in used}
    return Item(
        id=text_of(data.get("id")) or f"task-{_extra(task).get('id', row.line)}",
        lang=language(text_of(data.get("lang"))),
        question=text_of(data.get("question")) or "",
        answer=answer,
        passages=passages_of(data.get("passages"), f"data.{names.get('passages')}"),
        meta={**meta, **rest, **({"task": _extra(task)} if task.model_extra else {})},
    )


def _extra(task: Task) -> dict[str, JsonValue]:
    return task.model_extra or {}


def _uniquely_named(annotations: list[Annotation]) -> Iterator[Annotation]:
    """Yield the annotations, an annotator's second one of a task as "name 2"."""
    seen: Counter[str] = Counter()
    for annotation in annotations:
        seen[annotation.annotator] += 1
        if seen[annotation.annotator] == 1:
            yield annotation
        else:
            name = f"{annotation.annotator} {seen[annotation.annotator]}"
            yield annotation.model_copy(update={"annotator": name})


def _task_or_none(row: Row) -> Task | None:
    try:
        return Task.model_validate_json(row.raw)
    except ValidationError:
        return None  # said when the row's turn comes


def _counting(tasks: list[Task], field: str) -> Counting:
    found: set[Counting] = set()
    for task in tasks:
        answer = task.data.get(field)
        if isinstance(answer, str):
            found |= Ruler(answer).evidence(place for _, place in task.places())
    return Counting.UTF16 if found == {Counting.UTF16} else Counting.CODE_POINTS


def _labelled_field(tasks: list[Task], options: ReadOptions, file: File) -> str:
    """Return the field of ``data`` that holds the labelled text."""
    texts = [key for key, value in tasks[0].data.items() if isinstance(value, str)]
    wanted = (options.columns or {}).get("answer")
    if wanted is not None:
        if wanted not in tasks[0].data:
            raise _no_text(file, tasks[0], f"a field {wanted!r} of data")
        return wanted
    names = {name for task in tasks for name, _ in task.places()}
    named = [text for text in texts if names == {text}]
    fitting = [text for text in texts if _quotes_fit(tasks, text)]
    for candidates in (named, texts, fitting):
        if len(candidates) == 1:
            return candidates[0]
    try:
        return map_columns(fitting or texts, None)["answer"]
    except InputError:
        raise _no_text(file, tasks[0], "one text, or a mapping answer=FIELD") from None


def _quotes_fit(tasks: list[Task], field: str) -> bool:
    """Say whether every region with a quote has it in this field of ``data``."""
    quoting = 0
    for task in tasks:
        text = task.data.get(field)
        ruler = Ruler(text if isinstance(text, str) else "")
        for _, place in task.places():
            if place.quoted is not None:
                quoting += 1
                if not ruler.fits(place):
                    return False
    return quoting > 0


def _no_text(file: File, task: Task, expected: str) -> InputError:
    return InputError(
        "it is not clear which text was labelled",
        file=file.name,
        field="data",
        found=f"the fields {', '.join(map(repr, task.data))}",
        expected=expected,
    )
