"""Tables: CSV row by row and parquet through pyarrow in batches, with a mapping of columns.

``passages`` may be a plain text or a JSON list of texts or ``{"text", "title", "url", "date"}``;
``spans`` a JSON list of ``[start, end]`` or ``{"start", "end", "text", "prob", "label", "note"}``,
which become gold labels. An empty cell says nothing; columns without a field go into meta.
"""

from __future__ import annotations

import csv
import io
import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import PurePath
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from spanlab.datasets import reader
from spanlab.datasets.columns import map_columns
from spanlab.datasets.files import File, Row
from spanlab.datasets.given import checked, language, passages_of, text_of
from spanlab.datasets.limits import UNPACKED, most_unpacked, too_large
from spanlab.datasets.options import ReadOptions
from spanlab.datasets.problems import input_error, within
from spanlab.datasets.quotes import find_quote, span_at
from spanlab.errors import InputError
from spanlab.schema import Annotation, Item, Kind, Passage, Probability, Record, Span

_BATCH = 1000  # rows of parquet held at a time, if that is safe
_CELL = 10  # bytes of memory for a character of a cell: the cell, and its JSON at the worst
_ELEMENT = 100  # bytes of memory for an element of a list in a cell
_BUFFER = 1 << 20  # bytes of a column that are read at a time
_PAGE_HEADER = re.compile(rb"\x15[\x00-\x7f]\x15([\x80-\xff]*[\x00-\x7f])")
_LEVELS = 8  # bytes that an element of a list takes in a column
_END = "\0\0the end\0\0"  # a line after the last one, which a quote that is open takes in
_DELIMITERS = ",;\t|"


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


class _Cells(NamedTuple):
    """A row of a table: where it stands, and its cells by column, or why it cannot be read."""

    line: int
    cells: Mapping[str, Any]
    refused: InputError | None = None


