"""Tables in which each row is what one annotator says of an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, read
from spanlab.schema import AnnotatorKind, Record

YEAR, CAPITAL = "It was finished in 1901.", "Paris is the capital."
VERDICTS = f"""\
id,question,answer,annotator,hallucinated,comment
1,When?,{YEAR},ann,yes,wrong year
2,Which?,{CAPITAL},ann,no,
1,When?,{YEAR},bob,no,
2,Which?,{CAPITAL},gpt-4o judge,yes,
"""


def _read(
    folder: Path, content: str, name: str = "rows.csv", **options: Any
) -> tuple[list[Record], str, dict[str, str]]:
    """Return the records, what was remarked, and what the fields became."""
    (folder / name).write_text(content, "utf-8")
    remarks: list[str] = []
    fields: dict[str, str] = {}
    how = ReadOptions(
        on_warning=remarks.append, on_fields=lambda _, became: fields.update(became), **options
    )
    return list(read(folder / name, how)), "\n".join(remarks), fields


def _said(record: Record) -> dict[str, tuple[bool | None, list[tuple[int, int, str | None]]]]:
    return {
        one.annotator: (one.hallucinated, sorted((s.start, s.end, s.label) for s in one.spans))
        for one in record.annotations
    }


def test_rows_of_one_answer_become_an_item_with_an_annotation_of_each(tmp_path: Path) -> None:
    records, remarks, fields = _read(tmp_path, VERDICTS)
    assert [record.item.answer for record in records] == [YEAR, CAPITAL]
    assert [_said(record) for record in records] == [
        {"ann": (True, []), "bob": (False, [])},
        {"ann": (False, []), "gpt-4o judge": (True, [])},
    ]
    kinds = [one.kind for record in records for one in record.annotations]
    assert kinds == [AnnotatorKind.PERSON] * 3 + [AnnotatorKind.DETECTOR]
    assert "4 rows, each an annotator's judgement, became 2 items" in remarks
    assert "ann, gpt-4o judge, bob" not in remarks and "ann, bob, gpt-4o judge" in remarks
    assert fields["annotator"] == "annotators" and fields["hallucinated"] == "labels"
    assert records[0].item.meta["comment"] == {"ann": "wrong year", "bob": ""}


def test_an_id_that_counts_rows_does_not_keep_them_apart(tmp_path: Path) -> None:
    counted = "".join(
        f"{n},{row.split(',', 1)[1]}" for n, row in enumerate(VERDICTS.splitlines(True))
    ).replace("0,question", "id,question", 1)
    records, _, _ = _read(tmp_path, counted)
    assert [list(_said(record)) for record in records] == [["ann", "bob"], ["ann", "gpt-4o judge"]]


def test_samples_of_a_model_that_say_the_same_stay_apart(tmp_path: Path) -> None:
    rows = "id,question,answer,annotator,label\n" + "".join(
        f"{id_},Is it?,Yes.,ann,{label}\n" for id_, label in ((1, "ok"), (2, "ok"), (3, "bad"))
    )
    records, remarks, _ = _read(tmp_path, rows)
    assert [_said(record)["ann"][0] for record in records] == [False, False, True]
    assert "repeated" not in remarks


def test_one_answer_to_two_questions_or_of_two_ids_stays_two_items(tmp_path: Path) -> None:
    rows = "id,question,answer,rater,label\n" + "".join(
        f"{id_},{question},Yes.,{rater},faithful\n"
        for id_, question in ((1, "Is it?"), (2, "Was it?"), (3, "Was it?"))
        for rater in ("7", "8")
    )
    records, _, _ = _read(tmp_path, rows)
    assert [record.item.id for record in records] == ["1", "2", "3"]
    assert list(_said(records[0])) == ["annotator 7", "annotator 8"]


def test_a_marked_place_in_each_row(tmp_path: Path) -> None:
    rows = f"""\
