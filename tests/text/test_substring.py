from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.text.quotes import ModelQuote, QuoteMapping, map_quotes


def found(answer: str, *texts: str, floor: float = 0.85) -> list[tuple[int, str]]:
    """The place and text of every quote that was found, in the order of the quotes."""
    mapping = map_quotes(answer, [ModelQuote(text) for text in texts], floor=floor)
    return [(m.places[0].start, answer[slice(*m.places[0])]) for m in mapping.mapped]


def mapping(answer: str, *texts: str) -> QuoteMapping:
    return map_quotes(answer, [ModelQuote(text) for text in texts])


def test_repeated_text_maps_to_its_own_occurrence() -> None:
    """Repeated text maps to its own occurrence."""
    answer = "In Paris in 1889, and in Rome in 1900."

    assert found(answer, "Paris", "in", "Rome", "in") == [
        (3, "Paris"),
        (9, "in"),
        (25, "Rome"),
        (30, "in"),
    ]


@pytest.mark.parametrize(
    ("answer", "quote", "start"),
    [
        pytest.param("👨‍👩‍👧 and 🇫🇮 saw Rome", "Rome", 17, id="after ZWJ emoji and a flag"),
        pytest.param("one\r\ntwo\r\nthree", "three", 10, id="after CRLF"),
        pytest.param("e\u0301te\u0301 in Rome", "Rome", 9, id="after combining marks"),
        pytest.param("قال نعم في روما", "روما", 11, id="right to left"),
    ],
)
def test_offsets_count_code_points(answer: str, quote: str, start: int) -> None:
    """Offsets are right after emoji, ZWJ sequences and CRLF."""
    assert found(answer, quote) == [(start, quote)]


@pytest.mark.parametrize(
    ("answer", "quote", "place"),
    [
        pytest.param("It was Rome.", "  Rome ", (7, "Rome"), id="space around"),
        pytest.param("It was Rome.", '"Rome"', (7, "Rome"), id="quotation marks around"),
        pytest.param("It was Rome.", "„Rome“", (7, "Rome"), id="German quotation marks around"),
        pytest.param("It was Rome.", "- **Rome**", (7, "Rome"), id="bullet and bold"),
        pytest.param("It was Rome.", "`Rome`", (7, "Rome"), id="backticks"),
        pytest.param("It was Rome now.", "Rome.", (7, "Rome"), id="full stop that is not there"),
        pytest.param("It was Rome.", "…Rome…", (7, "Rome"), id="ellipsis at both ends"),
        pytest.param("It was Rome.", "ROME", (7, "Rome"), id="letter case"),
        pytest.param("Die Straße dort", "STRASSE", (4, "Straße"), id="ß is two letters"),
        pytest.param("İzmir'de ev", "ev", (9, "ev"), id="after a capital that lowers to two"),
        pytest.param("İZMİR eski, bir ev", "Bir Ev", (12, "bir ev"), id="folded after such one"),
        pytest.param("A ﬁsh swims", "fish", (2, "ﬁsh"), id="ligature"),
        pytest.param("Ｒｏｍｅ　１８８９", "Rome 1889", (0, "Ｒｏｍｅ　１８８９"), id="full width"),
        pytest.param("cafe\u0301 noir", "café", (0, "cafe\u0301"), id="combining accent"),
        pytest.param("from 1889–1900 on", "1889-1900", (5, "1889–1900"), id="dash"),
        pytest.param("he said “no” to it", "said 'no'", (3, "said “no”"), id="mixed quotation"),
        pytest.param("a tall\r\n  tower", "tall tower", (2, "tall\r\n  tower"), id="line break"),
        pytest.param("a **very** tall one", "very tall", (4, "very** tall"), id="bold in answer"),
        pytest.param(
            "It was built by Eiffel in Paris.",
            "built by … Paris",
            (7, "built by Eiffel in Paris"),
            id="ellipsis",
        ),
        pytest.param(
            "It was built by Eiffel in Paris.",
            "built by ... in [...] Paris",
            (7, "built by Eiffel in Paris"),
            id="two ellipses",
        ),
        pytest.param("It was built in Paris", "bulit in Paris", (7, "built in Paris"), id="typo"),
        pytest.param("他于1999年成立公司", "1999年成立", (2, "1999年成立"), id="Chinese"),
        pytest.param("im 12. Jahrhundert", "12. Jahrhundert", (3, "12. Jahrhundert"), id="ordinal"),
        pytest.param("die Hauptstadt", "Stadt", (9, "stadt"), id="inside a longer word"),
        pytest.param("It was Rome.", "Rome.", (7, "Rome"), id="full stop of the sentence"),
        pytest.param("It was ROME.", "Rome.", (7, "ROME"), id="full stop, in other letters"),
        pytest.param("那是罗马。", "罗马。", (2, "罗马"), id="Chinese full stop"),
        pytest.param("in the U.S.", "the U.S.", (3, "the U.S."), id="stop of an abbreviation"),
        pytest.param("No. It fell.", "It fell.", (4, "It fell."), id="a whole sentence"),
    ],
)
def test_tolerated_differences(answer: str, quote: str, place: tuple[int, str]) -> None:
    assert found(answer, quote) == [place]


