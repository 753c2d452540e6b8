"""Tokens hold the characters of the answer exactly, whatever the script and the tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import tiny_encoders as tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from spanlab.networks.tokenizing import CheckpointTokenizer

SCRIPTS = {
    "Latin": "The tower, built 1889: façade.",
    "Cyrillic": "Башня построена в 1889 году.",
    "Greek": "Ο πύργος χτίστηκε το 1889.",
    "Arabic": "بُنِيَ البرجُ عام ١٨٨٩.",
    "Hebrew": "הַמִּגְדָּל נבנה ב־1889.",
    "Devanagari": "मीनार १८८९ में बनी।",
    "Bengali": "মিনারটি ১৮৮৯ সালে।",
    "Thai": "หอคอยสร้างเมื่อปี ๒๔๓๒",
    "Chinese": "铁塔建于1889年，𠀋高。",
    "Japanese": "塔は1889年に建てられた。ガ",
    "Korean": "탑은 1889년에 지어졌다.",
    "Georgian": "კოშკი აშენდა 1889 წელს.",
}
EMOJI = "👩‍👩‍👧 🇫🇷 e\u0301 ﬁ \r\n\t\u200b\u00a0"
TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "WordPiece": tiny.word_piece,
    "byte-level BPE": tiny.byte_level,
    "Unigram": tiny.unigram,
}


def tokenizing(name: str, limit: int = 10_000) -> CheckpointTokenizer:
    return CheckpointTokenizer(TOKENIZERS[name](), limit, "tiny")


def check_tiles(read: CheckpointTokenizer, answer: str) -> None:
    """Every visible character is held by a token, and tokens stand in the answer's order."""
    places = list(read.pair("What? 塔 👩‍👩‍👧", answer).places.values())
    held = {at for place in places for at in range(place.start, place.end)}
    assert held <= set(range(len(answer)))
    missing = [answer[at] for at in range(len(answer)) if at not in held]
    assert not [each for each in missing if not each.isspace()]
    for before, after in pairwise(places):
        assert before.start <= after.start
        # Two tokens share a character only if neither of them has it whole.
        assert before.end <= after.start or before.end - after.start == 1


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_tokens_of_an_answer_tile_it(tokenizer: str, script: str) -> None:
    check_tiles(tokenizing(tokenizer), f"{SCRIPTS[script]} {EMOJI} {SCRIPTS[script]}")


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_any_mix_of_scripts_is_tiled(tokenizer: str) -> None:
    read = tokenizing(tokenizer)

    @settings(max_examples=20)
    @given(st.text(alphabet="".join(SCRIPTS.values()) + EMOJI, max_size=40))
    def tiled(answer: str) -> None:
        check_tiles(read, answer)

    tiled()


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_windows_and_pieces_hold_all_that_there_is(tokenizer: str) -> None:
    """Passages and answers of any length: no row is too long, nothing is left out."""
    words = st.lists(st.sampled_from([*SCRIPTS.values(), "the", "tower"]), max_size=12)

    @settings(max_examples=12)
    @given(words, st.lists(words.map(" ".join), max_size=3), st.integers(60, 200))
    def held(answer_words: list[str], passages: list[str], limit: int) -> None:
        answer = " ".join(answer_words)
        read = tokenizing(tokenizer, limit)
        shown: list[list[str]] = []

        def prompt(texts: list[str]) -> str:
            shown.append(list(texts))
            return "\n".join(texts)

        pieces = read.read(prompt, passages, answer)  # type: ignore[arg-type]
        assert "".join(answer[piece.start : piece.end] for piece in pieces) == answer or not pieces
        whole = {at for place in read.places(answer) for at in range(place.start, place.end)}
        held = {
            piece.start + at
            for piece in pieces
            for place in piece.rows[0].places.values()
            for at in range(place.start, place.end)
        }
        assert {at for at in whole if not answer[at].isspace()} <= held
        for piece in pieces:
            assert all(len(row.ids) <= limit for row in piece.rows)
            assert all(
                row.places
                == {
                    at + len(row.ids) - len(piece.rows[0].ids): place
                    for at, place in piece.rows[0].places.items()
                }
                for row in piece.rows
            )
        if pieces:
            for passage in passages:
                assert _covers(passage, [text for texts in shown for text in texts])

    held()


def _covers(passage: str, texts: list[str]) -> bool:
    """Say whether parts of a passage hold all that is visible of it."""
    held: set[int] = set()
    for text in filter(None, texts):
        at = passage.find(text)
        while at >= 0:
            held.update(range(at, at + len(text)))
            at = passage.find(text, at + 1)
    return all(at in held for at, each in enumerate(passage) if not each.isspace())
