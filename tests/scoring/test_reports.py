"""Reports and comparisons: means, intervals and tests over items."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import sqrt
from statistics import fmean, stdev

import numpy as np
import pytest

from spanlab.base.errors import InputError
from spanlab.schema.clusters import Relations
from spanlab.scoring.comparison import compare, paired
from spanlab.scoring.report import ScoreReport, mean_of, score
from spanlab.text.extents import Extent
from spanlab.text.labels import ItemLabels, SoftLabel

Pair = tuple[ItemLabels, ItemLabels]


def labels(item: str, size: int, *, rated: bool = False) -> ItemLabels:
    """Labels of ten characters of which the first ``size`` are marked; "en-1" is English."""
    hard = (Extent(0, size),) if size else ()
    return ItemLabels(
        id=item,
        lang=item.split("-", maxsplit=1)[0],
        soft=tuple(SoftLabel(*extent, 1.0) for extent in hard),
        hard=hard,
        raters=(hard,) if rated else (),
        length=10,
    )


def pair(item: str, tenths: int, *, rated: bool = False) -> Pair:
    """Gold of ten characters and a prediction whose IoU is ``tenths`` / 10."""
    return labels(item, 10, rated=rated), labels(item, tenths)


def report(**tenths: list[int]) -> ScoreReport:
    """One report with items of the given IoU per language."""
    return score(
        pair(f"{lang}-{index}", value)
        for lang, values in tenths.items()
        for index, value in enumerate(values)
    )


def test_a_report_has_items_languages_and_a_macro_mean() -> None:
    found = report(sv=[10, 5, 0], en=[10])
    assert [item.id for item in found.items] == ["sv-0", "sv-1", "sv-2", "en-0"]
    assert [(means.lang, means.n) for means in found.languages] == [("en", 1), ("sv", 3)]
    assert [means.iou.mean for means in found.languages] == [1.0, 0.5]
    # Every language counts the same: (1 + .5) / 2, not 2.5 / 4.
    assert (found.macro.n, found.macro.iou.mean) == (4, 0.75)


def test_intervals_are_as_wide_as_the_items_differ() -> None:
    values = [0, 2, 4, 6, 8, 10] * 10
    found = report(en=values).languages[0].iou
    spread = 1.96 * stdev(value / 10 for value in values) / sqrt(len(values))
    assert found.mean == pytest.approx(fmean(values) / 10)
    assert found.low == pytest.approx(found.mean - spread, abs=0.015)
    assert found.high == pytest.approx(found.mean + spread, abs=0.015)


def test_very_many_items_have_the_interval_of_the_normal_distribution() -> None:
    values = [0, 2, 4, 6, 8, 10] * 1_700
    many = report(en=values)
    found = many.languages[0].iou
    spread = 1.96 * stdev(value / 10 for value in values) / sqrt(len(values))
    assert found.mean == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5 - spread, abs=spread / 10)
    assert found.high == pytest.approx(0.5 + spread, abs=spread / 10)
    assert many.macro.max_iou is None
    assert compare(many, many).macro.iou.p == 1.0
    assert compare(many, report(en=[max(0, value - 1) for value in values])).macro.iou.p < 0.001


def test_items_that_are_all_alike_still_leave_an_interval() -> None:
    """The next item might be missed, or right in full: with five of .7 that is .583 to .75."""
    found = report(en=[7] * 5).languages[0].iou
    assert (found.low, found.mean, found.high) == pytest.approx((3.5 / 6, 0.7, 4.5 / 6))


@pytest.mark.parametrize(("value", "low", "high"), [(0.0, 0.0, 0.2775), (1.0, 0.7225, 1.0)])
def test_ten_answers_of_one_kind_are_no_proof_of_the_next(
    value: float, low: float, high: float
) -> None:
    """Wilson's interval of a share."""
    found = mean_of([value] * 10)
    assert (found.low, found.mean, found.high) == pytest.approx((low, value, high), abs=1e-3)


def test_the_macro_interval_resamples_within_each_language() -> None:
    # Each language is alike within; resampling all items together would mix them and vary.
    found = report(en=[10] * 5, sv=[0] * 20).macro.iou
    assert found.mean == 0.5
    # By Wilson 5 of 5 are at least .566, 0 of 20 at most .161: these add up by squares.
    assert found.low == pytest.approx(0.5 - (1 - 0.5655) / 2, abs=1e-3)
    assert found.high == pytest.approx(0.5 + 0.1611 / 2, abs=1e-3)


