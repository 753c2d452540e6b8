"""When two names are one entity."""

from __future__ import annotations

import pytest

from spanlab.detection.entities import grams, key_of, keys_of, looked_up, names_of, near


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("The Eiffel Tower", "eiffel tower", id="case-and-article"),
        pytest.param("L’Équipe", "equipe", id="accents-and-elision"),
        pytest.param("USA", "The United States of America", id="abbreviation"),
        pytest.param("U.S.", "United States", id="with-dots"),
        pytest.param("U.S.S.R.", "Soviet Union", id="many-dots"),
        pytest.param("Boeing ٧٤٧", "Boeing 747", id="digits-of-another-script"),
        pytest.param("Ｔｏｋｙｏ", "Tokyo", id="full-width"),
        pytest.param("Newton's", "Newton", id="possessive"),
        pytest.param("Jean-Paul  Sartre", "Jean Paul Sartre", id="hyphen-and-space"),
        pytest.param("القاهرة", "قاهرة", id="arabic-article"),
    ],
)
def test_names_of_one_entity_have_one_key(one: str, other: str) -> None:
    assert key_of(one) == key_of(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [("us", "United States"), ("Apollo 11", "Apollo 12"), ("東京", "京都"), ("Paris", "Texas")],
)
def test_names_of_two_entities_have_two_keys(one: str, other: str) -> None:
    assert key_of(one) != key_of(other)


@pytest.mark.parametrize("name", ["", "1889", "330 000", "…", "٧٤٧"])
def test_what_has_no_letters_is_no_entity(name: str) -> None:
    assert key_of(name) == ""


def test_common_nouns_count_where_there_is_no_proper_name() -> None:
    assert keys_of(["tower of Aldmere", "steps", "1889"]) == ("tower of aldmere",)
    assert keys_of(["the towers", "steps"]) == ("towers", "steps")
    assert keys_of(["塔", "steps"]) == ("塔",)


def test_evidence_is_looked_up_by_common_nouns_beside_proper_names() -> None:
    assert looked_up(["tower of Aldmere", "the steps", "1889"]) == ("tower of aldmere", "steps")


def test_near_names_may_differ_in_letters_and_order_but_not_in_numbers() -> None:
    others = ["barack obama", "obama barack", "apollo 12", "michelle obama", "albert einstein"]
    assert near("barak obama", others) == ["barack obama", "obama barack"]
    assert near("alber einstein", others) == ["albert einstein"]
    assert near("apollo 11", others) == []
    assert near("rome", ["roma", "romé", "rom"]) == []
    assert near("austria", ["australia"]) == []
    assert near("aldmere aaville", ["aldmere abville"]) == []


def test_the_pieces_of_a_name_are_those_of_its_words() -> None:
    assert grams("al so") == {" al", "al ", " so", "so "}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("In 1889 the Eiffel Tower in Paris was built.", ("Eiffel Tower", "Paris")),
        (
            "Ludwig van Beethoven, Élodie Ñandú and Apollo 11",
            ("Ludwig van Beethoven", "Élodie Ñandú", "Apollo 11"),
        ),
        ("It is near the University of Oslo. It is old.", ("University of Oslo",)),
        ("Мария Кюри родилась в Варшаве.", ("Мария Кюри", "Варшаве")),
        ("who was it", ()),
        ("塔很高。", ()),
    ],
)
def test_names_in_a_text_are_told_by_their_capitals(text: str, names: tuple[str, ...]) -> None:
    assert names_of(text) == names
