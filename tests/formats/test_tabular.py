"""Tables: columns find our fields, cells keep their text, and nothing becomes "nan"."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from spanlab.base.errors import InputError, UsageError
from spanlab.data.import_preview import preview_import
from spanlab.data.importing import ImportOptions
from spanlab.formats import (
    ReadOptions,
    RejectedRecord,
    detect,
    read,
    read_placed,
    recipe_of,
    table_layout,
)
from spanlab.formats.files import InputFile
from spanlab.formats.known.csv_table import CsvReader
from spanlab.formats.limits import MOST_COLUMNS
from spanlab.schema import AnnotatorKind, Passage, Record


def table(tmp_path: Path, text: str, name: str = "table.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def parquet(tmp_path: Path, columns: dict[str, list[Any]]) -> Path:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def records(path: Path, **options: Any) -> list[Record]:
    return list(read(path, ReadOptions(**options)))


def test_common_column_names_are_found(tmp_path: Path) -> None:
    path = table(
        tmp_path, "ID,Language,Query,Response,Context,score\n7,EN,why?,because,so it is,5\n"
    )
    assert detect(path) == "csv"
    (record,) = records(path)
    assert record.item.id == "7"
    assert record.item.lang == "en"
    assert record.item.question == "why?"
    assert record.item.answer == "because"
    assert record.item.passages == (Passage(text="so it is"),)
    assert record.item.meta == {"score": "5"}
    assert record.annotations == ()


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"], ids=["comma", "semicolon", "tab", "bar"])
def test_the_delimiter_is_found(tmp_path: Path, mark: str) -> None:
    path = table(tmp_path, mark.join(["id", "answer", "x"]) + "\n" + mark.join("1ab") + "\n")
    assert [record.item.answer for record in records(path)] == ["a"]


def test_cells_keep_their_text(tmp_path: Path) -> None:
    """CRLF, emoji and quotes inside a cell keep their characters."""
    answer = 'a\r\nb, "😀"\nc'
    cell = answer.replace('"', '""')
    path = table(tmp_path, f'\ufeffid,answer,spans\r\n1,"{cell}","[[7,8]]"\r\n')
    (record,) = records(path)
    assert record.item.answer == answer
    (gold,) = record.annotations
    assert (gold.annotator, gold.kind) == ("gold", AnnotatorKind.GOLD)
    assert [(s.start, s.end, s.text) for s in gold.spans] == [(7, 8, "😀")]


def test_a_cell_says_nothing_if_it_is_empty_or_a_program_wrote_none(tmp_path: Path) -> None:
    cells = "1,Yes,,NA,,None\n2,No,null,,0,nan\n"
    path = table(tmp_path, f"id,answer,question,country,n,contexts\n{cells}")
    first, second = records(path)
    assert (first.item.question, first.item.passages) == ("", ())
    assert first.item.meta == {"country": "NA"}
    assert (second.item.question, second.item.passages) == ("", ())
    assert second.item.meta == {"n": "0"}


@pytest.mark.parametrize("cell", ["", "None", "nan", "NaN"])
def test_a_row_whose_answer_is_missing_is_refused(tmp_path: Path, cell: str) -> None:
    path = table(tmp_path, f"id,answer\n1,Yes\n2,{cell}\n")
    with pytest.raises(InputError, match=r"line 3, answer: there is no answer.*--skip-bad"):
        records(path)


@pytest.mark.parametrize(
    "header",
    [
        "السؤال,الإجابة,المصدر",
        "Pregunta,Resposta,Context",
        "otázka,odpověď,kontext",
        "Frage,Antwort,Quelle",
        "pregunta,respuesta,fuente",
        "galdera,erantzuna,iturria",
        "پرسش,پاسخ,منبع",
        "Kysymys,Vastaus,Lähde",
        "question,réponse,contexte",
        "प्रश्न,उत्तर,स्रोत",
        "domanda,risposta,fonte",
        "Fråga,Svar,Källa",
        "问题,回答,来源",
    ],
)
def test_columns_are_named_in_other_languages_too(tmp_path: Path, header: str) -> None:
    (record,) = records(table(tmp_path, f"{header}\nWho?,Ada.,Ada did it.\n"))
    assert (record.item.question, record.item.answer) == ("Who?", "Ada.")
    assert record.item.passages == (Passage(text="Ada did it."),)


@pytest.mark.parametrize(
    "names", ["inputs,outputs", "input,output", "request,response", "trace_input,trace_output"]
)
def test_what_a_chain_was_given_and_said_may_be_objects_in_texts(
    tmp_path: Path, names: str
) -> None:
    path = table(tmp_path, f'id,{names}\n1,"{{""query"":""Who?""}}","{{""answer"":""Ada.""}}"\n')
    became: dict[str, str] = {}
    (record,) = records(path, on_fields=lambda _, fields: became.update(fields))
    assert (record.item.question, record.item.answer) == ("Who?", "Ada.")
    assert [became[name] for name in names.split(",")] == ["question", "answer"]


@pytest.mark.parametrize(
    ("start", "end"), [("start_char", "end_char"), ("begin", "end"), ("startOffset", "endOffset")]
)
def test_the_ends_of_a_span_have_several_names(tmp_path: Path, start: str, end: str) -> None:
    row = {"answer": "Ada did it.", "spans": [{start: 0, end: 3}]}
    (record,) = records(table(tmp_path, json.dumps(row) + "\n", "rows.jsonl"))
    assert [span.text for span in record.annotations[0].spans] == ["Ada"]


def test_marks_that_are_not_understood_are_said(tmp_path: Path) -> None:
    row = {"answer": "Ada did it.", "spans": [{"x1": 0, "x2": 3}]}
    said: list[str] = []
    path = table(tmp_path, json.dumps(row) + "\n", "rows.jsonl")
    (record,) = records(path, on_warning=said.append)
    assert record.item.meta == {"spans": row["spans"]}
    assert any("'spans' has no readable spans and is kept in meta" in line for line in said)


def test_a_mapping_names_their_columns(tmp_path: Path) -> None:
    path = table(tmp_path, "key,said,asked,text\nk1,yes,sure?,other\n")
    (record,) = records(path, columns={"id": "key", "answer": "said", "question": "asked"})
    assert (record.item.id, record.item.answer, record.item.question) == ("k1", "yes", "sure?")
    # A column is used once: "text" would be an answer by name, but another was named.
    assert record.item.meta == {"text": "other"}


def test_rows_without_an_id_are_numbered(tmp_path: Path) -> None:
    path = table(tmp_path, "answer\nx\ny\n", "my.answers.csv")
    assert [record.item.id for record in records(path)] == ["my-1", "my-2"]


def test_passages_and_spans_may_be_json(tmp_path: Path) -> None:
    passages = json.dumps(["one", {"text": "two", "title": "T", "rank": 1}])
    spans = json.dumps([{"start": 4, "end": 8, "text": "1815", "prob": 0.5, "label": "Year"}])
    quoted = [cell.replace('"', '""') for cell in (passages, spans)]
    path = table(tmp_path, f'answer,passages,spans\nin: 1815,"{quoted[0]}","{quoted[1]}"\n')
    (record,) = records(path)
    assert record.item.passages == (Passage(text="one"), Passage(text="two", title="T"))
    (span,) = record.annotations[0].spans
    assert (span.text, span.prob, span.label) == ("1815", 0.5, "Year")


def test_no_spans_differ_from_no_cell(tmp_path: Path) -> None:
    """An empty list says "checked, none", an empty cell says nothing."""
    checked, unknown = records(table(tmp_path, "answer,spans\nx,[]\ny,\n"))
    assert [a.spans for a in checked.annotations] == [()]
    assert unknown.annotations == ()


def test_marked_texts_may_say_that_nobody_judged_an_answer(tmp_path: Path) -> None:
    """A word in a table, null in JSON; an empty cell beside marked texts marks nothing."""
    rows = [("It was 1901.", "1901"), ("It was red.", ""), ("It was big.", "Not judged")]
    lines = "".join(f"{answer},{marked}\n" for answer, marked in rows)
    told: list[str] = []
    in_table = records(
        table(tmp_path, f"answer,hallucinated_text\n{lines}"), on_warning=told.append
    )
    path = tmp_path / "rows.jsonl"
    cells = [{"answer": answer, "hallucinated_text": marked} for answer, marked in rows]
    cells[2]["hallucinated_text"] = None  # type: ignore[assignment]  # as the file may have it
    path.write_text("".join(json.dumps(row) + "\n" for row in cells), "utf-8")
    for marked, empty, unjudged in (in_table, records(path, on_warning=told.append)):
        assert [span.text for span in marked.annotations[0].spans] == ["1901"]
        assert not empty.annotations[0].hallucinated
        assert unjudged.annotations == ()
    assert all("read as nothing marked; 'not judged' says otherwise" in each for each in told)


def test_a_passage_may_begin_with_a_bracket(tmp_path: Path) -> None:
    (record,) = records(table(tmp_path, 'answer,context\nx,"[1] Oslo is a city."\n'))
    assert record.item.passages == (Passage(text="[1] Oslo is a city."),)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        pytest.param(
            "a,b\n1,2\n",
            {},
            "no column for answer; expected one named answer or",
            id="no answer column",
        ),
        pytest.param(
            "a,b\n1,2\n",
            {"columns": {"answer": "c"}},
            "no column 'c' for answer; ",
            id="a column that is not there",
        ),
        pytest.param("answer,b\nx,1,2\n", {}, "the table is broken", id="a row too long"),
        pytest.param('answer,b\nx,"1\n', {}, "the table is broken", id="an open quote"),
        pytest.param("answer,b\n", {}, "the table has no rows", id="a header alone"),
    ],
)
def test_a_wrong_table_is_said_so(
    tmp_path: Path, text: str, options: dict[str, Any], said: str
) -> None:
    path = table(tmp_path, text)
    with pytest.raises(InputError, match=said) as caught:
        records(path, **options)
    assert caught.value.file == str(path)


@pytest.mark.parametrize(
    ("row", "field", "said"),
    [
        pytest.param(",[]", "reply", "there is no answer", id="no answer"),
        pytest.param("abc,[[1]]", "marks.0", "an object|valid dictionary", id="one offset"),
        pytest.param('abc,"[[1,9]]"', "marks.0", r"found \[1, 9\]", id="past the end"),
        pytest.param("abc,{{", "marks", "not valid JSON", id="no JSON"),
        pytest.param(
            'abc,"[{""start"":0,""end"":1,""text"":""b""}]"',
            "marks.0",
            "'a' stands",
            id="another text",
        ),
        pytest.param(
            'abc,"[{""start"":0,""end"":1,""prob"":3}]"', "marks.0.prob", "equal to 1", id="prob"
        ),
    ],
)
def test_a_wrong_cell_is_named_by_its_column(
    tmp_path: Path, row: str, field: str, said: str
) -> None:
    path = table(tmp_path, f"reply,marks\nfine,[]\n{row}\n")
    with pytest.raises(InputError, match=said) as caught:
        records(path, columns={"answer": "reply", "spans": "marks"})
    assert (caught.value.line, caught.value.field) == (3, field)  # the header is line 1


def test_a_wrong_cell_is_named_by_the_line_of_the_file(tmp_path: Path) -> None:
    """Lines, not rows: a cell may hold line breaks, and empty lines hold no row."""
    path = table(tmp_path, 'id,answer\r\n1,"one\r\ntwo\n"\r\n \r\n\r\n2,three\r\n3,\r\n')
    with pytest.raises(InputError, match=r"table.csv, line 8, answer: there is no answer"):
        records(path)
    kept = read_placed(path, ReadOptions(on_reject=lambda _: None))
    assert [each.line for each in kept] == [2, 7]


def test_rejects_of_a_table_name_its_lines(tmp_path: Path) -> None:
    rejects: list[RejectedRecord] = []
    path = table(tmp_path, 'answer\n"a\nb"\n""\nc\n')
    kept = records(path, on_reject=rejects.append)
    assert [record.item.id for record in kept] == ["table-1", "table-3"]
    assert [reject.line for reject in rejects] == [4]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        pytest.param('answer,b\n"x\ny",1\nx,1,2\n', 4, "3 cells, the header 2", id="too long"),
        pytest.param('answer,b\n"x\ny",1\nx,"1\n2\n', 4, "never closed", id="an open quote"),
    ],
)
def test_a_broken_row_is_named_by_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        records(table(tmp_path, text))
    assert caught.value.line == line


@given(st.text(alphabet='ab",; \n\t', max_size=30).map(lambda text: f"answer,b\n{text}"))
def test_the_lines_that_are_named_are_those_of_the_rows(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = table(tmp_path_factory.mktemp("tables"), text)
    try:
        rows = list(CsvReader(InputFile(path, "t"), ReadOptions()).rows())
    except InputError:
        return  # broken, or without rows: nothing is read
    lines = text.split("\n")
    for row in rows:
        first = str(next(iter(json.loads(row.raw).values()))).split("\n")[0]
        assert first.replace('"', "") in lines[row.line - 1].replace('"', "")
    places = [row.line for row in rows]
    assert places == sorted(set(places))


def test_an_unknown_field_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no field 'reply' to map a column to; known are id, lang"):
        records(table(tmp_path, "a\nb\n"), columns={"reply": "a"})


def test_a_table_in_latin_1_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(b"answer\n" + b"x" * 160_000 + b"\n" + b"x\n" * 4_000 + b"caf\xe9\n")
    with pytest.raises(InputError, match="not UTF-8") as caught:
        records(path)
    assert caught.value.line == 4_003


def test_a_packed_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"answer\nx\n"))
    assert [record.item.answer for record in records(path)] == ["x"]


def test_chunks_join_without_a_seam(tmp_path: Path) -> None:
    path = table(tmp_path, "id,answer\n" + "".join(f"{n},text {n}\n" for n in range(2500)))
    assert [record.item.id for record in records(path)] == [str(n) for n in range(2500)]


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    path = parquet(
        tmp_path,
        {
            "id": [1, 2],
            "answer": ["in 1815", "x"],
            "passages": [["one", "two"], None],
            "labels": [[{"start": 3, "end": 7, "text": "1815"}], []],
            "score": [0.5, float("nan")],
            "tags": [["a"], None],
        },
    )
    assert detect(path) == "parquet"
    first, second = records(path)
    assert (first.item.id, [p.text for p in first.item.passages]) == ("1", ["one", "two"])
    assert first.item.meta == {"score": 0.5, "tags": ["a"]}
    assert [span.text for span in first.annotations[0].spans] == ["1815"]
    # NaN and null are missing, and neither is a text.
    assert second.item.meta == {}
    assert [a.spans for a in second.annotations] == [()]


def test_a_missing_answer_in_parquet_is_named(tmp_path: Path) -> None:
    path = parquet(tmp_path, {"answer": ["x", None]})
    with pytest.raises(InputError, match="answer: there is no answer") as caught:
        records(path)
    assert (caught.value.line, caught.value.unit) == (2, "row")
    assert str(caught.value).startswith(f"{path}, row 2, answer: there is no answer")


def test_half_a_parquet_file_is_said_so(tmp_path: Path) -> None:
    path = parquet(tmp_path, {"answer": ["x"] * 100})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="not a parquet file"):
        records(path)


def test_columns_of_bytes_are_left_out_and_said(tmp_path: Path) -> None:
    image = {"bytes": b"\x89PNG\xff", "path": "a.png"}
    path = parquet(tmp_path, {"answer": ["x"], "image": [image], "raw": [b"\xff"], "n": [1]})
    remarks: list[str] = []
    (record,) = records(path, on_warning=remarks.append)
    assert record.item.meta == {"n": 1}
    assert remarks == [f"{path}: left out what holds bytes and no text: the columns 'image', 'raw'"]
    with pytest.raises(InputError, match=r"'raw' for answer; .* bytes and no text: the columns"):
        records(path, columns={"answer": "raw"}, on_warning=remarks.append)


def test_a_damaged_parquet_file_is_said_so_whatever_byte_is_wrong(tmp_path: Path) -> None:
    path = parquet(tmp_path, {"answer": ["x", "yé"], "tags": [["a"], ["b", "c"]]})
    whole = path.read_bytes()
    for place in range(4, len(whole), 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with suppress(InputError):  # or it can be read in spite of that
            records(path, format="parquet", on_warning=lambda _: None)


def test_the_columns_of_a_table_can_be_asked_for(tmp_path: Path) -> None:
    assert table_layout(table(tmp_path, "a;b\n1;2\n")).columns == ("a", "b")
    assert table_layout(parquet(tmp_path, {"x": [1]})).columns == ("x",)
    other = tmp_path / "items.jsonl"
    other.write_text('{"id":"a","answer":"x"}\n')
    assert table_layout(other).columns == ()


@pytest.mark.parametrize(("ending", "columns"), [("csv", 100_000), ("xlsx", 16_000)])
def test_a_table_wider_than_any_is_refused_at_once_in_a_sentence(
    tmp_path: Path, ending: str, columns: int
) -> None:
    path = tmp_path / f"wide.{ending}"
    rows = [["answer", *(f"c{n}" for n in range(1, columns))], ["It was 1925.", *range(1, columns)]]
    if ending == "csv":
        path.write_text("\n".join(",".join(map(str, row)) for row in rows), encoding="utf-8")
    else:
        book = Workbook(write_only=True)
        sheet = book.create_sheet()
        for row in rows:
            sheet.append(row)
        book.save(path)
    begun = process_time()
    for is_read in (
        lambda: list(read(path)),
        lambda: preview_import([path], ImportOptions()),
        lambda: recipe_of(path, ReadOptions(columns={"answer": "answer"})),
    ):
        with pytest.raises(
            InputError, match=f"{columns:,} columns; expected at most 5,000; a copy"
        ):
            is_read()
    assert process_time() - begun < 5


def test_a_table_as_wide_as_may_be_is_read(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    names = ["answer", *(f"c{n}" for n in range(1, MOST_COLUMNS))]
    path.write_text(f"{','.join(names)}\n{','.join(['It was 1925.'] * len(names))}", "utf-8")
    (record,) = read(path, ReadOptions(columns={"answer": "answer"}))
    assert record.item.answer == "It was 1925."
    path.write_text(f"{','.join(names)},more\n{','.join(['It.'] * (len(names) + 1))}", "utf-8")
    with pytest.raises(InputError, match="5,001 columns"):
        list(read(path))
