"""FaithBench: every person's marks, with their labels, notes and evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, detect, read, write
from spanlab.schema import AnnotatorKind, Evidence

SOURCE = "The mill was built in 1850. It burned down."
SUMMARY = "The old mill was built in 1860 by Dutch settlers."


def mark(person: str, quoted: str | None, **more: Any) -> dict[str, Any]:
    start = None if quoted is None else SUMMARY.index(quoted)
    return {
        "annot_id": 1,
        "annotator_id": person,
        "annotator_name": person.split("-", maxsplit=1)[0],
        "label": ["Benign"],
        "note": "",
        "summary_span": quoted,
        "summary_start": start,
        "summary_end": None if start is None or quoted is None else start + len(quoted),
        "source_span": None,
        "source_start": None,
        "source_end": None,
        **more,
    }


def batch(tmp_path: Path, *marks: dict[str, Any]) -> Path:
    sample = {"sample_id": 3, "source": SOURCE, "summary": SUMMARY, "metadata": {"summarizer": "m"}}
    samples = [
        {**sample, "annotations": list(marks)},
        {**sample, "sample_id": 4, "annotations": []},
    ]
    path = tmp_path / "batch_9.json"
    path.write_text(json.dumps({"samples": samples}, indent=1))
    return path


def test_a_sample_is_read_with_each_persons_marks(tmp_path: Path) -> None:
    path = batch(
        tmp_path,
        mark(
            "eva-1",
            "1860",
            label=["Unwanted", "Unwanted.Intrinsic"],
            note="not 1860",
            source_span="1850",
            source_start=22,
            source_end=26,
        ),
        mark("tom-2", "Dutch settlers", label=["Unwanted", "Unwanted.Extrinsic", "Questionable"]),
        mark("eva-1", "old", label=[]),
    )
    assert detect(path) == "faithbench"
    said: list[str] = []
    record, bare = read(path, ReadOptions(on_warning=said.append))
    assert (record.item.id, record.item.answer) == ("batch_9-3", SUMMARY)
    assert [passage.text for passage in record.item.passages] == [SOURCE]
    assert record.item.meta["sample_id"] == 3
    assert record.item.meta["metadata"] == {"summarizer": "m"}
    eva, tom = record.annotations
    assert (eva.annotator, eva.kind) == ("eva", AnnotatorKind.PERSON)
    assert [(s.text, s.label, s.note) for s in eva.spans] == [
        ("1860", "Unwanted.Intrinsic", "not 1860"),
        ("old", None, None),
    ]
    # What is intrinsically wrong is refuted by the source.
    assert eva.spans[0].evidence == (
        Evidence(passage=0, start=22, end=26, text="1850", stance="refutes"),
    )
    # Two labels of their own on one span, each naming its parent.
    assert [(s.text, s.label) for s in tom.spans] == [
        ("Dutch settlers", "Unwanted.Extrinsic"),
        ("Dutch settlers", "Questionable"),
    ]
    assert bare.annotations == ()
    assert len(said) == 1
    assert "1 sample without annotation" in said[0]


def test_a_remark_on_the_whole_summary_is_kept(tmp_path: Path) -> None:
    record, _ = read(
        batch(tmp_path, mark("eva-1", None, label=["Unwanted"], note="all of it")),
        ReadOptions(on_warning=lambda _: None),
    )
    assert record.annotations[0].spans == ()
    assert record.annotations[0].note == "Unwanted: all of it"


def test_evidence_that_is_not_where_it_says_is_left_out_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    path = batch(tmp_path, mark("eva-1", "1860", source_span="1850", source_start=0, source_end=4))
    record, _ = read(path, ReadOptions(on_warning=said.append))
    assert record.annotations[0].spans[0].evidence == ()
    assert any("1 quote of a source not where" in message for message in said)


def test_two_people_of_one_name_stay_two(tmp_path: Path) -> None:
    record, _ = read(
        batch(tmp_path, mark("eva-1", "old"), mark("eva-2", "1860")),
        ReadOptions(on_warning=lambda _: None),
    )
    assert [a.annotator for a in record.annotations] == ["eva eva-1", "eva eva-2"]


def test_a_mark_that_quotes_something_else_is_refused(tmp_path: Path) -> None:
    path = batch(tmp_path, mark("eva-1", "1860", summary_span="1870"))
    with pytest.raises(InputError, match="found '1870'") as caught:
        list(read(path))
    assert (caught.value.line, caught.value.field) == (1, "annotations.0.summary_span")


def test_another_json_object_is_no_batch(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"things": []}')
    with pytest.raises(InputError, match="samples: not a batch of FaithBench"):
        list(read(path, ReadOptions(format="faithbench")))


@pytest.mark.parametrize(
    ("name", "marks", "labelled", "people"),
    [
        pytest.param("batch_1", 69, 69, 2, id="batch_1"),
        pytest.param("batch_10", 269, 269, 3, id="batch_10"),
        # One mark has two labels that do not name each other.
        pytest.param("batch_11", 78, 79, 4, id="batch_11"),
    ],
)
def test_the_shared_batches_are_read_whole(
    shared: Path, tmp_path: Path, name: str, marks: int, labelled: int, people: int
) -> None:
    """Several annotators per item stay apart."""
    path = shared / "faithbench" / f"{name}.json"
    raw = json.loads(path.read_text())["samples"]
    assert sum(len(sample["annotations"]) for sample in raw) == marks
    records = list(read(path, ReadOptions(on_warning=lambda _: None)))
    assert [record.item.answer for record in records] == [sample["summary"] for sample in raw]
    spans = [span for record in records for a in record.annotations for span in a.spans]
    assert len(spans) == labelled
    evidence = sum(a["source_span"] is not None for s in raw for a in s["annotations"])
    assert sum(bool(span.evidence) for span in spans) in (evidence, evidence + labelled - marks)
    assert len({a.annotator for record in records for a in record.annotations}) == people
    ours = tmp_path / "ours.jsonl"
    write(records, ours)
    assert list(read(ours)) == records
