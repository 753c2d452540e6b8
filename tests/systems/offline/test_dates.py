"""Dates in many spellings, laid beside each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.systems.offline.dates import ParsedDate, dates, match
from spanlab.systems.offline.model import load
from spanlab.systems.offline.words import read


def found(text: str, lang: str = "en") -> list[ParsedDate]:
    return dates(read(text).row(), load().background.months(lang))


MARCH = {"year": 1889, "month": 3, "day": 31}


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        pytest.param("de", "am 31.03.1889 eröffnet", id="de-digits"),
        pytest.param("de", "am 31. 3. 1889", id="de-digits-spaced"),
        pytest.param("de", "am 31. März 1889.", id="de"),
        pytest.param("en", "on 1889-03-31", id="iso"),
        pytest.param("en", "on 31/3/1889", id="en-day-first"),
        pytest.param("en", "on 3/31/1889", id="en-month-first"),
        pytest.param("en", "on 31 March 1889", id="en"),
        pytest.param("en", "on March 31st, 1889", id="en-ordinal"),
        pytest.param("en", "the 31st of March 1889", id="en-of"),
        pytest.param("en", "Mar. 31, 1889", id="en-abbreviated"),
        pytest.param("es", "el 31 de marzo de 1889", id="es"),
        pytest.param("ca", "el 31 de març de 1889", id="ca"),
        pytest.param("fr", "le 31 mars 1889", id="fr"),
        pytest.param("it", "il 31 marzo 1889", id="it"),
        pytest.param("sv", "den 31 mars 1889", id="sv"),
        pytest.param("fi", "31. maaliskuuta 1889", id="fi"),
        pytest.param("cs", "31. března 1889", id="cs"),
        pytest.param("eu", "1889ko martxoaren 31n", id="eu"),
        pytest.param("ar", "في ٣١ مارس ١٨٨٩", id="ar"),
        pytest.param("ar", "في 31 آذار 1889", id="ar-levantine"),
        pytest.param("ar", "٣١/٣/١٨٨٩", id="ar-digits"),
        pytest.param("fa", "در ۳۱ مارس ۱۸۸۹", id="fa"),
        pytest.param("hi", "३१ मार्च १८८९ को", id="hi"),
        pytest.param("zh", "于1889年3月31日开放", id="zh"),
        pytest.param("ja", "１８８９年３月３１日に", id="ja-fullwidth-digits"),
        pytest.param("ko", "1889년 3월 31일에", id="ko"),
        pytest.param("ru", "31 марта 1889 года", id="ru"),
        pytest.param("und", "31 mars 1889", id="unknown-language"),
    ],
)
def test_a_date_is_read_in_every_spelling(lang: str, text: str) -> None:
    (date,) = found(text, lang)
    assert [dict(reading) for reading in date.readings] == [MARCH]


@pytest.mark.parametrize(
    ("lang", "text", "readings"),
    [
        pytest.param(
            "en",
            "3/4/1889",
            [{"day": 3, "month": 4, "year": 1889}, {"month": 3, "day": 4, "year": 1889}],
            id="day-or-month-first",
        ),
        pytest.param("fi", "maaliskuussa 1889", [{"month": 3, "year": 1889}], id="no-day"),
        pytest.param("cs", "5. listopadu", [{"day": 5, "month": 11}], id="cs-listopad"),
        pytest.param("hr", "5. listopada", [{"day": 5, "month": 10}], id="hr-listopad"),
    ],
)
def test_a_date_has_as_many_readings_as_it_may_mean(
    lang: str, text: str, readings: list[dict[str, int]]
) -> None:
    (date,) = found(text, lang)
    assert list(date.readings) == readings


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("In 2008 300 people may come.", id="no-month"),
        pytest.param("It was 12.50 or 3.5.", id="decimals"),
        pytest.param("from 1914–1918", id="years"),
        pytest.param("99/99/9999", id="no-such-day"),
        pytest.param("March\n31", id="two-lines"),
        pytest.param("In March he had, as 31 others, gone.", id="far-apart"),
    ],
)
def test_what_is_no_date_is_not_read_as_one(text: str) -> None:
    assert found(text) == []


def test_parts_that_agree_are_paired_whatever_their_order() -> None:
    (said,) = found("31.03.1889", "de")
    (stands,) = found("March 31, 1889")
    paired = match(said, [stands])
    assert paired is not None
    assert (paired.same, paired.other) == ({0: 1, 1: 0, 2: 2}, {})


def test_the_signs_of_a_part_go_with_it() -> None:
    (said,) = found("1889年4月31日", "zh")
    (stands,) = found("March 31, 1889")
    paired = match(said, [stands])
    assert paired is not None
    assert paired.same == {0: 2, 1: 2, 4: 1, 5: 1}
    assert paired.other == {2: 0}


def test_of_several_dates_the_closest_counts() -> None:
    (said,) = found("30 March 1889")
    others = found("Begun on 28 January 1887, opened on 31 March 1889, closed on 30 May 1900.")
    paired = match(said, others)
    assert paired is not None
    assert len(paired.same) == 2
    assert list(paired.other) == [0]
    assert match(said, []) is None


@given(st.text(alphabet="0123456789./-–年月日 marchMärz\n", max_size=60))
def test_dates_of_any_text_are_in_order(text: str) -> None:
    last = -1
    for date in found(text):
        places = sorted({at for reading in date.places for at in reading.values()})
        assert last < places[0]
        last = max(places[-1], *date.signs, places[-1])
