"""Tables for analysis and for Hugging Face hold what was marked, with every column always there."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq

from spanlab.datasets import read, write
from spanlab.schema import Annotation, Claim, Item, Kind, Passage, Record, Span, Status

ANSWER = 'Oslo, "👍"\r\nhas 3 million.'
START = ANSWER.index("3")


def records() -> list[Record]:
    span = Span.of(ANSWER, START, START + 9, prob=0.75, label="Number")
    claim = Claim(text="It has 3 million.", source=span, verdict="refuted")
    item = Item(id="=1", lang="nb", answer=ANSWER, passages=(Passage(text="p"),), meta={"m": [1]})
    said = (
        Annotation(annotator="d", kind=Kind.DETECTOR, spans=(span,), claims=(claim,)),
        Annotation(annotator="f", kind=Kind.DETECTOR, status=Status.FAILED, note="no power"),
    )
    return [Record(item=item, annotations=said), Record(item=Item(id="2", answer="x"))]


def test_a_table_has_a_row_for_each_item_and_annotator(tmp_path: Path) -> None:
    assert write(records(), tmp_path / "t.csv", format="csv") == 2
    assert write(records(), tmp_path / "t.parquet", format="parquet") == 2
    with (tmp_path / "t.csv").open(newline="") as file:
        flat = list(csv.DictReader(file))
    nested = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert [(row["id"], row["annotator"], row["status"]) for row in flat] == [
        ("=1", "d", "done"),
        ("=1", "f", "failed"),
        ("2", "", ""),
    ]
    assert flat[0]["answer"] == nested[0]["answer"] == ANSWER
    for row, other in zip(flat, nested, strict=True):
        for name in ("passages", "spans", "claims"):
            assert (json.loads(row[name]) if row[name] else None) == other[name]
    assert nested[0]["spans"][0]["text"] == "3 million"
    assert nested[0]["claims"][0]["start"] == START
    assert json.loads(nested[0]["meta"]) == {"m": [1]}


def test_a_table_of_one_annotator_is_read_back_with_its_spans(tmp_path: Path) -> None:
    for name in ("csv", "parquet"):
        path = tmp_path / f"t.{name}"
        write(records(), path, format=name, annotator="d")
        first, second = read(path)
        (gold,) = first.annotations
        assert [(s.start, s.end, s.prob, s.label) for s in gold.spans] == [
            (START, START + 9, 0.75, "Number")
        ]
        assert (first.item.answer, first.item.passages[0].text) == (ANSWER, "p")
        assert second.annotations == ()


def test_the_folder_for_hugging_face_has_a_card_that_declares_every_field(tmp_path: Path) -> None:
    path = tmp_path / "d.zip"
    assert write(records(), path, format="huggingface", title="mine | <b>") == 2
    with zipfile.ZipFile(path) as archive:
        card = archive.read("README.md").decode()
        lines = [json.loads(line) for line in archive.read("data/train.jsonl").splitlines()]
    _, front, text = card.split("---\n", 2)
    said = {
        key: json.loads(value)
        for key, _, value in (line.partition(": ") for line in front.splitlines())
    }
    assert said["configs"][0]["data_files"] == "data/train.jsonl"
    assert said["language"] == ["nb"]

    def fits(value: object, feature: dict[str, object]) -> bool:
        inner = feature.get("list")
        if not isinstance(inner, list):
            kinds = {"string": str, "int64": int, "float64": float}
            return value is None or isinstance(value, kinds[str(feature["dtype"])])
        names = {each["name"]: each for each in inner}
        assert isinstance(value, list)
        return all(
            each.keys() == names.keys() and all(fits(each[name], names[name]) for name in names)
            for each in value
        )

    for line in lines:
        assert list(line) == list(lines[0])
    (whole,) = ({"list": said["dataset_info"]["features"]},)
    assert fits(lines, whole)
    assert "# mine \\| \\<b\\>" in text
    assert "| d | detector | 1 |" in text
    one, two = (tmp_path / name for name in ("1.zip", "2.zip"))
    write(records(), one, format="huggingface")
    write(records(), two, format="huggingface")
    assert one.read_bytes() == two.read_bytes()
