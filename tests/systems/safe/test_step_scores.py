"""Types of errors in steps, scored by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import write
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span
from spanlab.systems.safe.step_scores import StepEvaluation, score_step_files

STEPS = ("One is so.", "Two is so.", "Three is so.", "Four is so.")
ANSWER = "\n".join(
    f"Step {number}: {text} (Attribution)" for number, text in enumerate(STEPS, start=1)
)


def annotation(name: str, kind: AnnotatorKind, errors: dict[int, str | None]) -> Annotation:
    spans = []
    for number, label in errors.items():
        start = ANSWER.index(STEPS[number])
        spans.append(Span.of(ANSWER, start, start + len(STEPS[number]), label=label))
    return Annotation(annotator=name, kind=kind, spans=tuple(spans))


def scored(
    tmp_path: Path, said: dict[int, str | None], gold: dict[int, str | None]
) -> StepEvaluation:
    item = Item(id="a", lang="en", answer=ANSWER)
    both = (
        annotation("safe", AnnotatorKind.DETECTOR, said),
        annotation("gold", AnnotatorKind.GOLD, gold),
    )
    path = tmp_path / "both.jsonl"
    write([Record(item=item, annotations=both)], path)
    return score_step_files([path], [path])


def test_types_are_scored_by_hand(tmp_path: Path) -> None:
    found = scored(
        tmp_path,
        {0: "Unsupported", 1: "Unsupported", 2: "Redundancy"},
        {0: "Unsupported", 1: "Contradictory"},
    )
    by_name = {each.name: each for each in found.types}
    assert list(by_name) == ["Contradictory", "Redundancy", "Unsupported", "any error"]
    unsupported = by_name["Unsupported"]
    assert (unsupported.precision, unsupported.recall) == (0.5, 1.0)
    assert unsupported.f1 == pytest.approx(2 / 3)
    assert (by_name["Contradictory"].found, by_name["Contradictory"].f1) == (0, 0.0)
    wrong = by_name["any error"]
    assert wrong.precision == pytest.approx(2 / 3)
    assert wrong.recall == 1.0
    assert (found.items, found.total, found.accuracy) == (1, 4, 0.5)
    assert found.macro_f1 == pytest.approx((2 / 3 + 0) / 2)
    assert found.confusion == {
        "Contradictory": {"Unsupported": 1},
        "Unsupported": {"Unsupported": 1},
        "right": {"Redundancy": 1, "right": 1},
    }


def test_a_mark_without_a_type_says_unsupported(tmp_path: Path) -> None:
    found = scored(tmp_path, {0: None}, {0: "Unsupported"})
    assert (found.accuracy, found.macro_f1) == (1.0, 1.0)


def test_where_all_is_right_there_is_no_type_to_score(tmp_path: Path) -> None:
    found = scored(tmp_path, {}, {})
    assert (found.accuracy, found.macro_f1) == (1.0, 0.0)
    assert [each.name for each in found.types] == ["any error"]


def test_items_that_one_side_lacks_are_counted_and_none_in_common_is_refused(
    tmp_path: Path,
) -> None:
    gold = annotation("gold", AnnotatorKind.GOLD, {})
    safe = annotation("safe", AnnotatorKind.DETECTOR, {})
    items = [Item(id=name, lang="en", answer=ANSWER) for name in "ab"]
    write([Record(item=each, annotations=(gold,)) for each in items], tmp_path / "gold.jsonl")
    write([Record(item=items[0], annotations=(safe,))], tmp_path / "pred.jsonl")
    assert score_step_files([tmp_path / "pred.jsonl"], [tmp_path / "gold.jsonl"]).missing == 1
    other = Record(item=Item(id="c", lang="en", answer=ANSWER), annotations=(safe,))
    write([other], tmp_path / "pred.jsonl")
    with pytest.raises(InputError, match="no step is in both files"):
        score_step_files([tmp_path / "pred.jsonl"], [tmp_path / "gold.jsonl"])
