"""Hierarchical summaries of books in BooookScore's form: summaries of chunks, and of summaries.

{"book": …, "summaries_dict": {"0": [summary of a chunk, …], "1": […], …},
     "final_summary": …, "chunks": [text, …]}

or one object with such an entry for every book, by its name. ``chunks`` are the texts that level 0
summarises, one each; without them, which the form leaves out, these summaries stand for the
source. Which summaries of a level were merged into which of the next is not said either: every
summary counts as made from all of the level before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from spanlab.base.errors import InputError
from spanlab.formats import reader
from spanlab.formats.files import FileRow
from spanlab.schema import Item, Process, ProcessNode, Record

LEVELS: Final = "summaries_dict"


class _BookSummary(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    book: str = Field(min_length=1)
    summaries_dict: dict[str, tuple[str, ...]] = Field(min_length=1)
    final_summary: str
    chunks: tuple[str, ...] = ()


class SummariesReader(reader.FormatReader):
    """Reads a file of books; an item is a book with its final summary."""

    signatures = (frozenset((LEVELS, "final_summary")),)

    @classmethod
    def recognises(cls, record: Mapping[str, object]) -> bool:
        """Say whether a file is a book, or has an entry for each of several."""
        entries = (value for value in record.values() if isinstance(value, dict))
        return super().recognises(record) or LEVELS in next(entries, {})

    def rows(self) -> Iterator[FileRow]:
        """Yield the books.

        Raises:
            InputError: the file holds none.
        """
        content = self._file.load()
        if not isinstance(content, dict):
            raise InputError("not an object", file=self._file.name, expected=f"{LEVELS} in it")
        books = content if LEVELS not in content else {str(content.get("book") or "book"): content}
        for number, (name, book) in enumerate(books.items(), start=1):
            entry = {"book": name, **book} if isinstance(book, dict) else book
            yield self._file.row(number, to_json(entry), "record")

    def _remarks(self) -> Iterator[str]:
        if self._without:
            yield (
                f"without the chunks of {self._without} of the books: the summaries of chunks "
                "stand for the source"
            )

    _without = 0

    def _record(self, row: FileRow) -> Record:
        book = _BookSummary.model_validate_json(row.raw)
        self._without += not book.chunks
        return Record(item=Item(id=book.book, answer=book.final_summary, process=_process(book)))


def _process(book: _BookSummary) -> Process:
    levels = _levels(book)
    if book.chunks and len(book.chunks) != len(levels[0]):
        raise InputError(
            "level 0 summarises every chunk",
            field="chunks",
            found=f"{len(book.chunks)} chunks, {len(levels[0])} summaries",
        )
    if levels[-1] == [book.final_summary]:
        levels.pop()
    nodes = [
        ProcessNode(id=f"chunk {number}", text=text, stage="chunk")
        for number, text in enumerate(book.chunks, start=1)
    ]
    level_below: tuple[str, ...] = ()
    for level, texts in enumerate(levels):
        names = tuple(f"summary {level}.{number}" for number in range(1, len(texts) + 1))
        for index, (name, text) in enumerate(zip(names, texts, strict=True)):
            sources = (nodes[index].id,) if level == 0 and book.chunks else level_below
            stage = f"summary of level {level}"
            nodes.append(ProcessNode(id=name, text=text, stage=stage, sources=sources))
        level_below = names
    final = ProcessNode(
        id="final summary", text=book.final_summary, stage="final summary", sources=level_below
    )
    return Process(nodes=(*nodes, final))


def _levels(book: _BookSummary) -> list[list[str]]:
    """Return the summaries level by level, lowest first."""
    levels = [book.summaries_dict.get(str(number)) for number in range(len(book.summaries_dict))]
    for number, texts in enumerate(levels):
        if not texts:
            raise InputError(
                "this level is missing or empty",
                field=f"{LEVELS}.{number}",
                found=f"the levels {', '.join(book.summaries_dict)}",
                expected="levels from 0 upwards, with a summary each",
            )
    return [list(texts or ()) for texts in levels]


FORMAT = reader.FormatEntry(
    name="summaries",
    title="Hierarchical summaries (BooookScore)",
    reader=SummariesReader,
    order=130,
)
