"""What an optimiser maximises, checked by hand."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from optimizers import units
from optimizers.metrics import judge, judge_verdict
from spanlab import doors
from spanlab.base.errors import UsageError
from spanlab.detection.entry import DetectorEntry
from spanlab.schema import Verdict
from spanlab.text.extents import Extent
from spanlab.text.labels import ItemLabels, SoftLabel

ANSWER = "Ada was born in Paris in 1816."
#         0123456789012345678901234567890
PARIS, YEAR, ADA = Extent(16, 21), Extent(25, 29), Extent(0, 3)


def labels(
    *extents: Extent, raters: tuple[tuple[Extent, ...], ...] = (), prob: float = 1.0
) -> ItemLabels:
    soft = tuple(SoftLabel(start, end, prob) for start, end in extents)
    return ItemLabels("ada", "en", soft, extents, raters, len(ANSWER))


def test_iou_is_the_shared_part_of_the_marked_characters() -> None:
    # 4 characters in common, 5 + 4 in either.
    assert judge(labels(PARIS, YEAR), labels(YEAR), ANSWER, "iou").score == pytest.approx(4 / 9)


def test_max_iou_is_the_best_with_any_annotator_and_without_annotators_the_iou() -> None:
    found = labels(YEAR)
    rated = labels(PARIS, YEAR, raters=((PARIS, YEAR), (YEAR,)))
    assert judge(rated, found, ANSWER, "max-iou").score == 1.0
    assert judge(labels(PARIS, YEAR), found, ANSWER, "max-iou").score == pytest.approx(4 / 9)


def test_means_weigh_their_metrics_alike() -> None:
    gold, found = labels(PARIS, YEAR, raters=((YEAR,),)), labels(YEAR)
    iou, corr, most = (
        judge(gold, found, ANSWER, name).score for name in ("iou", "corr", "max-iou")
    )
    assert judge(gold, found, ANSWER, "iou+corr").score == pytest.approx((iou + corr) / 2)
    assert judge(gold, found, ANSWER, "all").score == pytest.approx((iou + corr + most) / 3)


@pytest.mark.parametrize(
    ("gold", "found", "said"),
    [
        pytest.param((PARIS,), (PARIS,), "All right.", id="right"),
        pytest.param((), (), "Right: nothing in this answer is wrong.", id="nothing-wrong"),
        pytest.param((PARIS,), (), "Missed: “Paris”.", id="missed"),
        pytest.param((), (ADA,), "Marked although it is right: “Ada”.", id="invented"),
        pytest.param(
            (PARIS,),
            (Extent(13, 29),),
            "Boundaries off: “Paris” was marked as “in Paris in 1816”.",
            id="too-wide",
        ),
        pytest.param(
            (PARIS, YEAR),
            (ADA, Extent(16, 18), Extent(20, 21)),
            "Missed: “1816”. Marked although it is right: “Ada”. "
            "Boundaries off: “Paris” was marked as “Pa” and “s”.",
            id="all-three",
        ),
    ],
)
def test_the_feedback_names_each_mistake(
    gold: tuple[Extent, ...], found: tuple[Extent, ...], said: str
) -> None:
    assert judge(labels(*gold), labels(*found), ANSWER, "iou").feedback == said


def test_the_feedback_stays_short() -> None:
    answer = "ab " * 500
    many = tuple(Extent(3 * index, 3 * index + 2) for index in range(400))
    gold = ItemLabels("x", "en", (), many, (), len(answer))
    feedback = judge(gold, ItemLabels("x", "en", (), (), (), len(answer)), answer, "iou").feedback
    assert feedback.endswith("“ab” and 395 more.")
    assert len(feedback) < 100


def test_an_unknown_target_is_named_with_those_there_are() -> None:
    with pytest.raises(
        UsageError,
        match=r"'bleu'; available: iou, corr, max-iou, .*, iou\+corr, all",
    ):
        judge(labels(), labels(), ANSWER, "bleu")


@pytest.mark.parametrize(
    ("gold", "said", "right"),
    [
        pytest.param("supported", "supported", True, id="same"),
        pytest.param("refuted", "not-supported", True, id="covered"),
        pytest.param("not-supported", "not-enough-evidence", True, id="covers"),
        pytest.param("refuted", "not-enough-evidence", False, id="told-apart"),
        pytest.param("supported", "not-supported", False, id="other-side"),
        pytest.param("not-supported", "inconclusive", False, id="inconclusive"),
        pytest.param("supported", None, False, id="none"),
    ],
)
def test_a_verdict_is_right_where_it_says_what_gold_says(
    gold: Verdict, said: Verdict | None, right: bool
) -> None:
    judged = judge_verdict(gold, said, "so it is written")
    assert judged.score == right
    assert judged.feedback == (
        f"Right: the claim is {said}."
        if right
        else f"Wrong: the verdict was {said or 'none'}, right is {gold}. "
        "The reason given was: so it is written"
    )


def test_a_package_brings_what_is_tuned_and_its_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    words = replace(units.CLAIMS, metrics={"word-f1": "F1 of words"}, scored="words")
    offered = (
        doors.Offer("words", f"{__name__}:WORDS", "mine"),
        doors.Offer("broken", f"{__name__}:NONE", "mine"),
    )
    monkeypatch.setitem(globals(), "WORDS", words)
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(WORDS=words))
    all_of = doors.offers
    monkeypatch.setattr(
        doors, "offers", lambda kind: all_of(kind) + (offered if kind == "subjects" else ())
    )
    units.units.cache_clear()
    mine = DetectorEntry(name="mine", what="", needs="", tuned_on="words")
    try:
        assert units.metrics_for(mine) == ("word-f1",)
        assert units.unit_of("word-f1") == "words"
        with pytest.raises(UsageError, match=r"the spans of answers, and 'mine' is .* words"):
            units.check_metric("iou", mine)
    finally:
        units.units.cache_clear()
    with pytest.raises(UsageError, match="no installed package has a subject 'words'"):
        monkeypatch.undo()
        units.metrics_for(mine)
