"""Argilla's records: texts in ``fields``, people's responses, models' suggestions.

{"id", "fields": {name: text}, "responses": {question: [{"value", "user_id", "status"}]},
     "suggestions": {question: {"value", "agent", "score"}}, "metadata": {…}}

The server writes responses as ``[{"user_id", "status", "values": {question: {"value"}}}]`` and
suggestions as ``[{"question_name", "value", "agent"}]``; a dataset of Hugging Face has columns
``NAME.responses``, ``NAME.responses.users``, ``NAME.suggestion`` beside those of the fields. In
Argilla 1 it has columns ``NAME`` with all responses and ``NAME-suggestion``, and its older records
hold one ``annotation`` and ``prediction`` of a ``text``, with who made them (``…_agent``).

A response whose value is a list of ``{"start", "end", "label"}`` marks spans; one to a question
such as "hallucinated" is the verdict on the whole answer; others are responses to the dataset's
questions. The field that was marked is the one named like an answer, or the only one; ``submitted``
is done, ``discarded`` skipped, ``draft`` not finished.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from spanlab.base.errors import InputError
from spanlab.formats import reader
from spanlab.formats.cells import passages_in, question_in, spans_in
from spanlab.formats.files import FileRow
from spanlab.formats.guess import guess
from spanlab.formats.reader import FormatEntry, checked, text_of
from spanlab.formats.verdict_columns import verdict_in
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Response, Span, Status

_STATUS = {"submitted": Status.DONE, "discarded": Status.SKIPPED, "draft": Status.NOT_ANNOTATED}
_UNNAMED = "suggestion"
_COLUMNS = (".responses", ".suggestion")  # end the names of a question's columns
_SUGGESTED = "-suggestion"  # … and in Argilla 1
_OLD = {"annotation": "annotation_agent", "prediction": "prediction_agent"}
_OF_OLD = frozenset(
    ("text", "inputs", "tokens", "vectors", "metrics", "multi_label", "explanation")
)
_OF_RECORD = frozenset(("id", "status", "_server_id", "inserted_at", "updated_at", "metadata"))


class _Said(BaseModel):
    """A response of a person, or a suggestion of a model, to one question."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    value: JsonValue = None
    user_id: str | None = Field(None, coerce_numbers_to_str=True)
    status: str = "submitted"
    agent: str | None = None


