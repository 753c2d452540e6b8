"""What a text is searched by, in every script."""

from __future__ import annotations

import pytest

from spanlab.retrievers.terms import terms


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
