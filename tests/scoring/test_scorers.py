"""Scores of items: hand arithmetic, a naive character scorer, and the shared task's own figures."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.base.errors import InputError
from spanlab.formats import read_labels
from spanlab.scoring import spans
from spanlab.scoring.spans import (
    ItemScore,
    mark_all,
    mark_none,
    score_item,
    score_items,
)
from spanlab.text.extents import Extent, merge
from spanlab.text.labels import ItemLabels, SoftLabel, flatten, harden

LENGTH = 20


def test_a_metric_that_is_added_as_one_field_is_scored_compared_tuned_and_drawn(
    tmp_path: Path,
) -> None:
    added = """\
    missed: Annotated[V, Metric("Missed", lambda batch: 1 - batch.recall())]


METRICS: Final"""
    source = Path(spans.__file__).read_text(encoding="utf-8")
    assert source.count("\n\nMETRICS: Final") == 1
    module = tmp_path / "spans.py"
    module.write_text(source.replace("\n\nMETRICS: Final", added), encoding="utf-8")
    program = f"""
import sys
from importlib.util import module_from_spec, spec_from_file_location

spec = spec_from_file_location("spanlab.scoring.spans", {str(module)!r})
sys.modules[spec.name] = module = module_from_spec(spec)
spec.loader.exec_module(module)

from optimizers.metrics import judge
from optimizers.units import ITEMS
from spanlab.bench.cards import cards
from spanlab.bench.scoring import ScoredCell
from spanlab.scoring.annotator_tables import ScoredAnnotator, score_table
from spanlab.scoring.files import SCORES, evaluate
from spanlab.text.extents import Extent
from spanlab.text.labels import ItemLabels

gold, found, other = (ItemLabels("1", "en", (), (Extent(0, end),), length=20) for end in (8, 6, 4))
result = evaluate([(gold, found)], against=[(gold, other)])
table = result.tables()[0]
assert table.rows[0][[column.title for column in table.columns].index("Missed")] == 0.25
assert result.figures()["macro"]["missed"]["mean"] == 0.25
assert result.against.macro.missed.difference == -0.25
on_page = score_table([ScoredAnnotator("Ann", None, result.report)], tuple(SCORES), "missed")
assert "Missed" in [column.title for column in on_page.columns]
card = cards()["samples"].with_metric("missed")
assert ScoredCell(1, result.report).figures(card)["macro"]["missed"]["mean"] == 0.25
assert ITEMS.metrics["missed"] == "Missed"
assert judge(gold, found, "a" * 20, "missed").score == 0.25
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr


SCORES = ("iou", "precision", "recall", "f1", "span_f1")

Pairs = list[tuple[int, int]]
marks = st.lists(
    st.tuples(
        st.integers(0, LENGTH), st.integers(0, LENGTH), st.sampled_from([0.1, 0.4, 0.6, 1 / 3, 1.0])
    ).map(lambda p: SoftLabel(min(p[:2]), max(p[:2]), p[2]))
)


def labels(
    spans: Pairs, *, raters: list[Pairs] | None = None, length: int | None = 20
) -> ItemLabels:
    """Labels with everything at probability 1."""
    hard = merge([Extent(*pair) for pair in spans])
    return ItemLabels(
        id="val-en-1",
        lang="en",
        soft=tuple(SoftLabel(start, end, 1.0) for start, end in hard),
        hard=tuple(hard),
        raters=tuple(tuple(merge([Extent(*pair) for pair in rater])) for rater in raters or []),
        length=length,
    )


def soft_labels(*spans: tuple[int, int, float]) -> ItemLabels:
    flat = flatten([SoftLabel(*span) for span in spans])
    return replace(labels([]), soft=tuple(flat), hard=tuple(harden(flat)))


