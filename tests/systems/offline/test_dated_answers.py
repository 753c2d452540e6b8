"""Right and wrong dates in answers, written otherwise than in the passages."""

from __future__ import annotations

import pytest

from spanlab.detection import detector
from spanlab.schema import Annotation, Item, Passage

# A sentence with room for a date, and the last of March 1889 as the language writes it.
OPENED = {
    "ar": ("افتتح الجسر في {}.", "31 مارس 1889"),
    "ca": ("El pont es va inaugurar el {}.", "31 de març de 1889"),
    "cs": ("Most byl otevřen {}.", "31. března 1889"),
    "de": ("Die Brücke wurde am {} eröffnet.", "31. März 1889"),
    "en": ("The bridge was opened on {}.", "March 31, 1889"),
    "es": ("El puente fue inaugurado el {}.", "31 de marzo de 1889"),
    "eu": ("Zubia {} inauguratu zen.", "1889ko martxoaren 31n"),
    "fa": ("این پل در {} افتتاح شد.", "۳۱ مارس ۱۸۸۹"),
    "fi": ("Silta avattiin {}.", "31. maaliskuuta 1889"),
    "fr": ("Le pont a été ouvert le {}.", "31 mars 1889"),
    "hi": ("पुल {} को खोला गया।", "३१ मार्च १८८९"),
    "it": ("Il ponte fu aperto il {}.", "31 marzo 1889"),
    "sv": ("Bron öppnades den {}.", "31 mars 1889"),
    "zh": ("大桥于{}通车。", "1889年3月31日"),
}
languages = pytest.mark.parametrize("lang", OPENED)


def annotate(lang: str, answer: str, passage: str) -> Annotation:
    item = Item(id="x", lang=lang, answer=answer, passages=(Passage(text=passage),))
    return detector("offline").annotate(item)


def marked(lang: str, said: str, stands: str | None = None) -> list[str]:
    sentence, long = OPENED[lang]
    annotation = annotate(lang, sentence.format(said), sentence.format(stands or long))
    return [span.text for span in annotation.spans]


@languages
@pytest.mark.parametrize("said", ["31.03.1889", "1889-03-31", "31/3/1889"])
def test_a_right_date_in_digits_is_not_marked(lang: str, said: str) -> None:
    assert marked(lang, said) == []


@languages
def test_a_right_date_is_not_marked_where_the_passage_has_digits(lang: str) -> None:
    assert marked(lang, OPENED[lang][1], "1889-03-31") == []


@languages
@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        pytest.param("30.03.1889", "30", id="day"),
        pytest.param("31.05.1889", "05", id="month"),
        pytest.param("31.03.1891", "1891", id="year"),
    ],
)
def test_the_wrong_part_of_a_date_is_marked_alone(lang: str, said: str, wrong: str) -> None:
    assert marked(lang, said) == [wrong]


def test_the_part_that_stands_in_the_passage_is_set_against_the_wrong_one() -> None:
    (span,) = annotate("en", "It opened on 31.05.1889.", "It opened on March 31, 1889.").spans
    (quote,) = span.evidence
    assert quote.stance == "refutes"
    assert quote.note == "says “March”, not “05”"


def test_a_date_in_english_supports_an_answer_in_chinese() -> None:
    annotation = annotate("zh", "大桥于1889年3月31日通车。", "大桥 (opened 31 March 1889) 通车。")
    marked = "".join(span.text for span in annotation.spans)
    assert not any(digit in marked for digit in "1389")
