"""Names that people type: what is drawn alike is one name, and what is not drawn is none."""

from __future__ import annotations

import pytest

from spanlab.base.errors import UsageError
from spanlab.base.names import alike, check_typed
from spanlab.schema import AnnotatorKind
from spanlab.storage.annotators import check_reviewer

ALIKE = {
    "Cyrillic capital": ("Ben", "\u0412en"),
    "Greek capital": ("Ben", "\u0392en"),
    "Cyrillic capital before another case": ("ben", "\u0412EN"),
    "Cyrillic small": ("Anna", "\u0410nn\u0430"),
    "Greek small": ("kate", "\u03baate"),
    "Cherokee": ("Ann", "\u13aann"),
    "I and l": ("Al", "AI"),
    "I and l in small letters": ("al", "AI"),
    "1 and l": ("Paul", "Pau1"),
    "0 and O": ("Bob", "B0b"),
    "rn and m": ("Amy", "Arny"),
    "mathematical": ("Ben", "\U0001d401en"),
    "wide": ("Anna", "Ａｎｎａ"),
    "accent": ("Jose", "José"),
    "stroke": ("Soren", "Søren"),
    "case": ("Anna", "ANNA"),
    "sharp s": ("Weiss", "Weiß"),
    "two blanks": ("Anna Lee", "Anna  Lee"),
    "wide blank": ("Anna Lee", "Anna\u2003Lee"),
    "blank at the end": ("Anna", "Anna "),
    "Hangul filler": ("Ben", "Ben\u3164"),
    "half-width filler": ("Ben", "Ben\uffa0"),
    "Braille blank": ("Ben", "Ben\u2800"),
    "variation selector": ("Ben", "Ben\ufe0f"),
    "combining joiner": ("Ben", "B\u034fen"),
    "zero width": ("Ben", "B\u200ben"),
    "soft hyphen": ("Ben", "Be\xadn"),
    "tag": ("Ben", "Ben\U000e0041"),
    "Japanese": ("カ", "力"),
}
UNLIKE = [
    ("Ben", "Jen"),
    ("Anna", "Hanna"),
    ("al", "ai"),
    ("राम", "रमा"),
    ("王", "玉"),
    ("a1", "a2"),
]


@pytest.mark.parametrize("kind", ALIKE)
def test_names_that_look_alike_are_one(kind: str) -> None:
    one, other = ALIKE[kind]
    assert alike(one, [other]) == other
    assert alike(other, ["Zoe", one]) == one


@pytest.mark.parametrize(("one", "other"), UNLIKE)
def test_names_that_differ_are_two(one: str, other: str) -> None:
    assert alike(one, [other]) is None


@pytest.mark.parametrize(
    "tail", ["\u3164", "\u2800", "\ufe0f", "\u200b", "\u00ad", "\u202e", "\U000e0041"]
)
def test_a_character_that_is_not_drawn_is_named(tail: str) -> None:
    with pytest.raises(UsageError, match=rf"not drawn \(U\+{ord(tail):04X}\)"):
        check_typed(f"Ben{tail}", "a reviewer")


@pytest.mark.parametrize("name", ["علی\u200cرضا", "क्\u200dष", "❤️", "👩\u200d🔬 Ada", "Ben"])
def test_joiners_within_words_and_emoji_are_part_of_a_name(name: str) -> None:
    check_typed(name, "a reviewer", ["Anna", name])


@pytest.mark.system("offline")
@pytest.mark.parametrize("name", ["Αnna", "ANNA", "0ffline", "g0ld", "vοte", "A\u200bnna"])
def test_nobody_reviews_under_what_looks_like_anothers_name(name: str) -> None:
    with pytest.raises(UsageError, match=r"looks like|belongs to|not drawn"):
        check_reviewer({"Anna": AnnotatorKind.PERSON}, name)


def test_who_has_annotated_already_goes_on_under_the_own_name() -> None:
    check_reviewer({"Anna": AnnotatorKind.PERSON, "ANNA": AnnotatorKind.PERSON}, "ANNA")
