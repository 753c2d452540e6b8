"""Label Studio: the tasks that it imports, and its labelling configuration, both ways.

Annotations of persons, and gold labels, become annotations; those of detectors and votes become
predictions. Offsets count code points, as current versions do. What the dataset asks of spans and
answers becomes ``choices``, ``rating`` (scales from 1), ``number`` (other scales) and ``textarea``,
of the region or of the task. The configuration that these tasks are made for:

    <View>
      <Text name="question" value="$question"/>
      <Text name="context" value="$context_shown"/>
      <Text name="answer" value="$answer"/>
      <Labels name="label" toName="answer"><Label value="unsupported"/></Labels>
      <Header value="How severe is it?"/>
      <Choices name="severity" toName="answer" perRegion="true" whenLabelValue="unsupported"
               required="true"><Choice value="minor"/><Choice value="major"/></Choices>
      <Rating name="fluency" toName="answer" maxRating="5"/>
      <Choices name="hallucinated" toName="answer"><Choice value="hallucinated"/>
               <Choice value="not hallucinated"/></Choices>
    </View>

``context_shown`` holds the passages as people see them, ``spanlab`` who an annotation is by, its
note, its hard labels and which spans have no label, which come back with an export. A header gives
the control after it its title; the titles of a scale's ends have no place there. The choice
``hallucinated`` is the verdict on the whole answer, where that is said.

Label Studio has no place for rejected suggestions, claims and evidence, nor for "failed" and "not
annotated": those annotations are left out, because an empty one would say that nothing was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from spanlab.base.errors import InputError, UsageError
from spanlab.base.fields import message_of
from spanlab.formats.known.labelstudio_tasks import LABEL, OWN, SHOWN, OwnAnnotation
from spanlab.formats.reader import check_meta
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
    data = _data(record.item)
    if record.annotations:
        data[OWN] = [_own(annotation) for annotation in record.annotations]
    return {"data": data, "annotations": annotations, "predictions": predictions}


def _own(annotation: Annotation) -> dict[str, Any]:
    """Return what Label Studio has no place for, and forgets: who it is by, and its note."""
    hard = annotation.hard
    places = tuple((span.start, span.end) for span in annotation.spans)
    return OwnAnnotation(
        name=annotation.annotator,
        kind=annotation.kind,
        status=annotation.status,
        note=annotation.note,
        answer_prob=annotation.answer_prob,
        unlabelled=tuple(n for n, span in enumerate(annotation.spans) if span.label is None),
        hard=None if hard is None else tuple((part.start, part.end) for part in hard),
        places=() if hard is None else places,
    ).model_dump(exclude_defaults=True)


def _data(item: Item) -> dict[str, Any]:
    check_meta(item.meta)
    shown = (f"{p.title}\n{p.text}" if p.title else p.text for p in item.passages)
    data: dict[str, Any] = {
        "id": item.id,
        "answer": item.answer,
        "question": item.question,
        SHOWN: "\n\n".join(shown),
    }
    more = {
        "lang": "" if item.lang == UNDETERMINED else item.lang,
        "passages": [passage.model_dump(exclude_none=True) for passage in item.passages],
        "citations": [citation.model_dump() for citation in item.citations],
        "meta": item.meta,
    }
    return data | {name: value for name, value in more.items() if value}


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
    if annotation.spans or annotation.answer_hallucinated is not None:
        out["score"] = annotation.hallucination_prob
    return out


def _results(annotation: Annotation, index: int, settings: DatasetSettings) -> list[dict[str, Any]]:
    results = []
    for number, span in enumerate(annotation.spans):
        name = f"{index}-{number}"
        region = _region(span, name, scored=annotation.kind is not AnnotatorKind.PERSON)
        place = {key: value for key, value in region["value"].items() if key != "labels"}
        questions = [
            attribute for attribute in settings.attributes if attribute.is_asked_of(span.label)
        ]
        attributes = _responses(questions, span.attributes, place)
        results += [region, *({"id": name, **attribute} for attribute in attributes)]
    answer_responses = [*_responses(settings.questions, annotation.responses, {})]
    if annotation.answer_hallucinated is not None:
        choice = VERDICTS[0] if annotation.answer_hallucinated else VERDICTS[1]
        head = {"from_name": VERDICT, "to_name": "answer", "type": "choices"}
        answer_responses.append({**head, "value": {"choices": [choice]}})
    return [
        *results,
        *({"id": f"{index}-{response['from_name']}", **response} for response in answer_responses),
    ]


def _responses(
    questions: Sequence[Question], responses: Responses, place: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for question in questions:
        if question.is_answered_in(responses):
            type_, value = _value(question, responses[question.name])
            head = {"from_name": question.name, "to_name": "answer", "type": type_}
            yield {**head, "value": {**place, **value}}


def _value(question: Question, response: Response) -> tuple[str, dict[str, Any]]:
    if question.kind == "choice":
        return "choices", {"choices": [response]}
    if question.kind == "text":
        return "textarea", {"text": [response]}
    name = "rating" if question.low == 1 else "number"
    return name, {name: response}


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


VERDICT: Final = "hallucinated"  # the name of the choice that judges the whole answer
VERDICTS: Final = ("hallucinated", "not hallucinated")
_CONTROLS: Final = frozenset({"Choices", "Rating", "Number", "TextArea"})


def labeling_config(settings: DatasetSettings, labels: Iterable[str] = ()) -> str:
    """Return the configuration that exported tasks of a dataset are made for, as XML.

    Args:
        settings: those of the dataset.
        labels: others that spans of it have.
    """
    view = ET.Element("View")
    for name, value in (("question", "$question"), ("context", f"${SHOWN}")):
        ET.SubElement(view, "Text", name=name, value=value)
    ET.SubElement(view, "Text", name="answer", value="$answer")
    marks = ET.SubElement(view, "Labels", name="label", toName="answer")
    for name in dict.fromkeys((*(label.name for label in settings.labels), *labels, LABEL)):
        ET.SubElement(marks, "Label", value=name)
    for questions, scope in (
        (settings.attributes, {"perRegion": "true"}),
        (settings.questions, {}),
    ):
        for question in questions:
            if question.title:
                ET.SubElement(view, "Header", value=question.title)
            when = {"whenLabelValue": ",".join(question.labels)} if question.labels else {}
            required = {"required": "true"} if question.required else {}
            tag, limits = _control(question)
            head = {"name": question.name, "toName": "answer"}
            control = ET.SubElement(view, tag, {**head, **scope, **when, **required, **limits})
            for option in question.options:
                ET.SubElement(control, "Choice", value=option)
    verdict = ET.SubElement(view, "Choices", name=VERDICT, toName="answer")
    for value in VERDICTS:
        ET.SubElement(verdict, "Choice", value=value)
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def questions_in_config(config: str) -> dict[str, tuple[Question, ...]]:
    """Return what a configuration asks: ``attributes`` of regions, ``questions`` of tasks.

    Raises:
        UsageError: it is no XML, declares entities, or asks what we cannot; says what.
    """
    if "<!" in config.replace("<!--", ""):
        raise UsageError("a labelling configuration declares no document type and no entities")
    try:
        view = ET.fromstring(config)  # noqa: S314 - without declarations nothing grows
    except ET.ParseError as error:
        raise UsageError(f"the labelling configuration is not XML: {error}") from error
    by_scope: dict[str, list[Question]] = {"attributes": [], "questions": []}
    title = ""
    for element in view.iter():
        if element.tag == "Header":
            title = element.get("value", "")
        elif element.tag in _CONTROLS and element.get("name") != VERDICT:
            where = "attributes" if element.get("perRegion") == "true" else "questions"
            by_scope[where].append(_question(element, title))
            title = ""
    return {where: tuple(questions) for where, questions in by_scope.items()}


def _control(question: Question) -> tuple[str, Mapping[str, str]]:
    if question.kind == "choice":
        return "Choices", {}
    if question.kind == "text":
        return "TextArea", {}
    if question.low == 1:
        return "Rating", {"maxRating": str(question.high)}
    return "Number", {"min": str(question.low), "max": str(question.high)}


def _question(element: ET.Element, title: str) -> Question:
    name = element.get("name", "")
    if element.tag == "Choices" and element.get("choice", "single").startswith("multiple"):
        raise UsageError(f"{name}: several choices at once are not asked here, only one")
    kinds: dict[str, dict[str, Any]] = {
        "Choices": {"options": tuple(choice.get("value", "") for choice in element.iter("Choice"))},
        "Rating": {"kind": "scale", "high": element.get("maxRating", "5")},
        "Number": {"kind": "scale", "low": element.get("min"), "high": element.get("max")},
        "TextArea": {"kind": "text"},
    }
    when = element.get("whenLabelValue", "")
    try:
        return Question(
            name=name,
            title=title,
            required=element.get("required") == "true",
            labels=tuple(label.strip() for label in when.split(",") if label.strip()),
            **kinds[element.tag],
        )
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, problem["loc"]))
        raise UsageError(f"<{element.tag} name={name!r}>: {field} {message_of(problem)}") from error
