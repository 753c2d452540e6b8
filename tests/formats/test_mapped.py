"""JSON of any fields, and tables of Hugging Face's ``datasets``, with a mapping of columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spanlab.base.errors import InputError, UsageError
from spanlab.formats import ReadOptions, detect, read, table_layout
from spanlab.schema import Item

ASKED = {"role": "user", "content": "Where?"}
SAID = {"role": "assistant", "content": "In Paris."}


def lines(tmp_path: Path, *records: Any) -> Path:
    path = tmp_path / "made.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def items(path: Path, **columns: str) -> list[Item]:
    return [
        record.item
        for record in read(path, ReadOptions(columns=columns or None, on_warning=lambda _: None))
    ]


def read_all(path: Path, options: ReadOptions) -> None:
    for _ in read(path, options):
        pass


@pytest.mark.parametrize(
    ("record", "columns"),
    [
        pytest.param({"answer": "In Paris.", "query": "Where?"}, {}, id="common names"),
        pytest.param(
            {"in": {"q": "Where?"}, "out": [{"text": "In Paris."}]},
            {"question": "in.q", "answer": "out.0.text"},
            id="dotted paths",
        ),
        pytest.param({"messages": [ASKED, SAID]}, {}, id="a chat"),
        pytest.param({"x": {"turns": [ASKED, SAID]}}, {"messages": "x.turns"}, id="a chat inside"),
        pytest.param(
            {
                "conversations": [
                    {"from": "human", "value": "Where?"},
                    {"from": "gpt", "value": "In Paris."},
                ]
            },
            {},
            id="a chat of the other form",
        ),
        pytest.param(
            {"chat": [{"role": "user", "content": [{"type": "text", "text": "Where?"}]}, SAID]},
            {},
            id="content in parts",
        ),
    ],
)
def test_question_and_answer_are_found(
    tmp_path: Path, record: dict[str, Any], columns: dict[str, str]
) -> None:
    (item,) = items(lines(tmp_path, record), **columns)
    assert (item.question, item.answer, item.meta) == ("Where?", "In Paris.", {})


def test_the_last_turn_is_the_item_and_earlier_ones_stay_in_meta(tmp_path: Path) -> None:
    chat = [ASKED, {"role": "assistant", "content": "In Rome."}, ASKED, SAID]
    (item,) = items(lines(tmp_path, {"messages": chat, "temperature": 0.2}))
    assert item.answer == "In Paris."
    assert item.meta == {"messages": chat, "temperature": 0.2}


def test_each_turn_may_be_an_item_with_what_came_before(tmp_path: Path) -> None:
    """Earlier turns are the question, what tools found the passages; a call has no answer."""
    chat = [
        {"role": "system", "content": "Be brief."},
        ASKED,
        SAID,
        {"role": "user", "content": "Since when?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
        {"role": "tool", "content": "Built in 1889."},
        {"role": "assistant", "content": "Since 1899."},
    ]
    path = lines(tmp_path, {"id": "a", "messages": chat}, {"id": "b", "messages": [ASKED, SAID]})
    options = ReadOptions(own={"turns": "all"})
    first, second, other = (record.item for record in read(path, options))
    assert (first.id, first.question, first.answer) == ("a-1", "Where?", "In Paris.")
    assert (first.passages, first.meta) == ((), {"messages": chat})
    talk = "User: Where?\n\nAssistant: In Paris.\n\nUser: Since when?"
    assert (second.id, second.question, second.answer) == ("a-2", talk, "Since 1899.")
    assert [passage.text for passage in second.passages] == ["Built in 1889."]
    assert (other.id, other.meta) == ("b", {})
    assert [item.answer for item in items(path)] == ["Since 1899.", "In Paris."]


def test_tool_results_inside_the_users_messages_are_passages(tmp_path: Path) -> None:
    found = {"type": "tool_result", "tool_use_id": "c1", "content": "Built in 1889."}
    chat = [ASKED, {"role": "user", "content": [found]}, SAID]
    (item,) = items(lines(tmp_path, {"messages": chat}))
    assert (item.question, item.passages[0].text) == ("Where?", "Built in 1889.")


def test_an_answer_is_never_a_list(tmp_path: Path) -> None:
    path = lines(tmp_path, {"said": ["In Paris."]}, {"said": ["In Paris.", "In Rome."]})
    with pytest.raises(InputError, match=r"made.jsonl, line 2, said: the answer is a list"):
        items(path, answer="said")
    assert [item.answer for item in items(path, answer="said.0")] == ["In Paris.", "In Paris."]
    path = lines(tmp_path, {"turns": [ASKED, SAID]})
    with pytest.raises(InputError, match="the answer is a list"):
        items(path, answer="turns.content")


ROW = {"nr": 7, "q": {"text": "Where?"}, "reply": "In Paris."}
ROWS = [ROW, {**ROW, "nr": 8}]
LOGS = [{"level": "info", "message": "started"}] * 9


@pytest.mark.parametrize(
    "written",
    [
        pytest.param({"results": ROWS}, id="a list"),
        pytest.param({"run": {"data": {"results": ROWS}}, "n": 2}, id="deep inside"),
        pytest.param({"logs": LOGS, "results": ROWS, "sources": [{"text": "x"}]}, id="of several"),
        pytest.param({"summary": {"n": 2}, "samples": ROWS}, id="named like FaithBench's"),
        pytest.param({"id": "run 1", "data": ROWS}, id="named like Label Studio's"),
        pytest.param({"answer": "", "a": [[1, "]"]], "b": '{"[', "c": ROWS}, id="brackets around"),
    ],
)
@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "indented"])
def test_the_list_of_records_is_found_in_json_that_is_one_object(
    tmp_path: Path, written: dict[str, Any], indent: int | None
) -> None:
    path = tmp_path / "run.json"
    path.write_text("\ufeff" + json.dumps(written, indent=indent, ensure_ascii=False))
    first, second = items(path, answer="reply", id="nr", question="q.text")
    assert (first.id, second.id, first.meta) == ("7", "8", {})
    assert first.question == "Where?"
    assert table_layout(path).columns == ("nr", "q", "q.text", "reply")


def test_a_wrong_record_of_a_list_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"results": [*ROWS, {"reply": None}]}))
    with pytest.raises(InputError) as caught:
        items(path, answer="reply")
    assert (caught.value.line, caught.value.unit, caught.value.field) == (3, "record", "reply")


def test_another_list_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    other = [{"text": "In Rome."}]
    path.write_text(json.dumps({"answer": "In Paris.", "results": ROWS, "more": {"rows": other}}))
    (asked,) = table_layout(path).options
    assert (asked.name, asked.choices) == ("records", (".", "results", "more.rows"))
    chosen = [
        record.item.answer for record in read(path, ReadOptions(own={"records": "more.rows"}))
    ]
    assert chosen == ["In Rome."]
    with pytest.raises(InputError, match=r"no list of records at 'more'; .*more\.rows"):
        read_all(path, ReadOptions(own={"records": "more"}))
    with pytest.raises(UsageError, match=r"no option --records, and none .* own; json has it"):
        read_all(lines(tmp_path, {"id": "a", "answer": "x"}), ReadOptions(own={"records": "more"}))


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "indented"])
def test_an_object_with_an_answer_is_a_record_itself(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "one.json"
    record = {"question": "Where?", "answer": "In Paris.", "documents": [{"text": "a"}]}
    path.write_text(json.dumps(record, indent=indent))
    (item,) = items(path)
    assert (item.answer, item.passages[0].text) == ("In Paris.", "a")


def test_objects_printed_one_after_the_other_are_records(tmp_path: Path) -> None:
    path = tmp_path / "jq.json"
    path.write_text("".join(json.dumps(each, indent=2) + "\n" for each in ROWS))
    assert [item.id for item in items(path, answer="reply", id="nr")] == ["7", "8"]
    path.write_text(path.read_text() + "{\n  broken\n}\n")
    with pytest.raises(InputError, match="not valid JSON") as caught:
        items(path, answer="reply", id="nr")
    assert caught.value.line == 15


def test_lists_of_strings_and_texts_inside_objects_become_passages(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {"answer": "x", "docs": [{"content": "a", "rank": 1}, {"content": "b", "rank": 2}]},
        {"answer": "y", "docs": []},
    )
    first, second = items(path, passages="docs.content")
    assert [passage.text for passage in first.passages] == ["a", "b"]
    assert first.meta == {"docs": [{"rank": 1}, {"rank": 2}]}
    assert (second.passages, second.meta) == ((), {})
    path = lines(tmp_path, {"id": "1", "answer": "x", "contexts": ["a", "b"]})
    assert [passage.text for passage in items(path)[0].passages] == ["a", "b"]


def test_the_fields_that_can_be_mapped_are_named(tmp_path: Path) -> None:
    path = lines(tmp_path, {"a": {"b": 1}, "c": [{"d": "x"}]}, {"e": "y"})
    assert table_layout(path).columns == ("a", "a.b", "c", "c.d", "e")
    with pytest.raises(
        InputError, match=r"no column 'a.z' for answer; .*found \"the columns 'a', "
    ):
        items(path, answer="a.z")


@pytest.mark.parametrize(
    ("chat", "what"),
    [
        pytest.param("hello", "not a chat", id="a text"),
        pytest.param([ASKED], "messages: the model says nothing in this chat", id="asked"),
        pytest.param([7], "not a chat", id="numbers"),
    ],
)
def test_what_is_no_chat_is_refused_by_line(tmp_path: Path, chat: Any, what: str) -> None:
    path = lines(tmp_path, {"messages": [ASKED, SAID]}, {"messages": chat})
    with pytest.raises(InputError) as caught:
        items(path)
    assert what in str(caught.value)
    assert caught.value.line == 2


def saved(path: Path, **options: Any) -> Path:
    """A table as ``save_to_disk`` writes it."""
    table = pa.table(
        {
            "response": [{"text": "In Paris."}, {"text": "x"}],
            "docs": [[{"content": "a"}], []],
            "kind": pa.array(["k", "k"]).dictionary_encode(),
            "image": [b"1", b"2"],
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_stream(file, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as stream,
    ):
        stream.write_table(table)
    return path


def test_arrow_files_are_read_with_paths_into_structures(tmp_path: Path) -> None:
    path = saved(tmp_path / "train" / "data-00000-of-00001.arrow")
    assert detect(path) == "arrow"
    remarks: list[str] = []
    options = ReadOptions(
        columns={"answer": "response.text", "passages": "docs.content"}, on_warning=remarks.append
    )
    first, second = (record.item for record in read(path, options))
    assert (first.id, first.answer, first.meta) == ("train-1", "In Paris.", {"kind": "k"})
    assert [passage.text for passage in first.passages] == ["a"]
    assert (second.id, second.passages) == ("train-2", ())
    assert "the columns 'image'" in remarks[0]


def test_ids_of_two_shards_differ(tmp_path: Path) -> None:
    paths = [saved(tmp_path / f"data-0000{n}-of-00002.arrow") for n in range(2)]
    ids = {item.id for path in paths for item in items(path, answer="response.text")}
    assert len(ids) == 4


@pytest.mark.parametrize("how", ["lz4", "zstd"])
def test_compressed_arrow_files_are_refused_before_they_are_unpacked(
    tmp_path: Path, how: str
) -> None:
    path = saved(tmp_path / "data.arrow", compression=how)
    with pytest.raises(InputError, match=r"it is compressed; expected .*save_to_disk"):
        items(path, answer="response.text")


def test_every_cut_of_an_arrow_file_is_an_error_or_its_rows(tmp_path: Path) -> None:
    whole = saved(tmp_path / "whole.arrow").read_bytes()
    path = tmp_path / "cut.arrow"
    for size in range(8, len(whole), 97):
        path.write_bytes(whole[:size])
        try:
            assert len(items(path, answer="response.text")) in {0, 2}
        except InputError as error:
            assert error.file is not None
