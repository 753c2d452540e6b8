"""What a trace shows of a revision: what stayed, went and came, word by word."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.systems.ucsc.trace import revision_pieces

SIGNS = {"same": "=", "deleted": "-", "inserted": "+"}


@pytest.mark.parametrize(
    ("answer", "revised", "lang", "expected"),
    [
        pytest.param("a big city", "a big city", "en", ["=a big city"], id="nothing changed"),
        pytest.param(
            "It is a big city.",
            "It is a small city.",
            "en",
            ["=It is a ", "-big", "+small", "= city."],
            id="a word replaced",
        ),
        pytest.param(
            "It is a big city.",
            "It is a city.",
            "en",
            ["=It is a", "- big", "= city."],
            id="a word taken out with its space",
        ),
        pytest.param(
            "It is a city.",
            "It is a big city.",
            "en",
            ["=It is a", "+ big", "= city."],
            id="a word put in with its space",
        ),
        pytest.param(
            "He was born in 1999 in Rome, Italy.",
            "He was born in 1989 in Pisa, Italy.",
            "en",
            ["=He was born in ", "-1999", "+1989", "= in ", "-Rome", "+Pisa", "=, Italy."],
            id="two words far apart",
        ),
        pytest.param("one\ntwo", "one two", "en", ["=one", "-\n", "+ ", "=two"], id="white space"),
        pytest.param("他是美国人", "他是法国人", "zh", ["=他是", "-美", "+法", "=国人"], id="zh"),
        pytest.param(
            "هو من مصر", "هو من ليبيا", "ar", ["=هو من ", "-مصر", "+ليبيا"], id="right to left"
        ),
        pytest.param("wrong", "", "en", ["-wrong"], id="all taken out"),
        pytest.param("", "right", "en", ["+right"], id="all put in"),
        pytest.param("", "", "en", [], id="empty"),
    ],
)
def test_a_revision_is_told_word_by_word(
    answer: str, revised: str, lang: str, expected: list[str]
) -> None:
    pieces = revision_pieces(answer, revised, lang)
    assert [f"{SIGNS[piece.tag]}{piece.text}" for piece in pieces] == expected


@given(
    st.text(alphabet="ab 漢🎉\n.\u0301א", max_size=30), st.text(alphabet="ab 漢🎉\n.א", max_size=30)
)
def test_the_pieces_make_up_both_texts(answer: str, revised: str) -> None:
    pieces = revision_pieces(answer, revised, "en")
    assert "".join(piece.text for piece in pieces if piece.tag != "inserted") == answer
    assert "".join(piece.text for piece in pieces if piece.tag != "deleted") == revised
    at = 0
    for piece in pieces:
        assert piece.start == at
        at = piece.end
        if piece.tag != "inserted":
            assert answer[piece.start : piece.end] == piece.text
    tags = [piece.tag for piece in pieces]
    assert all(one != other for one, other in pairwise(tags))
