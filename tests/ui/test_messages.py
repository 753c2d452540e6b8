"""Errors on pages name boxes, not options of commands."""

from __future__ import annotations

import pytest

from spanlab.ui.messages import in_page_words


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("UTF-8; --encoding latin-1 reads it", "UTF-8; “Encoding” latin-1 reads it"),
        ("--hallucinated-if a=1 says which", "“Hallucinated if” a=1 says which"),
        ("--speaker NAME says who", "“The model in a chat” NAME says who"),
        ("--skip-bad leaves it out", "“If a record is invalid: Leave it out” leaves it out"),
        ("--same-ids number does", "“If two records have one id: Number them” does"),
        ("a language (--lang)", "a language"),
        ("well--known", "well--known"),
    ],
    ids=[
        "encoding",
        "verdicts",
        "another title",
        "yes or no",
        "one of several",
        "in brackets",
        "no option",
    ],
)
def test_an_option_is_called_what_its_box_is_called(said: str, shown: str) -> None:
    assert in_page_words(said) == shown
