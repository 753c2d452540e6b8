"""Mu-SHROOM: what is published is read as it stands, and submissions have exactly its form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, read, read_labels, write
from spanlab.schema import Annotation, AnnotatorKind, Interval, Item, Record, Span, Status
from spanlab.text.extents import Extent

ANSWER = "Ada was born in 1815 in London."
PUBLISHED: dict[str, Any] = {
    "id": "val-en-7",
    "lang": "EN",
    "model_input": "Where was Ada born?",
    "model_output_text": ANSWER,
    "model_id": "some/model",
    "soft_labels": [
        {"start": 16, "prob": 0.5, "end": 20},
        {"start": 24, "prob": 0.75, "end": 30},
    ],
    "hard_labels": [[24, 30]],
    "model_output_tokens": ["Ada", "Ġwas"],
    "model_output_logits": [1.5, -2.25],
    "annotations": {
        "annotator_b": [[24, 30], [16, 20], [16, 30]],
        "annotator_a": [],
        "annotator_c": [[3, 3], [24, 32]],
    },
}


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_published_line_is_read_as_it_stands(tmp_path: Path) -> None:
    said: list[str] = []
    path = written(tmp_path / "val.jsonl", PUBLISHED)
    (record,) = read(path, ReadOptions(on_warning=said.append))
    assert record.item.id == "val-en-7"
    assert record.item.lang == "en"
    assert record.item.question == "Where was Ada born?"
    assert record.item.answer == ANSWER
    assert record.item.meta == {
        "model_id": "some/model",
        "model_output_tokens": ["Ada", "Ġwas"],
        "model_output_logits": [1.5, -2.25],
    }
    gold, b, a, c = record.annotations
    assert (gold.annotator, gold.kind) == ("gold", AnnotatorKind.GOLD)
    assert [(s.text, s.prob) for s in gold.spans] == [("1815", 0.5), ("London", 0.75)]
    assert gold.hard == (Interval(start=24, end=30),)
    assert (b.annotator, b.kind) == ("annotator_b", AnnotatorKind.PERSON)
    assert [(s.start, s.end, s.prob) for s in b.spans] == [
        (24, 30, 1.0),
        (16, 20, 1.0),
        (16, 30, 1.0),
    ]
    assert (a.annotator, a.status, a.spans) == ("annotator_a", Status.DONE, ())
    # The answer has 31 characters: [24, 32) ends one past it, and [3, 3) is empty.
    assert [(s.start, s.end) for s in c.spans] == [(24, 31)]
    assert said == [
        f"{path}: 1 empty raw span left out: val-en-7",
        f"{path}: 1 raw span clipped by one character, at the end of the answer: val-en-7",
    ]


def test_a_test_file_without_labels_is_an_item_without_annotations(tmp_path: Path) -> None:
    line = {key: PUBLISHED[key] for key in ("id", "lang", "model_input", "model_output_text")}
    (record,) = read(written(tmp_path / "tst.jsonl", line))
    assert record.annotations == ()


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        pytest.param(
            {"soft_labels": [{"start": 30, "end": 32, "prob": 1.0}]},
            "soft_labels.0",
            r"expected 0 <= start < end <= 31, found \[30, 32\]",
            id="a label past the answer",
        ),
        pytest.param({"hard_labels": [[5, 5]]}, "hard_labels.0", r"\[5, 5\]", id="an empty label"),
        pytest.param(
            {"annotations": {"x": [[0, 33]]}}, "annotations.x.0", "33", id="two past the answer"
        ),
        pytest.param(
            {"annotations": {"x": [[9, 4]]}}, "annotations.x.0", r"\[9, 4\]", id="a reversed span"
        ),
        pytest.param(
            {"soft_labels": [{"start": 0, "end": 1, "prob": 2}]},
            "soft_labels.0.prob",
            "less than or equal to 1",
            id="too probable",
        ),
        pytest.param(
            {"hard_labels": [[1, 2, 3]]}, "hard_labels.0", "at most 2 items", id="three offsets"
        ),
    ],
)
def test_a_wrong_label_is_named(
    tmp_path: Path, change: dict[str, Any], field: str, said: str
) -> None:
    path = written(tmp_path / "val.jsonl", PUBLISHED, {**PUBLISHED, **change})
    with pytest.raises(InputError, match=said) as caught:
        list(read(path, ReadOptions(on_warning=lambda _: None)))
    assert (caught.value.line, caught.value.field) == (2, field)


def test_a_submission_has_no_items(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", {"id": "a", "soft_labels": [], "hard_labels": []})
    with pytest.raises(InputError, match="model_output_text: the field is missing"):
        list(read(path))


def test_a_submission_has_exactly_its_fields(tmp_path: Path) -> None:
    record = Record(
        item=Item(id="tst-en-1", lang="en", answer=ANSWER),
        annotations=(
            Annotation(
                annotator="model",
                kind=AnnotatorKind.DETECTOR,
                # Overlapping: the higher probability wins; 0.5 is not more than 0.5.
                spans=(Span.of(ANSWER, 16, 20, prob=0.5), Span.of(ANSWER, 18, 30, prob=0.75)),
            ),
        ),
    )
    path = tmp_path / "submission.jsonl"
    assert write([record], path, format="mushroom") == 1
    assert path.read_bytes() == (
        b'{"id":"tst-en-1","hard_labels":[[18,30]],'
        b'"soft_labels":[{"start":16,"end":18,"prob":0.5},{"start":18,"end":30,"prob":0.75}]}\n'
    )


def test_an_annotators_own_hard_labels_are_submitted(tmp_path: Path) -> None:
    (record,) = read(
        written(tmp_path / "val.jsonl", PUBLISHED), ReadOptions(on_warning=lambda _: None)
    )
    path = tmp_path / "submission.jsonl"
    write([record], path, format="mushroom", annotator="gold")
    line = json.loads(path.read_bytes())
    assert (line["hard_labels"], len(line["soft_labels"])) == ([[24, 30]], 2)


def test_a_failed_item_is_left_out_of_a_submission(tmp_path: Path) -> None:
    """A failure is not submitted as "nothing found"."""
    item = Item(id="tst-en-1", answer=ANSWER)
    failed = Annotation(
        annotator="m", kind=AnnotatorKind.DETECTOR, status=Status.FAILED, note="timeout"
    )
    found_nothing = Annotation(annotator="m", kind=AnnotatorKind.DETECTOR)
    records = [
        Record(item=item, annotations=(failed,)),
        Record(item=item.model_copy(update={"id": "tst-en-2"}), annotations=(found_nothing,)),
    ]
    path = tmp_path / "submission.jsonl"
    assert write(records, path, format="mushroom") == 1
    assert json.loads(path.read_bytes()) == {
        "id": "tst-en-2",
        "hard_labels": [],
        "soft_labels": [],
    }


def test_all_499_published_items_are_read_and_keep_their_labels(
    shared: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    languages: dict[str, int] = {}
    for path in sorted((shared / "mushroom" / "val").glob("*.jsonl")):
        records = list(read(path, ReadOptions(on_warning=said.append)))
        published = [json.loads(line) for line in path.read_text().splitlines()]
        assert [record.item.answer for record in records] == [
            line["model_output_text"] for line in published
        ]
        for record, line in zip(records, published, strict=True):
            languages[record.item.lang] = languages.get(record.item.lang, 0) + 1
            assert record.item.lang == line["lang"].lower()
            assert [a.annotator for a in record.annotations] == ["gold", *line["annotations"]]
        submission = tmp_path / path.name
        write(records, submission, format="mushroom", annotator="gold")
        again = {labels.id: labels for labels in read_labels(submission)}
        for labels in read_labels(path):
            assert again[labels.id].soft == labels.soft
            assert again[labels.id].hard == labels.hard
            assert labels.hard == tuple(
                Extent(*place)
                for place in next(p for p in published if p["id"] == labels.id)["hard_labels"]
            )
    assert sum(languages.values()) == 499
    assert len(languages) == 10
    clipped = [message for message in said if "clipped" in message]
    assert len(clipped) == 1
    assert clipped[0].endswith(
        "en-val.v2.jsonl: 1 raw span clipped by one character, at the end of the answer: val-en-34"
    )
    # 95 empty raw spans in all ten files.
    counts = [int(m.split(": ")[1].split()[0]) for m in said if "empty" in m]
    assert sum(counts) == 95


def test_published_items_go_through_our_own_format_unchanged(shared: Path, tmp_path: Path) -> None:
    """Arabic, Hindi and Chinese items keep every offset."""
    for lang in ("ar", "hi", "zh"):
        path = shared / "mushroom" / "val" / f"mushroom.{lang}-val.v2.jsonl"
        records = list(read(path, ReadOptions(on_warning=lambda _: None)))
        ours = tmp_path / f"{lang}.jsonl"
        write(records, ours)
        assert list(read(ours)) == records
