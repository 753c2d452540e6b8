from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from spanlab.text.corrections import Refine, changes, map_revision


def marked(answer: str, revised: str, lang: str = "en", refine: Refine = "word") -> list[str]:
    spans = map_revision(answer, revised, lang=lang, refine=refine)
    return [answer[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("answer", "revised", "lang", "expected"),
    [
        pytest.param("Built in 1889.", "Built in 1889.", "en", [], id="nothing changed"),
        pytest.param("Built in 1999.", "Built in 1989.", "en", ["1999"], id="a number"),
        pytest.param("A red big car", "A car", "en", ["red big"], id="words in a row are one"),
        pytest.param("A red car", "A big red car", "en", [], id="only added"),
        pytest.param("red car, big car", "red bus, big bus", "en", ["car", "car"], id="twice"),
        pytest.param("a  b\r\n c ", "a b c", "en", [], id="whitespace is no change"),
        pytest.param("It's (Rome).", "It's (Oslo).", "en", ["Rome"], id="not the brackets"),
        pytest.param("in Ost-Berlin", "in West-Berlin", "de", ["Ost"], id="part of a compound"),
        pytest.param("dell'Illinois", "dell'Iowa", "it", ["Illinois"], id="not the article"),
        pytest.param("他于1999年成立公司", "他于1989年成立公司", "zh", ["1999"], id="zh number"),
        pytest.param("他生于巴黎。", "他生于罗马。", "zh", ["巴黎"], id="zh characters"),
        pytest.param("東京は首都", "大阪は首都", "ja", ["東京"], id="ja characters"),
        pytest.param("วันที่ดี", "วันที่", "th", ["ดี"], id="th keeps vowels on consonants"),
        pytest.param("👨‍👩‍👧 in Rome 🇫🇮", "👨‍👩‍👦 in Rome 🇫🇮", "en", ["👨‍👩‍👧"], id="ZWJ emoji"),
        pytest.param("🇫🇮🇸🇪", "🇫🇮🇳🇴", "en", ["🇸🇪"], id="flags"),
        pytest.param("वह दिल्ली में है।", "वह मुंबई में है।", "hi", ["दिल्ली"], id="hi"),
        pytest.param("ولد في روما.", "ولد في باريس.", "ar", ["روما"], id="ar"),
        pytest.param("all of it", "", "en", ["all of it"], id="everything deleted"),
        pytest.param("", "something", "en", [], id="empty answer"),
    ],
)
def test_deleted_and_replaced_words(
    answer: str, revised: str, lang: str, expected: list[str]
) -> None:
    assert marked(answer, revised, lang) == expected


def test_repeated_text_keeps_its_own_place() -> None:
    """Of a repeated word, the one that was changed is marked."""
    answer = "Paris is old. Paris is big. Paris is far."

    spans = map_revision(answer, "Paris is old. Rome is big. Paris is far.", lang="en")

    assert [(span.start, span.end) for span in spans] == [(14, 19)]


@pytest.mark.parametrize(
    ("answer", "revised", "place"),
    [
        pytest.param("👨‍👩‍👧 in Rome", "👨‍👩‍👧 in Oslo", (9, 13), id="after ZWJ emoji"),
        pytest.param("one\r\ntwo\r\nRome", "one\r\ntwo\r\nOslo", (10, 14), id="after CRLF"),
        pytest.param("  e\u0301 Rome ", "  e\u0301 Oslo ", (5, 9), id="after combining marks"),
    ],
)
def test_offsets_count_code_points(answer: str, revised: str, place: tuple[int, int]) -> None:
    """Offsets are right after emoji, ZWJ sequences and CRLF."""
    (span,) = map_revision(answer, revised, lang="en")

    assert (span.start, span.end) == place


@pytest.mark.parametrize(
    ("answer", "revised", "expected"),
    [
        pytest.param("in 1999", "in 1989", ["9"], id="one digit"),
        pytest.param("Pposey sang", "osey sang", ["Pp"], id="start of a word"),
        pytest.param("in Paris", "in Pasadena", ["Paris"], id="another word stays whole"),
        pytest.param("in Lond", "in London", ["Lond"], id="letters only added"),
        pytest.param("re\u0301sume", "re\u0301suma", ["e"], id="not the accent before"),
        pytest.param("to 👨‍👩‍👧 now", "to 👨‍👩‍👦 now", ["👨‍👩‍👧"], id="no part of a ZWJ emoji"),
    ],
)
def test_characters_instead_of_words(answer: str, revised: str, expected: list[str]) -> None:
    assert marked(answer, revised, refine="char") == expected


def test_an_insertion_marks_its_neighbour_on_request() -> None:
    spans = map_revision("He left. She stayed", "He never left. She stayed", lang="en")
    asked = map_revision(
        "He left. She stayed", "He never left. She stayed", lang="en", insertions=True
    )

    assert spans == ()
    assert [(span.start, span.end) for span in asked] == [(0, 2)]


@pytest.mark.parametrize(
    ("answer", "revised", "prob"),
    [
        pytest.param("big car", "car", 1.0, id="deleted"),
        pytest.param("in 1999", "in 1989", 0.7, id="a quarter of the word: .6 + .4 / 4"),
        pytest.param("in abc", "in xyz", 1.0, id="nothing in common"),
        pytest.param("in rome", "in Rome", 0.3, id="letter case"),
        pytest.param("so, yes", "so yes", 0.3, id="punctuation"),
    ],
)
def test_probability_follows_the_size_of_the_change(answer: str, revised: str, prob: float) -> None:
    (span,) = map_revision(answer, revised, lang="en")

    assert span.prob == pytest.approx(prob)


def test_a_given_probability_is_taken() -> None:
    assert [span.prob for span in map_revision("a b c", "a c", lang="en", prob=0.25)] == [0.25]


def test_a_deletion_joins_the_change_it_can_reach() -> None:
    answer = "the best players of golf of the year"

    assert marked(answer, "the of the year") == ["best players of golf"]


@given(st.lists(st.sampled_from(["ab", "cd", "ef", "中", "e\u0301"]), max_size=30), st.data())
def test_deleting_words_that_stand_once_is_found_exactly(
    rest: list[str], data: st.DataObject
) -> None:
    words = [f"w{index}" for index in range(len(rest))]
    gone = data.draw(st.sets(st.sampled_from(range(len(words))))) if words else set()
    answer = " ".join(words)
    revised = " ".join(word for index, word in enumerate(words) if index not in gone)

    found = " ".join(marked(answer, revised)).split()

    assert found == [word for index, word in enumerate(words) if index in gone]


@given(
    st.text(st.sampled_from("ab 中。\r\n👩\u200d\u0301.1"), max_size=40),
    st.text(st.sampled_from("ab 中。\r\n👩\u200d\u0301.1"), max_size=40),
    st.sampled_from(["en", "zh", "und"]),
    st.sampled_from(["word", "char"]),
)
def test_spans_lie_in_the_answer_in_order_without_outer_space(
    answer: str, revised: str, lang: str, refine: Refine
) -> None:
    spans = map_revision(answer, revised, lang=lang, refine=refine, insertions=True)

    assert map_revision(answer, answer, lang=lang, refine=refine, insertions=True) == ()
    position = 0
    for span in spans:
        assert position <= span.start < span.end <= len(answer)
        assert answer[span.start : span.end].strip() == answer[span.start : span.end]
        position = span.end
    assert map_revision(answer, revised, lang=lang, refine=refine, insertions=True) == spans


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_changes_are_as_few_as_the_edit_distance_says(old: list[str], new: list[str]) -> None:
    cost = sum(
        max(change.old_end - change.old_start, change.new_end - change.new_start)
        for change in changes(old, new)
    )

    assert cost <= Levenshtein.distance(old, new)


def test_long_texts_are_cut_where_they_are_the_same() -> None:
    old = [f"w{index}" for index in range(9_000)]
    new = [word for index, word in enumerate(old) if index % 100]
    new[50:50] = ["new"] * 10

    found = changes(old, new)

    assert [change.old_start for change in found if change.old_end > change.old_start] == list(
        range(0, 9_000, 100)
    )


def test_a_text_rewritten_from_end_to_end_is_one_change() -> None:
    old = [f"a{index}" for index in range(5_000)]

    assert changes(old, [f"b{index}" for index in range(4_000)]) == [(0, 5_000, 0, 4_000)]
