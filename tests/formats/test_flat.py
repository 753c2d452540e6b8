"""Tables for analysis and for Hugging Face hold what was marked, with every column always there."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, RejectedRecord, read, write
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, Passage, Record, Span, Status

ANSWER = 'Oslo, "👍"\r\nhas 3 million.'
START = ANSWER.index("3")


def records() -> list[Record]:
    span = Span.of(ANSWER, START, START + 9, prob=0.75, label="Number")
    source = Span.of(ANSWER, START, START + 9)
    claim = Claim(text="It has 3 million.", source=source, verdict="refuted")
    item = Item(id="=1", lang="nb", answer=ANSWER, passages=(Passage(text="p"),), meta={"m": [1]})
    said = (
        Annotation(annotator="d", kind=AnnotatorKind.DETECTOR, spans=(span,), claims=(claim,)),
        Annotation(
            annotator="f", kind=AnnotatorKind.DETECTOR, status=Status.FAILED, note="no power"
        ),
    )
    return [Record(item=item, annotations=said), Record(item=Item(id="2", answer="x"))]


def test_a_table_has_a_row_for_each_item_and_annotator(tmp_path: Path) -> None:
    assert write(records(), tmp_path / "t.csv", format="csv") == 2
    assert write(records(), tmp_path / "t.parquet", format="parquet") == 2
    with (tmp_path / "t.csv").open(newline="") as file:
        flat = list(csv.DictReader(file))
    nested = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert [(row["id"], row["annotator"], row["status"]) for row in flat] == [
        ("'=1", "d", "done"),
        ("'=1", "f", "failed"),
        ("2", "", ""),
    ]
    assert flat[0]["answer"] == nested[0]["answer"] == ANSWER
    for row, other in zip(flat, nested, strict=True):
        for name in ("passages", "spans", "claims"):
            assert (json.loads(row[name]) if row[name] else None) == other[name]
    assert nested[0]["spans"][0]["text"] == "3 million"
    assert nested[0]["claims"][0]["start"] == START
    assert json.loads(nested[0]["meta"]) == {"m": [1]}


@pytest.mark.parametrize("name", ["csv", "parquet", "huggingface"])
def test_what_was_written_comes_back_with_all_annotators(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"t.{name}"
    write(records(), path, format=name)
    if name == "huggingface":
        with zipfile.ZipFile(path) as archive:
            path = Path(archive.extract("data/train.jsonl", tmp_path))
    assert list(read(path)) == records()
    assert [record.annotations for record in read(path, ReadOptions(columns={"id": "id"}))] != [
        record.annotations for record in records()
    ]  # whoever maps the columns says what they are


def test_a_cell_that_somebody_broke_is_named(tmp_path: Path) -> None:
    write(records(), tmp_path / "t.csv", format="csv")
    whole = (tmp_path / "t.csv").read_bytes()
    for old, new, wrong in (
        (b'""prob"":0.75', b'""prob"":7', "annotations.0.spans.0.prob"),
        (b'"detector","failed"', b'"somebody","failed"', "annotations.1.kind"),
        (b'{""m"":[1]}', b"{", "meta: "),
        (b'""start"":15', b'""start"":16', "annotations.0"),
    ):
        (tmp_path / "broken.csv").write_bytes(whole.replace(old, new, 1))
        with pytest.raises(InputError, match=wrong) as error:
            list(read(tmp_path / "broken.csv"))
        assert "broken.csv, line 2" in str(error.value)


def test_an_item_with_too_many_annotators_to_hold_is_refused_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_RECORD_LIMIT", "1")
    said = [
        Annotation(annotator=f"p{n}", kind=AnnotatorKind.PERSON, note="long " * 1000)
        for n in range(200)
    ]
    many = Record(item=Item(id="many", answer="x"), annotations=tuple(said))
    one = Record(item=Item(id="one", answer="x"), annotations=tuple(said[:1]))
    write([many, one], tmp_path / "t.csv", format="csv")
    rejected: list[RejectedRecord] = []
    (kept,) = read(tmp_path / "t.csv", ReadOptions(on_reject=rejected.append))
    assert kept == one
    assert [(each.line, "all its annotations" in each.reason) for each in rejected] == [(2, True)]


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
            kinds = {"string": str, "int64": int, "float64": float, "bool": bool}
            return value is None or isinstance(value, kinds[str(feature["dtype"])])
        names = {each["name"]: each for each in inner}
        if value is None:
            return True
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
