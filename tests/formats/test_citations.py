"""What an item cites, in files: ours and tables; files of others that only look like ours."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, read, write
from spanlab.schema import Citation, Item, Passage, Record

RECORD = Record(
    item=Item(
        id="a",
        answer="It is so. It is red.",
        passages=[Passage(text="one"), Passage(text="two")],
        citations=[Citation(start=0, end=9, passages=(0, 1))],
    )
)


def read_lines(path: Path, *lines: object) -> list[Record]:
    path.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    return list(read(path, ReadOptions(on_warning=lambda _: None)))


@pytest.mark.parametrize("format_", ["spanlab", "csv", "parquet", "labelstudio"])
def test_citations_come_back_as_they_were(tmp_path: Path, format_: str) -> None:
    stream = io.BytesIO()
    write([RECORD], stream, format=format_)
    path = tmp_path / "file"
    path.write_bytes(stream.getvalue())

    assert [record.item.citations for record in read(path, ReadOptions())] == [
        RECORD.item.citations
    ]


def test_a_table_of_before_is_read(tmp_path: Path) -> None:
    stream = io.BytesIO()
    write([RECORD], stream, format="csv")
    text = stream.getvalue().decode()
    cell = '"[{""start"":0,""end"":9,""passages"":[0,1]}]",'
    assert text.count('"citations",') == text.count(cell) == 1
    text = text.replace('"citations",', "").replace(cell, "")
    path = tmp_path / "old.csv"
    path.write_text(text, "utf-8")

    assert [record.item.citations for record in read(path, ReadOptions())] == [()]


@pytest.mark.parametrize(
    ("citation", "problem"),
    [
        ({"start": 0, "end": 99, "passages": [0]}, r"are no characters of the answer"),
        ({"start": 3, "end": 3, "passages": [0]}, r"are no characters of the answer"),
        ({"start": 0, "end": 3, "passages": [1]}, r"passage 1 does not exist, the item has 1"),
        ({"start": 0, "end": 3, "passages": []}, r"passages"),
    ],
    ids=["past the end", "empty", "no such passage", "of nothing"],
)
def test_a_citation_that_fits_nothing_is_refused(
    tmp_path: Path, citation: dict[str, object], problem: str
) -> None:
    line = {"id": "a", "answer": "It is so.", "passages": [{"text": "p"}], "citations": [citation]}
    with pytest.raises(InputError, match=problem):
        read_lines(tmp_path / "a.jsonl", line)
