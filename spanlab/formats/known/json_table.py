"""JSON of records in nobody's format, with a mapping of their fields; see ``json_rows``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json, to_json

from spanlab.base.errors import InputError
from spanlab.base.options import Option, option, options_in
from spanlab.formats.batches import BatchRequests, is_request
from spanlab.formats.cells import is_said
from spanlab.formats.chats import answers_in, is_chat, plain_chat
from spanlab.formats.columns import BATCH_ID, Samples, any_element, columns_of, value_at
from spanlab.formats.field_report import LEFT_OUT
from spanlab.formats.files import FileRow, InputFile, begins_array
from spanlab.formats.guess import guess, is_given
from spanlab.formats.json_rows import (
    RecordList,
    first_objects,
    is_single,
    names_in,
    printed_objects,
    record_lists,
    rows_at,
)
from spanlab.formats.judged_parts import is_answer_in_parts
from spanlab.formats.known.analysis_table import CellsRow, is_table, join_rows_of_items
from spanlab.formats.known.tabular import SAMPLES, MappedReader, RecordOptions
from spanlab.formats.read_options import ReadOptions
from spanlab.formats.reader import FormatEntry
from spanlab.formats.shapes import apart, is_object, is_packed, lists_records
from spanlab.formats.sides import sides_in

_SHARED: Final = ("question", "passages")
ITSELF: Final = "."  # the path of a file's one object


class JsonOptions(RecordOptions):
    """Which records are read, what belongs to them and what is in them."""

    requests: Path | None = option(
        None,
        title="Requests of a batch",
        help="For the results of a batch (OpenAI's, Anthropic's): the JSONL of its requests, which "
        "has the questions. They are joined by custom_id.",
        placeholder="/data/requests.jsonl",
    )
    records: str | None = option(
        None,
        title="Records",
        help="Where the list of records is, in a JSON file that is one object, such as "
        "results.items. By default it is the list that looks most like records.",
        titles={".": "the file as one record"},
    )


class JsonReader(MappedReader):
    """Reads JSON records; a column is a field, or the dotted path of one inside others."""

    own_options = JsonOptions
    _own: JsonOptions

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._listing: Mapping[str, Any] = {}  # the first record, if it lists several

    def asked(self) -> tuple[Option, ...]:
        """Return which lists there are, if any, and requests if these are results of a batch."""
        own = {option.name: option for option in options_in(self.own_options)}
        requests, records = own["requests"], own["records"]
        read_path = ITSELF if self._list is None else self._list.path
        paths = dict.fromkeys((read_path, *(list_.path for list_ in self._lists), ITSELF))
        records = replace(records, kind="choice", choices=tuple(paths), default=read_path)
        is_batch = BATCH_ID in self.columns()
        return (records,) * bool(self._lists) + (requests,) * is_batch

    def rows(self) -> Iterator[FileRow]:
        """Yield the records as ``MappedReader`` does.

        Raises:
            InputError: these are the requests of a batch, without its results.
        """
        first = () if self._is_array or self._options.columns else self._first_objects
        if first and all(map(is_request, first)):
            raise InputError(
                "these are the requests of a batch, without answers",
                file=self._file.name,
                expected="the file of its results, and this one with --requests",
            )
        return super().rows()

    def given(self) -> Iterator[FileRow]:
        """Yield the records, numbered from 1; results of a batch with their requests.

        Raises:
            InputError: it cannot be read on, or no list has the name that was given.
        """
        rows = (row._replace(number=n) for n, row in enumerate(self._rows(), start=1))
        return self._as_items(rows) if self._requests is None else self._requests.join(rows)

    def _as_items(self, rows: Iterator[FileRow]) -> Iterator[FileRow]:
        """Yield rows; those of a frame or file for analysis joined to one for each item."""
        first = list(islice(rows, 1))
        rows = chain(first, rows)
        is_ours = first and isinstance(first[0].readable, dict) and is_table(first[0].readable)
        if not is_ours or self._options.columns:
            yield from rows
            return
        unit = first[0].unit
        cells = (CellsRow(row.line, *_cells_or_error(row)) for row in rows)
        for number, item in enumerate(join_rows_of_items(cells, self._file.limit), start=1):
            row = self._file.row(item.line, to_json(item.cells), unit, number)
            yield row if item.refused is None else row._replace(refused=item.refused)

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        for remark in () if self._requests is None else self._requests.finish():
            self._options.on_warning(remark)  # which names the file of the requests
        known = self._mapping.keys()
        is_asked = self._requests is not None or not known.isdisjoint(("question", "messages"))
        first = () if self._is_array or self._requests is not None else self._first_objects
        is_mt_bench = any({"question_id", "choices"} <= record.keys() for record in first)
        if is_mt_bench or (self._mapping.get("id") == BATCH_ID and not is_asked):
            yield (
                "the questions of a batch stand in the file of its requests, which --requests joins"
            )

        if self._list is not None and (others := self._as_likely):
            named = ", ".join(f"{list_.path} ({list_.size:,})" for list_ in others)
            yield (
                f"the records are those of {self._list.path}; others are in {named}, which "
                "--records NAME reads"
            )

    @property
    def _as_likely(self) -> Sequence[RecordList]:
        """The lists that look as much like records as the one that is read for want of a name."""
        if self._list is None or self._own.records is not None:
            return ()
        rank = self._rank(self._list.first)
        return [one for one in self._lists if one != self._list and self._rank(one.first) == rank]

    @property
    def around(self) -> Mapping[str, str]:
        """The list that the records are in, and what is left out beside it."""
        if name := lists_records(self._listing):
            return {name: "answer" if self._made else "records"}
        if self._list is None:
            return {}
        top = self._list.path.partition(".")[0]
        beside = dict.fromkeys((name for name in names_in(self._file) if name != top), LEFT_OUT)
        return {self._list.path: "records", **beside, **dict.fromkeys(self._shared, "records")}

    @property
    def _made(self) -> Mapping[str, str]:
        """The fields of records that were made of an object by the names of models."""
        said = self._listing.get(lists_records(self._listing))
        return dict.fromkeys(("model", "answer"), "") if isinstance(said, Mapping) else {}

    @property
    def sources(self) -> Mapping[str, str]:
        """As ``MappedReader`` says, and the fields that are in none of the file's."""
        return {**super().sources, **self._made}

    @cached_property
    def _shared(self) -> dict[str, Any]:
        """The question and passages of all records, where they stand beside their list."""
        if self._list is None or self._file.size > self._file.limit:
            return {}
        whole = self._file.load()
        given = _without_lists(whole) if isinstance(whole, dict) else {}
        beside = {name: value for name, value in given.items() if value}
        ours = guess(tuple(beside), [beside])
        own = guess(columns_of(self._list.first), self._list.first)
        names = {ours[f] for f in _SHARED if f in ours and own.keys().isdisjoint((f, "messages"))}
        return {name: beside[name] for name in names}

    def _with_shared(self, shared: Mapping[str, Any], row: FileRow) -> FileRow:
        if not isinstance(record := row.readable, dict):
            return row  # which says so when its turn comes
        return self._file.row(row.line, to_json({**shared, **record}), row.unit, row.number)

    @cached_property
    def _requests(self) -> BatchRequests | None:
        path = self._own.requests
        return None if path is None else BatchRequests(path, self._file)

    def _rows(self) -> Iterator[FileRow]:
        if self._list is not None:
            rows, shared = rows_at(self._file, self._list), self._shared
            return map(partial(self._with_shared, shared), rows) if shared else rows
        if self._is_chat:
            chat = to_json({"messages": self._file.load()})
            return iter([self._file.row(1, chat, "record", 1)])
        if self._own.records not in (None, ITSELF):
            raise InputError(
                f"there is no list of records at {self._own.records!r}",
                file=self._file.name,
                found=f"lists at {', '.join(list_.path for list_ in self._lists) or 'no place'}",
                expected="the path of a list with objects in it, in a file that is one object; "
                f"{ITSELF} for that object",
            )
        if self._is_single:
            rows = iter([self._file.row(1, self._file.whole(values=True), "record", 1)])
        elif self._is_array or self._first_objects:
            rows = self._file.rows(lists=True)
        else:
            rows = printed_objects(self._file)
        if self._options.columns:
            return rows
        first = list(islice(rows, 1))
        self._listing = next((row.readable for row in first if lists_records(row.readable)), {})
        return apart(chain(first, rows), self._file)

    @cached_property
    def _is_chat(self) -> bool:
        """Whether the file's one array is a chat."""
        first = islice(self._file.array(), SAMPLES) if self._is_array else ()
        try:
            return is_chat(chat := plain_chat([from_json(row.raw) for row in first])) and bool(
                answers_in(chat)
            )
        except (ValueError, InputError):
            return False

    @cached_property
    def _first_objects(self) -> list[dict[str, Any]]:
        return first_objects(self._file)

    @cached_property
    def _is_array(self) -> bool:
        return begins_array(self._file.head())

    @cached_property
    def _is_single(self) -> bool:
        return not self._is_array and is_single(self._file)

    @cached_property
    def _lists(self) -> Sequence[RecordList]:
        lists = record_lists(self._file) if self._is_single else ()
        beside = guess(tuple(names_in(self._file))) if lists else {}
        is_asked = not {"question", "messages", "reference"}.isdisjoint(beside)
        # What was found for a question has no answers to it.
        kept = [
            list_
            for list_ in lists
            if not (is_asked and (is_given(list_.path) or is_answer_in_parts(list_.path)))
        ]
        return [list_ for list_ in kept if not is_said(list_.first)]

    @cached_property
    def _list(self) -> RecordList | None:
        """The list that the records are in; None if they are in none."""
        if self._own.records is not None:
            return next((list_ for list_ in self._lists if list_.path == self._own.records), None)
        ranks = [(self._rank(list_.first), list_) for list_ in self._lists]
        rank, likeliest = max(
            ranks, key=lambda ranked: (ranked[0], ranked[1].size), default=((False, 0), None)
        )
        return None if likeliest is None or self._is_record(rank, likeliest) else likeliest

    def _is_record(self, rank: tuple[bool, int], listed: RecordList) -> bool:
        """Say whether the file's one object is a record itself, and not only around its list."""
        try:
            value = from_json(self._file.whole(values=True))
        except (ValueError, InputError):
            return False  # too large to be one
        if not rank[1] and not self._options.columns and is_packed(value):
            return True  # a table, whose list is of what its columns are called
        if lists_records(value) == listed.path and "question" in guess(tuple(names_in(self._file))):
            return True  # these are the answers to its question
        if (listed.size == 1 or not rank[1]) and self._rank([value])[1] > rank[1]:
            return True  # the list has one part of it, or what is none of its answers
        own = self._rank([value], without_lists=True)
        return own >= rank and (own[1] > 0 or own[0] > rank[0])

    def _rank(self, samples: Samples, *, without_lists: bool = False) -> tuple[bool, int]:
        """Return whether records have the columns that were named, and how many fields of ours.

        Args:
            samples: the first of them.
            without_lists: whether what lies in their lists is none of these fields.
        """
        sides = [part for sample in samples for part in sides_in(tuple(sample)).apart(sample, "")]
        columns = columns_of(sides)
        named_columns = (any_element(column) for column in (self._options.columns or {}).values())
        all_there = all(column in columns for column in named_columns)
        own = columns_of(list(map(_without_lists, sides))) if without_lists else columns
        return all_there, _fields(own, sides)


def _cells_or_error(row: FileRow) -> tuple[dict[str, Any], InputError | None]:
    """Return a row of our own table; without cells if it is none, and why."""
    try:
        cells = row.value
    except InputError as error:
        return {}, error
    if isinstance(cells, dict) and is_table(cells):
        return cells, None
    return {}, InputError("the row lacks columns that the first one has", found=cells)


def _without_lists(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with all lists in it empty, so that its paths do not lead into them."""
    return {
        name: _without_lists(inner)
        if isinstance(inner, Mapping)
        else ([] if isinstance(inner, list) and any(map(is_object, inner)) else inner)
        for name, inner in value.items()
    }


def _fields(columns: Sequence[str], samples: Samples) -> int:
    """Return how many of question, answer and passages records have; 0 without an answer."""
    mapping = guess(columns, samples)
    filled = {
        field
        for field, column in mapping.items()
        if any(value_at(sample, column) not in (None, "", []) for sample in samples)
    }
    chat = "messages" in filled
    return (chat or "answer" in filled) * (
        1 + (chat or "question" in filled) + ("passages" in filled)
    )


FORMAT = FormatEntry(
    name="json", title="JSON or JSON Lines of other fields", reader=JsonReader, order=150
)
