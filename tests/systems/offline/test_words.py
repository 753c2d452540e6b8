"""Words and sentences, with offsets into the untouched text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.systems.offline.words import read


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("He didn't pay 1,234.5.", "He|didn|t|pay|1,234.5", id="en"),
        pytest.param("L'homme d'Évry", "L|homme|d|Évry", id="fr-elision"),
        pytest.param("Es war 2008. Danach", "Es|war|2008|Danach", id="de-year-at-the-end"),
        pytest.param("1980-luvun 8 500 km", "1980|luvun|8 500|km", id="fi-spaced-thousands"),
        pytest.param("in 2008 300 people", "in|2008|300|people", id="two-numbers"),
        pytest.param("1914–1918, 2006,2007", "1914|1918|2006|2007", id="years-in-a-row"),
        pytest.param("am 05.04.1812", "am|05|04|1812", id="date"),
        pytest.param("on 2005-09-01", "on|2005|09|01", id="iso-date"),
        pytest.param("2018年，他在IBM。", "2018|年|他|在|IBM", id="zh"),
        pytest.param("東京タワーは333m", "東|京|タ|ワ|ー|は|333|m", id="ja-without-package"),
        pytest.param("서울은 1392년", "서울은|1392|년", id="ko-without-package"),
        pytest.param("ปี 2500", "ปี|2500", id="th-marks-stay-with-their-letter"),
        pytest.param("१८८२ में जॉन", "१८८२|में|जॉन", id="hi-matras"),
        pytest.param("ملعبُ «هوكي»", "ملعبُ|هوكي", id="ar-points"),
        pytest.param("می\u200cخواهم", "می\u200cخواهم", id="fa-joiner"),
        pytest.param("e\u0301te\u0301 👩‍👩‍👧 ok_no", "e\u0301te\u0301|ok|no", id="emoji"),
    ],
)
def test_words_of_many_languages(text: str, words: str) -> None:
    reading = read(text)
    found = [text[a:b] for a, b in zip(reading.starts, reading.ends, strict=True)]
    assert found == words.split("|")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        pytest.param("It is 3.5 long. Why? ", ["It is 3.5 long.", "Why?"], id="en"),
        pytest.param("Mr. Low came.\n\nHe left", ["Mr. Low came.", "He left"], id="lines"),
        pytest.param("1. One thing", ["1. One thing"], id="ordinal-is-no-sentence"),
        pytest.param("Das war 2008. Gut.", ["Das war 2008.", "Gut."], id="de-year"),
        pytest.param("长3.5米。好！走", ["长3.5米。", "好！", "走"], id="zh"),
        pytest.param("यह है। वह था।", ["यह है।", "वह था।"], id="hi-danda"),
        pytest.param("متى كان؟ الآن.", ["متى كان؟", "الآن."], id="ar-question-mark"),
        pytest.param("高い。低い。", ["高い。", "低い。"], id="ja-without-package"),
    ],
)
def test_sentences_of_many_languages(text: str, sentences: list[str]) -> None:
    reading = read(text)
    assert [text[start:end].strip() for start, end in reading.sentences] == sentences


def test_a_capital_is_known_by_its_first_letter() -> None:
    reading = read("Ada und èva 7")
    assert [reading.capital(number) for number in range(4)] == [True, False, False, False]


@given(st.text(max_size=300))
def test_offsets_fit_any_text(text: str) -> None:
    reading = read(text)
    last = 0
    for number, (begin, stop) in enumerate(zip(reading.starts, reading.ends, strict=True)):
        assert last <= begin < stop <= len(text)
        start, end = reading.sentences[reading.sentence[number]]
        assert start <= begin < end
        last = stop
    assert reading.sentences[0][0] == 0
    assert reading.sentences[-1][1] == len(text)
