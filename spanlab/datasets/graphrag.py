"""GraphRAG's output folder: an index of texts, and answers that were made from it.

The index is one process that all answers share: text units → entities and relationships →
community reports → map answers → answer. A description that GraphRAG summarised from several text
units has a stage of its own. The answers stand in ``queries.jsonl``, which whoever asks GraphRAG
writes beside its tables, one query a line:

    {"id": …, "query": …, "response": …,
     "map_contexts": [table of reports, …], "map_answers": [[{"answer": …, "score": …}], …],
     "context": {"reports": [{"id": …}], "entities": …, "relationships": …, "sources": …}}

with the map contexts and answers of a global search, or the ``context`` of any other. Sentences
judged by people may stand in ``claims.jsonl``: ``{"query_id": …, "claim": …, "supported": …}``.

Where a text came from is not where one would look first:

- A report is made from the descriptions of its community's entities and relationships; the text
  units that a community lists are those of its relationships alone.
- A report belongs to a community by the number in ``community``, which citations name, too; ids
  differ.
- The reports of a community's children are not read for its own.
- Entities outside the largest connected part belong to no community.
- The end mark of an extraction may be left at the end of a description; it is cut off.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spanlab.datasets import reader
from spanlab.datasets.files import File, Row
from spanlab.datasets.parquet import table
from spanlab.datasets.problems import input_error
from spanlab.errors import InputError
from spanlab.process import Nodes, ProcessNode
from spanlab.schema import (
    HALLUCINATED,
    Annotation,
    Claim,
    Item,
    Kind,
    Record,
    SharedProcess,
    Span,
    Verdict,
)
from spanlab.shared_process import NodesInMemory

QUERIES: Final = "queries.jsonl"
_JUDGED: Final = "claims.jsonl"
TABLES: Final = ("text_units", "entities", "relationships", "communities", "community_reports")
_END_MARK: Final = re.compile(r"\)?\s*<\|COMPLETE\|>\s*$")
_DESCRIBED: Final = "entity or relationship"
_KINDS: Final = {  # of what a context lists, and what their nodes are called
    "reports": "report",
    "entities": "entity",
    "relationships": "relationship",
    "sources": "text unit",
}


def is_output(folder: Path) -> bool:
    """Say whether a folder is GraphRAG's output, maybe without some of its files."""
    names = (*(f"{name}.parquet" for name in TABLES if name != "entities"), QUERIES)
    return any((folder / name).exists() for name in names)


