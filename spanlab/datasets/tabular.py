"""Records with a mapping of columns: what CSV, parquet, Arrow and any JSON have in common.

``passages`` may be a plain text or a JSON list of texts or ``{"text", "title", "url", "date"}``;
``spans`` a JSON list of ``[start, end]``, ``{"start", "end", "text", "prob", "label", "note"}`` or
texts of the answer, which become gold labels; ``messages`` a chat, whose last turn is question and
answer, or each of them (``ReadOptions.turns``). A column may lie inside another (``paths``). An
empty cell says nothing; columns without a field go into meta. What was written here (``flat``) is
read with all its annotators, unless columns are mapped.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import PurePath
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from spanlab.datasets import reader
from spanlab.datasets.chat import (
    Turn,
    answers_in,
    asked_in,
    is_chat,
    is_message,
    text_of_message,
    turn_of,
)
from spanlab.datasets.columns import map_columns
from spanlab.datasets.files import File, Row
from spanlab.datasets.flat import CellsRow, by_item, is_own, is_table, record_of
from spanlab.datasets.given import checked, language, listed, passages_of, text_of
from spanlab.datasets.options import TURNS, ReadOptions
from spanlab.datasets.paths import value_at, without
from spanlab.datasets.problems import input_error, within
from spanlab.datasets.prompts import taken_apart
from spanlab.datasets.quotes import find_quote, span_at
from spanlab.errors import InputError, UsageError
from spanlab.schema import Annotation, Item, Kind, Passage, Probability, Record, Span

SAMPLES: Final = 50  # records that are looked at to tell what their columns hold
_SAMPLED: Final = 1 << 22  # bytes after which these are enough
_NAMED: Final = 5  # so many ids are named in a remark
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


class Layout(NamedTuple):
    """What a file's records look like before any is imported.

    Attributes:
        columns: the names that can be mapped.
        guesses: our field → the column that it is read from if nobody says otherwise.
        samples: the first records, as they stand.
        lists: where lists of records are in a file that is one JSON object, the one that is read
            first; empty for other files.
    """

    columns: tuple[str, ...] = ()
    guesses: Mapping[str, str] = {}
    samples: tuple[Mapping[str, Any], ...] = ()
    lists: tuple[str, ...] = ()


class MappedReader(reader.Reader):
    """Reads records whose columns are named by the user, or have common names."""

    def __init__(self, file: File, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._stem = PurePath(file.name).name.split(".")[0]
        self._mapping: dict[str, str] = {}
        self._unplaced: list[str] = []  # ids of items whose marked texts are not where one sees

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns; none if there are no records."""

    @abstractmethod
    def records(self) -> Iterator[Row]:
        """Yield the records as they stand, as JSON objects, numbered from 1."""

    def layout(self) -> Layout:
        """Return what the records look like; without columns if there are none."""
        columns, samples = self.columns(), tuple(self._samples())
        return Layout(columns, map_columns(columns, None, needed=None, samples=samples), samples)

    def rows(self) -> Iterator[Row]:
        """Yield the records, each as often as it has turns that are wanted.

        Raises:
            InputError: the file cannot be read on, or it has no column for the answer.
        """
        if self._options.turns not in TURNS:
            known = ", ".join(TURNS)
            raise UsageError(f"no turns {self._options.turns!r}; known are {known}")
        if columns := self.columns():
            self._mapping = self._map(columns, tuple(self._samples()))
        for row in self.records():
            yield from self._turns(row)

    def finish(self) -> None:
        """Say which items have marked texts whose place in the answer is not known."""
        if self._unplaced:
            named = ", ".join(self._unplaced[:_NAMED]) + (", …" * (len(self._unplaced) > _NAMED))
            self._options.on_warning(
                f"{self._file.name}: {len(self._unplaced):,} items are without their gold spans, "
                f"which do not stand in their answers, or more than once: {named}"
            )

    def _samples(self) -> Iterator[dict[str, Any]]:
        """Yield the first records; what is wrong with one is said when its turn comes."""
        size = 0
        with suppress(InputError):
            for row in islice(self.records(), SAMPLES):
                size += len(row.raw)
                with suppress(InputError):
                    yield _cells_of(row)
                if size > _SAMPLED:
                    return

    def _turns(self, row: Row) -> Iterator[Row]:
        column = self._mapping.get("messages")
        answers: Sequence[int] = ()
        if self._options.turns == "all" and column is not None and row.refused is None:
            with suppress(InputError):  # which is said when its turn comes
                cells = _cells_of(row)
                chat = listed(value_at(cells, column))
                answered = value_at(cells, self._mapping.get("answer", "")) not in (None, "")
                answers = answers_in(chat) if is_chat(chat) and not answered else ()
        if len(answers) < 2:
            yield row
            return
        for number in range(len(answers)):
            yield row._replace(turn=number + 1)

    def _record(self, row: Row) -> Record:
        cells = _cells_of(row)
        if is_own(cells) and not self._options.columns:
            return record_of(cells)
        names = self._mapping
        theirs = {field: _present(value_at(cells, column)) for field, column in names.items()}
        used = {names[field] for field in theirs}
        turn = _turn(theirs, names, row.turn)
        if turn is not None:
            used -= set() if turn.is_whole else {names.get("messages", names.get("question", ""))}
        answer = _answer(theirs.get("answer"), names.get("answer", "")) or (turn and turn.answer)
        if not answer:
            column = names.get("answer", names.get("messages"))
            raise InputError("there is no answer", field=column, expected="a text")
        question = turn.question if turn is not None else _question(theirs.get("question"))
        passages = _passages(theirs.get("passages"), names.get("passages", ""))
        if not passages and turn is not None:
            passages = tuple(Passage(text=text) for text in turn.passages)
        if not passages and (apart := taken_apart(question)) is not None:
            question, passages = apart
            used -= {names.get("question", "")}
        name = text_of(theirs.get("id")) or f"{self._stem}-{row.number}"
        item = checked(
            Item(
                id=f"{name}-{row.turn}" if row.turn else name,
                lang=language(text_of(theirs.get("lang"))),
                question=question,
                answer=answer,
                passages=passages,
                meta=_meta(without(cells, used)),
            )
        )
        gold = self._gold(item, theirs.get("spans"), names.get("spans", ""))
        return Record(item=item, annotations=() if gold is None else (gold,))

    def _gold(self, item: Item, value: Any, column: str) -> Annotation | None:
        """Return the gold labels, None if there are none or nobody can say where they are."""
        if value is None:
            return None
        given = _json(value, column) if isinstance(value, str) else value
        if isinstance(given, list) and given and all(isinstance(each, str) for each in given):
            if any(item.answer.count(text) != 1 for text in given):
                self._unplaced.append(item.id)
                return None
            begins = [(item.answer.index(text), text) for text in given]
            given = [[begin, begin + len(text)] for begin, text in begins]
        return _gold(item.answer, given, column)

    def _problem(self, error: ValidationError) -> InputError:
        problem = super()._problem(error)
        column = self._mapping.get(problem.field or "", problem.field or "")
        problem.field = None
        return within(problem, column)

    def _map(self, columns: Sequence[str], samples: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        try:
            return map_columns(columns, self._options.columns, samples=samples)
        except InputError as error:
            raise error.at(file=self._file.name) from None


class TableReader(MappedReader):
    """What the kinds of tables have in common."""

    _unit = "row"

    def records(self) -> Iterator[Row]:
        """Yield the rows as JSON objects, numbered from 1 without the header.

        Raises:
            InputError: the table is broken, or has no rows.
        """
        number = 0
        found = self._cells()
        if is_table(self.columns()) and not self._options.columns:
            found = by_item(found, self._file.limit)
        for number, row in enumerate(found, start=1):
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


def _turn(theirs: Mapping[str, Any], names: Mapping[str, str], number: int) -> Turn | None:
    """Return the turn of a chat that a record is; None if it has none.

    Args:
        theirs: our field → what stands in its column.
        names: our field → the column.
        number: the turn, from 1; 0 for the last one.
    """
    if theirs.get("messages") is not None:
        chat = listed(theirs["messages"])
        if theirs.get("answer") is not None and is_chat(chat) and not answers_in(chat):
            return asked_in(chat)
        return turn_of(chat, names["messages"], number - 1 if number else None)
    chat = listed(theirs.get("question"))
    if not is_chat(chat):
        return None
    return asked_in(chat) if theirs.get("answer") is not None else turn_of(chat, names["question"])


def _answer(value: Any, column: str) -> str | None:
    """Return a value as an answer: of messages the last answer, of a list its only element.

    Raises:
        InputError: it is a list of several values.
    """
    if is_chat(value):
        return turn_of(value, column).answer
    if isinstance(value, list) and len(value) > 1:
        raise InputError(
            "the answer is a list",
            field=column,
            found=value,
            expected="one text; a mapping such as answer=texts.0 takes the first of a list",
        )
    if isinstance(value, list):
        return _answer(value[0], column) if value else None
    if is_message(value):
        return text_of_message(value)
    return text_of(value)


def _question(value: Any) -> str:
    """Return a value as a question, a message by its text."""
    if isinstance(value, list) and len(value) == 1:
        return _question(value[0])
    return (text_of_message(value) if is_message(value) else text_of(value)) or ""


def _passages(value: Any, column: str) -> tuple[Passage, ...]:
    found = listed(value)
    if isinstance(found, str) and found.lstrip().startswith("["):
        return (Passage(text=found),)  # a text that begins with a bracket, such as [1]
    return passages_of(found, column)


def _gold(answer: str, value: Any, column: str) -> Annotation:
    try:
        given = _SPANS.validate_python(value)
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
