"""What is learnt from reviews: groups of related answers, figures by hand, and what is stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spanlab.base.errors import InputError
from spanlab.schema import Item, Passage
from spanlab.schema.fits import FitFigure, FitReport
from spanlab.systems.offline.fit import WordFit, logits
from spanlab.systems.offline.fit_report import JudgedAnswer, report_of
from spanlab.systems.offline.fitting import gains
from spanlab.systems.offline.raters import TreeRater


def _item(number: int, question: str = "", answer: str = "", *passages: str) -> Item:
    return Item(
        id=str(number),
        question=question,
        answer=answer or f"answer {number}",
        passages=[Passage(text=text) for text in passages],
    )


def _stump(step: float) -> TreeRater:
    """One tree: words whose feature "known" is above .5 get ``step``."""
    return TreeRater(
        names=("known",),
        roots=np.array([0], dtype=np.int32),
        feature=np.array([0, 0, 0], dtype=np.int16),
        threshold=np.array([0.5, np.inf, np.inf]),
        child=np.array([1, 1, 2], dtype=np.int32),
        value=np.array([0.0, 0.0, step]),
        base=np.array([0.0]),
    )


def test_a_fit_moves_the_logit_and_comes_back_from_its_text() -> None:
    fit = WordFit(intercept=1.0, slope=0.5, trees=_stump(2.0))
    table, share = np.array([[0.0], [1.0]], dtype=np.float32), np.array([0.5, 0.2])
    expected = 1.0 + 0.5 * logits(share) + [0.0, 2.0]
    fitted = fit.share(table, ("known",), share)
    assert logits(fitted) == pytest.approx(expected)
    again = WordFit.parse(fit.dump())
    assert again.share(table, ("known",), share).tolist() == fitted.tolist()
    assert again.dump() == fit.dump()
    assert not len(fit.share(np.zeros((0, 0), dtype=np.float32), (), np.zeros(0)))


@pytest.mark.parametrize("text", ["", "no", "eJw=", "eJyrVkrMK8lILVKyUlAqLU4tUtJRSkksSVSqBQBd5QaL"])
def test_what_is_no_fit_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="fit"):
        WordFit.parse(text)


def test_a_fit_that_would_turn_probabilities_around_is_refused() -> None:
    text = replace(WordFit(0.0, 1.0, _stump(1.0)), slope=-1.0).dump()
    with pytest.raises(InputError, match="damaged"):
        WordFit.parse(text)


def _judged(iou: float, right: int, marked: int, wrong: bool, score: float) -> JudgedAnswer:
    bins = np.zeros((3, 10))
    bins[:, 5] = [5.0, 5.0 * wrong, 10.0]  # ten characters of probability .5
    return JudgedAnswer(iou, right, marked, wrong, score, bins)


def test_figures_are_those_of_a_calculation_by_hand() -> None:
    before = [
        _judged(0.5, 5, 10, wrong=True, score=0.5),
        _judged(0.0, 0, 10, wrong=False, score=0.9),
        _judged(1.0, 0, 0, wrong=False, score=0.5),
    ]
    after = [
        _judged(1.0, 10, 10, wrong=True, score=0.9),
        _judged(1.0, 0, 0, wrong=False, score=0.2),
        _judged(1.0, 0, 0, wrong=False, score=0.2),
    ]
    report = report_of(before, after, [0, 1, 2], folds=3)
    assert (report.answers, report.groups, report.folds) == (3, 3, 3)
    assert (report.iou.before, report.iou.after) == (0.5, 1.0)
    assert report.iou.low is not None
    assert report.iou.low >= 0
    assert (report.precision.before, report.precision.after) == (0.25, 1.0)
    # One pair of a wrong answer with a right one is equal, one the wrong way round.
    assert (report.auroc.before, report.auroc.after) == (0.25, 1.0)
    assert (report.right_marked.before, report.right_marked.after) == (0.5, 0.0)
    # 15 characters' worth of probability, 5 of people, in one bin of 30.
    assert report.calibration_error.before == pytest.approx(10 / 30, abs=1e-4)


def test_figures_that_the_answers_do_not_define_are_none() -> None:
    silent = [_judged(1.0, 0, 0, wrong=False, score=0.0)] * 2
    report = report_of(silent, silent, [0, 1], folds=2)
    assert report.precision == report.auroc == FitFigure()
    assert report.right_marked.after == 0.0


@pytest.mark.parametrize(
    ("iou", "error", "order", "expected"),
    [
        ((0.4, 0.5, 0.02, 0.18), (0.1, 0.2, 0.05, 0.15), (None,) * 4, True),
        ((0.4, 0.5, -0.02, 0.22), (0.2, 0.1, -0.15, 0.05), (None,) * 4, False),
        ((0.4, 0.5, -0.02, 0.22), (0.2, 0.1, -0.15, -0.05), (None,) * 4, True),
        ((0.4, 0.39, -0.05, 0.03), (0.2, 0.1, -0.15, -0.05), (None,) * 4, False),
        ((0.1, 0.5, 0.3, 0.5), (0.2, 0.1, -0.15, -0.05), (0.6, 0.5, -0.15, -0.05), False),
        ((0.1, 0.5, 0.3, 0.5), (0.2, 0.1, -0.15, -0.05), (0.6, 0.5, -0.15, 0.05), True),
        ((0.4, 0.42, -0.1, 0.1), (0.1, 0.2, 0.05, 0.15), (0.6, 0.8, 0.05, 0.3), True),
        ((0.4, 0.42, -0.1, 0.1), (0.1, 0.2, 0.05, 0.15), (0.6, 0.8, -0.05, 0.3), False),
        ((0.4, 0.39, -0.1, 0.1), (0.1, 0.2, 0.05, 0.15), (0.6, 0.8, 0.05, 0.3), False),
    ],
    ids=[
        "iou is higher", "neither is sure", "as good, and calibrated", "worse, but calibrated",
        "by silence", "by silence, perhaps",
        "tells answers apart", "perhaps tells them apart", "worse, but tells answers apart",
    ],
)  # fmt: skip
def test_a_fit_gains_by_iou_or_as_much_with_better_probabilities_but_not_by_silence(
    iou: tuple[float, ...],
    error: tuple[float, ...],
    order: tuple[float | None, ...],
    expected: bool,
) -> None:
    def figure(
        before: float | None, after: float | None, low: float | None, high: float | None
    ) -> FitFigure:
        return FitFigure(before=before, after=after, low=low, high=high)

    report = FitReport(
        answers=40, groups=40, folds=5, iou=figure(*iou), precision=FitFigure(),
        auroc=figure(*order), right_marked=FitFigure(), calibration_error=figure(*error),
    )  # fmt: skip
    assert gains(report) is expected
