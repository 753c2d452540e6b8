"""What we write for Label Studio is what it imports."""

from __future__ import annotations

import json
from pathlib import Path

from spanlab.formats import write
from spanlab.formats.known.labelstudio_tasks import tasks_of
from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record, Span, Status


def test_an_export_is_what_label_studio_imports(tmp_path: Path) -> None:
    answer = "👍 Oslo has 3 million."
    item = Item(
        id="i-1",
        lang="en",
        question="?",
        answer=answer,
        passages=(Passage(text="p"),),
        meta={"m": 1},
    )
    number = Span.of(answer, 11, 20, prob=0.75, label="Number").model_copy(update={"note": "no"})
    own = Span.of(answer, 2, 6)
    record = Record(
        item=item,
        annotations=(
            Annotation(annotator="eva", kind=AnnotatorKind.PERSON, spans=(own,)),
            Annotation(annotator="tom", kind=AnnotatorKind.PERSON, status=Status.SKIPPED),
            Annotation(annotator="ida", kind=AnnotatorKind.PERSON, status=Status.NOT_ANNOTATED),
            Annotation(annotator="m", kind=AnnotatorKind.DETECTOR, spans=(number,)),
            Annotation(
                annotator="f", kind=AnnotatorKind.DETECTOR, status=Status.FAILED, note="timeout"
            ),
            Annotation(annotator="n", kind=AnnotatorKind.DETECTOR),
        ),
    )
    path = tmp_path / "out.json"
    assert write([record], path, format="labelstudio") == 1
    (out,) = json.loads(path.read_text())
    assert out == {
        "data": {
            "id": "i-1",
            "answer": answer,
            "lang": "en",
            "question": "?",
            "context_shown": "p",
            "passages": [{"text": "p"}],
            "meta": {"m": 1},
            "spanlab": [
                {"name": name, "kind": kind, "status": status, **note}
                for name, kind, status, note in (
                    ("eva", "person", "done", {"unlabelled": [0]}),
                    ("tom", "person", "skipped", {}),
                    ("ida", "person", "not-annotated", {}),
                    ("m", "detector", "done", {}),
                    ("f", "detector", "failed", {"note": "timeout"}),
                    ("n", "detector", "done", {}),
                )
            ],
        },
        "annotations": [
            {
                "created_username": "eva",
                "was_cancelled": False,
                "ground_truth": False,
                "result": [
                    {
                        "id": "0-0",
                        "from_name": "label",
                        "to_name": "answer",
                        "type": "labels",
                        "value": {
                            "start": 2,
                            "end": 6,
                            "text": "Oslo",
                            "labels": ["Hallucination"],
                        },
                    }
                ],
            },
            {
                "created_username": "tom",
                "was_cancelled": True,
                "ground_truth": False,
                "result": [],
            },
        ],
        # A failed attempt is absent: an empty prediction would say that nothing was found.
        "predictions": [
            {
                "model_version": "m",
                "score": 0.75,
                "result": [
                    {
                        "id": "3-0",
                        "from_name": "label",
                        "to_name": "answer",
                        "type": "labels",
                        "value": {
                            "start": 11,
                            "end": 20,
                            "text": "3 million",
                            "labels": ["Number"],
                        },
                        "score": 0.75,
                        "meta": {"text": ["no"]},
                    }
                ],
            },
            {"model_version": "n", "result": []},
        ],
    }


def test_an_export_of_nothing_is_an_empty_array(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    assert write([], path, format="labelstudio") == 0
    assert json.loads(path.read_text()) == []


def test_what_a_csv_file_asked_comes_in_the_order_of_its_columns() -> None:
    asked = [f"question {letter}" for letter in "qwertzuiop"]
    rows = [
        {"id": 1, "annotator": who, "text": "It rained.", **dict.fromkeys(asked, who)}
        for who in "ab"
    ]
    (task,) = tasks_of(rows)
    results = task["annotations"][0]["result"]
    assert [result["from_name"] for result in results] == asked