@pytest.mark.parametrize(
    ("answer", "quote"),
    [
        pytest.param("It was Rome.", "", id="empty"),
        pytest.param("It was Rome.", " \n ", id="space"),
        pytest.param("It was Rome.", "**", id="marks alone"),
        pytest.param("It was Rome.", "Carthage", id="invented"),
        pytest.param("built in 1889 there", "built in 1899", id="another number"),
        pytest.param("im 13. Jahrhundert", "12. Jahrhundert", id="an ordinal is no list mark"),
        pytest.param("el presente", "Presidente", id="one word with an edit"),
        pytest.param("Anna came", "Hanna", id="one name with an edit"),
        pytest.param("Rome. " + "x " * 400 + "Paris", "Rome … Paris", id="ellipsis too long"),
        pytest.param("", "Rome", id="empty answer"),
    ],
)
def test_what_stands_nowhere_is_reported_not_guessed(answer: str, quote: str) -> None:
    assert mapping(answer, quote) == QuoteMapping((), (), unmatched=(0,))


def test_a_quote_given_more_often_than_it_stands_is_a_duplicate() -> None:
    result = mapping("It was Rome.", "Rome", "Rome", "rome", "Rome.")

    assert [m.quote for m in result.mapped] == [0]
    assert (result.duplicates, result.unmatched) == ((1, 2, 3), ())


def test_an_ellipsis_begins_at_the_nearest_of_its_beginnings() -> None:
    """Of several places with the same end the shortest; else the first."""
    answer = "He saw the old house, the old tower fell; the old tower fell."
    ((start, end, *_),) = map_quotes(answer, [ModelQuote("the old … fell")]).spans

    assert answer[start:end] == "the old tower fell"
    assert start == answer.index("the old tower")


def test_quotes_out_of_order_find_their_places() -> None:
    assert found("Ada met Bob and Cy", "Cy", "Ada", "Bob") == [(16, "Cy"), (0, "Ada"), (8, "Bob")]


def test_a_quote_inside_another_prefers_a_place_of_its_own() -> None:
    assert found("built in 1889 and 1889", "built in 1889", "1889") == [
        (0, "built in 1889"),
        (18, "1889"),
    ]


def test_a_quote_may_stand_inside_another_of_other_words() -> None:
    assert found("built in 1889", "built in 1889", "1889") == [(0, "built in 1889"), (9, "1889")]


def test_a_whole_word_comes_before_a_part_of_a_word() -> None:
    assert found("The start of art", "art") == [(13, "art")]


@pytest.mark.parametrize(
    ("before", "start"),
    [
        pytest.param("and died in", 25, id="word for word"),
        pytest.param("… and DIED, in ", 25, id="typography aside"),
        pytest.param("he died in", 25, id="most of the words"),
        pytest.param("was born in", 8, id="the first place"),
        pytest.param("lives at", 8, id="words that stand nowhere"),
        pytest.param("", 8, id="none"),
    ],
)
def test_words_before_a_quote_tell_its_places_apart(before: str, start: int) -> None:
    quote = ModelQuote("Rome", before=before)

    assert map_quotes("Born in Rome and died in Rome.", [quote]).spans[0].start == start


def test_words_before_count_by_character_where_no_space_parts_words() -> None:
    answer = "他生于罗马，死于罗马。"

    quotes = [ModelQuote("罗马", before="死于"), ModelQuote("罗马", before="生于")]

    assert [m.places[0].start for m in map_quotes(answer, quotes).mapped] == [8, 3]


def test_only_word_for_word_with_the_highest_floor() -> None:
    assert found("It was Rome", "rome", floor=1.0) == []


def test_probability_and_quote_are_kept() -> None:
    spans = map_quotes("a Rome b", [ModelQuote("x"), ModelQuote("Rome", 0.4, "why")]).spans

    assert [(s.start, s.end, s.prob, s.quote) for s in spans] == [(2, 6, 0.4, 1)]


words = st.sampled_from(["a", "b", "ab", "ß", "İ", "ﬁ", "e\u0301", "👩‍🚀", "中", "1889"])
texts = st.lists(words, max_size=12).map(" ".join)
loose = st.text(st.sampled_from('aAbß İﬁ\u0301\u200d👩中1.…*"\r\n'), max_size=30)


@given(st.one_of(texts, loose), st.lists(st.one_of(words, loose), max_size=6))
def test_places_lie_in_the_answer_once_each_and_every_quote_is_accounted_for(
    answer: str, quotes: list[str]
) -> None:
    result = mapping(answer, *quotes)

    places = [m.places[0] for m in result.mapped]
    assert all(0 <= start < end <= len(answer) for start, end in places)
    assert len(set(places)) == len(places)
    for m in result.mapped:
        if m.score == 1.0:
            quote = quotes[m.quote].strip()
            assert answer[slice(*m.places[0])] in (quote, quote.removesuffix("."))
    said = [m.quote for m in result.mapped] + [*result.unmatched, *result.duplicates]
    assert sorted(said) == list(range(len(quotes)))
    assert mapping(answer, *quotes) == result


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=7), st.data())
def test_quotes_in_order_lie_as_early_as_a_search_of_all_places_finds(
    answer: list[str], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(range(len(answer))), unique=True))
    quotes = [answer[index] for index in sorted(kept)]
    text = " ".join(answer)

    starts = [start for start, _ in found(text, *quotes)]

    assert starts == _earliest(text, quotes)


def _earliest(text: str, quotes: list[str]) -> list[int]:
    """The rising places with the least sum, by trying all."""
    places = [at for at, c in enumerate(text) if c != " "]
    fitting = [
        list(choice)
        for choice in permutations(places, len(quotes))
        if list(choice) == sorted(choice)
        and all(text[at] == quote for at, quote in zip(choice, quotes, strict=True))
    ]
    return min(fitting, key=lambda choice: (choice[-1:], choice))
