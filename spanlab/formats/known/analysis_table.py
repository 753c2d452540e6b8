"""Tables for analysis: CSV and parquet with a row for each item and annotator.

An item that nobody has annotated has a row without an annotator. What is a list (passages, spans,
claims) is one in parquet and JSON in CSV. Read again, the rows of an item become one record with
all its annotators; evidence, traces and what was rejected are in our own format alone.

Each question of the dataset has a column ``response_NAME``, and what was responded on a span is
JSON in its ``attributes``. Responses that do not fit a question of today are in our own format.
What the questions are is in the schema of parquet, and not in CSV.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count, groupby, islice
from operator import itemgetter
from typing import Any, BinaryIO, NamedTuple

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from spanlab.base.errors import InputError
from spanlab.formats.known import jsonl
from spanlab.formats.limits import too_large, weight
from spanlab.formats.reader import WrittenDataset
from spanlab.output.csv_text import further_columns, write_rows
from spanlab.schema import Annotation, DatasetSettings, Item, Question, Record, Responses, Span

SAID = (
    *("annotator", "kind", "status", "spans", "hard", "claims", "note"),
    *("hallucinated", "answer_hallucinated", "answer_prob"),
)
COLUMNS = ("id", "lang", "question", "answer", "passages", "citations", *SAID, "meta")
_PLACE = {"start": int, "end": int}
# What is in the columns that are no texts.
LISTS: dict[str, Any] = {
    "hallucinated": bool,
    "answer_hallucinated": bool,
    "answer_prob": float,
    "passages": [dict.fromkeys(("text", "title", "url", "date"), str)],
    "spans": [
        {
            **_PLACE,
            **{"text": str, "prob": float, "label": str, "note": str, "attributes": str},
        }
    ],
    "hard": [_PLACE],
    "claims": [{"text": str, "verdict": str, "prob": float, **_PLACE, "note": str}],
}
# Which earlier versions did not write; ``hallucinated`` follows from the other verdicts.
_LATER = frozenset({"citations", "hard", "hallucinated", "answer_hallucinated", "answer_prob"})
_NESTED = frozenset(
    ("passages", "spans", "hard", "claims", "meta", "responses", "attributes", *_LATER)
)

# What a cell is read as a number or JSON by.
_INT_OR_JSON = re.compile(r'-?\d+$|".*"$', re.DOTALL)
_RESPONSE = "response_"  # begins the names of columns of responses
_ROWS = 500  # of parquet that are held at once
ASKED = b"spanlab"  # where a schema says what the dataset asks, as the first line of our JSONL does


def item_columns(item: Item) -> dict[str, Any]:
    """Return an item's columns; ``meta`` as JSON, since every item may have other keys."""
    return {
        "id": item.id,
        "lang": item.lang,
        "question": item.question,
        "answer": item.answer,
        "passages": [passage.model_dump() for passage in item.passages],
        "citations": to_json(item.citations).decode() if item.citations else None,
        "meta": to_json(item.meta).decode(),
    }


def annotation_columns(annotation: Annotation) -> dict[str, Any]:
    """Return an annotation's columns, every one of them always there."""
    said = annotation.__dict__ | {
        "kind": annotation.kind.value,
        "status": annotation.status.value,
        "spans": [
            _part("spans", span, attributes=_json(span.attributes)) for span in annotation.spans
        ],
        "hard": None if annotation.hard is None else [p.model_dump() for p in annotation.hard],
        "claims": [_part("claims", claim, **_place(claim.source)) for claim in annotation.claims],
        "hallucinated": annotation.hallucinated,
        "responses": _json(annotation.responses),
    }
    return {name: said[name] for name in (*SAID, "responses")}


def _part(column: str, part: BaseModel, **more: Any) -> dict[str, Any]:
    """Return a span or claim with the fields that it has in a column."""
    said = part.__dict__ | more
    return {name: said[name] for name in LISTS[column][0]}