@pytest.mark.parametrize(
    ("gold", "pred", "expected"),
    [
        # expected: iou, precision, recall, f1, span_f1
        pytest.param([], [], (1, 1, 1, 1, 1), id="both-empty"),
        pytest.param([(0, 5)], [], (0, 0, 0, 0, 0), id="nothing-predicted"),
        pytest.param([], [(0, 5)], (0, 0, 0, 0, 0), id="nothing-to-find"),
        pytest.param([(0, 5), (8, 9)], [(0, 5), (8, 9)], (1, 1, 1, 1, 1), id="the-same"),
        pytest.param([(0, 5)], [(5, 9)], (0, 0, 0, 0, 0), id="adjacent"),
        # 2 common of 6; 2 of 4 predicted; 2 of 4 gold; f1 2*2/8
        pytest.param([(0, 4)], [(2, 6)], (2 / 6, 0.5, 0.5, 0.5, 0), id="overlapping"),
        # common 2 + 2 of 10; 4 of 4; 4 of 10; f1 2*4/14; no edge right on both sides
        pytest.param([(0, 10)], [(1, 3), (5, 7)], (0.4, 1, 0.4, 8 / 14, 0), id="two-inside-one"),
        # common 5 + 1 = 6 of 5 + 3 + 2 = 10; 6 of 5 + 3 = 8; 6 of 5 + 3 = 8;
        # one of two spans on each side
        pytest.param(
            [(0, 5), (8, 11)], [(0, 5), (10, 13)], (0.6, 0.75, 0.75, 0.75, 0.5), id="one-span-right"
        ),
        pytest.param([(0, 4), (4, 8)], [(0, 8)], (1, 1, 1, 1, 1), id="touching-is-one-span"),
    ],
)
def test_hard_scores_by_hand(gold: Pairs, pred: Pairs, expected: tuple[float, ...]) -> None:
    """Adjacent and overlapping spans are counted as the characters they cover."""
    found = score_item(labels(gold), labels(pred))
    assert [getattr(found, name) for name in SCORES] == pytest.approx(list(expected))


@pytest.mark.parametrize(
    ("raters", "expected"),
    [
        pytest.param([], None, id="annotators-unknown"),
        pytest.param([[(0, 4)]], 1.0, id="equal-to-one"),
        pytest.param([[(0, 2)], [(0, 8)]], 0.5, id="best-of-two"),  # 2/4 and 4/8
        pytest.param([[(0, 1)], [(0, 3)], []], 0.75, id="best-of-three"),  # 1/4, 3/4, 0
        pytest.param([[]], 0.0, id="the-only-one-marked-nothing"),
    ],
)
def test_max_iou_is_with_the_closest_annotator(raters: list[Pairs], expected: float | None) -> None:
    found = score_item(labels([(0, 6)], raters=raters), labels([(0, 4)]))
    assert found.max_iou == (None if expected is None else pytest.approx(expected))


def test_max_iou_of_nothing_with_an_annotator_who_marked_nothing_is_1() -> None:
    assert score_item(labels([(0, 6)], raters=[[], [(0, 6)]]), labels([])).max_iou == 1.0


def test_corr_by_hand() -> None:
    # x marks [0, 2) of 4 characters, y marks [1, 3). Mean ranks of x: 3.5 3.5 1.5 1.5, of y:
    # 1.5 3.5 3.5 1.5; from their mean 2.5: x 1 1 -1 -1, y -1 1 1 -1. Sum of products 0.
    x = replace(soft_labels((0, 2, 1.0)), length=4)
    assert score_item(x, replace(soft_labels((1, 3, 1.0)), length=4)).corr == 0.0
    # y marks [0, 1): ranks 4 2 2 2, from the mean 1.5 -.5 -.5 -.5.
    # Products 1.5 - .5 + .5 + .5 = 2; squares of x 4, of y 2.25 + 3 * .25 = 3.
    y = replace(soft_labels((0, 1, 0.3)), length=4)
    assert score_item(x, y).corr == pytest.approx(2 / sqrt(12))


