"""Long texts become passages that end where a thought ends."""

from __future__ import annotations

import re
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.search.corpus import split


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        pytest.param("Short.", 20, ["Short."], id="fits"),
        pytest.param(" \n\t ", 20, [], id="white space"),
        pytest.param(
            "One two. Three.\n\nFour five six.",
            20,
            ["One two. Three.", "Four five six."],
            id="paragraph",
        ),
        pytest.param(
            "One two. Three four! Five six seven.",
            22,
            ["One two. Three four!", "Five six seven."],
            id="sentence",
        ),
        pytest.param(
            "他说。“好！”然后走了。再见", 7, ["他说。“好！”", "然后走了。再见"], id="Chinese"
        ),
        pytest.param("पहला वाक्य। दूसरा वाक्य।", 14, ["पहला वाक्य।", "दूसरा वाक्य।"], id="Hindi"),
        pytest.param("one two three four", 9, ["one two", "three", "four"], id="words"),
        pytest.param("aaaaaaaaaa b", 4, ["aaaa", "aaaa", "aa b"], id="a word without end"),
    ],
)
def test_split(text: str, longest: int, expected: list[str]) -> None:
    assert list(split(text, longest)) == expected


@given(st.text(alphabet="ab .\n。", max_size=300), st.integers(1, 40))
def test_nothing_is_lost_and_nothing_is_too_long(text: str, longest: int) -> None:
    passages = list(split(text, longest))
    assert all(0 < len(passage) <= longest for passage in passages)
    assert re.sub(r"\s", "", "".join(passages)) == re.sub(r"\s", "", text)


def test_a_very_long_text_takes_no_longer_per_character() -> None:
    assert len(list(split("x" * 1_000_000, 1000))) == 1000
    assert len(list(split("x\n" * 500_000, 1000))) == 1000
    for text in ("x", "x\n", "x. "):
        assert _calls(text * 20_000) < 2.1 * _calls(text * 10_000)


def _calls(text: str) -> int:
    """Count the function calls, those of methods in C among them, that splitting takes."""
    events: Counter[str] = Counter()
    sys.setprofile(lambda frame, event, arg: events.update([event]))
    try:
        list(split(text, 1000))
    finally:
        sys.setprofile(None)
    return events["call"] + events["c_call"]
