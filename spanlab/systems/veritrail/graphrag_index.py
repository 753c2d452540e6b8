"""The index of GraphRAG's output: its tables as nodes of a process.

Where a text came from is not where one would look first:

- A report is made from the descriptions of its community's entities and relationships; the text
  units that a community lists are those of its relationships alone.
- A report belongs to a community by the number in ``community``, which citations name, too; ids
  differ.
- The reports of a community's children are not read for its own.
- Entities outside the largest connected part belong to no community.
- The end mark of an extraction may be left at the end of a description; it is cut off.
- A description that was summarised from several text units does not say what was extracted from
  each. ``raw_entities`` and ``raw_relationships`` do (``snapshots.raw_graph`` in GraphRAG's
  settings), or a log of its calls, ``llm_log.jsonl``:
  ``{"kind": "extract", "messages": [{"content": …}], "response": …}``. Without either an error of
  an extraction looks like an error of the summary.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from spanlab.base.errors import InputError
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.known.parquet import table
from spanlab.formats.reader import input_error
from spanlab.schema import ProcessNode

TABLES: Final = ("text_units", "entities", "relationships", "communities", "community_reports")
_END_MARK: Final = re.compile(r"\)?\s*<\|COMPLETE\|>\s*$")
_DESCRIBED: Final = "entity or relationship"
_LOG: Final = "llm_log.jsonl"

# In GraphRAG's prompt, whose examples stand before it.
_EXTRACTED_FROM: Final = re.compile(r".*\nText: (.*?)\n#+\n", re.DOTALL)
_NAMES: Final = {"entity": 1, "relationship": 2}  # how many each record of an extraction has
_Key = tuple[str, ...]  # title of an entity, or those that a relationship joins


class GivenRow(BaseModel):
    """A row with the columns that are read; others are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _TextUnit(GivenRow):
    id: str
    human_readable_id: int
    text: str
    entity_ids: tuple[str, ...] | None = ()
    relationship_ids: tuple[str, ...] | None = ()


class _DescribedEntity(GivenRow):
    id: str
    human_readable_id: int
    description: str | None
    text_unit_ids: tuple[str, ...] | None


class _ExtractedRow(GivenRow):
    description: tuple[str, ...]
    text_unit_ids: tuple[str, ...]


class _Entity(_DescribedEntity):
    title: str


class _Relationship(_DescribedEntity):
    source: str
    target: str


class _RawEntity(_ExtractedRow):
    title: str


class _RawRelationship(_ExtractedRow):
    source: str
    target: str


def _key(row: GivenRow) -> _Key:
    """Return what names an entity or relationship, also in extractions."""
    if isinstance(row, _Entity | _RawEntity):
        return (row.title,)
    assert isinstance(row, _Relationship | _RawRelationship)
    return (row.source, row.target)


class _ModelCall(GivenRow):
    kind: str
    messages: tuple[dict[str, JsonValue], ...] = ()
    response: str = ""


class _Community(GivenRow):
    community: int
    entity_ids: tuple[str, ...]
    relationship_ids: tuple[str, ...]


_NO_COMMUNITY = -1  # whose report is of what belongs to none, which no table lists


class _CommunityReport(GivenRow):
    community: int
    full_content: str


_M = TypeVar("_M", bound=GivenRow)


def index_of(folder: InputFile) -> dict[str, ProcessNode]:
    """Return the nodes of the index by id: text units, descriptions and reports."""
    index = _Index(folder)
    index.add_text_units()
    index.add_descriptions()
    index.add_reports()
    return index.nodes


class _Index:
    """The nodes of an index, read from its tables one after the other."""

    def __init__(self, folder: InputFile) -> None:
        self._folder = folder
        self.nodes: dict[str, ProcessNode] = {}
        self._names: dict[str, str] = {}  # GraphRAG's id → the node's
        self._units_of: defaultdict[str, list[str]] = defaultdict(list)

    def _add(self, name: str, text: str, stage: str, sources: Sequence[str] = ()) -> None:
        self.nodes[name] = ProcessNode(id=name, text=text, stage=stage, sources=tuple(sources))

    def add_text_units(self) -> None:
        for unit, _ in _rows(self._folder, "text_units", _TextUnit):
            self._names[unit.id] = f"text unit {unit.human_readable_id}"
            for extracted_id in (*(unit.entity_ids or ()), *(unit.relationship_ids or ())):
                self._units_of[extracted_id].append(unit.id)
            self._add(self._names[unit.id], unit.text, "text unit")

    def add_descriptions(self) -> None:
        units_by_text = {unit.text.strip(): name for name, unit in self.nodes.items()}
        extracted = _read_extracted(self._folder, units_by_text, self._names)
        summarised: list[tuple[str, str, list[str]]] = []
        tables: tuple[tuple[type[_DescribedEntity], str, str], ...] = (
            (_Entity, "entities", "entity"),
            (_Relationship, "relationships", "relationship"),
        )
        for kind, table_name, name in tables:
            for row, place in _rows(self._folder, table_name, kind):
                ids = row.text_unit_ids or self._units_of[row.id]
                units = place.known(ids, self._names, "text_unit_ids")
                if not units:
                    raise place.without("text_unit_ids", row.id)
                self._names[row.id] = node = f"{name} {row.human_readable_id}"
                text = _END_MARK.sub("", row.description or "")
                if len(units) == 1:
                    self._add(node, text, _DESCRIBED, units)
                else:
                    sources = self._add_extracted(node, units, extracted.get(_key(row), {}))
                    summarised.append((node, text, sources))
        for node, text, sources in summarised:
            self._add(node, text, f"summarised {_DESCRIBED}", sources)

    def _add_extracted(
        self, node: str, units: Sequence[str], texts_of: Mapping[str, Sequence[str]]
    ) -> list[str]:
        """Return what a summary was made from: what each unit is known to say, else the unit."""
        sources = []
        for unit in units:
            texts = texts_of.get(unit)
            sources.append(f"{node} in {unit}" if texts else unit)
            if texts:
                self._add(sources[-1], "\n".join(texts), _DESCRIBED, [unit])
        return sources

    def add_reports(self) -> None:
        members: dict[str, list[str]] = {}
        for community, place in _rows(self._folder, "communities", _Community):
            members[str(community.community)] = [
                *place.known(community.entity_ids, self._names, "entity_ids"),
                *place.known(community.relationship_ids, self._names, "relationship_ids"),
            ]
        for report, place in _rows(self._folder, "community_reports", _CommunityReport):
            number = str(report.community)
            if report.community != _NO_COMMUNITY:
                place.known([number], {member: member for member in members}, "community")
            sources = members.get(number, [])
            self._add(f"report {number}", report.full_content, "community report", sources)


