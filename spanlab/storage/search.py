"""Full-text search: which items have given words in their question, answer or id, or in comments.

One table, ``item_search``, says for each item and for each annotator who commented on it which
terms (see ``spanlab.text.terms``) stand there: SQLite's FTS5 or PostgreSQL's text search finds them
by their beginnings. Terms are made here and not by the databases, whose own rules for words differ
and know no writing without spaces. A row's number names its dataset, its position and who wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    cast,
    column,
    false,
    func,
    literal,
    literal_column,
    select,
    table,
    text,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from spanlab.schema import Annotation, Item
from spanlab.storage.engine import insert_rows
from spanlab.text.terms import beginnings, sought

RowRange = tuple[ColumnElement[int], ColumnElement[int]]

THE_ITEM = -1  # in place of an annotator: the question, the answer and the id

_COLUMNS = ("rowid", "words")
_SEARCH = table("item_search", column("rowid", BigInteger), column("words"))

_POSITION, _AUTHOR = 27, 16  # bits of a row's number, behind those of the dataset
_AT_ONCE = 2000  # rows copied in one transaction
_MOST = 900_000  # bytes of terms in a row, of the 1 MiB that PostgreSQL takes
_LONGEST = 64  # characters of a word that count
_LABEL = "\ue000"  # begins the term that stands for a label; no text becomes such a term

_AND = {"sqlite": " ", "postgresql": " & "}
_BEGINS = {"sqlite": '"{}"*', "postgresql": "'{}':*"}
_IS = {"sqlite": '"{}"', "postgresql": "'{}'"}


class SearchEntry(NamedTuple):
    """The terms that ``author`` (an annotator's number, or ``THE_ITEM``) has at ``position``."""

    position: int
    author: int
    terms: Collection[str]


def entry_of_item(position: int, item: Item) -> SearchEntry:
    """Return the terms by which an item is found: of its id, question and answer."""
    words = beginnings("\n".join((item.id, item.question, item.answer)))
    return SearchEntry(position, THE_ITEM, words)


def entry_of_annotation(position: int, author: int, annotation: Annotation) -> SearchEntry:
    """Return the terms by which an annotation is found: of its notes, and its spans' labels."""
    notes = [annotation.note, *(span.note for span in annotation.spans)]
    words = beginnings("\n".join(filter(None, notes)))
    labels = {_label(span.label) for span in annotation.spans if span.label is not None}
    return SearchEntry(position, author, words | labels)


def may_find(json: str) -> bool:
    """Return whether an annotation that is stored as ``json`` may be found by anything."""
    return '"note"' in json or '"label"' in json


def add(connection: Connection, dataset: int, entries: Iterable[SearchEntry]) -> None:
    """Store entries that are not there yet; those without terms are left out."""
    join_terms = _LISTED[connection.dialect.name]
    rows = [
        (_row(dataset, entry.position, entry.author), join_terms(_bounded(entry.terms)))
        for entry in entries
        if entry.terms
    ]
    insert_rows(connection, "item_search", _COLUMNS, rows)


def put(connection: Connection, dataset: int, entries: Sequence[SearchEntry]) -> None:
    """Store entries in place of those of the same authors at the same positions."""
    if entries:
        rows = [{"row": _row(dataset, entry.position, entry.author)} for entry in entries]
        connection.execute(text("DELETE FROM item_search WHERE rowid = :row"), rows)
        add(connection, dataset, entries)


def remove(connection: Connection, dataset: int, start: int, stop: int) -> None:
    """Remove all entries of the positions ``[start, stop)``."""
    bounds = {"first": _row(dataset, start, THE_ITEM), "last": _row(dataset, stop, THE_ITEM) - 1}
    connection.execute(text("DELETE FROM item_search WHERE rowid BETWEEN :first AND :last"), bounds)


def copy(
    source: Connection,
    writing: Callable[[], AbstractContextManager[Connection]],
    dataset: int,
    n_items: int,
    new: int,
) -> None:
    """Copy the entries of a dataset's first ``n_items`` positions to the dataset ``new``.

    ``writing`` gives the connection for each batch, to the same database or another one.
    """
    words: ColumnElement[str] = _SEARCH.c.words
    if source.dialect.name == "postgresql":
        words = func.array_to_string(func.tsvector_to_array(words), " ")
    first, moved = _row(dataset, 0, THE_ITEM), _row(new, 0, THE_ITEM)
    within = _SEARCH.c.rowid.between(first, _row(dataset, n_items, THE_ITEM) - 1)
    query = select(_SEARCH.c.rowid, words.label("words")).where(within)
    stored = source.execute(query.execution_options(yield_per=_AT_ONCE))
    for batch in stored.partitions():
        with writing() as target:
            join_terms = _LISTED[target.dialect.name]
            rows = [(row.rowid - first + moved, join_terms(row.words.split(" "))) for row in batch]
            insert_rows(target, "item_search", _COLUMNS, rows)


def with_text(
    dialect: str, searched: str, within: RowRange, authors: Collection[int] | None
) -> Select[int]:
    """Select the positions at which one of ``authors`` (None: anybody) has all words of a search.

    There are none if the search has no letters and digits.

    Args:
        dialect: of the database.
        searched: what somebody typed.
        within: the numbers of rows (see ``row_number``) from which and below which to look.
        authors: annotators' numbers, and ``THE_ITEM``.
    """
    words = [_BEGINS[dialect].format(term[:_LONGEST]) for term in sought(searched)]
    return _select_having(dialect, words, within, authors)


def id_finder(searched: str) -> Callable[[str], bool]:
    """Return a function that says whether a word of a search may be one of an item's id."""
    words = [term[:_LONGEST] for term in sought(searched)]

    def may_be_of(item_id: str) -> bool:
        if item_id.isascii():  # what most are, and many are asked about
            return any(word in item_id.lower() for word in words)
        return any(term.startswith(word) for term in beginnings(item_id) for word in words)

    return may_be_of


def lacks_words(searched: str, json: str) -> bool:
    """Say whether question and answer of an item lack a word of a search."""
    item = Item.model_validate_json(json)
    terms = beginnings(f"{item.question}\n{item.answer}")
    return any(not any(term.startswith(word) for term in terms) for word in sought(searched))


def with_label(
    dialect: str, label: str, within: RowRange, authors: Collection[int] | None
) -> Select[int]:
    """Select the positions at which one of ``authors`` has a span with this label."""
    return _select_having(dialect, [_IS[dialect].format(_label(label))], within, authors)


def row_number(dataset: int, position: ColumnElement[int]) -> ColumnElement[int]:
    """Return the number of the first row of a position."""
    return (position + literal(dataset << _POSITION, BigInteger)) * literal(2**_AUTHOR, BigInteger)


def _select_having(
    dialect: str, words: Sequence[str], within: RowRange, authors: Collection[int] | None
) -> Select[int]:
    rowid = _SEARCH.c.rowid
    position = rowid // 2**_AUTHOR % 2**_POSITION
    matching = select(cast(position, Integer)).where(rowid >= within[0], rowid < within[1])
    if not words:
        return matching.where(false())
    terms = _AND[dialect].join(words)
    if dialect == "sqlite":
        matching = matching.where(literal_column("item_search").op("MATCH")(terms))
    else:
        matching = matching.where(_SEARCH.c.words.op("@@")(cast(terms, TSQUERY)))
    if authors is not None:
        matching = matching.where((rowid % 2**_AUTHOR - 1).in_(sorted(authors)))
    return matching


def _row(dataset: int, position: int, author: int) -> int:
    return (dataset << _POSITION | position) << _AUTHOR | (author + 1)


def _label(label: str) -> str:
    return _LABEL + label.encode().hex()


def _bounded(terms: Iterable[str]) -> list[str]:
    """Return terms, each as long and all together as large as a row may have them."""
    words = list(terms)
    if max(map(len, words)) > _LONGEST:
        words = [word if word.startswith(_LABEL) else word[:_LONGEST] for word in words]
    if 5 * sum(map(len, words)) > _MOST:  # it may be too much: a character has up to four bytes
        words.sort()  # so that the same ones stay whenever it is done
        sizes = accumulate(len(word.encode()) + 1 for word in words)
        words = [word for word, size in zip(words, sizes, strict=True) if size <= _MOST]
    return words


_LISTED: dict[str, Callable[[Iterable[str]], str]] = {
    "sqlite": " ".join,
    "postgresql": lambda words: "'" + "' '".join(words) + "'",  # no term has a quote in it
}
