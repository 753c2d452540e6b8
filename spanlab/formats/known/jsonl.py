"""Our own JSON Lines, lossless.

One record per line. The item's fields stand at the top, its annotations in ``annotations``:

    {"id": …, "lang": …, "question": …, "answer": …, "passages": [{"text": …}],
     "process": {"nodes": [{"id": …, "text": …, "stage": …, "sources": […]}]},
     "retrievals": [{"retriever": …, "queries": […], "passages": […], "query": …}],
     "citations": [{"start": …, "end": …, "passages": […]}], "meta": {…},
     "annotations": [{"annotator": …, "kind": …, "status": …,
                      "spans": [{"start": …, "end": …, "text": …, "prob": …, "label": …, "note": …,
                                 "source": …, "voters": [name, …],
                                 "evidence": [{"passage": …, "start": …, "end": …,
                                               "text": …, "stance": …, "note": …}],
                                 "attributes": {name: value, …}}],
                      "hard": [{"start": …, "end": …}], "rejected": [span, …],
                      "claims": [{"text": …, "source": span, "verdict": …, "prob": …,
                                  "evidence": […], "note": …, "error_stages": […],
                                  "suggested_by": …, "voters": [name, …]}],
                      "rejected_claims": [claim, …],
                      "voters": [name, …], "decided_by": …, "note": …,
                      "trace": [{"kind": …, …}], "guidelines": …,
                      "responses": {name: value, …}}]}

What a dataset asks its annotators stands before all, as {"asks": {"attributes": […], "questions":
[…]}}, and an import makes it what the new dataset asks.

A process that is large, or that several items came from, stands before them, node by node: see
``node_lines``.

Written are ``passages`` as objects; texts and objects of other names for the text are read, too,
as are whole numbers as ids, languages in capitals, and null for what is absent.

``id``, ``lang``, ``question``, ``answer``, ``annotator``, ``kind``, ``status``, ``spans`` and a
span's ``start``, ``end``, ``text`` and ``prob`` are always written, the rest where it says
something. ``hard`` absent and ``hard`` empty differ: "those above 0.5" and "none".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from spanlab.base.errors import InputError
from spanlab.doors import Export
from spanlab.formats import reader
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.known.node_lines import NodeLines, node_lines
from spanlab.formats.read_options import ReadOptions
from spanlab.formats.reader import (
    FormatEntry,
    Preamble,
    check_meta,
    input_error,
    language,
    parse_list,
    passages_of,
)
from spanlab.formats.vocabulary import words_in
from spanlab.schema import (
    Annotation,
    Citation,
    Claim,
    DatasetSettings,
    Evidence,
    Interval,
    Item,
    Passage,
    Process,
    ProcessNode,
    Question,
    Record,
    SharedProcess,
    Span,
)


class _RecordLine(Item):
    """A line as it stands in the file: the item's fields and its annotations side by side."""

    annotations: tuple[Annotation, ...] = ()


_OURS_ALONE = frozenset(("annotations", "process", "retrievals"))
_ASKS = "asks"
_MODELS = frozenset(words_in("columns", "model"))
_FIELDS = frozenset(Item.model_fields) | _OURS_ALONE | {_ASKS}