def _read_extracted(
    folder: InputFile, units: Mapping[str, str], names: Mapping[str, str]
) -> Mapping[_Key, Mapping[str, Sequence[str]]]:
    """Return what was extracted from each text unit, by entity or relationship.

    Args:
        folder: GraphRAG's output.
        units: the nodes of text units by their text.
        names: the nodes of text units by their id.

    Returns:
        Descriptions by text unit; nothing where neither tables nor log tell.
    """
    descriptions: dict[_Key, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    tables: tuple[tuple[type[_ExtractedRow], str], ...] = (
        (_RawEntity, "raw_entities"),
        (_RawRelationship, "raw_relationships"),
    )
    for kind, name in tables:
        if (folder.path / f"{name}.parquet").exists():
            for row, place in _rows(folder, name, kind):
                for unit, text in zip(row.text_unit_ids, row.description, strict=True):
                    (node,) = place.known([unit], names, "text_unit_ids")
                    descriptions[_key(row)][node].append(text)
    if not descriptions and (folder.path / _LOG).exists():
        for line in part(folder, _LOG).rows():
            call = parse_row(_ModelCall, line)
            node_read = _unit_read(call, units)
            for key, text in _records(call.response) if node_read else ():
                descriptions[key][node_read].append(text)
    return descriptions


def _unit_read(call: _ModelCall, units: Mapping[str, str]) -> str:
    """Return the node of the text unit that a call extracted from; "" for any other call."""
    if call.kind != "extract" or not call.messages:
        return ""
    read = _EXTRACTED_FROM.match(str(call.messages[-1].get("content", "")))
    return units.get(read[1].strip(), "") if read else ""


def _records(response: str) -> Iterator[tuple[_Key, str]]:
    """Yield what an extraction names, in capitals as the tables have it, and its description."""
    for record in response.replace("<|COMPLETE|>", "").split("##"):
        fields = [field.strip().strip('"') for field in record.strip().strip("()").split("<|>")]
        if fields[0] in _NAMES and len(fields) > 3:
            yield tuple(name.upper() for name in fields[1 : 1 + _NAMES[fields[0]]]), fields[3]


class _RowPlace(NamedTuple):
    """A row of a table."""

    file: str
    row: int

    def known(self, ids: Sequence[str], names: Mapping[str, str], field: str) -> list[str]:
        """Return the nodes that ids mean, each once; raises InputError for one that is unknown."""
        for id_ in ids:
            if id_ not in names:
                raise unknown(field, id_).at(file=self.file, line=self.row, unit="row")
        return list(dict.fromkeys(names[id_] for id_ in ids))

    def without(self, field: str, found: str) -> InputError:
        """Return the error of a row that came from nothing."""
        expected = "the text units that it was extracted from, here or in text_units.parquet"
        error = InputError("it has no source", field=field, found=found, expected=expected)
        return error.at(file=self.file, line=self.row, unit="row")


def _rows(folder: InputFile, name: str, kind: type[_M]) -> Iterator[tuple[_M, _RowPlace]]:
    file = part(folder, f"{name}.parquet")
    columns = [name for name, field in kind.model_fields.items() if field.is_required()]
    for row in table(file, columns):
        try:
            yield kind.model_validate(dict(row.cells)), _RowPlace(file.name, row.line)
        except ValidationError as error:
            raise input_error(error).at(file=file.name, line=row.line, unit="row") from None


def parse_row(kind: type[_M], row: FileRow) -> _M:
    """Read a line; raises InputError, naming the field, for a wrong one."""
    try:
        return kind.model_validate_json(row.raw)
    except ValidationError as error:
        raise input_error(error) from None


def part(folder: InputFile, name: str) -> InputFile:
    """Return a file of the folder."""
    return InputFile(folder.path / name, f"{folder.name.rstrip('/')}/{name}", folder.limit)


def unknown(field: str, reference: str) -> InputError:
    """Return the error of an id that nothing has."""
    return InputError("there is nothing of this id", field=field, found=reference)
