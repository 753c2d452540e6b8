"""RAGTruth: responses find their sources, for all three of its tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, detect, read
from spanlab.schema import AnnotatorKind, Passage

SHOP = {"name": "Corner Café", "stars": 4.5, "wifi": None, "hours": {"Monday": "9-17"}}
SOURCES: list[dict[str, Any]] = [
    {
        "source_id": "qa",
        "task_type": "QA",
        "source": "MARCO",
        "source_info": {
            "question": "how tall is the tower",
            "passages": "passage 1:The tower is 90 m tall.\n\npassage 2:It opened in 1902.\n"
            "It is red.\n\n",
        },
        "prompt": "Answer the question: how tall is the tower …",
    },
    {
        "source_id": "sum",
        "task_type": "Summary",
        "source": "News",
        "source_info": "A bridge opened on Friday. It is 300 m long.",
        "prompt": "Summarise this in ten words:\n"
        "A bridge opened on Friday. It is 300 m long.\noutput:",
    },
    {
        "source_id": "data",
        "task_type": "Data2txt",
        "source": "Shops",
        "source_info": SHOP,
        "prompt": f"Describe this shop.\n{SHOP}\nOverview:",
    },
]
RESPONSES: list[dict[str, Any]] = [
    {
        "id": "1",
        "source_id": "qa",
        "model": "m-1",
        "temperature": 0.7,
        "labels": [
            {
                "start": 13,
                "end": 18,
                "text": "120 m",
                "meta": "HIGH CONFLICT\nIt is 90 m.",
                "label_type": "Evident Conflict",
                "implicit_true": False,
                "due_to_null": False,
            },
            {"start": 4, "end": 9, "text": "tower", "meta": "", "label_type": "Subtle Conflict"},
        ],
        "split": "train",
        "quality": "good",
        "response": "The tower is 120 m tall.",
    },
    {
        "id": "2",
        "source_id": "sum",
        "model": "m-2",
        "labels": [],
        "split": "test",
        "quality": "good",
        "response": "A bridge opened.",
    },
    # As of an annotation tool that counts UTF-16 units: the cup takes two.
    {
        "id": "3",
        "source_id": "data",
        "model": "m-3",
        "labels": [{"start": 3, "end": 12, "text": "Free WiFi", "label_type": "Baseless"}],
        "response": "☕🥐Free WiFi for all.",
    },
]


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    return corpus(tmp_path, RESPONSES)


def corpus(folder: Path, lines: list[dict[str, Any]]) -> Path:
    for name, rows in (("source_info.jsonl", SOURCES), ("response.jsonl", lines)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "response.jsonl"


def test_a_question_comes_with_its_passages_and_labels(responses: Path) -> None:
    assert detect(responses) == "ragtruth"
    record = next(read(responses))
    assert (record.item.id, record.item.lang) == ("1", "en")
    assert record.item.question == "how tall is the tower"
    assert record.item.passages == (
        Passage(text="The tower is 90 m tall.", title="passage 1"),
        Passage(text="It opened in 1902.\nIt is red.", title="passage 2"),
    )
    (gold,) = record.annotations
    assert (gold.annotator, gold.kind) == ("gold", AnnotatorKind.GOLD)
    assert [(s.text, s.label, s.note) for s in gold.spans] == [
        ("120 m", "Evident Conflict", "HIGH CONFLICT\nIt is 90 m."),
        ("tower", "Subtle Conflict", None),
    ]
    assert record.item.meta == {
        "model": "m-1",
        "temperature": 0.7,
        "split": "train",
        "quality": "good",
        "source_id": "qa",
        "task_type": "QA",
        "prompt": "Answer the question: how tall is the tower …",
        "source": "MARCO",
        "labels": [{"implicit_true": False, "due_to_null": False}, {}],
    }


def test_labels_are_read_in_the_common_words_where_these_are_asked_for(responses: Path) -> None:
    labels = [
        span.label
        for record in read(responses, ReadOptions(common_labels=True))
        for annotation in record.annotations
        for span in annotation.spans
    ]
    assert labels == ["contradiction", "contradiction", "Baseless"], "what has no such word stays"


def test_a_summary_comes_with_its_text_and_what_was_asked(responses: Path) -> None:
    record = list(read(responses))[1]
    assert record.item.question == "Summarise this in ten words:"
    assert record.item.passages == (Passage(text="A bridge opened on Friday. It is 300 m long."),)
    (gold,) = record.annotations
    assert gold.spans == ()


def test_data_become_a_passage_of_json(responses: Path) -> None:
    """Labels after an emoji are found although their offsets count UTF-16 units."""
    record = list(read(responses))[2]
    assert record.item.question == "Describe this shop."
    (passage,) = record.item.passages
    assert json.loads(passage.text) == SHOP
    assert "Corner Café" in passage.text
    (span,) = record.annotations[0].spans
    assert (span.start, span.end, span.text) == (2, 11, "Free WiFi")


def test_a_response_without_labels_is_not_annotated(tmp_path: Path) -> None:
    """No list of labels is not an empty list of labels."""
    line = {key: value for key, value in RESPONSES[1].items() if key != "labels"}
    (record,) = read(corpus(tmp_path, [line]))
    assert record.annotations == ()


def test_the_sources_may_lie_elsewhere(tmp_path: Path, responses: Path) -> None:
    moved = tmp_path / "elsewhere.jsonl"
    (tmp_path / "source_info.jsonl").rename(moved)
    with pytest.raises(InputError, match=r"no source_info\.jsonl for these responses"):
        read(responses)
    assert len(list(read(responses, ReadOptions(own={"sources": moved})))) == 3


def test_an_unknown_source_is_named(tmp_path: Path) -> None:
    path = corpus(tmp_path, [RESPONSES[0], {**RESPONSES[1], "source_id": "nope"}])
    with pytest.raises(InputError, match=r"expected a source_id of .*, found 'nope'") as caught:
        list(read(path))
    assert (caught.value.line, caught.value.field) == (2, "source_id")


def test_a_label_that_quotes_something_else_is_refused(tmp_path: Path) -> None:
    wrong = {**RESPONSES[0], "labels": [{"start": 0, "end": 5, "text": "120 m"}]}
    with pytest.raises(InputError, match=r"not at \[0, 5\), where 'The t' stands") as caught:
        list(read(corpus(tmp_path, [wrong])))
    assert caught.value.field == "labels.0"


def test_the_sources_alone_are_recognised(responses: Path) -> None:
    with pytest.raises(InputError, match=r"RAGTruth's source_info\.jsonl; expected its response"):
        detect(responses.with_name("source_info.jsonl"))