class _Given(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _TextUnit(_Given):
    id: str
    human_readable_id: int
    text: str


class _Described(_Given):
    id: str
    human_readable_id: int
    description: str | None
    text_unit_ids: tuple[str, ...] = Field(min_length=1)


class _Community(_Given):
    community: int
    entity_ids: tuple[str, ...]
    relationship_ids: tuple[str, ...]


class _CommunityReport(_Given):
    community: int
    full_content: str


class _Point(_Given):
    answer: str
    score: float = 0.0


class _Listed(_Given):
    id: str = Field(coerce_numbers_to_str=True)
    in_context: bool = True


class _Query(_Given):
    id: str = Field(coerce_numbers_to_str=True, min_length=1)
    query: str
    response: str
    method: str | None = None
    map_contexts: tuple[str, ...] = ()
    map_answers: tuple[tuple[_Point, ...], ...] = ()
    context: dict[str, tuple[_Listed, ...]] = Field(default_factory=dict)


class _JudgedClaim(_Given):
    query_id: str = Field(coerce_numbers_to_str=True)
    claim: str
    supported: bool


_M = TypeVar("_M", bound=_Given)


class GraphRagReader(reader.Reader):
    """Reads a folder; an item is a query with its answer."""

    def rows(self) -> Iterator[Row]:
        """Yield the queries, once the whole process is known.

        Raises:
            InputError: a file or column is missing, or a row names what is not there.
        """
        nodes = _index(self._file)
        queries = _part(self._file, QUERIES)
        rows = list(queries.rows())
        self._problems: dict[int, InputError] = {}
        for row in rows:
            try:
                nodes |= {node.id: node for node in _made(_parsed(_Query, row), nodes)}
            except InputError as error:
                self._problems[row.line] = error.at(file=queries.name, line=row.line)
        self._source = NodesInMemory(Nodes(nodes.values()))
        self._claims = list(_judged(self._file))
        yield from rows

    def _record(self, row: Row) -> Record:
        if row.line in self._problems:
            raise self._problems[row.line]
        query = _parsed(_Query, row)
        shared = SharedProcess(id=_name(self._file), terminal=_answer(query))
        item = Item(
            id=query.id,
            question=query.query,
            answer=query.response,
            process=shared.among(self._source),
            meta={} if query.method is None else {"method": query.method},
        )
        judged = [each for each in self._claims if each.query_id == query.id]
        claims = tuple(_claim(query.response, each) for each in judged)
        if not claims:
            return Record(item=item)
        wrong = {each.source for each in claims if each.source and each.verdict in HALLUCINATED}
        spans = tuple(sorted(wrong, key=lambda span: span.start))
        gold = Annotation(annotator="gold", kind=Kind.GOLD, spans=spans, claims=claims)
        return Record(item=item, annotations=(gold,))


def _index(folder: File) -> dict[str, ProcessNode]:
    """Return the nodes of the index by id: text units, descriptions and reports."""
    nodes: dict[str, ProcessNode] = {}
    names: dict[str, str] = {}  # GraphRAG's id → the node's

    def add(name: str, text: str, stage: str, sources: Sequence[str] = ()) -> None:
        nodes[name] = ProcessNode(id=name, text=text, stage=stage, sources=tuple(sources))

    for unit, _ in _rows(folder, "text_units", _TextUnit):
        names[unit.id] = f"text unit {unit.human_readable_id}"
        add(names[unit.id], unit.text, "text unit")
    described: list[ProcessNode] = []
    for kind, name in (("entities", "entity"), ("relationships", "relationship")):
        for each, place in _rows(folder, kind, _Described):
            sources = place.known(each.text_unit_ids, names, "text_unit_ids")
            names[each.id] = f"{name} {each.human_readable_id}"
            text = _END_MARK.sub("", each.description or "")
            described.append(ProcessNode(id=names[each.id], text=text, sources=tuple(sources)))
    for node in sorted(described, key=lambda each: len(each.sources) > 1):
        stage = f"summarised {_DESCRIBED}" if len(node.sources) > 1 else _DESCRIBED
        add(node.id, node.text, stage, node.sources)
    members: dict[str, list[str]] = {}
    for community, place in _rows(folder, "communities", _Community):
        members[str(community.community)] = [
            *place.known(community.entity_ids, names, "entity_ids"),
            *place.known(community.relationship_ids, names, "relationship_ids"),
        ]
    for report, place in _rows(folder, "community_reports", _CommunityReport):
        number = str(report.community)
        place.known([number], {each: each for each in members}, "community")
        add(f"report {number}", report.full_content, "community report", members[number])
    return nodes


class _At(NamedTuple):
    """A row of a table."""

    file: str
    row: int

    def known(self, ids: Sequence[str], names: Mapping[str, str], field: str) -> list[str]:
        """Return the nodes that ids mean, each once; raises InputError for one that is unknown."""
        for each in ids:
            if each not in names:
                raise _unknown(field, each).at(file=self.file, line=self.row, unit="row")
        return list(dict.fromkeys(names[each] for each in ids))


def _rows(folder: File, name: str, kind: type[_M]) -> Iterator[tuple[_M, _At]]:
    file = _part(folder, f"{name}.parquet")
    columns = list(kind.model_fields)
    for row in table(file, columns):
        try:
            yield kind.model_validate(dict(row.cells)), _At(file.name, row.line)
        except ValidationError as error:
            raise input_error(error).at(file=file.name, line=row.line, unit="row") from None


def _made(query: _Query, known: Mapping[str, ProcessNode]) -> Iterator[ProcessNode]:
    """Yield the nodes of an answer: what a global search made of the reports, and the answer."""
    sources: list[str] = []
    if len(query.map_contexts) != len(query.map_answers):
        raise InputError(
            "not every map answer has a context",
            field="map_contexts",
            found=f"{len(query.map_contexts)} contexts, {len(query.map_answers)} answers",
        )
    for batch, (context, points) in enumerate(
        zip(query.map_contexts, query.map_answers, strict=True), start=1
    ):
        field = f"map_contexts.{batch - 1}"
        read = [_node(f"report {each}", known, field) for each in _listed(context, field)]
        for number, point in enumerate(points, start=1):
            if point.score > 0:  # the others are not handed on
                name = f"{_answer(query)} map {batch}.{number}"
                yield ProcessNode(
                    id=name, text=point.answer, stage="map answer", sources=tuple(read)
                )
                sources.append(name)
    for kind, listed in query.context.items():
        if kind in _KINDS:
            ids = [f"{_KINDS[kind]} {each.id}" for each in listed if each.in_context]
            sources += [_node(each, known, f"context.{kind}") for each in ids]
    if not sources:
        raise InputError(
            "nothing says what the answer was made from",
            field="map_answers",
            expected="map_contexts and map_answers of a global search, or context",
        )
    yield ProcessNode(
        id=_answer(query),
        text=query.response,
        stage="answer",
        sources=tuple(dict.fromkeys(sources)),
    )


def _listed(context: str, field: str) -> list[str]:
    """Return the ids that a table of reports lists."""
    try:
        rows = list(csv.reader(io.StringIO(context), delimiter="|"))
    except csv.Error as error:
        raise InputError(f"not a table: {error}", field=field) from None
    if not rows or "id" not in rows[0]:
        raise InputError("a table without a column id", field=field, found=context[:60])
    column = rows[0].index("id")
    return [row[column] for row in rows[1:] if len(row) > column]


def _node(name: str, known: Mapping[str, ProcessNode], field: str) -> str:
    if name not in known:
        raise _unknown(field, name)
    return name


def _unknown(field: str, found: str) -> InputError:
    return InputError("there is nothing of this id", field=field, found=found)


def _judged(folder: File) -> Iterator[_JudgedClaim]:
    if (folder.path / _JUDGED).exists():
        file = _part(folder, _JUDGED)
        for row in file.rows():
            try:
                yield _parsed(_JudgedClaim, row)
            except InputError as error:
                raise error.at(file=file.name, line=row.line) from None


def _claim(answer: str, judged: _JudgedClaim) -> Claim:
    start = answer.find(judged.claim)
    source = Span.of(answer, start, start + len(judged.claim)) if start >= 0 else None
    verdict: Verdict = "supported" if judged.supported else "not-supported"
    return Claim(text=judged.claim, source=source, verdict=verdict)


def _parsed(kind: type[_M], row: Row) -> _M:
    try:
        return kind.model_validate_json(row.raw)
    except ValidationError as error:
        raise input_error(error) from None


def _part(folder: File, name: str) -> File:
    return File(folder.path / name, f"{folder.name.rstrip('/')}/{name}", folder.limit)


def _name(folder: File) -> str:
    path = folder.path.resolve()
    return f"graphrag {path.parent.name if path.name == 'output' else path.name}"[:200]


def _answer(query: _Query) -> str:
    return f"answer {query.id}"
