"""Words and sentences, with offsets into the untouched text."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanlab.detectors.offline.words import read

FAMILIES = ("ar", "de", "fr", "hi", "zh", "ja", "und")  # one of each way of cutting
LANGUAGES = (*FAMILIES, "en", "fa", "fi", "ko", "th", "vi", "xx", "qq", "pt-BR", "zh-Hans")


@pytest.mark.parametrize(
    ("lang", "text", "words"),
    [
        pytest.param("en", "He didn't pay 1,234.5.", "He|did|n|t|pay|1,234.5", id="en"),
        pytest.param("fr", "L'homme d'Évry", "L|homme|d|Évry", id="fr-elision"),
        pytest.param("de", "Es war 2008. Danach", "Es|war|2008|Danach", id="de-year-at-the-end"),
        pytest.param("fi", "1980-luvun 8 500 km", "1980|luvun|8 500|km", id="fi-spaced-thousands"),
        pytest.param("en", "in 2008 300 people", "in|2008|300|people", id="two-numbers"),
        pytest.param("en", "1914–1918, 2006,2007", "1914|1918|2006|2007", id="years-in-a-row"),
        pytest.param("de", "am 05.04.1812", "am|05|04|1812", id="date"),
        pytest.param("en", "on 2005-09-01", "on|2005|09|01", id="iso-date"),
        pytest.param("zh", "2018年，他在IBM。", "2018|年|他|在|IBM", id="zh"),
        pytest.param("ja", "東京タワーは333m", "東|京|タ|ワ|ー|は|333|m", id="ja-without-package"),
        pytest.param("ko", "서울은 1392년", "서울은|1392|년", id="ko-without-package"),
        pytest.param("th", "ปี 2500", "ปี|2500", id="th-marks-stay-with-their-letter"),
        pytest.param("hi", "१८८२ में जॉन", "१८८२|में|जॉन", id="hi-matras"),
        pytest.param("ar", "ملعبُ «هوكي»", "ملعبُ|هوكي", id="ar-points"),
        pytest.param("fa", "می\u200cخواهم", "می\u200cخواهم", id="fa-joiner"),
        pytest.param("und", "e\u0301te\u0301 👩‍👩‍👧 ok_no", "e\u0301te\u0301|ok|no", id="emoji"),
    ],
)
def test_words_of_many_languages(lang: str, text: str, words: str) -> None:
    assert [word.text for word in read(text, lang).words] == words.split("|")


@pytest.mark.parametrize(
    ("lang", "text", "sentences"),
    [
        pytest.param("en", "It is 3.5 long. Why? ", ["It is 3.5 long.", "Why?"], id="en"),
        pytest.param("en", "Mr. Low came.\n\nHe left", ["Mr. Low came.", "He left"], id="lines"),
        pytest.param("en", "1. One thing", ["1. One thing"], id="ordinal-is-no-sentence"),
        pytest.param("de", "Das war 2008. Gut.", ["Das war 2008.", "Gut."], id="de-year"),
        pytest.param("zh", "长3.5米。好！走", ["长3.5米。", "好！", "走"], id="zh"),
        pytest.param("hi", "यह है। वह था।", ["यह है।", "वह था।"], id="hi-danda"),
        pytest.param("ar", "متى كان؟ الآن.", ["متى كان؟", "الآن."], id="ar-question-mark"),
        pytest.param("ja", "高い。低い。", ["高い。", "低い。"], id="ja-without-package"),
    ],
)
def test_sentences_of_many_languages(lang: str, text: str, sentences: list[str]) -> None:
    reading = read(text, lang)
    assert [text[start:end] for start, end in reading.sentences] == sentences


def test_stop_words_and_the_month_of_a_date_are_function_words() -> None:
    words = read("It was on 05.04.1812", "en").words
    assert [word.text for word in words if word.function] == ["It", "was", "on", "04"]


def test_a_second_number_above_twelve_is_a_day() -> None:
    assert [word.text for word in read("04/25/1812", "en").words if word.function] == ["04"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_language_is_read(lang: str) -> None:
    assert [word.text for word in read("Anno 1858", lang).words] == ["Anno", "1858"]


@settings(deadline=None)
@given(st.text(max_size=300), st.sampled_from(FAMILIES))
def test_offsets_fit_any_text(text: str, lang: str) -> None:
    reading = read(text, lang)
    last = 0
    for word in reading.words:
        assert last <= word.start < word.end
        assert text[word.start : word.end] == word.text
        start, end = reading.sentences[word.sentence]
        assert start <= word.start < end
        last = word.end


@settings(deadline=None)
@given(st.text(max_size=300), st.sampled_from(["ar", "de", "fr", "hi", "zh", "xx"]))
def test_spacy_covers_the_text_without_changing_it(text: str, lang: str) -> None:
    doc = pipeline(lang).make_doc(text)
    assert "".join(token.text_with_ws for token in doc) == text
    assert all(text[token.idx : token.idx + len(token)] == token.text for token in doc)


@cache
def pipeline(lang: str) -> Any:
    return import_module("spacy").blank(lang)
