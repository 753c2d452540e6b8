"""SemEval-2025 Task 3 (Mu-SHROOM): its published files, and its submission format.

A published line has ``id``, ``lang``, ``model_input``, ``model_output_text`` and, once the labels
are out, ``soft_labels``, ``hard_labels`` and (validation v2) each annotator's raw spans in
``annotations``. A submission line has ``id``, ``soft_labels`` and ``hard_labels`` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import to_json

from spanlab.doors import Export
from spanlab.formats import reader
from spanlab.formats.files import FileRow
from spanlab.formats.quotes import interval_at, span_at
from spanlab.formats.reader import FormatEntry, checked, language, whole
from spanlab.schema import Annotation, AnnotatorKind, Item, Probability, Record, Span
from spanlab.text.labels import flatten, hard_of

Place = Annotated[int, Field(strict=True, ge=0), BeforeValidator(whole)]


def _rounded(prob: object) -> object:
    """Return a probability without what adding up shares has made of it, such as 1 + 2e-16."""
    return round(prob, 9) if isinstance(prob, float) else prob


class PublishedLabel(BaseModel):
    """A published soft label."""

    model_config = ConfigDict(frozen=True)

    start: Place
    end: Place
    prob: Annotated[Probability, BeforeValidator(_rounded)]


class LabelsLine(BaseModel):
    """What a published line and one of a submission say of an item's labels."""

    model_config = ConfigDict(frozen=True, protected_namespaces=())

    id: str = Field(coerce_numbers_to_str=True)
    lang: str | None = None
    soft_labels: tuple[PublishedLabel, ...] | None = None
    hard_labels: tuple[tuple[Place, Place], ...] | None = None
    annotations: dict[str, tuple[tuple[Place, Place], ...]] | None = None


class _PublishedLine(LabelsLine):
    """A published line; what we have no field for is kept as it is."""

    model_config = ConfigDict(extra="allow")

    model_input: str = ""
    model_output_text: str


class MushroomReader(reader.FormatReader):
    """Reads published files, with or without labels.

    Empty raw spans cannot be kept, and one published raw span ends a character past its answer
    and is clipped; both are said once per file.
    """

    signatures = (
        frozenset(("id", "model_output_text")),
        frozenset(("id", "soft_labels")),
        frozenset(("id", "hard_labels")),
    )

    def keeps_answer(self, record: Record) -> bool:
        """Say that the task's offsets count the whole output."""
        return True

    def _record(self, row: FileRow) -> Record:
        line = _PublishedLine.model_validate_json(row.raw)
        item = checked(
            Item(
                id=line.id,
                lang=language(line.lang),
                question=line.model_input,
                answer=line.model_output_text,
                meta=line.model_extra or {},
            )
        )
        annotations = (*_gold(line), *self._raters(line))
        return Record(item=item, annotations=annotations)

    def _raters(self, line: _PublishedLine) -> Iterator[Annotation]:
        for annotator, places in (line.annotations or {}).items():
            spans = []
            for index, (start, end) in enumerate(places):
                span = self._raw(line, start, end, f"annotations.{annotator}.{index}")
                if span is not None:
                    spans.append(span)
            yield Annotation(annotator=annotator, kind=AnnotatorKind.PERSON, spans=tuple(spans))

    def _raw(self, line: _PublishedLine, start: int, end: int, field: str) -> Span | None:
        answer = line.model_output_text
        if start == end <= len(answer):
            self.count("empty raw span", "{n} left out", line.id)
            return None
        if start < end - 1 == len(answer):
            ends = "{n} clipped by one character, at the end of the answer"
            self.count("raw span", ends, line.id)
            end -= 1
        return span_at(answer, start, end, field)


def _gold(line: _PublishedLine) -> Iterator[Annotation]:
    if line.soft_labels is None and line.hard_labels is None:
        return
    answer = line.model_output_text
    hard = tuple(
        interval_at(answer, start, end, f"hard_labels.{index}")
        for index, (start, end) in enumerate(line.hard_labels or ())
    )
    soft = tuple(
        span_at(answer, label.start, label.end, f"soft_labels.{index}", prob=label.prob)
        for index, label in enumerate(line.soft_labels or ())
    )
    if line.soft_labels is None:
        soft = tuple(Span.of(answer, part.start, part.end) for part in hard)
    yield Annotation(
        annotator="gold",
        kind=AnnotatorKind.GOLD,
        spans=soft,
        hard=None if line.hard_labels is None else hard,
    )


def dumps(item_id: str, annotation: Annotation) -> bytes:
    """Return ``annotation`` as one line of a submission."""
    soft = flatten(annotation.spans)
    return (
        to_json(
            {
                "id": item_id,
                "hard_labels": [[part.start, part.end] for part in hard_of(annotation)],
                "soft_labels": [
                    {"start": part.start, "end": part.end, "prob": part.prob} for part in soft
                ],
            }
        )
        + b"\n"
    )


def chunks(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield a line of a submission for each record, which has one annotation."""
    return (dumps(record.item.id, record.annotations[0]) for record in records)


FORMAT = FormatEntry(
    name="mushroom",
    title="Mu-SHROOM",
    reader=MushroomReader,
    chunks=chunks,
    of_one=True,
    export=Export("Mu-SHROOM", "Soft and hard labels of one annotator, as the task submits them."),
    order=20,
)
