"""Annotators against a reference and against each other, with numbers by hand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest import mock

import pytest
from commands import run_here

from spanlab.base.errors import NotFoundError
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span, Status
from spanlab.scoring.agreement import agreement, rated
from spanlab.scoring.annotators import (
    EVERYTHING,
    NOTHING,
    compare_dataset,
    compare_records,
    item_scores,
    list_items,
    neighbour_item,
    sample_records,
)
from spanlab.storage import Store

ANSWER = "abcdefghij"  # ten characters
KINDS = {
    "gold": AnnotatorKind.GOLD,
    "Ann": AnnotatorKind.PERSON,
    "Ben": AnnotatorKind.PERSON,
    "robot": AnnotatorKind.DETECTOR,
}


def says(name: str, *marks: tuple[int, int], status: Status = Status.DONE) -> Annotation:
    spans = tuple(Span.of(ANSWER, start, end) for start, end in marks)
    note = "broken" if status is Status.FAILED else None
    return Annotation(annotator=name, kind=KINDS[name], spans=spans, status=status, note=note)


def record(name: str, lang: str, *annotations: Annotation) -> Record:
    return Record(item=Item(id=name, lang=lang, answer=ANSWER), annotations=annotations)


def test_everybody_is_scored_where_both_have_finished() -> None:
    records = [
        # Ann marks 2 of the 4 gold characters and nothing else: IoU 2/4.
        record("a", "en", says("gold", (0, 4)), says("Ann", (0, 2)), says("robot", (0, 4))),
        # Ann is exact; the robot broke, which is neither right nor wrong.
        record(
            "b",
            "fr",
            says("gold", (5, 10)),
            says("Ann", (5, 10)),
            says("robot", status=Status.FAILED),
        ),
        record("c", "fr", says("Ann", (0, 1))),  # without gold labels: no part of the scores
    ]
    found = compare_records(records, KINDS, "gold")
    scores = {scored.name: scored.report for scored in found.scores}
    assert list(scores) == ["Ann", "robot", EVERYTHING, NOTHING]  # Ben has finished nothing
    assert [(means.lang, means.n, means.iou.mean) for means in scores["Ann"].languages] == [
        ("en", 1, 0.5),
        ("fr", 1, 1.0),
    ]
    assert scores["Ann"].macro.iou.mean == 0.75
    assert scores["robot"].macro.n == 1
    assert scores[EVERYTHING].macro.iou.mean == pytest.approx((4 / 10 + 5 / 10) / 2)
    assert scores[NOTHING].macro.iou.mean == 0.0
    assert (found.n_items, found.looked_at, found.n_reference) == (3, 3, 2)


def test_a_person_is_not_its_own_rater() -> None:
    one = record("a", "en", says("gold", (0, 4)), says("Ann", (0, 4)), says("Ben", (0, 2)))
    found = compare_records([one], KINDS, "gold")
    scores = {scored.name: scored.report.macro for scored in found.scores}
    max_iou = {
        name: means.max_iou.mean if means.max_iou else None for name, means in scores.items()
    }
    assert max_iou == {"Ann": 0.5, "Ben": 0.5, EVERYTHING: 0.4, NOTHING: 0.0}


def test_without_a_reference_there_is_agreement_alone() -> None:
    """Agreement needs no gold labels."""
    one = record("a", "en", says("Ann", (0, 4)), says("Ben", (0, 4)), says("robot", (0, 2)))
    found = compare_records([one], KINDS)
    assert found.scores == ()
    assert found.persons.alpha == 1.0
    pairs = {(pair.a, pair.b): pair.iou for pair in found.everybody.pairs}
    assert pairs == {("Ann", "Ben"): 1.0, ("Ann", "robot"): 0.5, ("Ben", "robot"): 0.5}
    assert found.independent.n == 1


def test_a_detector_takes_no_part_in_the_agreement_of_persons() -> None:
    one = record("a", "en", says("Ann", (0, 4)), says("robot", (0, 2)), says("gold", (0, 1)))
    found = compare_records([one], KINDS)
    assert found.persons.n == 0
    assert found.independent.n == 1
    assert found.independent.alpha == agreement([rated(one, ["Ann", "robot"])]).alpha


def test_one_item_has_the_scores_of_all_who_finished_it() -> None:
    one = record(
        "a",
        "en",
        says("gold", (0, 4)),
        says("Ann", (0, 2)),
        says("robot", status=Status.FAILED),
    )
    assert {name: score.iou for name, score in item_scores(one, "gold").items()} == {"Ann": 0.5}
    assert item_scores(one, "robot") == {}


def test_an_unknown_reference_is_refused(store: Store) -> None:
    store.import_records("mine", [record("a", "en", says("Ann", (0, 2)))])
    with pytest.raises(NotFoundError, match="no annotator 'gold'; available: 'Ann'"):
        compare_dataset(store, "mine", reference="gold")


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (10, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (4, [0, 2, 5, 7]),
        (1, [0]),
    ],
    ids=["all", "exactly-all", "even-steps", "one"],
)
def test_a_sample_goes_in_even_steps(store: Store, limit: int | None, expected: list[int]) -> None:
    store.import_records("mine", [record(str(number), "en") for number in range(10)])
    assert [int(r.item.id) for r in sample_records(store, "mine", limit)] == expected


def test_a_sample_says_how_much_it_saw(store: Store) -> None:
    """A large dataset is compared on a sample, and the sample is named."""
    both = (says("Ann", (0, 4)), says("Ben", (0, 4)))
    store.import_records("mine", [record(str(number), "en", *both) for number in range(300)])
    steps: list[int] = []
    found = compare_dataset(store, "mine", limit=200, on_progress=steps.append)
    assert (found.n_items, found.looked_at, found.persons.n) == (300, 200, 200)
    assert steps == [100, 200]


def test_items_come_by_disagreement(store: Store) -> None:
    """A second annotator's queue begins where annotators disagree."""
    store.import_records(
        "mine",
        [
            record("alone", "en", says("Ann", (0, 4))),
            record("same", "en", says("Ann", (0, 4)), says("Ben", (0, 4))),
            record("half", "fr", says("Ann", (0, 4)), says("Ben", (0, 2))),
            record("apart", "en", says("Ann", (0, 4)), says("Ben", (5, 6))),
        ],
    )
    rows = list_items(store, "mine").rows
    assert [(row.item_id, row.disagreement) for row in rows] == [
        ("apart", 1.0),
        ("half", 0.5),
        ("same", 0.0),
        ("alone", None),
    ]
    assert [row.item_id for row in list_items(store, "mine", lang="fr").rows] == ["half"]
    after, before = (
        neighbour_item(store, "mine", "apart", step, order="disagreement", lang="en")
        for step in (1, -1)
    )
    assert (after, before) == ("same", None)


def test_the_command_prints_the_agreement_of_people_and_detectors(
    tmp_path: Path,
) -> None:
    """Ann and Ben mark 0-4 and 2-6 of ten characters: alpha is 5/24, as in test_agreement."""
    environment = {"SPANLAB_HOME": str(tmp_path / "home")}
    one = record("a", "en", says("Ann", (0, 4)), says("Ben", (2, 6)))
    with mock.patch.dict(os.environ, environment), Store.open() as store:
        store.import_records("d", [one])
    shown = run_here(["agreement", "d"], tmp_path, environment)
    assert shown.returncode == 0, shown.stderr
    assert [line.split()[-4:] for line in shown.stdout.splitlines()[2:4]] == [
        [".208", "1", ".208", "1"],
        [".208", "1", ".208", "1"],
    ]
    assert "Of the characters that people mark differently 100.0 % are edges" in shown.stdout
    printed = json.loads(run_here(["agreement", "d", "--json"], tmp_path, environment).stdout)
    assert printed["alpha"]["people"]["characters"]["n"] == 1
    assert printed["pairs"] == [{"a": "Ann", "b": "Ben", "n": 1, "iou": 2 / 6, "f1": 0.5}]
