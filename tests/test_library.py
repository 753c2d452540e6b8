"""Rows in, frames out: the few functions of the library, as a notebook calls them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import spanlab
from spanlab.base.errors import InputError, UsageError
from spanlab.integrations.keywords import in_keywords
from spanlab.schema import AnnotatorKind, Status
from spanlab.text.labels import ItemLabels

pytestmark = pytest.mark.system("offline")

QUESTION, ANSWER = "How many people live in Paris?", "Paris has 3 million people."
PASSAGE = "Paris has 2.1 million inhabitants."
ROWS: list[dict[str, Any]] = [
    {
        "question": QUESTION,
        "answer": ANSWER,
        "passages": [PASSAGE],
        "label": [{"start": 10, "end": 19}],
        "model": "a" if number % 2 else "b",
    }
    for number in range(4)
]


def three(item: spanlab.Item) -> list[tuple[int, int]]:
    return [(item.answer.find("3"), item.answer.find(" people"))]


def equal(right: ItemLabels, scored: ItemLabels) -> float:
    return float(right.hard == scored.hard)


@pytest.fixture
def records() -> list[spanlab.Record]:
    return spanlab.annotate(spanlab.load(ROWS), ["offline", three])


def test_an_answer_prints_with_its_spans_marked() -> None:
    found = spanlab.detect(ANSWER, passages=PASSAGE, detector=three)
    assert str(found) == "Paris has ⟦3 million⟧ people."
    assert "<mark class='hard'" in found._repr_html_()
    assert [span.text for span in found.spans] == ["3 million"]
    assert found.annotator == "three"
    frame = found.to_pandas()
    assert list(frame["text"]) == ["3 million"]
    assert {"start", "end", "prob", "label", "note", "evidence"} <= set(frame.columns)
    assert "answer" not in found.model_dump()
    assert spanlab.detect(ANSWER, passages=[{"text": PASSAGE}]).status is Status.DONE
    with pytest.raises(InputError, match="lang"):
        spanlab.detect(ANSWER, lang="English!")


def test_rows_are_a_list_a_frame_or_whatever_yields_dicts() -> None:
    import datasets  # each worker would take a second to collect it

    expected = [spanlab.load([row])[0].item.answer for row in ROWS]
    frame = pd.DataFrame(ROWS)
    frame["at"] = pd.Timestamp("2026-01-02")
    frame["score"] = np.array([0.5, np.nan, 1.0, 2.0])
    hugging_face = datasets.Dataset.from_list(ROWS)
    for source in (ROWS, frame, (row for row in ROWS), hugging_face):
        read = spanlab.load(source)
        assert [record.item.answer for record in read] == expected
        assert [record.item.passages[0].text for record in read] == [PASSAGE] * 4
        assert [record.by("gold").spans[0].text for record in read] == ["3 million"] * 4  # type: ignore[union-attr]  # each has it
    metas = [record.item.meta for record in spanlab.load(frame)]
    assert [meta.get("score") for meta in metas] == [0.5, None, 1.0, 2.0]
    assert spanlab.load([]) == []


@pytest.mark.parametrize(
    "names",
    [
        ("question", "answer", "contexts"),
        ("query", "response", "context"),
        ("user_input", "response", "retrieved_contexts"),
        ("input", "output", "retrieval_context"),
    ],
)
def test_other_peoples_names_of_columns_are_known(names: tuple[str, str, str]) -> None:
    values: tuple[object, ...] = (QUESTION, ANSWER, [PASSAGE])
    (record,) = spanlab.load([dict(zip(names, values, strict=True))])
    item = record.item
    assert (item.question, item.answer) == (QUESTION, ANSWER)
    assert [passage.text for passage in item.passages] == [PASSAGE]


def test_the_language_is_told_from_the_texts_as_the_command_does() -> None:
    row = {"question": "Wie alt ist er?", "answer": "Der Turm wurde von Ada nicht gebaut."}
    assert [record.item.lang for record in spanlab.load([row])] == ["de"]
    assert [record.item.lang for record in spanlab.annotate([row], three)] == ["de"]
    stated = spanlab.load([row, {**row, "lang": "fr"}], lang="nl")
    assert [record.item.lang for record in stated] == ["nl", "fr"]
    seen = list[str]()

    def look(item: spanlab.Item) -> None:
        seen.append(item.lang)

    spanlab.detect(row["answer"], detector=look)
    spanlab.check(row["answer"], lang="nl", detector=look)
    assert seen == ["de", "nl"]
    with pytest.raises(UsageError, match="lang: 'no tag!' is not a language tag"):
        spanlab.load([row], lang="no tag!")


def test_errors_name_keywords_and_no_options_of_the_command() -> None:
    """Each is one that the command says with its own options."""
    twice = [{"id": "a", "answer": "x"}] * 2
    calls: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
        (spanlab.load, ([{"id": "a", "spans": []}],), {}),
        (spanlab.load, ([{"reply": "x"}],), {"hallucinated_if": "y=1"}),
        (spanlab.load, ([*twice, {"id": "b", "answer": 3}],), {}),
        (spanlab.detect, ("x",), {"config": "a.toml"}),
        (spanlab.detect, ("x",), {"again": True}),
        (spanlab.detect, ("x",), {"option": "floor"}),
        (spanlab.annotate, ([{"answer": "x"}], "ucsc-extract"), {"search": "bm25"}),
    ]
    for function, given, options in calls:
        with pytest.raises((InputError, UsageError)) as caught:
            function(*given, **options)
        assert " --" not in str(caught.value)
        assert "(--" not in str(caught.value)
        assert "--" not in repr(caught.value.args)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "--encoding windows-1252 or latin-1 reads it",
            'encoding="windows-1252" or latin-1 reads it',
        ),
        ("--column answer=out.0 takes it", 'columns={"answer": "out.0"} takes it'),
        ("--column 'answer=a b', or x", 'columns={"answer": "a b"}, or x'),
        ("a mapping answer=COLUMN (--column)", "a mapping answer=COLUMN (columns)"),
        ("--hallucinated-if compares one value", "hallucinated_if compares one value"),
        ("--hallucinated-if none reads none", 'hallucinated_if="none" reads none'),
        ("3 records are wrong; --skip-bad leaves them out", "3 records are wrong"),
        ("see `spanlab annotate d --again`", "see `spanlab annotate d --again`"),
        (
            "run spanlab import FILE --dataset NAME; --again",
            "run spanlab import FILE --dataset NAME; again",
        ),
    ],
)
def test_an_option_of_the_command_is_a_keyword(said: str, told: str) -> None:
    assert in_keywords(said) == told


def test_a_wrong_row_is_named_with_its_field() -> None:
    with pytest.raises(InputError, match=r"rows, row 2.*answer") as caught:
        spanlab.load([*ROWS[:1], {**ROWS[0], "answer": None}])
    assert caught.value.line == 2
    with pytest.raises(InputError, match="rows, row 2: a row is not a dict"):
        spanlab.load([ROWS[0], "answer"])
    with pytest.raises(InputError, match="a list of dicts"):
        spanlab.load([ANSWER])


def test_half_an_emoji_is_replaced_wherever_it_comes_in() -> None:
    answer, passage = "It was \ud83d built in 1989.", "It was built in 1889 \ud83d."
    marked = spanlab.detect(answer, question="\udc4d?", passages=[passage])
    assert str(marked) == "It was \ufffd built in ⟦1989⟧."
    assert spanlab.detect(answer, passages={"text": passage}).spans == marked.spans
    rows = [{"answer": answer, "passages": [passage], "\ud83d": "\ud83d"}]
    with pytest.warns(UserWarning, match="half of an emoji"):
        (record,) = spanlab.annotate(rows, "offline")
    assert record.item.answer == "It was \ufffd built in 1989."
    assert [span.text for span in record.annotations[0].spans] == ["1989"]
    with pytest.warns(UserWarning, match="half of an emoji"):
        assert spanlab.load(rows)[0].item == record.item


def test_several_detectors_annotate_and_vote(records: list[spanlab.Record]) -> None:
    assert [a.annotator for a in records[0].annotations] == ["gold", "offline", "three"]
    voted = spanlab.vote(records)
    assert [record.annotations[-1].voters for record in voted] == [("offline", "three")] * 4
    with pytest.raises(UsageError, match="three"):
        spanlab.annotate(records, [three, three])
    with pytest.raises(UsageError, match="is not a detector"):
        spanlab.annotate(records, ["offline", 3])  # type: ignore[list-item]  # which is the point


def test_scores_come_with_intervals_and_with_metrics_of_ones_own(
    records: list[spanlab.Record],
) -> None:
    report = spanlab.score(records, "three", metrics=[equal])
    assert report.macro.iou.mean == 1.0
    frame = report.to_pandas()
    assert list(frame["Language"]) == ["en", "macro"]
    assert list(frame["equal"]) == list(frame["equal to"]) == [1.0, 1.0]
    assert (frame["equal from"] < 1.0).all()  # of so few items
    assert {"IoU", "IoU from", "IoU to", "Corr to"} <= set(frame.columns)
    assert "<table>" in report._repr_html_()
    assert "Scores by language" in str(report)
    assert report.figures()["more"]["equal"]["macro"]["mean"] == 1.0
    with pytest.raises(InputError, match="no finished annotation by 'nobody'"):
        spanlab.score(records, "nobody")
    with pytest.raises(UsageError, match="no installed package has a metric 'mine'"):
        spanlab.score(records, "three", metrics=["mine"])


def test_annotators_are_compared_and_their_agreement_and_rates_told(
    records: list[spanlab.Record],
) -> None:
    compared = spanlab.compare(records, "three", "offline").to_pandas()
    assert compared["IoU"].iloc[-1] >= 0
    assert "p of IoU" in compared.columns
    assert spanlab.agreement(records, ["gold", "three"]).everybody.alpha == 1.0
    by_model = spanlab.rates(records, by="meta.model")
    assert "No two of these answered two or more questions in common" in str(by_model)
    asked = [
        record.model_copy(update={"item": record.item.model_copy(update={"question": str(n // 2)})})
        for n, record in enumerate(records)
    ]
    assert "questions in common" not in str(spanlab.rates(asked, by="model"))
    tongues = [
        record.model_copy(update={"item": record.item.model_copy(update={"lang": lang})})
        for record, lang in zip(records, ("de", "en", "de", "en"), strict=True)
    ]
    assert "questions in common" not in str(spanlab.rates(tongues, by="lang"))
    rates = by_model.to_pandas()
    assert sorted(rates["meta.model"]) == ["a", "b"]
    assert list(rates["Share of an answer"]) == [pytest.approx(9 / 27)] * 2
    assert "not a hallucination rate" in str(spanlab.rates(records, annotators=["offline"]))
    with pytest.raises(UsageError, match="no annotator named 'anna'"):
        spanlab.agreement(records, ["anna"])


def test_verdicts_without_places_are_compared_shown_and_never_become_zeros() -> None:
    """The right detector once lost to one that marks nothing, and wrong answers looked clean."""
    rows = [{"answer": f"Answer {n} is here.", "hallucinated": n < 30} for n in range(100)]
    with pytest.warns(UserWarning, match="judges whole answers"):
        records = spanlab.load(rows)
    verdicts = {record.item.id: record.annotations[0].hallucinated for record in records}

    def called(name: str, judge: Callable[[str], bool | None]) -> list[spanlab.Annotation]:
        return [
            spanlab.Annotation(
                annotator=name,
                kind=AnnotatorKind.DETECTOR,
                status=Status.DONE,
                answer_hallucinated=judge(record.item.id),
            )
            for record in records
        ]

    both = zip(called("right", verdicts.get), called("nothing", lambda _: None), strict=True)
    records = [
        record.model_copy(update={"annotations": (*record.annotations, *pair)})
        for record, pair in zip(records, both, strict=True)
    ]
    compared = spanlab.compare(records, "right", "nothing")
    assert compared.differences is None
    assert compared.answers.difference == pytest.approx(0.3)
    assert "Whole answers: right minus nothing against gold, paired" in str(compared)
    page = spanlab.plot(records[0]).html
    assert "Called hallucinated as a whole: no place is marked." in page
    assert "no place is marked" not in spanlab.plot(records[-1]).html
    with pytest.raises(InputError, match="marks no place in it"):
        spanlab.to_arrays(records, "gold")


def test_records_are_frames_arrays_files_and_pages(
    records: list[spanlab.Record], tmp_path: Path
) -> None:
    frame = spanlab.to_pandas(records)
    assert list(frame["annotator"][:3]) == ["gold", "offline", "three"]
    (array, *_) = spanlab.to_arrays(records, "three")
    assert array.shape == (len(ANSWER),)
    assert list(np.flatnonzero(array)) == list(range(10, 19))
    page = spanlab.plot(records[0])
    assert "3 million" in page.html
    assert page._repr_html_().startswith("<iframe sandbox")
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    assert spanlab.save(records, tmp_path / "x.jsonl") == 4
    assert spanlab.load(tmp_path / "x.jsonl") == records
    with pytest.raises(UsageError, match="names no format"):
        spanlab.save(records, tmp_path / "x.docx")


@pytest.mark.parametrize("way", ["frame", "csv", "parquet", "json", "lines"])
def test_frames_and_their_files_are_read_with_everybodys_marks(
    records: list[spanlab.Record], tmp_path: Path, way: str
) -> None:
    """Marks of a detector became gold labels, and each item as many as had annotators."""
    frame = spanlab.to_pandas(records)
    source: Any = frame
    if way in ("csv", "parquet"):
        spanlab.save(records, tmp_path / f"saved.{way}")
        source = getattr(pd, f"read_{way}")(tmp_path / f"saved.{way}")
    elif way != "frame":
        source = tmp_path / "saved.json"
        frame.to_json(source, orient="records", lines=way == "lines")

    def said(read: list[spanlab.Record]) -> list[Any]:
        return [
            (r.item.id, r.item.answer, [(a.annotator, a.kind, a.hard, a.status) for a in each])
            for r in read
            for each in [r.annotations]
        ]

    assert said(spanlab.load(source)) == said(records)


def test_ids_and_answers_that_pandas_takes_for_numbers_are_texts(tmp_path: Path) -> None:
    rows = [{"id": "1", "question": "When?", "answer": "1890", "passages": ["In 1889."]}]
    spanlab.save(spanlab.load(rows), tmp_path / "saved.csv")
    (record,) = spanlab.load(pd.read_csv(tmp_path / "saved.csv"))
    assert (record.item.id, record.item.answer) == ("1", "1890")


@pytest.mark.parametrize("cell", ["-", "n/a", "no"])
def test_a_cell_that_says_that_nothing_is_marked_is_no_unsupported_claim(cell: str) -> None:
    rows = [
        {"answer": "It is blue.", "hallucinated_text": "blue"},
        {"answer": "All is well.", "hallucinated_text": cell},
    ]
    wrong, right = spanlab.load(rows)
    assert [a.hallucinated for r in (wrong, right) for a in r.annotations] == [True, False]
    assert right.annotations[0].claims == ()


def test_everything_that_is_offered_is_documented() -> None:
    """Each parameter, what is returned, and what is raised but where nothing can go wrong."""
    for name in spanlab.__all__:
        offered = getattr(spanlab, name)
        doc = (offered.__doc__ or "").strip()
        assert doc, name
        if inspect.isfunction(offered):
            for parameter in inspect.signature(offered).parameters:
                assert re.search(rf"^ *(\*\*)?{parameter}: ", doc, re.M), (name, parameter)
            assert "Raises:" in doc or name in {"record", "recorded", "to_pandas", "plot"}, name
            assert "Returns:" in doc or re.match("(Return|Record|Have) ", doc), name


def test_gold_labels_are_found_by_their_kind(records: list[spanlab.Record]) -> None:
    renamed = [
        record.model_copy(
            update={
                "annotations": tuple(
                    annotation.model_copy(update={"annotator": "expert"})
                    if annotation.kind is AnnotatorKind.GOLD
                    else annotation
                    for annotation in record.annotations
                )
            }
        )
        for record in records
    ]
    assert spanlab.score(renamed, "three").macro == spanlab.score(records, "three").macro
