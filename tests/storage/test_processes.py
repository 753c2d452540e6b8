"""Processes that items share: stored once, read node by node, gone with their dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from shared import NODES, item_line, node_lines, write_lines
from sqlalchemy import func, select

from spanlab.base.errors import InputError, NotFoundError
from spanlab.base.settings import Settings
from spanlab.data.exporting import export_dataset, preview_dataset
from spanlab.formats import read
from spanlab.schema import Item, Process, ProcessNode, Record, SharedProcess
from spanlab.schema.stages import StageNodes, stages_of
from spanlab.storage import Store
from spanlab.storage.engine import Database
from spanlab.storage.tables import process_nodes, processes


@pytest.fixture
def filled(store: Store, tmp_path: Path) -> Store:
    store.import_records("d", read(write_lines(tmp_path / "two.jsonl")))
    return store


def n_rows(settings: Settings) -> tuple[int, int]:
    database = Database(settings.database_url)
    with database.reading() as connection:
        counts = [
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (processes, process_nodes)
        ]
    database.close()
    return counts[0], counts[1]


def test_a_process_is_stored_once_for_all_its_items(filled: Store, settings: Settings) -> None:
    assert n_rows(settings) == (1, len(NODES))
    item = filled.record("d", "q2").item
    assert isinstance(item.process, SharedProcess)
    opened = item.process.opened()
    assert opened.terminal.text == item.answer
    assert opened.read(opened.terminal.sources)[0].text == "Bo paid."
    with pytest.raises(NotFoundError, match="no node 'z'"):
        opened.stage_of("z")


def test_only_nodes_that_are_asked_for_are_read(filled: Store) -> None:
    record = filled.record("d", "q1")
    assert stages_of(record.item) == StageNodes({"source": 2, "summary": 2, "answer": 2}, "who")
    assert isinstance(record.item.process, SharedProcess)
    (node,) = record.item.process.opened().read(["A"])
    assert (node.id, node.stage, node.sources) == ("A", "summary", ("a",))
    assert node.text == "The tower is Ada's."


def test_it_is_exported_and_imported_again_byte_for_byte(filled: Store, tmp_path: Path) -> None:
    assert export_dataset(filled, "d", tmp_path / "out.jsonl") == 2
    filled.import_records("again", read(tmp_path / "out.jsonl"))
    export_dataset(filled, "again", tmp_path / "out2.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "out2.jsonl").read_bytes()
    assert preview_dataset(filled, "d", 1).count("\n") == 1, "a preview has no nodes"


def test_copies_have_nodes_of_their_own_and_a_deleted_dataset_none(
    filled: Store, settings: Settings
) -> None:
    filled.duplicate_dataset("d", "copy")
    filled.delete_dataset("d")
    assert n_rows(settings) == (1, len(NODES))
    copied = filled.record("copy", "q1").item.process
    assert isinstance(copied, SharedProcess)
    assert [node.text for node in copied.opened().read(["who"])] == ["Ada built it."]
    filled.delete_dataset("copy")
    assert n_rows(settings) == (0, 0)


def test_an_import_that_fails_leaves_no_nodes(
    filled: Store, settings: Settings, tmp_path: Path
) -> None:
    more = [
        *({**line, "process": "other"} for line in node_lines()),
        {**item_line("q3", "who"), "process": {"id": "other", "terminal": "who"}},
        item_line("q4", "who"),
    ]
    path = write_lines(tmp_path / "more.jsonl", more)
    with pytest.raises(
        InputError, match=r"more.jsonl, line 8, process.id: no line before this one"
    ):
        filled.import_records("d", read(path))
    assert n_rows(settings) == (1, len(NODES))
    assert filled.record("d", "q1").item.process is not None


def test_another_process_of_the_same_id_is_refused(filled: Store, tmp_path: Path) -> None:
    lines = (*node_lines(), item_line("q3", "who"))
    records: Iterator[Record] = read(write_lines(tmp_path / "again.jsonl", lines))
    with pytest.raises(InputError, match="item 'q3' the dataset has a process of this id already"):
        filled.import_records("d", records)


def test_items_may_be_added_to_a_process_that_is_stored(filled: Store, settings: Settings) -> None:
    item = filled.record("d", "q1").item
    filled.import_records("d", [Record(item=item.model_copy(update={"id": "q3"}))])
    assert n_rows(settings) == (1, len(NODES))
    assert filled.record("d", "q3").item.process == item.process


def test_a_process_without_its_nodes_is_refused(store: Store) -> None:
    alone = SharedProcess(id="index", terminal="who")
    with pytest.raises(InputError, match="nodes of this process are not at hand"):
        store.import_records("d", [Record(item=Item(id="q", answer="x", process=alone))])


@pytest.mark.parametrize("size", [50, 30_000])
def test_an_items_own_process_is_stored_apart_if_it_is_large(
    store: Store, settings: Settings, tmp_path: Path, size: int
) -> None:
    nodes = (
        ProcessNode(id="s", text="x" * size),
        ProcessNode(id="t", text="y" * size),
        ProcessNode(id="end", text="z", sources=("s", "t")),
    )
    item = Item(id="q", answer="z", process=Process(nodes=nodes))
    store.import_records("d", [Record(item=item)])
    apart = size > 50
    assert n_rows(settings) == ((1, 3) if apart else (0, 0))
    stored = store.record("d", "q").item
    assert isinstance(stored.process, SharedProcess) is apart
    assert stages_of(stored) == StageNodes({"1": 2, "2": 1}, "end")
    assert stored.process is not None
    process = (
        stored.process.opened() if isinstance(stored.process, SharedProcess) else stored.process
    )
    assert [process.stage_of(node) for node in ("end", "s")] == ["2", "1"]
    assert process.terminal.sources == ("s", "t")
    export_dataset(store, "d", tmp_path / "out.jsonl")
    texts = [record.item.answer for record in read(tmp_path / "out.jsonl")]
    assert texts == ["z"]