class _ArgillaRecord(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    id: str | None = Field(None, coerce_numbers_to_str=True)
    fields: dict[str, JsonValue]
    responses: dict[str, tuple[_Said, ...]] = Field(default_factory=dict)
    suggestions: dict[str, _Said] = Field(default_factory=dict)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class ArgillaReader(reader.FormatReader):
    """Reads records, one an item."""

    signatures = (frozenset(("fields", "responses")), frozenset(("fields", "suggestions")))
    before = frozenset(("spanlab",))  # a field of theirs may be called answer

    @classmethod
    def recognises(cls, record: Mapping[str, object]) -> bool:
        """Say whether a record has its texts in an object, or columns of responses."""
        is_object = super().recognises(record) and isinstance(record["fields"], dict)
        is_old = _OLD.keys() <= record.keys() and "annotation_agent" in record
        has_columns = any(name.endswith((*_COLUMNS, _SUGGESTED)) for name in record)
        return is_object or is_old or has_columns or any(map(_are_responses, record.values()))

    def _record(self, row: FileRow) -> Record:
        line = _ArgillaRecord.model_validate(_nested(row.value))
        names = guess(tuple(line.fields), [line.fields])
        field = names.get("answer") or next(iter(line.fields)) if line.fields else "fields"
        answer = text_of(line.fields.get(field)) or ""
        if not answer:
            raise InputError("there is no text", field=f"fields.{field}", expected="a text")
        context = names.get("passages", "")
        rest = {k: v for k, v in line.fields.items() if k not in names.values() and k != field}
        item = checked(
            Item(
                id=line.id or f"record-{row.line}",
                question=question_in(line.fields.get(names.get("question", ""))),
                answer=answer,
                passages=passages_in(line.fields.get(context), f"fields.{context}"),
                meta={**line.metadata, **rest},
            )
        )
        return Record(item=item, annotations=tuple(_annotations(line, answer)))


def _nested(given: Any) -> Any:
    """Return a record of the server, or a row of a dataset, in the form that the client writes."""
    if not isinstance(given, Mapping):
        return given
    record = {**given, "metadata": _metadata(given)}
    if "fields" not in given:
        record = _of_old(record) if _OLD.keys() <= given.keys() else _of_columns(record)
    if isinstance(said := record.get("responses"), list):
        responses: dict[str, list[Any]] = {}
        for person in said:
            about = {name: person.get(name) for name in ("user_id", "status")}
            for question, value in (person.get("values") or {}).items():
                responses.setdefault(question, []).append({**value, **about})
        record["responses"] = responses
    if isinstance(said := record.get("suggestions"), list):
        record["suggestions"] = {s.get("question_name") or str(n): s for n, s in enumerate(said)}
    return record


def _of_old(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as Argilla 1 had them before its datasets for feedback."""
    inputs = record.get("inputs")
    texts = inputs if isinstance(inputs, dict) else {"text": record.get("text") or inputs}
    label, found = (_old_value(record[name]) for name in _OLD)
    taken = {*_OF_OLD, *_OF_RECORD, *_OLD, *_OLD.values()}
    rest = {name: value for name, value in record.items() if name not in taken and value}
    said = [] if label is None else [{"value": label, "user_id": record.get("annotation_agent")}]
    by = {"value": found, "agent": record.get("prediction_agent")}
    return {
        "id": record.get("id"),
        "fields": texts,
        "responses": {"annotation": said},
        "suggestions": {} if found is None else {"prediction": by},
        "metadata": {**record["metadata"], **rest},
    }


def _old_value(value: Any) -> Any:
    """Return spans, ``[label, start, end, score]`` or so, as objects; of classes the likeliest."""
    if not isinstance(value, list) or not value:
        return value
    names = ("label", "start", "end")
    parts = [dict(zip(names, p, strict=False)) if isinstance(p, list) else p for p in value]
    if all(isinstance(part, dict) and isinstance(part.get("end"), int) for part in parts):
        return parts
    return parts[0].get("label") if isinstance(parts[0], dict) else parts[0]


def _of_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    questions = {name.rpartition(".")[0] for name in row if name.endswith(_COLUMNS)}
    questions |= {name.removesuffix(_SUGGESTED) for name in row if name.endswith(_SUGGESTED)}
    questions |= {name for name, value in row.items() if _are_responses(value)}
    suggested = tuple(f"{question}{_SUGGESTED}" for question in questions)
    own = {
        name: value
        for name, value in row.items()
        if name.partition(".")[0] not in questions and not name.startswith(suggested)
    }
    return {
        "id": row.get("id"),
        "fields": {name: value for name, value in own.items() if name not in _OF_RECORD},
        "responses": {question: _responses_in(row, question) for question in questions},
        "suggestions": {
            question: {"value": value, "agent": row.get(f"{question}.suggestion.agent")}
            for question in questions
            for name in (f"{question}.suggestion", f"{question}{_SUGGESTED}")
            if (value := row.get(name)) is not None
        },
        "metadata": row["metadata"],
    }


def _responses_in(row: Mapping[str, Any], question: str) -> list[Any]:
    """Return the responses to a question, which stand in one column or in several."""
    if isinstance(said := row.get(question), list):
        return said
    columns = (row.get(f"{question}.responses{part}") or () for part in ("", ".users", ".status"))
    names = ("value", "user_id", "status")
    said_by = (zip(names, said, strict=True) for said in zip_longest(*columns))
    return [{name: part for name, part in said if part is not None} for said in said_by]


def _metadata(record: Mapping[str, Any]) -> Any:
    """Return a record's metadata, which datasets of Argilla 1 hold as JSON in a text."""
    held = record.get("metadata") or {}
    if isinstance(held, str):
        try:
            held = json.loads(held)
        except ValueError:
            held = {"metadata": held}
    return held


def _are_responses(value: object) -> bool:
    """Say whether a column has people's responses as Argilla 1 wrote them."""
    names = {"user_id", "value", "status"}
    said = value if isinstance(value, list) else []
    return bool(said) and all(isinstance(one, dict) and names == one.keys() for one in said)


def _annotations(line: _ArgillaRecord, answer: str) -> Iterator[Annotation]:
    """Yield what each person and each model said of a record, of all its questions together."""
    by_person: dict[str, dict[str, _Said]] = {}
    for question, responses in line.responses.items():
        for number, said in enumerate(responses, start=1):
            by_person.setdefault(said.user_id or f"annotator {number}", {})[question] = said
    for name, said_of in by_person.items():
        yield _annotation(name, AnnotatorKind.PERSON, said_of, answer, "responses")
    by_model: dict[str, dict[str, _Said]] = {}
    for question, said in line.suggestions.items():
        by_model.setdefault(said.agent or _UNNAMED, {})[question] = said
    for name, said_of in by_model.items():
        yield _annotation(name, AnnotatorKind.DETECTOR, said_of, answer, "suggestions")


def _annotation(
    name: str, kind: AnnotatorKind, said_of: Mapping[str, _Said], answer: str, where: str
) -> Annotation:
    spans: list[Span] = []
    responses: dict[str, Response] = {}
    verdict: bool | None = None
    for question, said in said_of.items():
        if isinstance(said.value, list):
            spans += spans_in(said.value, f"{where}.{question}.value", answer)
        elif (called := verdict_in(question, said.value)) is not None:
            verdict = called
        elif isinstance(said.value, str | int):
            responses[question] = said.value
    statuses = {_STATUS.get(said.status, Status.DONE) for said in said_of.values()}
    status = Status.DONE if Status.DONE in statuses else next(iter(statuses))
    return Annotation(
        annotator=name,
        kind=kind,
        status=status,
        answer_hallucinated=verdict,
        spans=tuple(spans),
        responses=responses,
    )


FORMAT = FormatEntry(name="argilla", title="Argilla", reader=ArgillaReader, order=60)