@pytest.mark.parametrize(
    ("gold", "pred", "expected"),
    [
        pytest.param([], [], 1.0, id="both-mark-nothing"),
        pytest.param([(0, 20, 1.0)], [], 1.0, id="all-against-nothing-are-both-constant"),
        pytest.param([(0, 20, 0.3)], [(0, 20, 0.9)], 1.0, id="both-constant-at-other-values"),
        pytest.param([(0, 5, 1.0)], [], 0.0, id="prediction-constant"),
        pytest.param([(0, 20, 0.2)], [(0, 5, 1.0)], 0.0, id="gold-constant"),
        pytest.param([(0, 5, 1e-9)], [], 1.0, id="constant-after-rounding"),
        pytest.param([(0, 5, 0.2)], [(0, 5, 0.9)], 1.0, id="the-same-order"),
        pytest.param([(0, 5, 0.2)], [(5, 20, 0.9)], -1.0, id="the-reverse-order"),
        pytest.param([(0, 9, 0.1), (9, 20, 0.2)], [(9, 20, 1.0)], 1.0, id="no-character-unmarked"),
    ],
)
def test_corr_at_its_ends(
    gold: list[tuple[int, int, float]], pred: list[tuple[int, int, float]], expected: float
) -> None:
    found = score_item(soft_labels(*gold), soft_labels(*pred))
    assert found.corr == pytest.approx(expected, abs=1e-12)


def test_an_answer_without_characters_scores_1() -> None:
    empty = labels([], length=0)
    found = score_item(empty, mark_all(empty))
    assert {found.iou, found.corr, found.precision, found.recall, found.f1, found.span_f1} == {1.0}


def test_a_submission_may_lack_the_answer() -> None:
    gold, pred = labels([(0, 4)]), labels([(0, 4)], length=None)
    assert score_item(gold, pred).corr == 1.0
    assert score_item(replace(gold, length=None), replace(pred, length=20)).corr == 1.0


