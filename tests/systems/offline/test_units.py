"""Phrases that are judged together, and the spans that words make."""

from __future__ import annotations

import numpy as np
import pytest

from spanlab.systems.offline.features import AnswerFeatures, describe
from spanlab.systems.offline.lexicon import Lexicon, WordBackground
from spanlab.systems.offline.passages import read_passages
from spanlab.systems.offline.spans import WordStretch, decided, stretches

NOTHING_KNOWN = WordBackground({}, {}, Lexicon({}, {}))


def described(answer: str, passage: str = "", lang: str = "en") -> AnswerFeatures:
    return describe("", answer, read_passages([passage]), lang, NOTHING_KNOWN)


def found(answer: str, probs: list[float], passage: str = "") -> list[WordStretch]:
    rated = np.array(probs, dtype=np.float64)
    return stretches(described(answer, passage), rated, rated)


def hard(answer: str, probs: list[float]) -> list[str]:
    return [answer[start:end] for start, end in decided(found(answer, probs))]


@pytest.mark.parametrize(
    ("answer", "probs", "marked"),
    [
        pytest.param("The gulf of Aden", [0, 0.8, 0.35, 0.8], ["gulf of Aden"], id="joining-word"),
        pytest.param("The gulf of Aden", [0, 0.8, 0.1, 0.8], ["gulf", "Aden"], id="cut-in-two"),
        pytest.param("It was Ada Berg", [0, 0, 0.36, 0.8], ["Ada Berg"], id="half-a-name"),
        pytest.param("It was near Berg", [0, 0, 0.36, 0.8], ["Berg"], id="no-name"),
        pytest.param("He met a. Bo sat", [0, 0.1, 0.5, 0.8, 0], ["a. Bo"], id="two-sentences"),
    ],
)
def test_words_make_phrases(answer: str, probs: list[float], marked: list[str]) -> None:
    """An edge costs .2 characters of the likeliest word, within a name four times that."""
    assert hard(answer, probs) == marked


def test_a_name_is_one_span_with_the_mean_over_its_characters() -> None:
    """(.4 · 3 letters + .8 · 1 letter) / 4 = .5."""
    (span,) = found("It was Ada B", [0, 0, 0.4, 0.8])
    assert (span.start, span.end, span.prob, span.hard) == (7, 12, 0.5, True)


def test_a_short_run_of_unknown_signs_is_as_probable_as_its_likeliest_sign() -> None:
    seen, probs = described("首都是里昂", "首都是巴黎。", "zh"), np.array([0, 0, 0, 0.1, 0.5])
    assert [(one.start, one.end, one.prob) for one in stretches(seen, probs, probs)] == [
        (3, 5, 0.5)
    ]


def test_a_part_of_a_date_that_the_passage_has_is_doubted_half() -> None:
    answer, passage = "It was 03.05.1889.", "It was on 1889-05-04."
    probs = [span.prob for span in found(answer, [0, 0, 0.8, 0.8, 0.8], passage)]
    assert probs == [0.8, 0.4]


def test_a_sign_that_stands_elsewhere_in_other_company_is_unknown() -> None:
    """海 of 上海 stands in 跨海, which makes it no part of a known word."""
    seen = described("在上海", "跨海大桥在宁波。", "zh")
    assert seen.known.tolist() == [0, 0, 0]
    assert described("跨海", "跨海大桥。", "zh").known.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("probs", "spans", "decisions"),
    [
        pytest.param([0, 0.9, 0.87, 0], ["b, c"], ["b, c"], id="alike"),
        pytest.param([0, 0.9, 0.6, 0], ["b", "c"], ["b, c"], id="of-two-probabilities"),
        pytest.param([0, 0.9, 0.4, 0], ["b", "c"], ["b"], id="one-decided"),
        pytest.param([0, 0.9, 0, 0.9], ["b", "D"], ["b", "D"], id="apart"),
        pytest.param([0.2, 0.9, 0.3, 0], ["b"], ["b"], id="faint-beside"),
        pytest.param([0.2, 0.25, 0.1, 0], [], [], id="faint-answer"),
        pytest.param([0, 0, 0, 0], [], [], id="nothing"),
    ],
)
def test_words_make_spans(probs: list[float], spans: list[str], decisions: list[str]) -> None:
    """No span begins or ends with punctuation, and a right answer has no faint ones."""
    answer = "A. b, c; D!"
    assert [answer[one.start : one.end] for one in found(answer, probs)] == spans
    assert hard(answer, probs) == decisions