@pytest.mark.parametrize("tenths", [0, 10])
def test_no_macro_interval_leaves_what_a_score_can_be(tenths: int) -> None:
    """Few clusters ask for a wide interval: it was [.334, 1.072] for a mean IoU of .715."""
    pairs = [
        (replace(gold, relations=Relations(hash((lang, index // 2)))), predicted)
        for lang, index in itertools.product(("de", "en", "ja"), range(6))
        for gold, predicted in [pair(f"{lang}-{index}", 5 if index < 2 else tenths)]
    ]
    iou = score(pairs).macro.iou
    assert 0 <= iou.low < iou.mean < iou.high <= 1


def test_the_same_scores_give_the_same_intervals_whatever_else_is_scored() -> None:
    alone, together = report(en=[1, 5, 9, 2]), report(en=[1, 5, 9, 2], sv=[3, 4])
    assert alone == report(en=[1, 5, 9, 2])
    assert together.languages[0] == alone.languages[0]


def test_max_iou_is_over_the_items_whose_annotators_are_known() -> None:
    found = score([pair("en-0", 4, rated=True), pair("en-1", 10), pair("sv-0", 10)])
    english, swedish = found.languages
    assert english.max_iou is not None
    ends = (english.max_iou.low, english.max_iou.mean, english.max_iou.high)
    assert ends == pytest.approx((0.2, 0.4, 0.7))  # of one item, and one more of 0 or of 1
    assert swedish.max_iou is None
    assert found.macro.max_iou == english.max_iou


def test_a_report_survives_json() -> None:
    found = score([pair("en-0", 4, rated=True), pair("sv-0", 10)])
    assert ScoreReport.model_validate_json(found.model_dump_json()) == found


def test_an_id_that_stands_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"already exists.*'en-0'"):
        score([pair("en-0", 4), pair("en-0", 5)])


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to score"):
        score([])


# --- comparisons ---------------------------------------------------------------------------------


def test_a_report_does_not_differ_from_itself() -> None:
    found = compare(report(en=[1, 5, 9], sv=[2]), report(en=[1, 5, 9], sv=[2]))
    for part in (*found.languages, found.macro):
        assert (part.iou.difference, part.iou.p) == (0, 1)
        assert part.iou.low < 0 < part.iou.high  # of a few items that agree; others may not
    assert (found.only_a, found.only_b) == ((), ())


def test_a_steady_advantage_is_significant_however_much_the_items_differ() -> None:
    """Paired: the items spread over 0 to .8, the difference is .2 on each of them."""
    found = compare(report(en=[2, 4, 6, 8, 10] * 8), report(en=[0, 2, 4, 6, 8] * 8)).macro.iou
    assert found.difference == pytest.approx(0.2)
    # As far as with one item more, of which one of the two has all and the other nothing.
    assert found.low == pytest.approx(7 / 41)
    assert found.high == pytest.approx(9 / 41)
    assert found.p < 0.001


def test_p_is_the_share_of_sign_changes_that_do_as_well() -> None:
    # Four differences of +.1: of 16 ways to set the signs, all + and all - are as far from 0.
    found = compare(report(en=[5, 6, 7, 8]), report(en=[4, 5, 6, 7])).macro.iou
    assert found.p == pytest.approx(2 / 16, abs=0.03)


def test_the_other_way_round_the_difference_changes_its_sign() -> None:
    one, two = report(en=[5, 6, 7, 1]), report(en=[4, 9, 6, 7])
    there, back = compare(one, two).macro.iou, compare(two, one).macro.iou
    assert there.difference == pytest.approx(-back.difference)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    assert there.p == pytest.approx(back.p)


def test_only_common_items_are_compared_and_the_others_named() -> None:
    one = score([pair("en-0", 5), pair("en-1", 0), pair("sv-0", 5)])
    two = score([pair("en-2", 9), pair("en-0", 4)])
    found = compare(one, two)
    assert (found.macro.n, found.only_a, found.only_b) == (1, ("en-1", "sv-0"), ("en-2",))
    assert found.macro.iou.difference == pytest.approx(0.1)
    assert [(part.lang, part.n) for part in found.languages] == [("en", 1)]
    assert found.macro.max_iou is None


def test_reports_that_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="no item in common"):
        compare(report(en=[5]), report(sv=[5]))
    gold, pred = pair("en-0", 5)
    swedish = ItemLabels("en-0", "sv", gold.soft, gold.hard, length=10)
    with pytest.raises(InputError, match="'en-0' is 'en' in one report and 'sv'"):
        compare(report(en=[5]), score([(swedish, pred)]))


def test_any_value_per_item_has_a_mean_with_its_interval() -> None:
    estimate = mean_of([0.0, 1.0] * 50)
    assert estimate.mean == 0.5
    assert estimate.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.015)
    assert estimate.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.015)
    alone = mean_of([0.25])
    assert (alone.mean, alone.low, alone.high) == (0.25, 0.125, 0.625)
    with pytest.raises(InputError, match="no value"):
        mean_of([])


def test_two_systems_are_paired_by_any_value_per_item() -> None:
    before = [0.1 * (index % 5) for index in range(60)]
    surely = paired([value + 0.2 for value in before], before)
    assert surely.difference == pytest.approx(0.2)
    assert surely.low == pytest.approx(11 / 61)  # with one item more, that only the other has
    assert surely.p < 0.001
    equal = paired(before, before)
    assert (equal.difference, equal.p) == (0.0, 1.0)
    with pytest.raises(InputError, match="60 and 1 values"):
        paired(before, [0.5])


@pytest.mark.parametrize("n", [4, 5, 6, 8, 12, 30])
@pytest.mark.parametrize("values", [[-1.0, 0.0, 0.0, 1.0, 1.0], [-0.3, 0.0, 0.1, 0.4, 0.9]])
@pytest.mark.parametrize("in_cluster", [1, 2])
def test_an_interval_of_a_difference_never_says_more_than_its_p(
    n: int, values: list[float], in_cluster: int
) -> None:
    generator = np.random.default_rng(n)
    clusters = [number // in_cluster for number in range(n)]
    for _ in range(40):
        found = paired(generator.choice(values, n).tolist(), [0.0] * n, clusters)
        assert found.p < 0.05 or found.low <= 0 <= found.high
        assert found.low < found.difference < found.high


def test_an_interval_of_a_difference_holds_as_often_as_it_says() -> None:
    """Of ten skewed differences; the bootstrap's held in nine of ten."""
    generator = np.random.default_rng(1)
    holds = [
        found.low <= 1 / 3 <= found.high
        for found in (paired(generator.beta(1, 2, 10).tolist(), [0.0] * 10) for _ in range(600))
    ]
    assert np.mean(holds) >= 0.92
