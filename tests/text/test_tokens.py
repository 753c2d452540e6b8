from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.text.tokens import sentences, tokens

LANGS = ["en", "zh", "ja", "th", "hi", "ar", "de", "ko", "vi", "und", "zh-Hant"]


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        pytest.param("He didn't.", "en", ["He", "did", "n't", "."], id="English clitic"),
        pytest.param("l'homme", "fr", ["l'", "homme"], id="French elision"),
        pytest.param("1999年成立ABC。", "zh", ["1999", "年", "成", "立", "ABC", "。"], id="zh"),
        pytest.param("1999年", "en", ["1999", "年"], id="Chinese in another language"),
        pytest.param("สวัสดี", "th", ["ส", "วั", "ส", "ดี"], id="Thai with its vowels"),
        pytest.param("सच है।", "hi", ["सच", "है", "।"], id="Hindi danda"),
        pytest.param("👨‍👩‍👧👍🏽", "en", ["👨‍👩‍👧", "👍🏽"], id="emoji"),
        pytest.param(" \r\n ", "en", [], id="space"),
        pytest.param("", "xx", [], id="empty"),
    ],
)
def test_tokens_of_a_language(text: str, lang: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in tokens(text, lang)] == expected


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        pytest.param("Hi! A. B? C", "en", ["Hi!", "A. B?", "C"], id="initials do not end"),
        pytest.param(
            "En 44 av. J.-C. M. X vint. Fin",
            "fr",
            ["En 44 av. J.-C. M. X vint.", "Fin"],
            id="French",
        ),
        pytest.param("Dr. Who left. 3.5 km", "en", ["Dr. Who left.", "3.5 km"], id="titles"),
        pytest.param(
            "Tower no. 0 fell (Fig. 2). See no. 1. He said no. So",
            "en",
            ["Tower no. 0 fell (Fig. 2).", "See no. 1.", "He said no.", "So"],
            id="numbers",
        ),
        pytest.param('He said "no." I left', "en", ['He said "no."', "I left"], id="quotes"),
        pytest.param("Am 3. Mai 1999. Er kam.", "de", ["Am 3. Mai 1999.", "Er kam."], id="ordinal"),
        pytest.param("他走了。“好！”她说", "zh", ["他走了。", "“好！”", "她说"], id="zh"),
        pytest.param("सच है। हाँ", "hi", ["सच है।", "हाँ"], id="hi"),
        pytest.param("هل هذا؟ نعم۔ لا", "ur", ["هل هذا؟", "نعم۔", "لا"], id="ur"),
        pytest.param("one\r\n- two", "en", ["one", "- two"], id="a line break ends one"),
        pytest.param("A so. be it. C", "en", ["A so. be it.", "C"], id="a small letter goes on"),
        pytest.param("In EE. UU. Hay.", "es", ["In EE. UU. Hay."], id="abbreviated, with a space"),
        pytest.param("他说。He left.他走", "zh", ["他说。", "He left.", "他走"], id="no space"),
        pytest.param("Why?! (No.) \xa0 So", "en", ["Why?!", "(No.)", "So"], id="closing marks"),
    ],
)
def test_sentences_of_a_language(text: str, lang: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text, lang)] == expected


def test_a_sentence_ends_as_it_did_when_its_last_word_was_new() -> None:
    for _ in range(2):
        for lang, ends in {"en": True, "de": False, "xx": True}.items():
            assert len(sentences("Der 7. Tag kam. Er", lang)) == (3 if ends else 2)
        assert len(sentences("Der 7. tag kam. Er", "en")) == 2


def test_many_marks_in_one_run_cost_no_more_than_many_runs() -> None:
    text = "a.b" * 20_000 + " " + "c. " * 20_000
    assert sentences(text, "en")[-1].end == len(text) - 1


@given(
    st.text(st.sampled_from("aB1 .!?\"')。！？।؟中ย\u0e31\u0301👩\u200d\r\n…"), max_size=40),
    st.sampled_from(LANGS),
)
def test_tokens_and_sentences_hold_every_character_once(text: str, lang: str) -> None:
    for extents in (tokens(text, lang), sentences(text, lang)):
        position = 0
        for start, end in extents:
            assert position <= start < end <= len(text)
            assert text[position:start].strip() == ""
            position = end
        assert text[position:].strip() == ""


@pytest.mark.parametrize("text", ["!" * 50_000, "(" * 50_000, "a" * 50_000], ids=["!", "(", "a"])
def test_a_run_without_spaces_is_cut_at_once(text: str) -> None:
    assert tokens(text, "en")[-1].end == 50_000


def test_a_text_beyond_a_million_characters_is_read() -> None:
    assert len(tokens("word " * 210_000, "en")) == 210_000
