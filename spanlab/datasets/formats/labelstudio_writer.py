"""Label Studio: the JSON that it imports.

Annotations of persons, and gold labels, become annotations; those of detectors and votes become
predictions. Offsets count code points, as current versions do. The labelling configuration that
these tasks are made for:

    <View>
      <Text name="answer" value="$answer"/>
      <Labels name="label" toName="answer"><Label value="Hallucination"/></Labels>
    </View>

Label Studio has no place for rejected suggestions, claims, evidence and hard labels, nor for
"failed" and "not annotated": those annotations are left out, because an empty one would say that
nothing was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from spanlab.datasets.reader import check_meta
from spanlab.errors import InputError
from spanlab.schema import UNDETERMINED, Annotation, AnnotatorKind, Item, Record, Span, Status

LABEL = "Hallucination"  # of a span that has none, as Label Studio shows no region without


_PEOPLE = frozenset({AnnotatorKind.PERSON, AnnotatorKind.GOLD})


def tasks(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield one task per record, as JSON.

    Raises:
        InputError: a text holds a lone surrogate, or meta a number that is not finite.
    """
    for record in records:
        try:
            yield to_json(_task(record))
        except PydanticSerializationError as error:
            raise InputError(
                f"item {record.item.id!r} cannot be written as UTF-8: {error}",
                expected="Unicode text without lone surrogates",
            ) from error


def _task(record: Record) -> dict[str, Any]:
    annotations: list[dict[str, Any]] = []
    predictions: list[dict[str, Any]] = []
    for index, annotation in enumerate(record.annotations):
        if annotation.kind in _PEOPLE and annotation.status in (Status.DONE, Status.SKIPPED):
            annotations.append(_person(annotation, index))
        elif annotation.status is Status.DONE:
            predictions.append(_model(annotation, index))
    return {"data": _data(record.item), "annotations": annotations, "predictions": predictions}


def _data(item: Item) -> dict[str, Any]:
    data: dict[str, Any] = {"id": item.id, "answer": item.answer}
    if item.lang != UNDETERMINED:
        data["lang"] = item.lang
    if item.question:
        data["question"] = item.question
    if item.passages:
        data["passages"] = [passage.model_dump(exclude_none=True) for passage in item.passages]
    if item.meta:
        check_meta(item.meta)
        data["meta"] = item.meta
    return data


def _person(annotation: Annotation, index: int) -> dict[str, Any]:
    # Label Studio refuses a `completed_by` that is not one of its users and ignores
    # `created_username`, which it writes itself; so the name is kept without being in the way.
    return {
        "created_username": annotation.annotator,
        "was_cancelled": annotation.status is Status.SKIPPED,
        "ground_truth": annotation.kind is AnnotatorKind.GOLD,
        "result": [
            _region(span, f"{index}-{number}", scored=annotation.kind is AnnotatorKind.GOLD)
            for number, span in enumerate(annotation.spans)
        ],
    }


def _model(annotation: Annotation, index: int) -> dict[str, Any]:
    out: dict[str, Any] = {
        "model_version": annotation.annotator,
        "result": [
            _region(span, f"{index}-{number}", scored=True)
            for number, span in enumerate(annotation.spans)
        ],
    }
    if annotation.spans:
        out["score"] = max(span.prob for span in annotation.spans)
    return out


def _region(span: Span, name: str, *, scored: bool) -> dict[str, Any]:
    region: dict[str, Any] = {
        "id": name,
        "from_name": "label",
        "to_name": "answer",
        "type": "labels",
        "value": {
            "start": span.start,
            "end": span.end,
            "text": span.text,
            "labels": [span.label or LABEL],
        },
    }
    if scored:
        region["score"] = span.prob
    if span.note is not None:
        region["meta"] = {"text": [span.note]}
    return region