class TableReader(reader.Reader):
    """What the two kinds of tables have in common."""

    _unit = "row"

    def __init__(self, file: File, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._stem = PurePath(file.name).name.split(".")[0]
        self._mapping: dict[str, str] = {}

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns; none if the table has no rows."""

    def rows(self) -> Iterator[Row]:
        """Yield the rows as JSON objects, numbered from 1 without the header.

        Raises:
            InputError: the table is broken, or it has no column for the answer.
        """
        number = 0
        for number, row in enumerate(self._cells(), start=1):
            if number == 1:
                self._mapping = self._map(self.columns())
            if row.refused is not None:
                yield Row(row.line, b"", self._unit, number, self._at(row.refused, row.line))
            else:
                raw = self._json(row)
                yield self._file.row(row.line, raw, self._unit, number)
        if number == 0:
            raise InputError("the table has no rows", file=self._file.name)

    def _json(self, row: _Cells) -> bytes:
        try:
            return to_json({key: _value(cell) for key, cell in row.cells.items()})
        except (PydanticSerializationError, UnicodeDecodeError) as error:
            wrong = InputError(f"a cell cannot be read as text: {error}", expected="UTF-8")
            raise self._at(wrong, row.line) from None

    def _at(self, error: InputError, line: int) -> InputError:
        return error.at(file=self._file.name, line=line, unit=self._unit)

    def _record(self, row: Row) -> Record:
        cells = from_json(row.raw)
        names = self._mapping
        theirs = {field: _present(cells[column]) for field, column in names.items()}
        if theirs["answer"] is None:
            raise InputError("there is no answer", field=names["answer"], expected="a text")
        used = set(names.values())
        item = checked(
            Item(
                id=text_of(theirs.get("id")) or f"{self._stem}-{row.number}",
                lang=language(text_of(theirs.get("lang"))),
                question=text_of(theirs.get("question")) or "",
                answer=text_of(theirs["answer"]) or "",
                passages=_passages(theirs.get("passages"), names.get("passages", "")),
                meta={
                    key: value
                    for key, value in cells.items()
                    if key not in used and _present(value) is not None
                },
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

    @abstractmethod
    def _cells(self) -> Iterator[_Cells]:
        """Yield the rows."""


class CsvReader(TableReader):
    """Reads CSV. The delimiter is the one of comma, semicolon, tab and bar that splits most."""

    _unit = "line"

    def columns(self) -> tuple[str, ...]:
        """Return the names in the header; one that stands twice gets a number."""
        with closing(self._rows()) as rows:
            header, first = next(rows, None), next(rows, None)
        if header is None or first is None:
            return ()
        seen: Counter[str] = Counter()
        names = []
        for name in header.cells:
            names.append(f"{name}.{seen[name]}" if seen[name] else name)
            seen[name] += 1
        return tuple(names)

    def _cells(self) -> Iterator[_Cells]:
        columns = self.columns()
        with closing(self._rows()) as rows:
            next(rows, None)
            for cells, line in rows:
                if len(cells) > len(columns):
                    width = f"{len(cells)} cells, the header {len(columns)}"
                    raise self._broken(f"this row has {width}", line)
                filled = [*cells, *[""] * (len(columns) - len(cells))]
                yield _Cells(line, dict(zip(columns, filled, strict=True)))

    def _rows(self) -> Generator[_CsvRow]:
        """Yield the rows, the header first, without lines that are empty."""
        with (
            self._file.open() as stream,
            io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text,
        ):
            lines = _Lines(text, self._file)
            reader = csv.reader(lines, delimiter=_delimiter(self._file.head()))
            csv.field_size_limit(2**31 - 1)  # the lines of a row are counted, whatever its cells
            for cells in reader:
                if cells and cells[-1].endswith(_END):
                    if cells != [_END]:
                        raise self._broken("a quote is opened here and never closed", lines.begin)
                    return
                blank = reader.line_num == lines.begin and not lines.latest.strip(" \t\r\n")
                if not (blank and len(cells) < 2):
                    yield _CsvRow(cells, lines.begin)
                lines.begin, lines.taken = reader.line_num + 1, 0

    def _broken(self, what: str, line: int) -> InputError:
        return InputError(
            f"the table is broken: {what}",
            file=self._file.name,
            line=line,
            expected="as many cells in every row as in the header, and closed quotes",
        )


class _CsvRow(NamedTuple):
    cells: list[str]
    line: int  # where it begins, counted from 1


class _Lines:
    """The lines of a CSV file and one behind them; a row that takes too many of them is refused."""

    def __init__(self, text: io.TextIOBase, file: File) -> None:
        self._text = text
        self._file = file
        self._most = file.limit // _CELL
        self.begin = 1  # line on which the present row begins
        self.taken = 0  # characters of it
        self.latest = ""

    def __iter__(self) -> Iterator[str]:
        try:
            while line := self._text.readline(self._most + 1):
                self.taken += len(line)
                if self.taken > self._most:
                    place = {"file": self._file.name, "line": self.begin}
                    raise too_large("the row (is a quote closed?)", self._file.limit, **place)
                self.latest = line
                yield line
            yield _END
        except UnicodeDecodeError as error:
            raise InputError(
                f"not UTF-8: {error.reason}",
                file=self._file.name,
                line=_undecodable_line(self._file),
                expected="UTF-8",
            ) from None


def _undecodable_line(file: File) -> int | None:
    """Return the first line that is not UTF-8, counted from 1; None if all are."""
    with file.open() as stream:
        for row, _ in file.lines(stream):
            try:
                row.beginning.decode()
            except UnicodeDecodeError:
                return row.line
    return None


class ParquetReader(TableReader):
    """Reads parquet; lists and structures are taken as they are, columns of bytes are left out."""

    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns that hold text; none if the table has no rows."""
        with self._opened() as table:
            names = tuple(f.name for f in table.schema_arrow if not _holds_bytes(f.type))
            return names if table.metadata.num_rows else ()

    def finish(self) -> None:
        """Say which columns hold bytes."""
        with self._opened() as table:
            images = [f.name for f in table.schema_arrow if _holds_bytes(f.type)]
        if images:
            self._options.on_warning(
                f"{self._file.name}: left out what holds bytes and no text: the columns "
                + ", ".join(map(repr, images))
            )

    def _cells(self) -> Iterator[_Cells]:
        columns = list(self.columns())
        left = most_unpacked(self._file.path.stat().st_size, self._file.limit)
        line = 0
        with self._opened() as table:
            for group in range(table.num_row_groups):
                count = _safe_rows(table.metadata.row_group(group), columns, self._file)
                batches = table.iter_batches(count, row_groups=[group], columns=columns)
                for batch in map(_plain, batches):
                    for row in self._rows_of(batch, line):
                        line += 1
                        yield row
                    left -= batch.nbytes
                    if left < 0:
                        raise self._at(too_large(UNPACKED, self._file.limit), line)

    def _rows_of(self, batch: Any, line: int) -> Iterator[_Cells]:
        """Yield the rows behind ``line``, one by one only where all at once may be too large."""
        limit = self._file.limit
        if _memory(batch) <= limit:
            for number, cells in enumerate(batch.to_pylist(), start=line + 1):
                yield _Cells(number, cells)
            return
        for index in range(len(batch)):
            row = batch.slice(index, 1)
            if _memory(row) > limit:
                yield _Cells(line + index + 1, {}, too_large("the row", limit))
            else:
                yield _Cells(line + index + 1, row.to_pylist()[0])

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self._file.open() as stream:
            try:
                yield pq.ParquetFile(stream, buffer_size=_BUFFER)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise InputError(
                    f"not a parquet file, or a damaged one: {error}",
                    file=self._file.name,
                    expected="parquet",
                ) from None


def _safe_rows(group: Any, columns: Sequence[str], file: File) -> int:
    """Return how many rows of a group may be held, by what the file says before it is unpacked.

    Every row may repeat the longest text of a dictionary, which the file holds once.

    Raises:
        InputError: the group cannot be held at all.
    """
    chunks = [group.column(index) for index in range(group.num_columns)]
    chunks = [chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in columns]
    size = sum(chunk.total_uncompressed_size for chunk in chunks)
    if size > most_unpacked(file.path.stat().st_size, file.limit):
        raise too_large(UNPACKED, file.limit, file=file.name)
    elements = sum(chunk.num_values for chunk in chunks) - len(chunks) * group.num_rows
    if elements * _LEVELS > file.limit:
        raise too_large("a group of rows, by its lists,", file.limit, file=file.name)
    if size > file.limit // 2:
        return 1
    repeated: int = sum(
        _dictionary_size(chunk, file) for chunk in chunks if chunk.has_dictionary_page
    )
    fitting: int = file.limit // 2 // max(repeated, 1)
    return max(1, min(_BATCH, fitting))


def _dictionary_size(chunk: Any, file: File) -> int:
    """Return the bytes of a dictionary as the header of its page says, else those of its column.

    The header is a Thrift structure in the compact protocol, whose second number is the size.
    """
    with file.open() as stream:
        stream.seek(chunk.dictionary_page_offset or 0)
        header = _PAGE_HEADER.match(stream.read(16))
    if header is None:
        return int(chunk.total_uncompressed_size)
    number = sum(int(byte & 0x7F) << 7 * place for place, byte in enumerate(header[1]))
    return number >> 1  # of the zigzag encoding


def _plain(batch: Any) -> Any:
    """Return a batch with its repeated texts written out, so that each row has its own size."""
    import pyarrow as pa

    if not any(pa.types.is_dictionary(column.type) for column in batch.columns):
        return batch
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _memory(batch: Any) -> int:
    """Return how many bytes of memory rows of parquet take as JSON, as an upper bound."""
    return _CELL * int(batch.nbytes) + _ELEMENT * sum(map(_elements, batch.columns))


def _elements(column: Any) -> int:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return len(column) + _elements(column.values if pa.types.is_map(kind) else column.flatten())
    if pa.types.is_struct(kind):
        return len(column) + sum(map(_elements, column.flatten()))
    return len(column)


def _holds_bytes(kind: Any) -> bool:
    """Say whether values of an arrow type hold bytes, such as those of an image."""
    inner = [kind.field(index).type for index in range(kind.num_fields)]
    return "binary" in str(kind) if not inner else any(map(_holds_bytes, inner))


def _delimiter(head: bytes) -> str:
    first = head.decode("utf-8", errors="replace").splitlines()[0]
    return max(_DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark))))


def _value(cell: Any) -> Any:
    """Return a cell as JSON knows it; a number that is not one is missing."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return None
    return cell


def _present(value: Any) -> Any:
    return None if value == "" else value


def _passages(value: Any, column: str) -> tuple[Passage, ...]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = from_json(value)
        except ValueError:
            return (Passage(text=value),)  # a text that begins with a bracket, such as [1]
    return passages_of(value, column)


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
