"""GraphRAG's output folder: an index of texts, and answers that were made from it.

The index is one process that all answers share: text units → entities and relationships →
community reports → map answers → answer. A description that GraphRAG summarised from several text
units has a stage of its own (``graphrag_index``). The answers stand in ``queries.jsonl``, which
whoever asks GraphRAG writes beside its tables, one query a line:

    {"id": …, "query": …, "response": …,
     "map_contexts": [table of reports, …], "map_answers": [[{"answer": …, "score": …}], …],
     "context": {"reports": [{"id": …}], "entities": …, "relationships": …, "sources": …}}

with the map contexts and answers of a global search, or the ``context`` of any other. A single
question and its answer can be given instead (``QuestionOptions``); the answer then counts as made
from all reports, as nothing tells which were read. Sentences
judged by people may stand in ``claims.jsonl``: ``{"query_id": …, "claim": …, "supported": …,
"error_stage": …}``, where the last names the stage at which the error came in, if that is known.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import Field

from spanlab.base.errors import InputError, UsageError
from spanlab.base.options import OptionModel, option
from spanlab.formats import reader
from spanlab.formats.files import FileRow, InputFile
from spanlab.schema import (
    HALLUCINATED,
    Annotation,
    AnnotatorKind,
    Claim,
    Item,
    NodesInMemory,
    NodeTable,
    ProcessNode,
    Record,
    SharedProcess,
    Span,
    Verdict,
)
from spanlab.systems.veritrail.graphrag_index import (
    TABLES,
    GivenRow,
    index_of,
    parse_row,
    part,
    unknown,
)

_QUERIES: Final = "queries.jsonl"
_JUDGED: Final = "claims.jsonl"

_KINDS: Final = {  # of what a context lists, and what their nodes are called
    "reports": "report",
    "entities": "entity",
    "relationships": "relationship",
    "sources": "text unit",
}


class _MapPoint(GivenRow):
    answer: str
    score: float = 0.0


class _ListedIds(GivenRow):
    id: str = Field(coerce_numbers_to_str=True)
    in_context: bool = True


class _Query(GivenRow):
    id: str = Field(coerce_numbers_to_str=True, min_length=1)
    query: str
    response: str
    method: str | None = None
    map_contexts: tuple[str, ...] = ()
    map_answers: tuple[tuple[_MapPoint, ...], ...] = ()
    context: dict[str, tuple[_ListedIds, ...]] = Field(default_factory=dict)


class _JudgedClaim(GivenRow):
    query_id: str = Field(coerce_numbers_to_str=True)
    claim: str
    supported: bool
    error_stage: str | None = None


class QuestionOptions(OptionModel):
    """The question and its answer, where no file has them."""

    query: str | None = option(
        None,
        title="Question",
        help="The question, for GraphRAG's output without queries.jsonl.",
    )
    answer: str | None = option(None, title="Answer", help="The answer to --query.")


class GraphRagReader(reader.FormatReader):
    """Reads a folder; an item is a query with its answer."""

    own_options = QuestionOptions
    _own: QuestionOptions
    reads_folders = True
    main_file = _QUERIES
    folder = f"GraphRAG's output: {', '.join(f'{name}.parquet' for name in TABLES)}, {_QUERIES}"

    @classmethod
    def owns(cls, file: InputFile) -> bool:
        """Say whether a folder is GraphRAG's output, maybe without some of its files."""
        names = (*(f"{name}.parquet" for name in TABLES if name != "entities"), _QUERIES)
        return file.path.is_dir() and any((file.path / name).exists() for name in names)

    def rows(self) -> Iterator[FileRow]:
        """Yield the queries, once the whole process is known.

        Raises:
            InputError: a file or column is missing, or a row names what is not there.
            UsageError: a question is given without its answer, or the other way round.
        """
        nodes = index_of(self._file)
        queries = part(self._file, _QUERIES)
        question, answer = self._own.query, self._own.answer
        if (question is None) != (answer is None):
            raise UsageError(
                "--query and --answer go together: the question asked, and what came of it"
            )
        if question is None or answer is None:
            rows = list(queries.rows())
        else:
            rows = [_question_row(question, answer, nodes)]
        self._problems: dict[int, InputError] = {}
        for row in rows:
            try:
                nodes |= {node.id: node for node in _query_nodes(parse_row(_Query, row), nodes)}
            except InputError as error:
                self._problems[row.line] = error.at(file=queries.name, line=row.line)
        self._source = NodesInMemory(NodeTable(nodes.values()))
        self._claims = list(_read_judged_claims(self._file))
        yield from rows

    def _record(self, row: FileRow) -> Record:
        if row.line in self._problems:
            raise self._problems[row.line]
        query = parse_row(_Query, row)
        shared = SharedProcess(id=_name(self._file), terminal=_answer(query))
        item = Item(
            id=query.id,
            question=query.query,
            answer=query.response,
            process=shared.among(self._source),
            meta={} if query.method is None else {"method": query.method},
        )
        judged = [claim for claim in self._claims if claim.query_id == query.id]
        claims = tuple(_claim(query.response, statement) for statement in judged)
        if not claims:
            return Record(item=item)
        wrong = {claim.source for claim in claims if claim.source and claim.verdict in HALLUCINATED}
        spans = tuple(sorted(wrong, key=lambda span: span.start))
        gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=spans, claims=claims)
        return Record(item=item, annotations=(gold,))