def _place(source: Span | None) -> dict[str, int | None]:
    return {name: getattr(source, name, None) for name in _PLACE}


def csv_chunks(records: Iterable[Record], settings: DatasetSettings) -> Iterator[bytes]:
    """Yield the rows of each record as CSV; the header comes with the first."""
    questions = settings.questions
    columns = (*_columns(questions), *further_columns())
    header = [columns]
    for record in records:
        text = io.StringIO(newline="")
        rows = _fitted_rows(record, questions)
        cells = ([_cell(row.get(name)) for name in columns] for row in rows)
        write_rows(text, [*header, *cells], line_end="\r\n")
        header = []
        yield text.getvalue().encode()


def write_parquet(records: Iterable[Record], stream: BinaryIO, dataset: WrittenDataset) -> int:
    """Write records as parquet, some hundred rows at a time; returns how many records."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    questions = dataset.settings.questions
    counter = count()
    asked = jsonl.questions_line(dataset.settings)
    schema = _schema(pa, questions).with_metadata({ASKED: asked} if asked else None)
    with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        counted = map(itemgetter(0), zip(records, counter, strict=False))
        rows = (row for record in counted for row in _fitted_rows(record, questions))
        while chunk := list(islice(rows, _ROWS)):
            writer.write_table(pa.Table.from_pylist(chunk, schema=schema))
    return next(counter)


class CellsRow(NamedTuple):
    """A row of a table: where it stands, and its cells by column, or why it cannot be read."""

    line: int
    cells: Mapping[str, Any]
    refused: InputError | None = None


def is_table(columns: Collection[str]) -> bool:
    """Say whether a table has the columns of those that are written here."""
    return set(COLUMNS) - _LATER <= set(columns)


def join_rows_of_items(rows: Iterable[CellsRow], limit: int) -> Iterator[CellsRow]:
    """Join the rows of each item, which follow each other: one with all its ``annotations``.

    Args:
        rows: of a table with our columns.
        limit: bytes of memory that an item may take; what is larger is refused.
    """
    for _, same in groupby(rows, key=lambda row: row.cells["id"] if row.cells else row.line):
        first_row = next(same)
        if first_row.refused is not None:
            yield first_row
            continue
        own_rows: list[Mapping[str, Any]] = []
        size = 0
        for row in chain([first_row], same):
            if row.cells["annotator"] and size <= limit:
                mine = {name: row.cells.get(name) for name in SAID}
                own_rows.append({**mine, "responses": _responses(row.cells)})
                size += weight(to_json(own_rows[-1]))
        item = {name: value for name, value in first_row.cells.items() if name not in SAID}
        refused = too_large("the item with all its annotations", limit) if size > limit else None
        yield CellsRow(first_row.line, {**item, "annotations": own_rows}, refused)


def is_own(cells: Mapping[str, Any]) -> bool:
    """Say whether a record has an item's columns and a list of annotations in theirs."""
    listed = cells.get("annotations")
    if not isinstance(listed, list) or not set(COLUMNS) - _LATER - set(SAID) <= cells.keys():
        return False
    said = set(SAID) - _LATER
    return all(isinstance(one, dict) and said <= one.keys() for one in listed)


def record_of(cells: Mapping[str, Any]) -> Record:
    """Return the record whose columns these are.

    Raises:
        InputError: one of them holds something that it cannot; names it.
    """
    item = {name: _parse_nested(name, cells.get(name)) for name in COLUMNS if name not in SAID}
    for name in ("id", "question", "answer"):
        if type(item[name]) is int:  # as pandas reads what looks like numbers
            item[name] = str(item[name])
    rows = [
        {
            name: _parse_nested(name, annotation.get(name))
            for name in (*SAID, "responses")
            if name != "hallucinated"
        }
        for annotation in cells["annotations"]
    ]
    for annotation in rows:
        for span in annotation["spans"] if isinstance(annotation["spans"], list) else ():
            if isinstance(span, dict):
                span["attributes"] = _parse_nested("attributes", span.get("attributes"))
        if isinstance(annotation["claims"], list):
            annotation["claims"] = [_claim(claim, item["answer"]) for claim in annotation["claims"]]
    return jsonl.loads(to_json({**_without_nones(item), "annotations": _without_nones(rows)}))


