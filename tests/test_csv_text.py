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
from spanlab.output.csv_text import as_written, write_rows
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, Record, Span

PACKAGE = Path(__file__).parent.parent / "spanlab"
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "'=1", "''-2"]


@given(st.lists(st.one_of(st.text(), st.sampled_from(FORMULAS)), min_size=1))
def test_no_cell_begins_as_a_formula_does_and_all_come_back(cells: list[str]) -> None:
    text = io.StringIO(newline="")
    write_rows(text, [cells])
    (row,) = csv.reader(io.StringIO(text.getvalue(), newline="")) if any(cells) else [cells]
    assert not any(cell[:1] in tuple("=+-@\t\r") for cell in row if cell)
    assert [as_written(cell) for cell in row] == cells


def test_numbers_stay_numbers() -> None:
    text = io.StringIO()
    write_rows(text, [[-1.5, 2, None]])
    assert text.getvalue() == "-1.5,2,\n"


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
