"""Label Studio: the JSON that it imports.

Annotations of persons, and gold labels, become annotations; those of detectors and votes become
predictions. Offsets count code points, as current versions do. The labelling configuration that
these tasks are made for:

    <View>
      <Text name="answer" value="$answer"/>
      <Labels name="label" toName="answer"><Label value="Hallucination"/></Labels>
    </View>

What the dataset asks of spans and answers becomes ``choices``, ``rating`` (scales from 1),
``number`` (other scales) and ``textarea``, of the region or of the task; see
``labelstudio_config`` for the configuration with all of these.

Label Studio has no place for rejected suggestions, claims, evidence and hard labels, nor for
"failed" and "not annotated": those annotations are left out, because an empty one would say that
nothing was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from spanlab.datasets.formats.labelstudio_config import LABEL
from spanlab.datasets.reader import check_meta
from spanlab.errors import InputError
from spanlab.schema import (
    UNDETERMINED,
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    Item,
    Question,
    Record,
    Response,
    Responses,
    Span,
    Status,
)

_PEOPLE = frozenset({AnnotatorKind.PERSON, AnnotatorKind.GOLD})


def tasks(records: Iterable[Record], settings: DatasetSettings) -> Iterator[bytes]:
    """Yield one task per record, as JSON.

    Responses that the settings of the dataset do not allow are left out.

    Raises:
        InputError: a text holds a lone surrogate, or meta a number that is not finite.
    """
    for record in records:
        try:
            yield to_json(_task(record, settings))
        except PydanticSerializationError as error:
            raise InputError(
                f"item {record.item.id!r} cannot be written as UTF-8: {error}",
                expected="Unicode text without lone surrogates",
            ) from error


def _task(record: Record, settings: DatasetSettings) -> dict[str, Any]:
    annotations: list[dict[str, Any]] = []
    predictions: list[dict[str, Any]] = []
    for index, annotation in enumerate(record.annotations):
        if annotation.kind in _PEOPLE and annotation.status in (Status.DONE, Status.SKIPPED):
            annotations.append(_person(annotation, index, settings))
        elif annotation.status is Status.DONE:
            predictions.append(_model(annotation, index, settings))
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


def _person(annotation: Annotation, index: int, settings: DatasetSettings) -> dict[str, Any]:
    # Label Studio refuses a `completed_by` that is not one of its users and ignores
    # `created_username`, which it writes itself; so the name is kept without being in the way.
    return {
        "created_username": annotation.annotator,
        "was_cancelled": annotation.status is Status.SKIPPED,
        "ground_truth": annotation.kind is AnnotatorKind.GOLD,
        "result": _results(annotation, index, settings),
    }


def _model(annotation: Annotation, index: int, settings: DatasetSettings) -> dict[str, Any]:
    out: dict[str, Any] = {
        "model_version": annotation.annotator,
        "result": _results(annotation, index, settings),
    }
    if annotation.spans:
        out["score"] = max(span.prob for span in annotation.spans)
    return out


def _results(annotation: Annotation, index: int, settings: DatasetSettings) -> list[dict[str, Any]]:
    found = []
    for number, span in enumerate(annotation.spans):
        name = f"{index}-{number}"
        region = _region(span, name, scored=annotation.kind is not AnnotatorKind.PERSON)
        place = {key: value for key, value in region["value"].items() if key != "labels"}
        asked = [one for one in settings.attributes if one.is_asked_of(span.label)]
        attributes = _responses(asked, span.attributes, place)
        found += [region, *({"id": name, **attribute} for attribute in attributes)]
    whole = _responses(settings.questions, annotation.responses, {})
    return [*found, *({"id": f"{index}-{response['from_name']}", **response} for response in whole)]


def _responses(
    questions: Sequence[Question], responses: Responses, place: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for question in questions:
        given = responses.get(question.name)
        if given is not None and question.problem(given) is None:
            type_, value = _value(question, given)
            head = {"from_name": question.name, "to_name": "answer", "type": type_}
            yield {**head, "value": {**place, **value}}


def _value(question: Question, given: Response) -> tuple[str, dict[str, Any]]:
    if question.kind == "choice":
        return "choices", {"choices": [given]}
    if question.kind == "text":
        return "textarea", {"text": [given]}
    name = "rating" if question.low == 1 else "number"
    return name, {name: given}


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
