"""Cells that a spreadsheet would run are texts in every CSV that is written."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.formats import read, write
from spanlab.output.csv_text import as_written, unguarded, write_rows
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, Record, Span

PACKAGE = Path(__file__).parents[2] / "spanlab"
FORMULAS = [
    *(
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "'=1",
        "''-2",
        "\n=1",
        "＝1",
        "＠x",
        '"=1',
        "a\r\n-1",
    ),
    *("a;=1+1", 'a;"=1+1', "a;'=1", "a\t+1", ";\n@", "\n'", "- one\n- two"),
]


@given(st.lists(st.one_of(st.text(), st.sampled_from(FORMULAS)), min_size=1))
def test_no_cell_begins_as_a_formula_does_and_all_come_back(cells: list[str]) -> None:
    text = io.StringIO(newline="")
    write_rows(text, [cells])
    (row,) = csv.reader(io.StringIO(text.getvalue(), newline="")) if any(cells) else [cells]
    assert not any(cell[:1] in tuple("=+-@\t\r\n＝＋－＠") for cell in row if cell)
    assert [as_written(cell) for cell in row] == cells


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_wherever_a_spreadsheet_splits_a_row_nothing_runs(separator: str, formula: str) -> None:
    """Of a file with commas, which a spreadsheet of other countries splits at semicolons."""
    text = io.StringIO(newline="")
    write_rows(text, [["id", formula], [formula, "b"]])
    rows = csv.reader(io.StringIO(text.getvalue(), newline=""), delimiter=separator)
    cells = [cell.lstrip('"') for row in rows for cell in row]
    assert not [cell for cell in cells if cell[:1] in tuple("=+-@＝＋－＠") and cell]


def test_numbers_stay_numbers_and_texts_are_quoted() -> None:
    text = io.StringIO()
    write_rows(text, [[-1.5, 2, "a;b", None]])
    assert text.getvalue() == '-1.5,2,"a;b",""\n'


@pytest.mark.parametrize("format", ["csv", "claims"])
@pytest.mark.parametrize("answer", FORMULAS)
def test_for_programs_cells_are_as_they_are_and_read_back_the_same(
    tmp_path: Path, format: str, answer: str
) -> None:
    claim = Claim(text=answer, verdict="refuted")
    annotation = Annotation(annotator="Anna", kind=AnnotatorKind.PERSON, claims=(claim,))
    record = Record(item=Item(id="1", answer=answer), annotations=(annotation,))
    with unguarded():
        write([record], tmp_path / "out.csv", format=format)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        assert any(answer in row.values() for row in csv.DictReader(stream))
    if format == "csv":
        assert next(read(tmp_path / "out.csv")).item == record.item


@pytest.mark.parametrize("format", ["csv", "claims"])
def test_an_export_is_safe_in_a_spreadsheet_and_reads_back_the_same(
    tmp_path: Path, format: str
) -> None:
    answer = "=HYPERLINK(0)"
    span = Span.of(answer, 0, 4).model_copy(update={"label": "@label"})
    claim = Claim(text=answer, verdict="refuted")
    annotation = Annotation(
        annotator="+name", kind=AnnotatorKind.PERSON, spans=(span,), claims=(claim,)
    )
    path = tmp_path / "out.csv"
    item = Item(id="-1", question="@q", answer=answer)
    write([Record(item=item, annotations=(annotation,))], path, format=format)
    written = io.StringIO(path.read_bytes().decode(), newline="")
    cells = [cell for row in csv.reader(written) for cell in row]
    assert not any(cell[:1] in tuple("=+-@") for cell in cells if cell)
    (record,) = read(path)
    assert record.item.answer == answer
    if format == "csv":
        assert record.item == item
        assert record.annotations[0].annotator == "+name"
        assert record.annotations[0].spans[0].label == "@label"


def test_nothing_else_writes_csv() -> None:
    writers = re.compile(r"csv\.(?:writer|DictWriter)|\.to_csv\(")
    others = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.glob("**/*.py")
        if path.name != "csv_text.py" and writers.search(path.read_text(encoding="utf-8"))
    ]
    assert others == []
