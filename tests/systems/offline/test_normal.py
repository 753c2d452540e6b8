"""What counts as the same word, the same number, and what is no text in a passage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.systems.offline.words import blank_marks, fold, readings


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("Straße", "STRASSE", id="case"),
        pytest.param("Löwenhielm", "Lowenhielm", id="accent"),
        pytest.param("e\u0301te\u0301", "été", id="composed-and-decomposed"),
        pytest.param("١٨٨٢", "1882", id="arabic-digits"),
        pytest.param("۱۸۸۲", "1882", id="persian-digits"),
        pytest.param("१८८२", "1882", id="devanagari-digits"),
        pytest.param("１８８２", "1882", id="fullwidth-digits"),
        pytest.param("کیک", "كيك", id="persian-and-arabic-letters"),
        pytest.param("أحمد", "احمد", id="hamza"),
        pytest.param("يُلَعب", "يلعب", id="arabic-points"),
        pytest.param("محـــمد", "محمد", id="tatweel"),
        pytest.param("می\u200cخواهم", "میخواهم", id="zero-width-non-joiner"),
        pytest.param("क़लम", "कलम", id="nukta"),
    ],
)
def test_spellings_of_one_word_fold_alike(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("कि", "की", id="hindi-vowel-signs"),
        pytest.param("ปี", "ปู", id="thai-vowel-signs"),
        pytest.param("か", "が", id="voiced-kana"),
        pytest.param("1882", "1883", id="numbers"),
    ],
)
def test_different_words_stay_different(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@pytest.mark.parametrize(
    ("number", "values"),
    [
        pytest.param("2008", {"2008"}, id="plain"),
        pytest.param("05", {"5"}, id="leading-zero"),
        pytest.param("0", {"0"}, id="zero"),
        pytest.param("1,234.5", {"1234.5"}, id="english"),
        pytest.param("1.234,5", {"1234.5"}, id="german"),
        pytest.param("1 234", {"1234"}, id="space"),
        pytest.param("1\u202f234\u202f567", {"1234567"}, id="narrow-space"),
        pytest.param("1'234", {"1234"}, id="swiss"),
        pytest.param("١٬٢٣٤٫٥", {"1234.5"}, id="arabic"),
        pytest.param("1.234", {"1234", "1.234"}, id="ambiguous"),
        pytest.param("3,50", {"3.5"}, id="trailing-zero"),
        pytest.param("3.14159", {"3.14159"}, id="long-fraction"),
        pytest.param("1,2,3", {"123"}, id="no-pattern"),
    ],
)
def test_a_number_reads_as_what_it_may_mean(number: str, values: set[str]) -> None:
    assert readings(number) == values


@pytest.mark.parametrize(
    ("raw", "blanked"),
    [
        pytest.param("opened in 1858[1][12].", "opened in 1858       .", id="citations"),
        pytest.param("see [2, 5] and [^3]", "see        and     ", id="lists-of-citations"),
        pytest.param("**Bold** and `code`", "  Bold   and  code ", id="emphasis"),
        pytest.param("## Heading\n- item", "   Heading\n  item", id="heading-and-bullet"),
        pytest.param("1. first\n12) last", "   first\n    last", id="ordinals"),
        pytest.param("[text](http://a.b/3)", " text               ", id="link"),
        pytest.param("5 * 3 in 1858. 7 came", "5 * 3 in 1858. 7 came", id="plain-text"),
    ],
)
def test_citations_and_markdown_are_blanked_in_place(raw: str, blanked: str) -> None:
    assert blank_marks(raw) == blanked


@given(st.text())
def test_blanking_moves_no_character(text: str) -> None:
    blanked = blank_marks(text)
    assert len(blanked) == len(text)
    assert all(new in (old, " ") for old, new in zip(text, blanked, strict=True))


@given(st.text())
def test_folding_is_stable(text: str) -> None:
    assert fold(fold(text)) == fold(text)