def _parse_nested(name: str, value: Any) -> Any:
    """Return a cell's value, from JSON where that is a list or object and the cell a text."""
    if name == "note":
        return value or None  # in CSV the two are the same
    if name not in _NESTED or not isinstance(value, str):
        return value
    try:
        return from_json(value, allow_inf_nan=False) if value else None
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}", field=name, found=value) from None


def _claim(claim: Any, answer: Any) -> Any:
    """Return a claim as our own format has it, where it stands as a quote."""
    if not isinstance(claim, dict) or claim.get("start") is None:
        return claim
    start, end = claim["start"], claim.get("end")
    is_extent = isinstance(answer, str) and isinstance(start, int) and isinstance(end, int)
    source = {"start": start, "end": end, "text": answer[start:end] if is_extent else None}
    fields = {name: value for name, value in claim.items() if name not in {"start", "end"}}
    return {**fields, "source": source}


def _without_nones(value: Any) -> Any:
    """Return a value without the fields that are None, at any depth but in ``meta``."""
    if isinstance(value, list):
        return [_without_nones(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    filled = {name: inner for name, inner in value.items() if inner is not None}
    return {
        name: _without_nones(inner) if name != "meta" else inner for name, inner in filled.items()
    }


def table_rows(record: Record) -> Iterator[dict[str, Any]]:
    """Yield a row for each annotation of a record; without one, a row of the item alone."""
    item = item_columns(record.item)
    for annotation in record.annotations:
        responses = {f"{_RESPONSE}{name}": value for name, value in annotation.responses.items()}
        row = {**item, **annotation_columns(annotation), **responses}
        yield {name: value for name, value in row.items() if name != "responses"}
    if not record.annotations:
        yield item


def _json(responses: Responses) -> str | None:
    return to_json(responses).decode() if responses else None


def _columns(questions: Sequence[Question]) -> tuple[str, ...]:
    return (*COLUMNS, *(f"{_RESPONSE}{question.name}" for question in questions))


def _fitted_rows(record: Record, questions: Sequence[Question]) -> Iterator[dict[str, Any]]:
    """Yield a record's rows without the responses that the questions do not allow."""
    for row in table_rows(record):
        for question in questions:
            name = f"{_RESPONSE}{question.name}"
            if name in row and question.problem(row[name]):
                del row[name]
            elif question.kind != "scale" and _INT_OR_JSON.match(row.get(name) or ""):
                row[name] = to_json(row[name]).decode()  # or it would be read as something else
        yield row


def _responses(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the responses in a row's cells; of CSV, digits are a number and quotes JSON."""
    columns_read = {}
    for name, cell in cells.items():
        if name.startswith(_RESPONSE) and cell not in (None, ""):
            columns_read[name.removeprefix(_RESPONSE)] = cell
            if isinstance(cell, str) and _INT_OR_JSON.match(cell):
                with suppress(ValueError):  # quotes that somebody typed are a text
                    columns_read[name.removeprefix(_RESPONSE)] = from_json(cell)
    return columns_read


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else to_json(value).decode()


def _schema(pa: Any, questions: Sequence[Question]) -> Any:
    def arrow(kind: Any) -> Any:
        if isinstance(kind, list):
            return pa.list_(pa.struct([(name, arrow(inner)) for name, inner in kind[0].items()]))
        return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}[kind]

    scales = (f"{_RESPONSE}{question.name}" for question in questions if question.kind == "scale")
    kinds: dict[str, Any] = {**LISTS, **dict.fromkeys(scales, int)}
    return pa.schema([(name, arrow(kinds.get(name, str))) for name in _columns(questions)])
