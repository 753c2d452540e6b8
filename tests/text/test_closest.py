from __future__ import annotations

from spanlab.text.facts import closest_sentence

PASSAGES = [
    "Paris is big. The tower in Paris is 330 metres tall. Paris.",
    "铁塔高330米。巴黎很大。",
]


def closest(text: str, lang: str = "en") -> str | None:
    best = closest_sentence(PASSAGES, text, lang=lang)
    return None if best is None else PASSAGES[best.passage][best.start : best.end]


def test_the_sentence_that_shares_most_words() -> None:
    assert closest("the tower is 300 metres tall") == "The tower in Paris is 330 metres tall."


def test_a_sentence_that_holds_the_text_scores_one() -> None:
    best = closest_sentence(PASSAGES, "330 METRES", lang="en")

    assert best is not None
    assert (best.passage, best.start, best.score) == (0, 14, 1.0)


def test_a_sentence_of_characters() -> None:
    assert closest("铁塔高300米", lang="zh") == "铁塔高330米。"


def test_the_first_of_equals() -> None:
    twins = ["It rained. Paris is big.", "Paris is big. Paris is big."]
    best = closest_sentence(twins, "big Paris", lang="en")

    assert best is not None
    assert (best.passage, best.start) == (0, 11)


def test_the_order_of_words_decides_nothing_but_how_much_else_there_is() -> None:
    assert closest("tall 330 metres is Paris in tower the") == (
        "The tower in Paris is 330 metres tall."
    )
    assert closest("Paris, big as it is") == "Paris is big."


def test_nothing_to_compare_is_no_sentence() -> None:
    assert closest("...") is None
    assert closest_sentence([], "text") is None
    assert closest_sentence(["", " "], "text") is None
