"""A file's format is told from its content, not from its name."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, detect, read

LABELS: dict[str, Any] = {"soft_labels": [], "hard_labels": []}


def file(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "data.bin"
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    ("content", "name"),
    [
        pytest.param('{"id":"a","answer":"x"}\n', "spanlab", id="our own"),
        pytest.param('{"id":"a","answer":"x","soft_labels":1}', "ambiguous", id="two at once"),
        pytest.param('{"id":"a","model_output_text":"x"}\n', "mushroom", id="a test file"),
        pytest.param(json.dumps({"id": "a", **LABELS}), "mushroom", id="a submission"),
        pytest.param('{"id":"1","source_id":"2","response":"x"}', "ragtruth", id="responses"),
        pytest.param('{"samples": [{"sample_id": 1}]}', "faithbench", id="a batch"),
        pytest.param('{\n "samples": [\n]}', "faithbench", id="a pretty batch"),
        pytest.param('[{"id":1,"data":{},"annotations":[]}]', "labelstudio", id="an export"),
        pytest.param('[\n {"id": 1,\n "data": {}}]', "labelstudio", id="pretty bare tasks"),
        pytest.param('[{"id":"a","answer":"x"}]', "spanlab", id="an array of ours"),
        pytest.param('oops\n{"id":"a","answer":"x"}\n', "spanlab", id="text before JSON"),
        pytest.param('note,data\na,"\n{}\n"\n', "csv", id="an empty object in a cell"),
        pytest.param('{oops}\n{"id":"a","answer":"x"}\n', "spanlab", id="a broken first line"),
        pytest.param("id,answer\n1,x\n", "csv", id="a table"),
        pytest.param("id\tanswer\n1\tx\n", "csv", id="a table with tabs"),
        pytest.param('{"id":"a","body":"x"}\n', "json", id="other JSON"),
        pytest.param("[1, 2]", "none", id="numbers"),
        pytest.param('"text"', "none", id="a string"),
    ],
)
def test_the_format_is_told_from_the_content(tmp_path: Path, content: str, name: str) -> None:
    path = file(tmp_path, content)
    if name == "none":
        with pytest.raises(InputError, match=r"no objects|not recognised"):
            detect(path)
    elif name == "ambiguous":
        with pytest.raises(InputError, match="the format may be spanlab or mushroom"):
            detect(path)
    else:
        assert detect(path) == name


LONG = "x " * 2_500_000  # a passage as RAG items have it, of 5 MB


@pytest.mark.parametrize("model", [{}, {"model": "m"}], ids=["bare", "with a model"])
def test_annotations_that_are_places_are_somebodys_own_marks(
    tmp_path: Path, model: dict[str, str]
) -> None:
    said = {"id": "a", "question": "When?", "answer": "In 1925.", **model}
    marks = [[], [{"start": 3, "end": 7, "text": "1925", "label": "date"}]]
    lines = [json.dumps(said | {"id": str(n), "annotations": each}) for n, each in enumerate(marks)]
    for ordered in (lines, lines[::-1]):
        records = {record.item.id: record for record in read(file(tmp_path, "\n".join(ordered)))}
        (place,) = records["1"].annotations[0].spans
        assert (place.start, place.end, place.label) == (3, 7, "date")
        assert records["0"].annotations[0].spans == ()


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("record", "name"),
    [
        pytest.param({"passages": LONG, "id": "a", "answer": "x"}, "spanlab", id="our own"),
        pytest.param({"c": LONG, "id": "a", "model_output_text": ""}, "mushroom", id="mushroom"),
        pytest.param({"c": LONG, "id": "a", **LABELS}, "mushroom", id="a submission"),
        pytest.param({"c": LONG, "source_id": "2", "response": "x"}, "ragtruth", id="ragtruth"),
        pytest.param({"c": LONG, "samples": []}, "faithbench", id="faithbench"),
        pytest.param({"c": LONG, "id": 1, "data": {}}, "labelstudio", id="labelstudio"),
    ],
)
def test_a_first_line_of_any_length_is_recognised(
    tmp_path: Path, record: dict[str, Any], name: str, packed: bool
) -> None:
    line = json.dumps(record) + "\n"
    for number, content in enumerate((line, line * 2, f"{{oops}}\n{line}", f"{line[:-9]}\n{line}")):
        path = tmp_path / f"{number}.bin"
        path.write_bytes(gzip.compress(content.encode(), 1) if packed else content.encode())
        assert detect(path) == name


def test_an_array_in_one_long_line_is_recognised(tmp_path: Path) -> None:
    assert (
        detect(file(tmp_path, json.dumps([{"meta": {"m": LONG}, "id": "a", "answer": "x"}])))
        == "spanlab"
    )


def test_only_the_first_records_are_read_to_recognise_a_file(tmp_path: Path) -> None:
    line = json.dumps({"passages": LONG[:100_000], "id": "a", "answer": "x"}) + "\n"
    path = file(tmp_path, line * 200)  # 20 MB
    tracemalloc.start()
    assert detect(path) == "spanlab"
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2_000_000


def test_what_can_be_read_is_said_of_a_file_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(file(tmp_path, "- question: Who?\n  answer: me\n"))
    said = str(caught.value)
    for part in ("JSON Lines, CSV, Excel", "one answer per record", r"'- question: Who?\n"):
        assert part in said
    assert len(said) < 300


def test_json_of_unknown_fields_asks_which_is_the_answer(tmp_path: Path) -> None:
    path = file(tmp_path, '{"id":"a","body":"x"}\n')
    assert detect(path) == "json"
    with pytest.raises(InputError, match=r"no column for answer; .*a mapping answer=COLUM.*'body'"):
        list(read(path))


def test_a_named_format_is_not_guessed(tmp_path: Path) -> None:
    path = file(tmp_path, '{"id":"a","answer":"x","model_output_text":"y"}\n')
    with pytest.raises(InputError, match=r"may be spanlab or mushroom; .*with the format option"):
        detect(path)
    (record,) = read(path, ReadOptions(format="mushroom"))
    assert (record.item.answer, record.item.meta) == ("y", {"answer": "x"})


def test_the_shared_files_are_recognised(shared: Path) -> None:
    for path in (shared / "mushroom" / "val").glob("*.jsonl"):
        assert detect(path) == "mushroom"
    for path in (shared / "mushroom" / "golden").glob("*.jsonl"):
        assert detect(path) == "mushroom"
    for path in (shared / "faithbench").glob("*.json"):
        assert detect(path) == "faithbench"