class SpanlabReader(reader.FormatReader):
    """Reads our own JSON Lines."""

    signatures = (
        frozenset(("id", "answer")),
        frozenset(("process", "node")),
        frozenset((_ASKS,)),
    )

    @staticmethod
    def is_somebody_elses(record: Mapping[str, object]) -> bool:
        """Say whether a record that has our fields is another's: more fields, or other values."""
        foreign = not record.keys() <= _FIELDS and not record.keys() & _OURS_ALONE
        is_listed = isinstance(record.get("answer"), list)
        cited = record.get("citations")
        if isinstance(cited, list) and not all(map(is_citation, cited)):
            return True  # as APIs and TREC have them
        return foreign or is_listed or isinstance(record.get("meta"), str)

    @staticmethod
    def has_bare_spans(record: Mapping[str, object]) -> bool:
        """Say whether a record's annotations are places, without who says so: another's, too."""
        marks = record.get("annotations")
        return isinstance(marks, list) and any(
            isinstance(mark, Mapping) and {"start", "end"} <= mark.keys() for mark in marks
        )

    @property
    def fields(self) -> Mapping[str, str]:
        """Every field is read as what it is called: nothing is left out."""
        return {"lang": "language", "retrievals": "passages"} | {
            name: name for name in _FIELDS - {"lang", "retrievals", _ASKS}
        }

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._nodes = NodeLines(file.name, file.limit)
        self._stem = PurePath(file.name).name.split(".")[0]

    def rows(self) -> Iterator[FileRow]:
        """Yield the lines of records; those of nodes are kept until their items come."""
        for row in self._file.rows():
            if row.line == 1 and row.beginning.startswith(_ASKS_LINE):
                self._options.on_questions(asked_by(row, self._file.name))
            elif not self._nodes.collect(row):
                yield row

    def keeps_answer(self, record: Record) -> bool:
        """Say that what somebody has worked on here stays as it was."""
        return bool(record.annotations)

    def _remarks(self) -> Iterator[str]:
        for name in self._nodes.unused():
            yield f"no item came from the process {name!r}: it is left out"

    def _record(self, row: FileRow) -> Record:
        record = self._read(row)
        if not isinstance(record.item.process, SharedProcess):
            return record
        process = self._nodes.with_nodes(record.item.process)
        item = record.item.model_copy(update={"process": process})
        return record.model_copy(update={"item": item})

    def _read(self, row: FileRow) -> Record:
        """Return a row's record; one that people typed is read as they mean it.

        Nothing is looked at twice in a file of ours, which is valid as it stands.
        """
        try:
            return loads(row.raw)
        except InputError as error:
            if (typed := _as_meant(row.raw, f"{self._stem}-{row.line}")) is None:
                raise error from None
            return loads(typed)


def is_citation(value: object) -> bool:
    """Say whether a value has the fields of an item's citation, and no others."""
    return isinstance(value, Mapping) and value.keys() == Citation.model_fields.keys()


_ASKS_LINE = b'{"asks":'


def questions_line(settings: DatasetSettings) -> bytes:
    """Return the line that says what a dataset asks of spans and answers; none if nothing is."""
    asked = settings.model_dump(include={"attributes", "questions"}, exclude_defaults=True)
    return to_json({_ASKS: asked}) + b"\n" if asked else b""


def asked_by(row: FileRow, file: str) -> dict[str, tuple[Question, ...]]:
    """Return what such a line says; raises InputError for one that is broken."""
    try:
        line = _QuestionsLine.model_validate_json(row.raw)
    except ValidationError as error:
        raise input_error(error).at(file=file, line=row.line, unit=row.unit) from None
    return {"attributes": line.asks.attributes, "questions": line.asks.questions}


class _Asked(BaseModel):
    attributes: tuple[Question, ...] = ()
    questions: tuple[Question, ...] = ()


class _QuestionsLine(BaseModel):
    asks: _Asked


def _as_meant(line: bytes, name: str) -> bytes | None:
    """Return a line with its item's fields in our form; None if it is no object.

    Passages may be texts, an id a whole number or null, which is ``name``, a language in capitals,
    and null says nothing elsewhere. What names the model goes into meta. What marks an answer
    (``annotations``, ``process``, ``retrievals``) stays as it stands.
    """
    try:
        fields = from_json(line)
    except ValueError:
        return None
    if not isinstance(fields, dict):
        return None
    unnamed = {"id": name} if fields.get("id", "") is None else {}
    fields = {key: value for key, value in fields.items() if value is not None} | unnamed
    number = fields.get("id")
    if isinstance(number, int | float) and not isinstance(number, bool):
        fields["id"] = str(int(number)) if float(number).is_integer() else str(number)
    if isinstance(fields.get("lang"), str) and re.fullmatch(r"[\w-]+", fields["lang"]):
        fields["lang"] = language(fields["lang"])
    models = [key for key in fields if key.replace("_", " ") in _MODELS]
    if models and isinstance(meta := fields.get("meta", {}), dict):
        fields["meta"] = {key: fields.pop(key) for key in models} | meta
    if "passages" in fields:
        passages = passages_of(parse_list(fields["passages"]), "passages")
        fields["passages"] = [passage.model_dump(exclude_none=True) for passage in passages]
    return to_json(fields)


