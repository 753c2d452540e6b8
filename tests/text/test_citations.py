"""Markers in an answer, and what each of them covers."""

from __future__ import annotations

import time

import pytest

from spanlab.schema import Citation, Item, Passage
from spanlab.text.citations import ReadCitations, citations_of, markers_of

URLS = ("https://a.org/x", "https://www.b.org/", None)


def read(answer: str, lang: str = "en", count: int = 3) -> ReadCitations:
    passages = [Passage(text=f"p{n}", url=(*URLS, *[None] * count)[n]) for n in range(count)]
    return citations_of(Item(id="a", lang=lang, answer=answer, passages=passages))


def covered(answer: str, lang: str = "en", count: int = 3) -> list[tuple[str, tuple[int, ...]]]:
    stretches = read(answer, lang, count).stretches
    return [(answer[s.start : s.end], s.passages) for s in stretches]


LANGUAGES = {  # of each: a sentence that ends before its marker, one that ends behind it
    "ar": ("بُني البرج عام 1889.", "ارتفاعه 330 مترًا", "؟"),
    "ca": ("La torre es va construir el 1889.", "Fa 330 metres", "."),
    "cs": ("Věž byla postavena v roce 1889.", "Měří 330 metrů", "."),
    "de": ("Der Turm wurde 1889 gebaut.", "Er misst 330 Meter", "!"),
    "en": ("The tower was built in 1889.", "It is 330 m tall", "."),
    "es": ("La torre se construyó en 1889.", "Mide 330 metros", "."),
    "eu": ("Dorrea 1889an eraiki zen.", "330 metro ditu", "."),
    "fa": ("برج در سال ۱۸۸۹ ساخته شد.", "بلندی آن ۳۳۰ متر است", "؟"),
    "fi": ("Torni rakennettiin vuonna 1889.", "Se on 330 metriä korkea", "."),
    "fr": ("La tour fut construite en 1889.", "Elle mesure 330 mètres", " !"),
    "hi": ("मीनार 1889 में बनी थी।", "यह 330 मीटर ऊँची है", "।"),
    "it": ("La torre fu costruita nel 1889.", "È alta 330 metri", "."),
    "sv": ("Tornet byggdes 1889.", "Det är 330 meter högt", "."),
    "zh": ("铁塔建于1889年。", "高330米", "。"),
}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_marker_covers_its_sentence_before_or_behind_the_stop(lang: str) -> None:
    first, second, stop = LANGUAGES[lang]
    space = "" if lang == "zh" else " "
    answer = f"{first}[1]{space}{second} [2]{stop}"

    assert covered(answer, lang) == [(first, (0,)), (second, (1,))]


MARKERS = {
    "list": ("It is so [1, 3].", (0, 2)),
    "semicolon": ("It is so [1; 2].", (0, 1)),
    "range": ("It is so [1–3].", (0, 1, 2)),
    "neighbours": ("It is so [1][3].", (0, 2)),
    "apart": ("It is so [1] [2], [3].", (0, 1, 2)),
    "named": ("It is so [doc 2].", (1,)),
    "azure": ("It is so [doc3].", (2,)),
    "footnote": ("It is so.[^2]", (1,)),
    "browsing": ("It is so【3†source】.", (2,)),
    "assistant": ("It is so【4:1†report.pdf】.", (1,)),
    "superscript": ("It is true.²", (1,)),
    "two superscripts": ("It is true.¹²", (0, 1)),
    "html": ("It is so.<sup>3</sup>", (2,)),
    "caret": ("It is true.^2", (1,)),
    "wide": ("それは本当です［２］。", (1,)),
    "arabic digits": ("هذا صحيح [٢].", (1,)),
    "link with a number": ("It is so [1](https://b.org).", (1,)),
    "link with a site": ("It is so ([a.org](https://a.org/x?utm_source=openai)).", (0,)),
    "link with words": ("It is [quite so](http://a.org/x#top) today.", (0,)),
}


@pytest.mark.parametrize(("answer", "passages"), MARKERS.values(), ids=MARKERS)
def test_markers_of_all_kinds_name_passages(answer: str, passages: tuple[int, ...]) -> None:
    assert [found for _, found in covered(answer)] == [passages]


NONE = {
    "a power": "It has 50 km² and x² and 10².",
    "code": "Use `a[1]` here.\n```\nb[2]\n```",
    "a year": "In [2019] it was so.",
    "another page": "See [this page](https://other.org) for more.",
    "a list": "(1) One thing. (2) Another.",
    "formula": "It grows like 2^10 each day.",
}