doc,summary,error type,span_start,span_end,worker_id
7,{YEAR},number,19,23,w1
7,{YEAR},verb,7,15,w1
7,{YEAR},NULL,NULL,NULL,w2
8,{CAPITAL},NULL,NULL,NULL,w1
"""
    records, remarks, fields = _read(tmp_path, rows)
    assert [_said(record) for record in records] == [
        {"w1": (True, [(7, 15, "verb"), (19, 23, "number")]), "w2": (False, [])},
        {"w1": (False, [])},
    ]
    assert "4 rows, each a marked place, became 2 items with annotations of w1, w2" in remarks
    assert {fields[name] for name in ("span_start", "span_end", "error type")} == {"spans"}


def test_places_without_annotators_are_gold_and_must_be_in_the_answer(tmp_path: Path) -> None:
    rows = f"answer,start,end,text\n{YEAR},19,23,1901\n{CAPITAL},0,5,Paris\n{YEAR},0,2,It\n"
    records, _, _ = _read(tmp_path, rows)
    assert _said(records[0]) == {"gold": (True, [(0, 2, None), (19, 23, None)])}
    many = "answer,start,end,label\n" + f"{YEAR},19,23,a\n" * 60 + f"{YEAR},19,2300,a\n"
    with pytest.raises(InputError, match=r"late.csv, line 62, start: .*found '19 to 2300'"):
        _read(tmp_path, many, "late.csv")


@pytest.mark.parametrize(
    ("names", "first", "second"),
    [
        ("start,end", "0,1700", "1700,3400"),
        ("start,end", "3,7", "7,9"),
        ("page_start,page_end", "3,7", "7,9"),
    ],
)
def test_numbers_that_may_be_anything_are_no_places(
    tmp_path: Path, names: str, first: str, second: str
) -> None:
    rows = f"answer,{names}\n{YEAR},{first}\n{CAPITAL},{second}\n"
    records, remarks, _ = _read(tmp_path, rows)
    assert [record.annotations for record in records] == [(), ()] and not remarks


def test_what_stands_beside_a_place_is_said_of_it(tmp_path: Path) -> None:
    rows = f"answer,start,end,probability,comment,judge_model\n{YEAR},19,23,.7,wrong,gpt-4o\n"
    (record,), _, _ = _read(tmp_path, rows)
    (annotation,) = record.annotations
    assert (annotation.annotator, annotation.kind) == ("gpt-4o", AnnotatorKind.DETECTOR)
    (span,) = annotation.spans
    assert (span.prob, span.note, span.text) == (0.7, "wrong", "1901")


def test_a_second_judgement_of_one_annotator_is_said(tmp_path: Path) -> None:
    again = VERDICTS + f"1,When?,{YEAR},ann,no,\n"
    records, remarks, _ = _read(tmp_path, again)
    assert _said(records[0]) == {"ann": (False, []), "bob": (False, [])}
    assert "1 row repeated a judgement of the same annotator, of which the last one counts" in (
        remarks
    )


def test_spans_in_a_list_a_row_and_columns_that_people_name(tmp_path: Path) -> None:
    rows = "".join(
        json.dumps({"frage": "When?", "said": YEAR, "annotator": name, "spans": spans}) + "\n"
        for name, spans in (("ann", [[19, 23]]), ("bob", []))
    )
    records, _, _ = _read(tmp_path, rows, "rows.jsonl", columns={"answer": "said"})
    assert [_said(record) for record in records] == [
        {"ann": (True, [(19, 23, None)]), "bob": (False, [])}
    ]


def test_an_annotator_who_judges_nothing_joins_no_rows(tmp_path: Path) -> None:
    rows = f"answer,annotator\n{YEAR},ann\n{YEAR},bob\n"
    records, remarks, fields = _read(tmp_path, rows)
    assert len(records) == 2 and fields["annotator"] == "meta" and not remarks


def test_a_row_that_cannot_be_read_is_refused_by_its_number(tmp_path: Path) -> None:
    rows = '{"answer": "A.", "annotator": "ann", "label": "faithful"}\n'
    rejects: list[int] = []
    records, _, _ = _read(
        tmp_path, rows + "{broken\n" + rows, "rows.jsonl",
        on_reject=lambda reject: rejects.append(reject.line),
    )  # fmt: skip
    assert len(records) == 1 and rejects == [2]


def test_rows_of_crowd_workers(tmp_path: Path) -> None:
    rows = "HITId,WorkerId,Input.question,Input.answer,Input.context,Answer.label\n" + "".join(
        f"H,{worker},When?,{YEAR},It was finished in 1889.,{label}\n"
        for worker, label in (("W1", "hallucinated"), ("W2", "ok"))
    )
    records, _, _ = _read(tmp_path, rows)
    assert [_said(record) for record in records] == [{"W1": (True, []), "W2": (False, [])}]
    assert records[0].item.question == "When?"
    assert records[0].item.passages[0].text == "It was finished in 1889."


def test_the_label_of_a_place_is_no_verdict_whatever_it_says(tmp_path: Path) -> None:
    rows = f"""\
id,answer,worker_id,span_start,span_end,label
1,{YEAR},ann,19,23,wrong date
1,{YEAR},bob,7,15,wrong
1,{YEAR},cid,,,
"""
    (record,), remarks, _ = _read(tmp_path, rows)
    assert _said(record) == {
        "ann": (True, [(19, 23, "wrong date")]),
        "bob": (True, [(7, 15, "wrong")]),
        "cid": (False, []),
    }
    assert "judges whole answers" not in remarks


def test_what_annotators_say_differently_is_no_property_of_the_item(tmp_path: Path) -> None:
    rows = f"""\
id,answer,annotator,verdict
1,{YEAR},ann,faithful
1,{YEAR},bob,hallucinated
2,{CAPITAL},ann,hallucinated
2,{CAPITAL},ann,faithful
2,{CAPITAL},bob,faithful
"""
    records, _, _ = _read(tmp_path, rows)
    assert [record.item.meta for record in records] == [{}, {"verdict": "faithful"}]