@pytest.mark.parametrize(
    ("gold", "pred", "message"),
    [
        pytest.param(
            labels([(0, 4)]),
            labels([(18, 21)], length=None),
            "'val-en-1': predicted labels end at 21.*at most 20",
            id="past-the-answer",
        ),
        pytest.param(
            labels([(0, 4)]),
            replace(labels([], length=None), soft=(SoftLabel(0, 30, 0.2),)),
            "'val-en-1': predicted labels end at 30",
            id="soft-past-the-answer",
        ),
        pytest.param(
            labels([(18, 21)]), labels([]), "'val-en-1': gold labels end at 21", id="gold-past"
        ),
        pytest.param(
            labels([], length=None),
            labels([], length=None),
            "'val-en-1': neither .* how long the answer is",
            id="no-length",
        ),
        pytest.param(
            labels([]), labels([], length=19), "'val-en-1': .* 19 characters.* 20", id="two-lengths"
        ),
        pytest.param(
            labels([]), replace(labels([]), id="val-en-2"), "'val-en-1'.*'val-en-2'", id="two-items"
        ),
    ],
)
def test_labels_that_do_not_fit_are_refused_by_id(
    gold: ItemLabels, pred: ItemLabels, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        score_item(gold, pred)


def test_the_trivial_predictions() -> None:
    gold = labels([(0, 5)], raters=[[(0, 5)]])
    everything = score_item(gold, mark_all(gold))
    assert (everything.iou, everything.recall, everything.corr) == (5 / 20, 1.0, 0.0)
    nothing = score_item(gold, mark_none(gold))
    assert (nothing.iou, nothing.recall, nothing.corr) == (0.0, 0.0, 0.0)
    assert mark_all(gold).soft == (SoftLabel(0, 20, 1.0),)
    assert mark_none(gold).hard == ()
    with pytest.raises(InputError, match="'val-en-1': the gold labels do not say"):
        mark_all(replace(gold, length=None))


# --- against a scorer that looks at every character ----------------------------------------------


def naive(gold: ItemLabels, pred: ItemLabels) -> dict[str, float]:
    wanted, found = (
        {place for start, end in side.hard for place in range(start, end)} for side in (gold, pred)
    )
    hits = len(wanted & found)
    either = bool(wanted or found)
    return {
        "iou": hits / len(wanted | found) if either else 1.0,
        "corr": naive_spearman(vector(gold), vector(pred)),
        "precision": hits / len(found) if found else float(not wanted),
        "recall": hits / len(wanted) if wanted else float(not found),
        "f1": 2 * hits / (len(wanted) + len(found)) if either else 1.0,
    }


def vector(side: ItemLabels) -> list[float]:
    values = [0.0] * LENGTH
    for start, end, prob in side.soft:
        values[start:end] = [prob] * (end - start)
    return values


def naive_spearman(x: list[float], y: list[float]) -> float:
    if len(set(x)) == 1 or len(set(y)) == 1:
        return float(len(set(x)) == len(set(y)))
    x, y = mean_ranks(x), mean_ranks(y)
    middle = sum(x) / len(x)
    products = sum((a - middle) * (b - middle) for a, b in zip(x, y, strict=True))
    return products / sqrt(sum((a - middle) ** 2 for a in x) * sum((b - middle) ** 2 for b in y))


def mean_ranks(values: list[float]) -> list[float]:
    """Each value's rank, the mean of the ranks of its ties."""
    return [sum(v < value for v in values) + (values.count(value) + 1) / 2 for value in values]


@given(marks, marks)
def test_interval_scores_equal_character_scores(
    gold: list[SoftLabel], pred: list[SoftLabel]
) -> None:
    wanted, guess = soft_labels(*gold), soft_labels(*pred)
    found = score_item(wanted, guess)
    for name, expected in naive(wanted, guess).items():
        assert getattr(found, name) == pytest.approx(expected, abs=1e-12), name


@given(st.lists(st.tuples(marks, marks, st.lists(marks, max_size=3)), max_size=5))
def test_items_scored_together_score_as_they_do_alone(
    sides: list[tuple[list[SoftLabel], list[SoftLabel], list[list[SoftLabel]]]],
) -> None:
    pairs = [
        (
            replace(soft_labels(*gold), raters=tuple(tuple(merge(rater)) for rater in raters)),
            soft_labels(*pred),
        )
        for gold, pred, raters in sides
    ]
    assert score_items(pairs) == [score_item(*pair) for pair in pairs]
    for (gold, pred), found in zip(pairs, score_items(pairs), strict=True):
        best = max([naive(replace(gold, hard=r), pred)["iou"] for r in gold.raters], default=None)
        assert found.max_iou == (None if best is None else pytest.approx(best))
        same, either = len({*gold.hard} & {*pred.hard}), len(gold.hard) + len(pred.hard)
        assert found.span_f1 == pytest.approx(2 * same / either if either else 1.0)


@given(marks, marks)
def test_scores_stay_in_their_range_and_are_1_for_the_gold_itself(
    gold: list[SoftLabel], pred: list[SoftLabel]
) -> None:
    wanted, guess = soft_labels(*gold), soft_labels(*pred)
    found = score_item(wanted, guess)
    assert all(0.0 <= getattr(found, name) <= 1.0 for name in SCORES)
    assert -1.0 <= found.corr <= 1.0
    same = score_item(wanted, wanted)
    assert [getattr(same, name) for name in (*SCORES, "corr")] == pytest.approx([1.0] * 6)


# --- against the shared task's own scorer --------------------------------------------------------


@pytest.fixture(scope="module")
def real(shared: Path) -> list[ItemScore]:
    """The golden predictions, scored."""
    predicted = {
        pred.id: pred
        for file in sorted((shared / "mushroom" / "golden").glob("pred.*.jsonl"))
        for pred in read_labels(file)
    }
    golds = [
        gold
        for file in sorted((shared / "mushroom" / "val").glob("*.jsonl"))
        for gold in read_labels(file)
    ]
    return score_items([(gold, predicted[gold.id]) for gold in golds])


def test_iou_and_corr_equal_the_official_scorer_on_every_item(
    real: list[ItemScore], shared: Path
) -> None:
    golden = json.loads((shared / "mushroom" / "golden" / "scores.json").read_text())
    assert len(golden) == 499
    assert {item.id for item in real} == set(golden)
    for item in real:
        assert item.iou == pytest.approx(golden[item.id]["iou"], abs=1e-9), item.id
        assert item.corr == pytest.approx(golden[item.id]["cor"], abs=1e-9), item.id


def test_every_published_item_knows_its_annotators(real: list[ItemScore]) -> None:
    assert all(item.max_iou is not None for item in real)