@pytest.mark.parametrize("answer", NONE.values(), ids=NONE)
def test_what_is_no_marker_cites_nothing(answer: str) -> None:
    assert covered(answer) == []


STRETCHES = {
    "clauses": (
        "It was built in 1889 [1], by Eiffel [2], and it is red.",
        [("It was built in 1889", (0,)), ("by Eiffel", (1,))],
    ),
    "inside": ("The tower [1] is red.", [("The tower [1] is red.", (0,))]),
    "according to": ("According to [2], it is red.", [("According to [2], it is red.", (1,))]),
    "at the start": ("[1] It is so. [2] It is red.", [("It is so.", (0,)), ("It is red.", (1,))]),
    "line of its own": ("It is so.\n[1]", [("It is so.", (0,))]),
    "list": ("- Red [1]\n- Tall [2]", [("Red", (0,)), ("Tall", (1,))]),
    "twice": ("It is so [1]. [2]", [("It is so", (0, 1))]),
    "only its own": ("One thing. Another thing. [1]", [("Another thing.", (0,))]),
    "a short clause": ("Yes [1]; but not now [2].", [("Yes", (0,)), ("but not now", (1,))]),
    "ordinal": (
        "Am 3. Mai kam er [1].",
        [("Am 3. Mai kam er", (0,))],
    ),
}


@pytest.mark.parametrize(("answer", "expected"), STRETCHES.values(), ids=STRETCHES)
def test_a_marker_covers_back_to_the_one_before(
    answer: str, expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert covered(answer, "de" if "Mai" in answer else "en") == expected


def test_a_number_that_no_passage_has_is_missing() -> None:
    citations = read("It is so [7]. It is red [1, 9].")

    assert [marker.missing for marker in citations.markers] == [(7,), (9,)]


def test_a_zero_counts_from_zero() -> None:
    assert [found for _, found in covered("It is so [0]. It is red [2].")] == [(0,), (2,)]


def test_the_answer_s_own_list_of_sources_says_what_a_number_is() -> None:
    answer = "It is so [1]. It is red [2].\n\nSources\n[1]: https://b.org\n[2] Else https://c.org"
    citations = read(answer)

    assert [s.passages for s in citations.stretches] == [(1,)]
    assert citations.unread == (2,)
    assert not any(marker.missing for marker in citations.markers)
    assert [answer[s.start : s.end] for s in citations.sentences] == [
        "It is so [1].",
        "It is red [2].",
    ]


def test_what_an_api_said_comes_before_markers() -> None:
    item = Item(
        id="a",
        lang="en",
        answer="It is so [2]. It is red [2].",
        passages=[Passage(text="one"), Passage(text="two")],
        citations=[Citation(start=0, end=8, passages=(0,))],
    )

    assert [s.passages for s in citations_of(item).stretches] == [(0,), (1,)]


def test_headings_and_labels_that_cite_nothing_are_no_sentences() -> None:
    answer = "# What is so\nSummary:\nIt is so and so [1].\nThat is all that is known."

    assert [answer[s.start : s.end] for s in read(answer).sentences] == [
        "It is so and so [1].",
        "That is all that is known.",
    ]


@pytest.mark.parametrize(
    "piece", ["word [1] ", "It is so and so [1]. ", "[1]: https://a.example\n"]
)
def test_the_time_follows_the_length(piece: str) -> None:
    def seconds(count: int) -> float:
        item = Item(id="i", answer=piece * count, passages=(Passage(text="It is so."),))
        begun = time.process_time()
        citations_of(item)
        return time.process_time() - begun

    seconds(10)
    assert seconds(16_000) < 12 * max(min(seconds(4_000), seconds(4_000)), 0.05)


@pytest.mark.parametrize("piece", ["【1†", "[1†", "【1:1†", '[a](b "', "[a](b"])
def test_markers_that_never_end_are_passed_over_in_time_with_the_length(piece: str) -> None:
    def seconds(count: int) -> float:
        item = Item(id="a", answer=piece * count, passages=[Passage(text="p")])
        begun = time.process_time()
        markers_of(item)
        return time.process_time() - begun

    assert seconds(16_000) < 40 * max(seconds(2_000), 0.005)  # quadratic: 64