def loads(line: bytes | str) -> Record:
    """Return the record that one line of JSON holds, validated.

    Raises:
        InputError: names the field, what was found and what would be right.
    """
    try:
        record = _record(_RecordLine.model_validate_json(line))
    except ValidationError as error:
        raise input_error(error) from None
    if record.item.meta:
        check_meta(record.item.meta)
    return record


def _record(line: _RecordLine) -> Record:
    """Return the record of a line that nobody else uses: it becomes the item."""
    annotations = line.__dict__.pop("annotations")
    line.__pydantic_fields_set__.discard("annotations")
    # All its fields are validated: a new item of the same fields would take a tenth of the read.
    object.__setattr__(line, "__class__", Item)
    return Record.of_valid(line, annotations)


def dumps(record: Record) -> bytes:
    """Return ``record`` as one line of UTF-8 JSON that ends in a newline.

    Raises:
        InputError: a text holds a lone surrogate, or meta a number that is not finite.
    """
    item = record.item
    if item.meta:
        check_meta(item.meta)
    line = _plain(item)
    if record.annotations:
        line["annotations"] = _plain(record.annotations)
    try:
        return to_json(line) + b"\n"
    except PydanticSerializationError as error:
        raise InputError(
            f"item {item.id!r} cannot be written as UTF-8: {error}",
            expected="Unicode text without lone surrogates",
        ) from error


# What is always written of each, before what differs from its default.
_ALWAYS: Final[Mapping[type[BaseModel], tuple[str, ...]]] = {
    Item: ("id", "lang", "question", "answer"),
    Passage: ("text",),
    Process: ("nodes",),
    ProcessNode: ("id", "text"),
    Annotation: ("annotator", "kind", "status", "spans"),
    Span: ("start", "end", "text", "prob"),
    Interval: ("start", "end"),
    Claim: ("text",),
    Evidence: ("passage", "start", "end", "text", "stance"),
}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; trace steps and the like without what is as usual."""
    if isinstance(value, tuple):
        return list(map(_plain, value)) if value else []
    always = _ALWAYS.get(type(value))
    if always is None:
        return value.model_dump(exclude_defaults=True) if isinstance(value, BaseModel) else value
    kind: type[BaseModel] = type(value)
    fields = value.__dict__
    out = {name: _plain(fields[name]) for name in always}
    for name, default in _optional(kind):
        if (inner := fields[name]) != default:
            out[name] = _plain(inner)
    return out


@cache
def _optional(kind: type[BaseModel]) -> Sequence[tuple[str, Any]]:
    """Return the fields that are not always written, with their defaults."""
    fields = kind.model_fields.items()
    optional = ((name, field) for name, field in fields if name not in _ALWAYS[kind])
    return [(name, field.get_default(call_default_factory=True)) for name, field in optional]


def chunks(records: Iterable[Record], settings: DatasetSettings) -> Iterator[bytes]:
    """Yield the line of each record, behind what the dataset asks and shared processes' nodes."""
    if asked := questions_line(settings):
        yield Preamble(asked)
    written_ids: set[str] = set()
    for record in records:
        process = record.item.process
        if isinstance(process, SharedProcess) and process.id not in written_ids:
            written_ids.add(process.id)
            yield from map(Preamble, node_lines(process))
        yield dumps(record)


FORMAT = FormatEntry(
    name="spanlab",
    title="spanlab JSONL",
    reader=SpanlabReader,
    chunks=chunks,
    asks=True,
    endings=(".jsonl", ".ndjson"),
    export=Export("spanlab JSONL", "Everything, lossless; can be imported again."),
    order=10,
)
