"""What is scored: the right annotator's labels, out of any file that has some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import Role, read_labels, write
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span, Status
from spanlab.text.extents import Extent
from spanlab.text.labels import ItemLabels, SoftLabel

ANSWER = "abcdefghij"


def lines(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def soft(start: int, end: int, prob: float) -> dict[str, float]:
    return {"start": start, "prob": prob, "end": end}


def test_a_submission_is_read_without_its_answers(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {"id": "tst-zh-9", "hard_labels": [[4, 6], [1, 3], [3, 4]], "soft_labels": []},
        {"id": "x1", "lang": "FR", "soft_labels": [soft(0, 4, 0.5), soft(2, 6, 0.75)]},
        {"id": "x2", "hard_labels": [[0, 2]]},
    )
    # Touching hard labels are one; where soft labels overlap the last wins; what is missing
    # follows from the other.
    assert list(read_labels(path)) == [
        ItemLabels(id="tst-zh-9", lang="zh", soft=(), hard=(Extent(1, 6),)),
        ItemLabels(
            id="x1",
            lang="fr",
            soft=(SoftLabel(0, 2, 0.5), SoftLabel(2, 6, 0.75)),
            hard=(Extent(2, 6),),
        ),
        ItemLabels(id="x2", lang="und", soft=(SoftLabel(0, 2, 1.0),), hard=(Extent(0, 2),)),
    ]


def test_a_published_file_has_its_length_and_raters(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {
            "id": "val-en-1",
            "lang": "EN",
            "model_output_text": ANSWER,
            "soft_labels": [soft(2, 4, 0.5)],
            "hard_labels": [],
            # As published: an empty raw span, and one that ends one past the answer.
            "annotations": {"a": [[2, 4], [5, 5]], "b": [], "c": [[8, 11]]},
        },
    )
    assert list(read_labels(path)) == [
        ItemLabels(
            id="val-en-1",
            lang="en",
            soft=(SoftLabel(2, 4, 0.5),),
            hard=(),
            raters=((Extent(2, 4),), (), (Extent(8, 10),)),
            length=10,
        )
    ]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        pytest.param({"soft_labels": [soft(9, 11, 1)]}, "soft_labels.0", id="soft past the end"),
        pytest.param({"hard_labels": [[0, 1], [4, 2]]}, "hard_labels.1", id="reversed"),
        pytest.param(
            {"hard_labels": [], "annotations": {"a": [[0, 12]]}}, "annotations.a.0", id="raw"
        ),
        pytest.param({"soft_labels": [soft(0, 1, 1.5)]}, "soft_labels.0.prob", id="too probable"),
        pytest.param({"model_id": "m"}, None, id="no labels"),
    ],
)
def test_wrong_labels_are_named(tmp_path: Path, row: dict[str, Any], field: str | None) -> None:
    path = lines(tmp_path, {"id": "a", "model_output_text": ANSWER, **row})
    with pytest.raises(InputError) as caught:
        list(read_labels(path))
    assert (caught.value.file, caught.value.line) == (str(path), 1)
    assert caught.value.field == field


def annotation(name: str, kind: AnnotatorKind, status: Status = Status.DONE) -> Annotation:
    start = ord(name[0]) - ord("a")
    return Annotation(
        annotator=name,
        kind=kind,
        status=status,
        spans=(Span.of(ANSWER, start, start + 1),),
        note="why",
    )


GOLD = annotation("gold", AnnotatorKind.GOLD)
ADA = annotation("ada", AnnotatorKind.PERSON)
BOB = annotation("bob", AnnotatorKind.PERSON)
DETECTOR = annotation("detector", AnnotatorKind.DETECTOR)
VOTE = annotation("c-vote", AnnotatorKind.VOTE)


def ours(tmp_path: Path, *annotations: tuple[Annotation, ...]) -> Path:
    path = tmp_path / "ours.jsonl"
    write(
        [
            Record(item=Item(id=f"i{index}", lang="en", answer=ANSWER), annotations=some)
            for index, some in enumerate(annotations)
        ],
        path,
    )
    return path


@pytest.mark.parametrize(
    ("annotations", "role", "start"),
    [
        pytest.param((GOLD, ADA, DETECTOR), "gold", 6, id="gold is gold"),
        pytest.param((ADA,), "gold", 0, id="one person alone is gold"),
        pytest.param((GOLD, ADA, BOB, DETECTOR), "prediction", 3, id="the detector predicts"),
        pytest.param((GOLD, ADA), "prediction", 0, id="the person predicts"),
        pytest.param((GOLD,), "prediction", 6, id="gold predicts where nobody else does"),
    ],
)
def test_whose_labels_are_meant(
    tmp_path: Path, annotations: tuple[Annotation, ...], role: Role, start: int
) -> None:
    (labels,) = read_labels(ours(tmp_path, annotations), role=role)
    assert labels.hard == (Extent(start, start + 1),)
    assert (labels.lang, labels.length) == ("en", 10)


@pytest.mark.parametrize(
    ("records", "role", "found"),
    [
        pytest.param([(GOLD, DETECTOR, VOTE)], "prediction", "detector, c-vote", id="two machines"),
        pytest.param([(GOLD, ADA, BOB)], "prediction", "ada, bob", id="two people"),
        pytest.param([(ADA, DETECTOR)], "gold", "ada, detector", id="no gold"),
        pytest.param([(DETECTOR,), (VOTE,)], "prediction", "detector, c-vote", id="two by turns"),
        pytest.param([(ADA,), (DETECTOR,)], "prediction", "ada, detector", id="a better one later"),
    ],
)
def test_an_unclear_choice_lists_the_annotators(
    tmp_path: Path, records: list[tuple[Annotation, ...]], role: Role, found: str
) -> None:
    path = ours(tmp_path, *records)
    with pytest.raises(InputError, match=f"expected the name of one.*, found '{found}'"):
        list(read_labels(path, role=role))
    assert len(list(read_labels(path, annotator=found.split(", ", maxsplit=1)[0]))) == 1


def test_unfinished_items_are_left_out_and_not_counted_as_nothing(tmp_path: Path) -> None:
    """A failed, skipped or missing judgement is no prediction of nothing."""
    path = ours(
        tmp_path,
        (DETECTOR, ADA),
        (annotation("detector", AnnotatorKind.DETECTOR, Status.FAILED), ADA),
        (annotation("detector", AnnotatorKind.DETECTOR, Status.SKIPPED), ADA),
        (ADA, BOB),
        (Annotation(annotator="detector", kind=AnnotatorKind.DETECTOR),),
    )
    labels = list(read_labels(path, role="prediction"))
    assert [(one.id, len(one.hard)) for one in labels] == [("i0", 1), ("i4", 0)]


def test_an_annotator_of_a_published_file_can_be_named(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {"id": "a", "model_output_text": ANSWER, "hard_labels": [], "annotations": {"x": [[1, 3]]}},
    )
    (labels,) = read_labels(path, annotator="x")
    assert labels.hard == (Extent(1, 3),)


def test_published_labels_and_predictions_are_read(shared: Path) -> None:
    for name in ("val/mushroom.zh-val.v2.jsonl", "golden/pred.zh.jsonl"):
        labels = list(read_labels(shared / "mushroom" / name))
        assert len(labels) == 50
        assert {one.lang for one in labels} == {"zh"}
