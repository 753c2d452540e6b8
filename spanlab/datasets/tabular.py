"""Records with a mapping of columns: what CSV, parquet, Arrow and any JSON have in common.

``passages`` may be a plain text or a JSON list of texts or ``{"text", "title", "url", "date"}``;
``spans`` a JSON list of ``[start, end]`` or ``{"start", "end", "text", "prob", "label", "note"}``,
which become gold labels; ``messages`` a chat, whose last turn is question and answer. A column may
lie inside another (``paths``). An empty cell says nothing; columns without a field go into meta.
What was written here (``flat``) is read with all its annotators, unless columns are mapped.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from spanlab.datasets import reader
from spanlab.datasets.chat import last_turn
from spanlab.datasets.columns import map_columns
from spanlab.datasets.files import File, Row
from spanlab.datasets.flat import CellsRow, by_item, is_own, is_table, record_of
from spanlab.datasets.given import checked, language, passages_of, text_of
from spanlab.datasets.options import ReadOptions
from spanlab.datasets.paths import value_at, without
from spanlab.datasets.problems import input_error, within
from spanlab.datasets.quotes import find_quote, span_at
from spanlab.errors import InputError
from spanlab.schema import Annotation, Item, Kind, Passage, Probability, Record, Span

CELL = 10  # bytes of memory for a character of a cell: the cell, and its JSON at the worst


class _GivenSpan(BaseModel):
    model_config = ConfigDict(frozen=True)

    start: int
    end: int
    text: str | None = None
    prob: Probability = 1.0
    label: str | None = None
    note: str | None = None


def _object(value: object) -> object:
    if isinstance(value, list) and len(value) == 2:
        return {"start": value[0], "end": value[1]}
    return value


_Spans = tuple[Annotated[_GivenSpan, BeforeValidator(_object)], ...]
_SPANS: TypeAdapter[_Spans] = TypeAdapter(_Spans)


class MappedReader(reader.Reader):
    """Reads records whose columns are named by the user, or have common names."""

    def __init__(self, file: File, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._stem = PurePath(file.name).name.split(".")[0]
        self._mapping: dict[str, str] = {}

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns; none if there are no records."""

    def _record(self, row: Row) -> Record:
        cells = _cells_of(row)
        if is_own(cells) and not self._options.columns:
            return record_of(cells)
        names = self._mapping
        theirs = {field: _present(value_at(cells, column)) for field, column in names.items()}
        used = set(names.values())
        if theirs.get("messages") is not None:
            turn = last_turn(_listed(theirs["messages"]), names["messages"])
            said = {"question": turn.question, "answer": turn.answer}
            theirs = {**theirs, **{key: said[key] for key in said if theirs.get(key) is None}}
            used -= set() if turn.is_whole else {names["messages"]}
        if theirs.get("answer") is None:
            column = names.get("answer", names.get("messages"))
            raise InputError("there is no answer", field=column, expected="a text")
        item = checked(
            Item(
                id=text_of(theirs.get("id")) or f"{self._stem}-{row.number}",
                lang=language(text_of(theirs.get("lang"))),
                question=text_of(theirs.get("question")) or "",
                answer=text_of(theirs["answer"]) or "",
                passages=_passages(theirs.get("passages"), names.get("passages", "")),
                meta=_meta(without(cells, used)),
            )
        )
        spans = theirs.get("spans")
        annotations = () if spans is None else (_gold(item.answer, spans, names.get("spans", "")),)
        return Record(item=item, annotations=annotations)

    def _problem(self, error: ValidationError) -> InputError:
        problem = super()._problem(error)
        column = self._mapping.get(problem.field or "", problem.field or "")
        problem.field = None
        return within(problem, column)

    def _map(self, columns: Sequence[str]) -> dict[str, str]:
        try:
            return map_columns(columns, self._options.columns)
        except InputError as error:
            raise error.at(file=self._file.name) from None


class TableReader(MappedReader):
    """What the kinds of tables have in common."""

    _unit = "row"

    def rows(self) -> Iterator[Row]:
        """Yield the rows as JSON objects, numbered from 1 without the header.

        Raises:
            InputError: the table is broken, or it has no column for the answer.
        """
        number = 0
        found = self._cells()
        if is_table(self.columns()) and not self._options.columns:
            found = by_item(found, self._file.limit)
        for number, row in enumerate(found, start=1):
            if number == 1:
                self._mapping = self._map(self.columns())
            if row.refused is not None:
                yield Row(row.line, b"", self._unit, number, self._at(row.refused, row.line))
            else:
                raw = self._json(row)
                yield self._file.row(row.line, raw, self._unit, number)
        if number == 0:
            raise InputError("the table has no rows", file=self._file.name)

    def _json(self, row: CellsRow) -> bytes:
        try:
            return to_json({key: _value(cell) for key, cell in row.cells.items()})
        except (PydanticSerializationError, UnicodeDecodeError) as error:
            wrong = InputError(f"a cell cannot be read as text: {error}", expected="UTF-8")
            raise self._at(wrong, row.line) from None

    def _at(self, error: InputError, line: int) -> InputError:
        return error.at(file=self._file.name, line=line, unit=self._unit)

    @abstractmethod
    def _cells(self) -> Iterator[CellsRow]:
        """Yield the rows."""


def _meta(rest: dict[str, Any]) -> dict[str, Any]:
    """Return what is no field of ours, a column ``meta`` by what is in it."""
    inner = rest.get("meta")
    if not isinstance(inner, dict):
        return rest
    return {**inner, **{key: value for key, value in rest.items() if key != "meta"}}


def _cells_of(row: Row) -> dict[str, Any]:
    try:
        cells = from_json(row.raw, allow_inf_nan=False)
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}") from None
    if not isinstance(cells, dict):
        raise InputError("the record is no object", found=cells, expected="a JSON object")
    return cells


def _value(cell: Any) -> Any:
    """Return a cell as JSON knows it; a number that is not one is missing."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return None
    return cell


def _present(value: Any) -> Any:
    return None if value == "" else value


def _passages(value: Any, column: str) -> tuple[Passage, ...]:
    listed = _listed(value)
    if isinstance(listed, str) and listed.lstrip().startswith("["):
        return (Passage(text=listed),)  # a text that begins with a bracket, such as [1]
    return passages_of(listed, column)


def _listed(value: Any) -> Any:
    """Return a value, or the list that its text is in JSON."""
    if not (isinstance(value, str) and value.lstrip().startswith("[")):
        return value
    try:
        return from_json(value)
    except ValueError:
        return value


def _gold(answer: str, value: Any, column: str) -> Annotation:
    try:
        given = _SPANS.validate_python(_json(value, column) if isinstance(value, str) else value)
    except ValidationError as error:
        raise within(input_error(error), column) from None
    spans = tuple(_span(answer, part, f"{column}.{index}") for index, part in enumerate(given))
    return Annotation(annotator="gold", kind=Kind.GOLD, spans=spans)


def _span(answer: str, given: _GivenSpan, field: str) -> Span:
    start, end = given.start, given.end
    if given.text is not None:
        start, end = find_quote(answer, start, end, given.text, field)
    return span_at(answer, start, end, field, prob=given.prob, label=given.label, note=given.note)


def _json(value: str, column: str) -> Any:
    try:
        return from_json(value, allow_inf_nan=False)
    except ValueError as error:
        raise InputError(
            f"not valid JSON: {error}", field=column, found=value, expected="a JSON list"
        ) from None
