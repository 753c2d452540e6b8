"""Scores of verdicts on whole answers: by hand, and against definitions written out anew."""

from __future__ import annotations

import math
import random

import pytest

from spanlab.scoring.answer_scores import (
    ANSWER_SCORES,
    AnswerScores,
    baselines,
    evaluate_answers,
    score_answers,
)
from spanlab.text.labels import AnswerVerdict


def pairs(*rows: tuple[int, int, float]) -> list[tuple[AnswerVerdict, AnswerVerdict]]:
    """Gold verdict, predicted verdict and probability of each answer."""
    return [(AnswerVerdict(bool(g), float(g)), AnswerVerdict(bool(p), prob)) for g, p, prob in rows]


def means(scores: AnswerScores) -> list[float | None]:
    found = [getattr(scores, key) for key in ANSWER_SCORES]
    return [None if each is None else round(each.mean, 6) for each in found]


# Two of three hallucinated answers are called so, and one of the other two.
FIVE = pairs((1, 1, 0.9), (0, 1, 0.8), (1, 1, 0.7), (0, 0, 0.3), (1, 0, 0.2))


def test_scores_by_hand() -> None:
    scores = score_answers(FIVE)
    assert (scores.n, scores.hallucinated) == (5, 3)
    precision, recall = 2 / 3, 2 / 3
    balanced = (2 / 3 + 1 / 2) / 2
    auroc = (2 + 1 + 0) / 6  # .9 is above both others, .7 above one, .2 above none
    ap = (1 / 1 + 2 / 3 + 3 / 5) / 3  # precision where each hallucinated answer is found
    f1 = 2 / 3
    wanted = [precision, recall, f1, balanced, auroc, ap]
    assert means(scores) == [round(value, 6) for value in wanted]


def test_ties_count_half_and_as_one_step() -> None:
    scores = score_answers(pairs((1, 0, 0.5), (0, 0, 0.5), (1, 1, 0.9)))
    assert scores.auroc is not None and scores.average_precision is not None
    assert scores.auroc.mean == pytest.approx((0.5 + 1) / 2)
    assert scores.average_precision.mean == pytest.approx((1 + 2 / 3) / 2)


def test_what_is_not_defined_is_none() -> None:
    clean = score_answers(pairs((0, 0, 0.1), (0, 0, 0.2)))
    assert means(clean) == [None] * 6
    called = score_answers(pairs((0, 1, 0.9), (0, 0, 0.2)))
    assert means(called) == [0.0, None, 0.0, None, None, None]
    wrong = score_answers(pairs((1, 0, 0.1), (1, 0, 0.2)))
    assert means(wrong) == [None, 0.0, 0.0, None, None, 1.0]


@pytest.mark.parametrize(
    ("called", "low", "high"), [(1, 0.935, 1.0), (0, 0.0, 0.065)], ids=["all", "none"]
)
def test_f1_is_as_unsure_as_the_few_answers_that_it_counts(
    called: int, low: float, high: float
) -> None:
    """Of 200 answers 55 are hallucinated: Wilson's interval is of 55 of 55, or of none of them."""
    scores = score_answers(pairs(*[(1, called, called)] * 55, *[(0, 0, 0.0)] * 145))
    assert scores.recall is not None and scores.f1 is not None
    assert (scores.recall.low, scores.recall.high) == pytest.approx((low, high), abs=0.001)
    wanted = [2 * end / (1 + end) for end in (low, high)]
    assert [scores.f1.low, scores.f1.high] == pytest.approx(wanted, abs=0.001)


def test_the_baselines_are_chance() -> None:
    found = {name: means(scores) for name, scores in baselines([gold for gold, _ in FIVE]).items()}
    share = 3 / 5
    assert found["all hallucinated"] == [share, 1.0, 0.75, 0.5, 0.5, share]
    assert found["none hallucinated"] == [None, 0.0, 0.0, 0.5, 0.5, share]
    assert found["the majority"] == found["all hallucinated"]


def test_languages_stand_beside_all_answers() -> None:
    found = evaluate_answers({"en": FIVE, "de": pairs((0, 0, 0.0))})
    assert [row[0] for row in found.tables()[0].rows] == ["de", "en", "all"]
    assert found.total.n == 6 and found.languages["de"].recall is None


def test_random_verdicts_score_as_their_definitions_say() -> None:
    drawn = random.Random(68)
    for _ in range(20):
        rows = [
            (
                int(drawn.random() < 0.4),
                int(drawn.random() < 0.5),
                drawn.choice([0, 0.25, 0.5, 1.0]),
            )
            for _ in range(drawn.randint(4, 40))
        ]
        scores = score_answers(pairs(*rows))
        wrong = [prob for gold, _, prob in rows if gold]
        right = [prob for gold, _, prob in rows if not gold]
        if not wrong or not right:
            continue
        above = sum((a > b) + (a == b) / 2 for a in wrong for b in right)
        assert scores.auroc is not None and scores.average_precision is not None
        assert scores.auroc.mean == pytest.approx(above / len(wrong) / len(right))
        ap = 0.0
        for at in sorted(set(wrong), reverse=True):
            found = sum(prob >= at for prob in wrong)
            called = found + sum(prob >= at for prob in right)
            ap += found / called * wrong.count(at) / len(wrong)
        assert scores.average_precision.mean == pytest.approx(ap)
        for key in ANSWER_SCORES:
            mean = getattr(scores, key)
            assert mean is None or 0 <= mean.low <= mean.mean <= mean.high <= 1


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 200 samples of 80 answers, AUROC and balanced accuracy are held in about 95 of 100."""
    drawn = random.Random(1)
    held = {"auroc": 0, "balanced_accuracy": 0, "f1": 0}
    # Gold answers have N(1, 1), others N(0, 1), called above .5: AUROC is Phi(1 / sqrt 2).
    phi = [0.5 * (1 + math.erf(x / math.sqrt(2))) for x in (1 / math.sqrt(2), 0.5)]
    recall, precision = phi[1], 0.3 * phi[1] / (0.3 * phi[1] + 0.7 * (1 - phi[1]))
    truth = {
        "auroc": phi[0],
        "balanced_accuracy": phi[1],
        "f1": 2 * precision * recall / (precision + recall),
    }
    for _ in range(200):
        rows = []
        for _ in range(80):
            gold = drawn.random() < 0.3
            value = drawn.gauss(float(gold), 1.0)
            rows.append((int(gold), int(value > 0.5), 1 / (1 + math.exp(-value))))
        scores = score_answers(pairs(*rows))
        for key, wanted in truth.items():
            mean = getattr(scores, key)
            held[key] += mean.low <= wanted <= mean.high
    assert all(count >= 180 for count in held.values()), held
