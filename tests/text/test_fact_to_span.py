from __future__ import annotations

from spanlab.text.facts import map_fact
from spanlab.text.quotes import ModelQuote, QuoteMapping

ANSWER = "It opened in 1889. It was hastily built in old Rome. It closed in 1889."


def found(source: str | None, *words: str) -> list[tuple[int, str]]:
    mapping = map_fact(ANSWER, source, [ModelQuote(word) for word in words], lang="en")
    return [(span.start, ANSWER[span.start : span.end]) for span in mapping.spans]


def test_words_are_found_in_the_sentence_of_the_fact() -> None:
    """Repeated text maps to its own occurrence."""
    assert found("It closed in 1889.", "1889") == [(66, "1889")]


def test_words_between_which_others_stand_are_marked_one_by_one() -> None:
    assert found("It was hastily built in old Rome.", "was built in Rome") == [
        (22, "was"),
        (34, "built in"),
        (47, "Rome"),
    ]


def test_a_part_of_the_sentence_is_enough_to_name_it() -> None:
    assert found("was hastily built", "old Rome", "built") == [(34, "built"), (43, "old Rome")]


def test_the_sentence_may_be_retold() -> None:
    assert found("It was closed in the 1889.", "1889") == [(66, "1889")]


def test_words_of_another_sentence_are_not_found() -> None:
    mapping = map_fact(ANSWER, "It opened in 1889.", [ModelQuote("old Rome")], lang="en")

    assert mapping == QuoteMapping((), (), unmatched=(0,))


def test_without_a_sentence_the_whole_answer_is_searched() -> None:
    assert found(None, "old Rome") == [(43, "old Rome")]
    assert found("Nobody wrote this anywhere.", "old Rome") == [(43, "old Rome")]


def test_no_words_no_spans() -> None:
    assert map_fact(ANSWER, None, [], lang="en") == QuoteMapping((), ())
