"""What a text is searched by, in every script."""

from __future__ import annotations

import pytest

from spanlab.text.terms import beginnings, share_language, sought, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("The Tower's 330 m", ["the", "tower", "s", "330", "m"], id="words"),
        pytest.param("Éiffel STRASSE straße", ["eiffel", "strasse", "strasse"], id="folded"),
        pytest.param("ＡＢＣ ﬁn", ["abc", "fin"], id="width and ligatures"),
        pytest.param("كِتَابٌ كتـاب", ["كتاب", "كتاب"], id="Arabic without vowel points"),
        pytest.param("हिन्दी में", ["हिन्दी", "में"], id="Hindi keeps its vowel signs"),
        pytest.param("می\u200cروم", ["میروم"], id="Persian without joiners"),
        pytest.param("北京 a", ["a", "北", "京", "北京"], id="Chinese characters and pairs"),
        pytest.param("東京タワ", ["東", "京", "タ", "ワ", "東京", "京タ", "タワ"], id="Japanese"),
        pytest.param("ไทย", ["ไท", "ทย", "ไทย"], id="Thai pairs and triples"),
        pytest.param("snake_case", ["snake", "case"], id="an underscore parts words"),
        pytest.param("…!? 🗼", [], id="nothing to search by"),
    ],
)
def test_terms_of(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_stems_let_forms_of_a_word_meet() -> None:
    one, other = set(terms("kirjastossa", stems=True)), set(terms("kirjastojen", stems=True))
    assert one & other == {"kirja*"}
    assert terms("short", stems=True) == ["short"]


@pytest.mark.parametrize(
    ("text", "found_by", "not_by"),
    [
        pytest.param("330 metres tall", ["Tal 33", "met", "330"], ["etres"], id="words"),
        pytest.param("Der Éiffelturm", ["eiffel", "ÉIFF"], ["turm"], id="accents and case"),
        pytest.param(
            "东京塔高33米。", ["京塔", "塔", "33米", "东京塔高"], ["塔东京"], id="Chinese"
        ),
        pytest.param("京都は東京では", ["京都", "東京で", "東京では"], ["東京都"], id="Japanese"),
        pytest.param("หอคอยสูง 330 เมตร", ["สูง", "คอย", "เมตร 330"], ["สูงมาก"], id="Thai"),
        pytest.param("हिन्दी में लिखा", ["हिन्दी", "लि"], ["न्दी"], id="Hindi"),
        pytest.param("برج إيفل", ["ايفل"], ["يفل"], id="Arabic"),
        pytest.param("val-en-12", ["val-en-12", "EN-1", "12"], ["val-de"], id="an id"),
    ],
)
def test_a_search_finds_words_by_their_beginnings(
    text: str, found_by: list[str], not_by: list[str]
) -> None:
    def finds(search: str) -> bool:
        return all(any(term.startswith(s) for term in beginnings(text)) for s in sought(search))

    assert [search for search in found_by if not finds(search)] == []
    assert [search for search in not_by if finds(search)] == []


def test_a_search_of_signs_alone_looks_for_nothing() -> None:
    assert sought("…!? 🗼") == []


_TALK = "anna: did you see the film? ben: not yet, is it good?"
_WALK = "a sailor went slowly through narrow streets towards his boat while dark clouds rose over"
_ARTICLE = " ".join(f"word{'abcdefghij'[n % 10]}{'klmnopqr'[n // 10]}" for n in range(70))


@pytest.mark.parametrize(
    ("text", "others", "same"),
    [
        ("the film that anna has seen was long and rather sad in places", _TALK, True),
        ("el puente fue abierto cuando la ciudad no tenía otro camino", _TALK, False),
        (f"{_WALK} the harbour", _TALK, True),  # 1 word of 15, which is enough of a few
        (f"{_WALK} the harbour", f"{_ARTICLE} the", False),
        ("el puente fue abierto", _TALK, True),  # too short to tell
        ("el puente fue abierto cuando la ciudad no", f"{_ARTICLE} no", False),  # 1 of 8
        ("el puente fue abierto cuando la ciudad no", f"{_ARTICLE} no la", True),
    ],
)
def test_texts_of_a_language_share_its_small_words(text: str, others: str, same: bool) -> None:
    assert share_language(text, [others]) is same
