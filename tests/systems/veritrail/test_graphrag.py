"""GraphRAG's output folder: a small one written here, and a real one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run_here

from spanlab.base.errors import InputError
from spanlab.data.import_files import in_folders
from spanlab.formats import ReadOptions, detect, read
from spanlab.schema import Item, SharedProcess, StoredProcess

Tables = dict[str, list[dict[str, Any]]]

# Two documents; Ada is named in both, the bell in one, and lies outside every community.
TABLES: Tables = {
    "text_units": [
        {"id": "t-1", "human_readable_id": 0, "text": "Ada built the tower."},
        {"id": "t-2", "human_readable_id": 1, "text": "Ada paid Bo. The bell is old."},
    ],
    "entities": [
        {
            "id": "e-ada",
            "human_readable_id": 0,
            "title": "ADA",
            "description": "Ada built and paid.",
        }
        | {"text_unit_ids": ["t-1", "t-2"]},
        {
            "id": "e-bo",
            "human_readable_id": 1,
            "title": "BO",
            "description": "Bo was paid.)\n<|COMPLETE|>",
        }
        | {"text_unit_ids": ["t-2"]},
        {"id": "e-bell", "human_readable_id": 2, "title": "BELL", "description": "The bell is old."}
        | {"text_unit_ids": ["t-2"]},
    ],
    "relationships": [
        {"id": "r-1", "human_readable_id": 0, "source": "ADA", "target": "BO"}
        | {"description": "Ada paid Bo.", "text_unit_ids": ["t-2"]},
    ],
    # The numbers of communities are not those of their rows; 7 is a child of 9.
    "communities": [
        {"id": "c-x", "community": 9, "children": [7], "text_unit_ids": ["t-2"]}
        | {"entity_ids": ["e-ada", "e-bo"], "relationship_ids": ["r-1"]},
        {"id": "c-y", "community": 7, "children": [], "text_unit_ids": []}
        | {"entity_ids": ["e-ada"], "relationship_ids": []},
    ],
    "community_reports": [
        {"id": "x-1", "community": 7, "full_content": "# Ada\nAda built."},
        {"id": "x-2", "community": 9, "full_content": "# Ada and Bo\nAda paid Bo."},
    ],
}
GLOBAL: dict[str, Any] = {
    "id": 0,
    "query": "Who paid?",
    "method": "global_search",
    "response": "Ada paid Bo. [Data: Reports (9)]",
    "map_contexts": ['id|title|content\n9|Ada|"# Ada and Bo\nAda paid Bo."\n', "id|title\n7|Ada\n"],
    "map_answers": [
        [{"answer": "Ada paid Bo.", "score": 80}, {"answer": "Not said.", "score": 0}],
        [],
    ],
}
LOCAL: dict[str, Any] = {
    "id": "1",
    "query": "How old is the bell?",
    "response": "The bell is old.",
    "context": {
        "reports": [],
        "entities": [{"id": "2", "in_context": True}, {"id": "1", "in_context": False}],
        "sources": [{"id": 1}],
        "claims": [],
    },
}

Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    def make(tables: Tables = TABLES, queries: Any = (GLOBAL, LOCAL)) -> Path:
        path = tmp_path / "project" / "output"
        path.mkdir(parents=True)
        for name, rows in tables.items():
            pq.write_table(pa.Table.from_pylist(rows), path / f"{name}.parquet")
        (path / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in queries))
        return path

    return make


def opened(item: Item) -> StoredProcess:
    assert isinstance(item.process, SharedProcess)
    return item.process.opened()


def test_answers_are_items_that_share_the_index(folder: Folder) -> None:
    path = folder()
    assert detect(path) == "graphrag"
    first, second = (record.item for record in read(path))
    assert (first.id, first.question, first.meta) == ("0", "Who paid?", {"method": "global_search"})
    assert isinstance(first.process, SharedProcess)
    assert first.process.id == "graphrag project"
    assert isinstance(second.process, SharedProcess)
    assert first.process.source is second.process.source
    assert opened(first).stages == (
        "text unit",
        "entity or relationship",
        "summarised entity or relationship",
        "community report",
        "map answer",
        "answer",
    )


def test_an_index_is_read_whole(folder: Folder) -> None:
    """Three entities and a relationship, one in two text units; one map answer has points."""
    _, second = (record.item for record in read(folder()))
    process = opened(second)
    assert process.sizes() == {
        "text unit": 2,
        "entity or relationship": 3,
        "summarised entity or relationship": 1,
        "community report": 2,
        "map answer": 1,
        "answer": 2,
    }
    texts = {node.id: node.text for node in process.read(process.terminal.sources)}
    assert texts == {
        "entity 2": "The bell is old.",
        "text unit 1": "Ada paid Bo. The bell is old.",
    }


# What each node was made from, the traps among them.
SOURCES = {
    "answer 0": ("answer 0 map 1.1",),
    "answer 0 map 1.1": ("report 9",),
    "report 9": ("entity 0", "entity 1", "relationship 0"),
    "report 7": ("entity 0",),
    "entity 0": ("text unit 0", "text unit 1"),
    "entity 1": ("text unit 1",),
    "relationship 0": ("text unit 1",),
    "answer 1": ("entity 2", "text unit 1"),
}


@pytest.mark.parametrize("node", SOURCES)
def test_every_text_is_traced_to_what_it_was_made_from(folder: Folder, node: str) -> None:
    process = opened(next(iter(read(folder()))).item)
    assert process.by_id[node].sources == SOURCES[node]


def test_an_end_mark_that_was_left_in_a_description_is_cut_off(folder: Folder) -> None:
    process = opened(next(iter(read(folder()))).item)
    assert process.by_id["entity 1"].text == "Bo was paid."
    assert process.stage_of("entity 0") == "summarised entity or relationship"
    assert process.stage_of("entity 1") == "entity or relationship"


RAW: Tables = {
    "raw_entities": [
        {"title": "ADA", "type": "PERSON", "description": ["Ada built.", "Ada paid."]}
        | {"text_unit_ids": ["t-1", "t-2"], "frequency": 2},
        {"title": "BO", "type": "PERSON", "description": ["Bo was paid."]}
        | {"text_unit_ids": ["t-2"], "frequency": 1},
    ],
    "raw_relationships": [
        {"source": "ADA", "target": "BO", "description": ["Ada paid Bo."]}
        | {"text_unit_ids": ["t-2"], "weight": 1.0},
    ],
}
PROMPT = "Text: An example.\n######\nOutput: …\n######\nText: {}\n######\nOutput:"
SAID = (
    '("entity"<|>Ada<|>PERSON<|>{})\n##\n("relationship"<|>ADA<|>BO<|>They met.<|>2)\n<|COMPLETE|>'
)


@pytest.mark.parametrize("kept", ["tables", "log"])
def test_what_was_extracted_from_each_text_is_a_stage_of_its_own(folder: Folder, kept: str) -> None:
    path = folder(TABLES | RAW) if kept == "tables" else folder()
    if kept == "log":
        calls = [
            {"kind": "extract", "response": SAID.format(said)}
            | {"messages": [{"role": "user", "content": PROMPT.format(text)}]}
            for text, said in (
                ("Ada built the tower.", "Ada built."),
                ("Ada paid Bo. The bell is old.", "Ada paid."),
                ("Something else.", "Ada left."),
            )
        ]
        calls += [{"kind": "report", "messages": [], "response": "# Ada"}]
        (path / "llm_log.jsonl").write_text("".join(json.dumps(call) + "\n" for call in calls))
    process = opened(next(iter(read(path))).item)
    first, second, whole = process.read(
        ["entity 0 in text unit 0", "entity 0 in text unit 1", "entity 0"]
    )
    assert (first.text, first.sources) == ("Ada built.", ("text unit 0",))
    assert (second.text, second.sources) == ("Ada paid.", ("text unit 1",))
    assert (whole.sources, process.stage_of(first.id)) == (
        (first.id, second.id),
        "entity or relationship",
    )
    assert process.sizes()["entity or relationship"] == 3 + 2


def test_an_answer_can_be_given_for_an_index_alone(folder: Folder, tmp_path: Path) -> None:
    path = folder()
    (path / "queries.jsonl").unlink()
    environment = {**os.environ, "SPANLAB_HOME": str(tmp_path / "home")}
    command = ["import", str(path), "--dataset", "rag", "--query", "Who paid?"]
    done = run_here([*command], tmp_path, environment)
    assert done.returncode == 2
    assert "--query and --answer go together" in done.stderr
    done = run_here([*command, "--answer", "Ada paid Bo."], tmp_path, environment)
    assert done.returncode == 0, done.stderr
    done = run_here(["export", "rag", "-o", "rag.jsonl"], tmp_path, environment)
    assert done.returncode == 0, done.stderr
    (record,) = read(tmp_path / "rag.jsonl")
    assert (record.item.question, record.item.answer) == ("Who paid?", "Ada paid Bo.")
    assert opened(record.item).terminal.sources == ("report 7", "report 9")


def test_the_stage_of_an_error_that_people_name_comes_with_their_claim(folder: Folder) -> None:
    path = folder()
    wrong = {"query_id": 0, "claim": "Ada paid Bo.", "supported": False}
    right = {"query_id": 1, "claim": "The bell is old.", "supported": True, "error_stage": None}
    lines = [wrong | {"error_stage": "map answer"}, right]
    (path / "claims.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    stages = [each.error_stages for record in read(path) for each in record.annotations[0].claims]
    assert stages == [("map answer",), ()]


def test_claims_that_people_judged_become_gold_claims(folder: Folder) -> None:
    path = folder()
    judged = [
        {"query_id": 0, "claim": "Ada paid Bo.", "supported": False},
        {"query_id": 0, "claim": "Somebody paid.", "supported": True},
    ]
    (path / "claims.jsonl").write_text("".join(json.dumps(each) + "\n" for each in judged))
    first, second = read(path)
    (gold,) = first.annotations
    assert [(claim.text, claim.verdict) for claim in gold.claims] == [
        ("Ada paid Bo.", "not-supported"),
        ("Somebody paid.", "supported"),
    ]
    assert [(span.start, span.text) for span in gold.spans] == [(0, "Ada paid Bo.")]
    assert second.annotations == ()


def without(table: str, column: str) -> Tables:
    rows = [{k: v for k, v in row.items() if k != column} for row in TABLES[table]]
    return {**TABLES, table: rows}


def changed(table: str, row: int, **changes: Any) -> Tables:
    rows = [dict(each) for each in TABLES[table]]
    rows[row] |= changes
    return {**TABLES, table: rows}


BAD: dict[str, tuple[Tables, tuple[dict[str, Any], ...], str]] = {
    "a column missing": (
        without("entities", "text_unit_ids"),
        (GLOBAL,),
        "output/entities.parquet: the column 'text_unit_ids' is missing",
    ),
    "a table missing": (
        {name: rows for name, rows in TABLES.items() if name != "community_reports"},
        (GLOBAL,),
        "output/community_reports.parquet: there is no such file",
    ),
    "an unknown text unit": (
        changed("relationships", 0, text_unit_ids=["t-9"]),
        (GLOBAL,),
        "output/relationships.parquet, row 1, text_unit_ids: there is nothing of this id; "
        "found 't-9'",
    ),
    "an unknown member": (
        changed("communities", 1, entity_ids=["e-zed"]),
        (GLOBAL,),
        "output/communities.parquet, row 2, entity_ids: .*found 'e-zed'",
    ),
    "a report of no community": (
        changed("community_reports", 1, community=3),
        (GLOBAL,),
        "output/community_reports.parquet, row 2, community: .*found '3'",
    ),
    "no queries": (TABLES, (), "output/queries.jsonl: the file is empty"),
    "an unknown report": (
        TABLES,
        (GLOBAL, {**GLOBAL, "id": 5, "map_contexts": ["id\n8\n", "id\n7\n"]}),
        "output/queries.jsonl, line 2, .*map_contexts.0: .*found 'report 8'",
    ),
    "an answer from nothing": (
        TABLES,
        ({"id": 1, "query": "?", "response": "!"},),
        "output/queries.jsonl, line 1, map_answers: nothing says what the answer was made from",
    ),
}


@pytest.mark.parametrize(("tables", "queries", "problem"), BAD.values(), ids=BAD)
def test_a_bad_folder_is_refused_by_file_and_row(
    folder: Folder, tables: Tables, queries: Any, problem: str
) -> None:
    path = folder(tables, queries)
    with pytest.raises(InputError, match=problem):
        list(read(path))


def test_bad_queries_can_be_left_out(folder: Folder) -> None:
    rejected: list[str] = []
    options = ReadOptions(on_reject=lambda each: rejected.append(each.reason))
    path = folder(queries=({"id": 1, "query": "?", "response": "!"}, GLOBAL))
    assert [record.item.id for record in read(path, options)] == ["0"]
    assert len(rejected) == 1


def test_uploads_of_its_files_are_read_as_the_folder(folder: Folder) -> None:
    path = folder()
    assert in_folders(sorted(path.iterdir())) == [path]
    assert in_folders([path]) == [path]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a directory of no known format"):
        detect(tmp_path)


@pytest.fixture
def real(shared: Path) -> Path:
    return shared / "veritrail" / "graphrag_output"


def test_a_real_index_is_read_whole(real: Path) -> None:
    records = list(read(real))
    process = opened(records[0].item)
    assert process.sizes() == {
        "text unit": 18,
        "entity or relationship": 53 + 107,  # of one text unit, and of each of several
        "summarised entity or relationship": 33,
        "community report": 7,
        "map answer": 78,
        "answer": 7,
    }
    # What a citation names is the number of the report's community.
    (report,) = process.read(["report 1"])
    assert report.text.startswith("# Larkmere and Lantern Festival")
    # A local search names text units by the numbers that they have here, too.
    local = records[6].item
    said = json.loads((real / "queries.jsonl").read_text().splitlines()[6])["context"]["sources"]
    texts = {node.id: node.text for node in opened(local).read(opened(local).terminal.sources)}
    assert all(texts[f"text unit {each['id']}"] == each["text"] for each in said)


@pytest.mark.parametrize("missing", ["communities.parquet", "queries.jsonl"])
def test_an_index_with_a_file_missing_is_refused(folder: Folder, missing: str) -> None:
    path = folder()
    (path / missing).unlink()
    with pytest.raises(InputError, match=f"output/{missing}: there is no such file"):
        list(read(path))
