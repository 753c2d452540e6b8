"""Words that are judged together, and the spans that words make."""

from __future__ import annotations

import numpy as np
import pytest

from spanlab.detectors.offline.features import AnswerFeatures, describe
from spanlab.detectors.offline.lexicon import Lexicon, WordBackground
from spanlab.detectors.offline.passages import read_passages
from spanlab.detectors.offline.spans import decided, stretches, together
from spanlab.detectors.offline.words import read

STOPS = WordBackground({}, {}, Lexicon({"en": "and the", "zh": "和"}, {}))


def described(answer: str, passage: str, lang: str) -> AnswerFeatures:
    return describe("", answer, read_passages([passage]), lang, STOPS)


def rated(answer: str, passage: str, probs: list[float], lang: str = "en") -> list[float]:
    return [
        round(float(prob), 3)
        for prob in together(described(answer, passage, lang), np.array(probs))
    ]


def test_an_unknown_name_has_one_probability_by_its_letters() -> None:
    """(.2 · 3 letters + .8 · 1 letter) / 4 = .35."""
    assert rated("It was Ada B", "It was.", [0, 0, 0.2, 0.8]) == [0, 0, 0.35, 0.35]


def test_a_known_part_of_a_name_keeps_its_own() -> None:
    assert rated("It was Ada Berg", "It was Ada.", [0, 0, 0.2, 0.8]) == [0, 0, 0.2, 0.8]


def test_a_short_run_of_unknown_signs_is_as_probable_as_its_likeliest_sign() -> None:
    assert rated("首都是里昂", "首都是巴黎。", [0, 0, 0, 0.1, 0.5], "zh") == [0, 0, 0, 0.5, 0.5]


def test_a_long_run_of_unknown_signs_is_several_words() -> None:
    assert rated("里昂在罗讷", "巴黎。", [0.5, 0.5, 0, 0, 0], "zh") == [0.2] * 5


def test_a_sign_that_stands_elsewhere_in_other_company_is_unknown() -> None:
    """海 of 上海 stands in 跨海, which makes it no part of a known word."""
    seen = described("在上海", "跨海大桥在宁波。", "zh")
    assert seen.known.tolist() == [0, 0, 0]
    assert described("跨海", "跨海大桥。", "zh").known.tolist() == [1, 1]


def test_a_stop_word_between_two_runs_of_signs_makes_them_one() -> None:
    answer, passage = "连接上海和南京", "连接嘉兴和宁波。"
    assert rated(answer, passage, [0, 0, 0.1, 0.2, 0, 0.4, 0.5], "zh") == [0, 0, *[0.5] * 5]


def test_a_stop_word_between_two_unknown_names_goes_with_them() -> None:
    answer = "Ada Berg and Bo Li"
    assert rated(answer, "Nobody.", [0.8, 0.8, 0, 0.6, 0.6]) == [0.8, 0.8, 0.6, 0.6, 0.6]
    assert rated("Ada Berg saw Bo Li", "Nobody.", [0.8, 0.8, 0, 0.6, 0.6])[2] == 0


@pytest.mark.parametrize(
    ("probs", "spans", "hard"),
    [
        pytest.param([0, 0.9, 0.87, 0], ["B, C"], ["B, C"], id="alike"),
        pytest.param([0, 0.9, 0.6, 0], ["B", "C"], ["B, C"], id="of-two-probabilities"),
        pytest.param([0, 0.9, 0.4, 0], ["B", "C"], ["B"], id="one-decided"),
        pytest.param([0, 0.9, 0, 0.9], ["B", "D"], ["B", "D"], id="apart"),
        pytest.param([0.2, 0.9, 0.3, 0], ["B"], ["B"], id="faint-beside"),
        pytest.param([0.2, 0.25, 0.1, 0], [], [], id="faint-answer"),
        pytest.param([0, 0, 0, 0], [], [], id="nothing"),
    ],
)
def test_words_make_spans(probs: list[float], spans: list[str], hard: list[str]) -> None:
    """No span begins or ends with punctuation, and a right answer has no faint ones."""
    words = read("A. B, C; D!")
    found = stretches(words, np.array(probs), np.array(probs))
    assert [words.text[one.start : one.end] for one in found] == spans
    assert [words.text[start:end] for start, end in decided(found)] == hard
