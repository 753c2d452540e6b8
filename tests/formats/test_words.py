"""The table of words by which fields are known."""

from __future__ import annotations

from spanlab.formats.vocabulary import all_words, named_by, words_in


def test_a_pair_of_parts_is_every_pair_the_last_word_outermost() -> None:
    first = words_in("columns", "question")[:4]
    assert first == ("user question", "human question", "customer question", "user query")
    assert words_in("parts", "histories")[:2] == ("history", "dialogue history")


def test_a_word_is_in_one_list_of_judgements_roles_and_languages() -> None:
    for section in ("verdicts", "roles", "languages", "common_labels"):
        listed = [word for words in all_words(section).values() for word in words]
        assert len({*listed}) == len(listed)
        assert named_by(section).keys() == {*listed}
