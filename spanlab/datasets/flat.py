"""Tables for analysis: CSV and parquet with a row for each item and annotator.

An item that nobody has annotated has a row without an annotator. What is a list (passages, spans,
claims) is one in parquet and JSON in CSV. A table of one annotator is read back with its spans.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO

from pydantic_core import to_json

from spanlab.schema import Annotation, Item, Record, Span

COLUMNS = (
    "id",
    "lang",
    "question",
    "answer",
    "passages",
    "annotator",
    "kind",
    "status",
    "spans",
    "claims",
    "note",
    "meta",
)
_ROWS = 500  # of parquet that are held at once


def item_columns(item: Item) -> dict[str, Any]:
    """Return an item's columns; ``meta`` as JSON, since every item may have other keys."""
    return {
        "id": item.id,
        "lang": item.lang,
        "question": item.question,
        "answer": item.answer,
        "passages": [passage.model_dump() for passage in item.passages],
        "meta": to_json(item.meta).decode(),
    }


def annotation_columns(annotation: Annotation) -> dict[str, Any]:
    """Return an annotation's columns, every one of them always there."""
    return {
        "annotator": annotation.annotator,
        "kind": annotation.kind.value,
        "status": annotation.status.value,
        "spans": [_span(span) for span in annotation.spans],
        "claims": [
            {
                "text": claim.text,
                "verdict": claim.verdict,
                "prob": claim.prob,
                "start": None if claim.source is None else claim.source.start,
                "end": None if claim.source is None else claim.source.end,
                "note": claim.note,
            }
            for claim in annotation.claims
        ],
        "note": annotation.note,
    }


def csv_chunks(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the rows of each record as CSV; the header comes with the first."""
    header = [COLUMNS]
    for record in records:
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerows(header)
        writer.writerows([_cell(row.get(name)) for name in COLUMNS] for row in _rows(record))
        header = []
        yield text.getvalue().encode()


def write_parquet(records: Iterable[Record], stream: BinaryIO) -> int:
    """Write records as parquet, some hundred rows at a time; returns how many records."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    counter = _Counted(records)
    schema = _schema(pa)
    with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        rows = (row for record in counter for row in _rows(record))
        while some := list(islice(rows, _ROWS)):
            writer.write_table(pa.Table.from_pylist(some, schema=schema))
    return counter.count


class _Counted:
    """Records, counted as they are taken."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.count = 0
        self._records = records

    def __iter__(self) -> Iterator[Record]:
        for record in self._records:
            self.count += 1
            yield record


def _rows(record: Record) -> Iterator[dict[str, Any]]:
    item = item_columns(record.item)
    for annotation in record.annotations:
        yield {**item, **annotation_columns(annotation)}
    if not record.annotations:
        yield item


def _span(span: Span) -> dict[str, Any]:
    return {
        "start": span.start,
        "end": span.end,
        "text": span.text,
        "prob": span.prob,
        "label": span.label,
        "note": span.note,
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else to_json(value).decode()


def _schema(pa: Any) -> Any:
    text, offset, number = pa.string(), pa.int64(), pa.float64()
    passage = pa.struct([(name, text) for name in ("text", "title", "url", "date")])
    place = [("start", offset), ("end", offset)]
    said = [("text", text), ("prob", number), ("label", text), ("note", text)]
    claim = [("text", text), ("verdict", text), ("prob", number), *place, ("note", text)]
    lists = {
        "passages": pa.list_(passage),
        "spans": pa.list_(pa.struct([*place, *said])),
        "claims": pa.list_(pa.struct(claim)),
    }
    return pa.schema([(name, lists.get(name, text)) for name in COLUMNS])
