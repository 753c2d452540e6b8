"""Which names of a knowledge graph mean the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spanlab.systems.safe.grounding import canonical, is_generic, is_nameable, is_value, key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Beatles", "beatles"),
        ("U.S.", "US"),
        ("J. K. Rowling", "J.K. Rowling"),
        ("J. K. Rowling", "JK Rowling"),
        ("P.S. I Love You", "PS I Love You"),
        ("John F. Kennedy", "John F Kennedy"),
        ("10 April 1930", "1930-04-10"),
        ("April 10, 1930", "1930-04-10"),
        ("1,000", "1000"),
        ("“Green”", "Green"),
        ("Paige O’Hara", "Paige O'Hara"),
        ("東京", "東京 "),
        ("Ｗｉｄｅ", "Wide"),
    ],
)
def test_spellings_of_a_name_have_the_same_key(one: str, other: str) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1930", "1930-04-10"),
        ("The", "A"),
        ("हिन्दी", "हिन्दा"),
        ("Apollo 11", "Apollo 13"),
        ("C", "D"),
        ("3.5 km", "35 km"),
        ("A. Smith", "Smith"),
    ],
)
def test_other_names_have_other_keys(one: str, other: str) -> None:
    assert key(one) != key(other)


@pytest.mark.parametrize(
    "name",
    [
        "1930",
        "10 April 1930",
        "3 years",
        "50%",
        "$5 million",
        "44th",
        "first",
        "1990s",
        "5 km",
        "12",
    ],
)
def test_dates_numbers_and_quantities_are_values(name: str) -> None:
    assert is_value(name)
    assert not is_nameable(name)


@pytest.mark.parametrize(
    "name", ["film director", "the album", "two sons", "different stage names"]
)
def test_common_nouns_are_generic(name: str) -> None:
    assert is_generic(name)
    assert not is_nameable(name)


@pytest.mark.parametrize(
    "name", ["Apollo 11", "2001: A Space Odyssey", "東京", "Mother Teresa", "iPod"]
)
def test_names_are_nameable(name: str) -> None:
    assert is_nameable(name)


@pytest.mark.parametrize(
    ("names", "groups", "expected"),
    [
        (["USA", "France", "United States"], [["United States", "USA"]], ["USA", "France", "USA"]),
        (["The Beatles", "Beatles"], [], ["The Beatles", "The Beatles"]),
        # Values and common nouns stay what they are, whatever a model says.
        (["1930", "1931", "Ada"], [["1930", "1931", "Ada"]], ["1930", "1931", "Ada"]),
        (
            ["Barack Obama", "president"],
            [["Barack Obama", "president"]],
            ["Barack Obama", "president"],
        ),
        # What differs in a number or a generation is not one thing.
        (
            ["Lorenzo Costa the Elder", "Lorenzo Costa the Younger"],
            [["Lorenzo Costa the Elder", "Lorenzo Costa the Younger"]],
            ["Lorenzo Costa the Elder", "Lorenzo Costa the Younger"],
        ),
        (
            ["Henry VIII", "Henry", "Henry VII"],
            [["Henry", "Henry VIII"], ["Henry", "Henry VII"]],
            ["Henry VIII", "Henry VIII", "Henry VII"],
        ),
        # Groups that share a name are one; names that the graph does not have are nothing.
        (["A B", "B C", "C D"], [["A B", "B C"], ["B C", "C D", "X"]], ["A B", "A B", "A B"]),
        (["Ada"], [["Ada"], [], ["Ada", "Ada"]], ["Ada"]),
    ],
)
def test_every_entity_is_known_under_its_first_name(
    names: Sequence[str], groups: Sequence[Sequence[str]], expected: Sequence[str]
) -> None:
    known = canonical(names, groups)
    assert [known[name] for name in names] == expected