def _question_row(question: str, answer: str, nodes: Mapping[str, ProcessNode]) -> FileRow:
    """Return the line that ``queries.jsonl`` would have, if an answer was made from all reports."""
    reports = [node.removeprefix("report ") for node in nodes if node.startswith("report ")]
    line = {
        "id": hashlib.sha256(f"{question}\n{answer}".encode()).hexdigest()[:12],
        "query": question,
        "response": answer,
        "context": {"reports": [{"id": report} for report in reports]},
    }
    return FileRow(1, json.dumps(line).encode())


def _query_nodes(query: _Query, nodes: Mapping[str, ProcessNode]) -> Iterator[ProcessNode]:
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
        read = [_node(f"report {report}", nodes, field) for report in _read_ids(context, field)]
        for number, point in enumerate(points, start=1):
            if point.score > 0:  # the others are not handed on
                name = f"{_answer(query)} map {batch}.{number}"
                yield ProcessNode(
                    id=name, text=point.answer, stage="map answer", sources=tuple(read)
                )
                sources.append(name)
    for kind, listed in query.context.items():
        if kind in _KINDS:
            ids = [f"{_KINDS[kind]} {row.id}" for row in listed if row.in_context]
            sources += [_node(id_, nodes, f"context.{kind}") for id_ in ids]
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


def _read_ids(context: str, field: str) -> list[str]:
    """Return the ids that a table of reports lists."""
    try:
        rows = list(csv.reader(io.StringIO(context), delimiter="|"))
    except csv.Error as error:
        raise InputError(f"not a table: {error}", field=field) from None
    if not rows or "id" not in rows[0]:
        raise InputError("a table without a column id", field=field, found=context[:60])
    column = rows[0].index("id")
    return [row[column] for row in rows[1:] if len(row) > column]


def _node(name: str, nodes: Mapping[str, ProcessNode], field: str) -> str:
    if name not in nodes:
        raise unknown(field, name)
    return name


def _read_judged_claims(folder: InputFile) -> Iterator[_JudgedClaim]:
    if (folder.path / _JUDGED).exists():
        file = part(folder, _JUDGED)
        for row in file.rows():
            try:
                yield parse_row(_JudgedClaim, row)
            except InputError as error:
                raise error.at(file=file.name, line=row.line) from None


def _claim(answer: str, judged: _JudgedClaim) -> Claim:
    start = answer.find(judged.claim)
    source = Span.of(answer, start, start + len(judged.claim)) if start >= 0 else None
    verdict: Verdict = "supported" if judged.supported else "not-supported"
    stages = (judged.error_stage,) if judged.error_stage and not judged.supported else ()
    return Claim(text=judged.claim, source=source, verdict=verdict, error_stages=stages)


def _name(folder: InputFile) -> str:
    path = folder.path.resolve()
    return f"graphrag {path.parent.name if path.name == 'output' else path.name}"[:200]


def _answer(query: _Query) -> str:
    return f"answer {query.id}"


FORMAT = reader.FormatEntry(
    name="graphrag", title="GraphRAG's output, with queries.jsonl", reader=GraphRagReader, order=120
)
