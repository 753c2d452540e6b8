"""The offline detector as others see it: items in, annotations out.

Answers and passages are ours. The spans expected are the words that were made wrong.
"""

from __future__ import annotations

import pytest
from offline_answers import LIGHTHOUSE, annotate, marked, probable

from spanlab.schema import Annotation, AnnotatorKind, Status

BRIDGE = "Die Fehmarnsundbrücke ist 963,40 Meter lang und wurde am 30. April 1963 eröffnet."
HANGZHOU = "杭州湾跨海大桥全长36公里，于2008年5月1日通车，连接嘉兴和宁波。"
KHALIFA = "افتُتح برج خليفة في دبي في ٤ يناير ٢٠١٠ ويبلغ ارتفاعه ٨٢٨ مترًا."
MILAD = "برج میلاد با ۴۳۵ متر ارتفاع در تهران قرار دارد و در سال ۱۳۸۷ افتتاح شد."
HOWRAH = "हावड़ा ब्रिज कोलकाता में हुगली नदी पर है और 3 फ़रवरी 1943 को खोला गया।"
CHURCH = (
    "Temppeliaukion kirkko Helsingissä vihittiin käyttöön vuonna 1969. "
    "Sen suunnittelivat Timo ja Tuomo Suomalainen."
)
GIJON = "Gijón tenía 268.896 habitantes en 2022."
ORESUND = "Öresundsbron invigdes den 1 juli 2000 av drottning Margrethe."
MILLAU = "Le viaduc de Millau, conçu par Michel Virlogeux, a été ouvert le 16 décembre 2004."
VENICE = "Il Ponte della Costituzione è stato progettato da Santiago Calatrava nel 2008."
PRAGUE = "Stavba Karlova mostu byla zahájena roku 1357 a dokončena roku 1402."
BARCELONA = "El pont es va inaugurar el 1992 a Barcelona."
BISCAY = "Bizkaiko Zubia 1893an ireki zen Portugaleten."
TOKYO = "東京タワーは1958年に完成し、高さは333メートルである。"


def decided(annotation: Annotation, answer: str) -> list[str]:
    return [answer[part.start : part.end] for part in annotation.hard or ()]


@pytest.mark.parametrize(
    ("lang", "passage", "answer", "wrong"),
    [
        pytest.param("en", LIGHTHOUSE, "The lighthouse was opened in 1871.", ["1871"], id="en"),
        pytest.param(
            "en",
            LIGHTHOUSE,
            "The lighthouse was designed by Peter Hansen.",
            ["Peter Hansen"],
            id="en-name",
        ),
        pytest.param("de", BRIDGE, "Sie ist 1.200 Meter lang.", ["1.200"], id="de"),
        pytest.param("zh", HANGZHOU, "杭州湾跨海大桥全长52公里。", ["52"], id="zh"),
        pytest.param("zh", HANGZHOU, "大桥于2015年5月1日通车。", ["2015"], id="zh-year"),
        pytest.param("ar", KHALIFA, "افتتح برج خليفة في 4 يناير 2013.", ["2013"], id="ar"),
        pytest.param("ar", KHALIFA, "افتتح برج خليفة في الرياض.", ["الرياض"], id="ar-name"),
        pytest.param("fa", MILAD, "برج میلاد با ۵۰۰ متر ارتفاع در تهران است.", ["۵۰۰"], id="fa"),
        pytest.param(
            "fa", MILAD, "برج میلاد با ۵۰۰ متر ارتفاع در تهران قرار دارد.", ["۵۰۰"], id="fa-long"
        ),
        pytest.param("fa", MILAD, "برج میلاد در اصفهان قرار دارد.", ["اصفهان"], id="fa-name"),
        pytest.param("hi", HOWRAH, "हावड़ा ब्रिज १९६२ को खोला गया।", ["१९६२"], id="hi"),
        pytest.param("hi", HOWRAH, "हावड़ा ब्रिज मुंबई में है।", ["मुंबई"], id="hi-name"),
        pytest.param(
            "fi", CHURCH, "Temppeliaukion kirkko vihittiin vuonna 1952.", ["1952"], id="fi"
        ),
        pytest.param(
            "fi",
            CHURCH,
            "Temppeliaukion kirkon suunnitteli Alvar Aalto.",
            ["Alvar Aalto"],
            id="fi-inflected",
        ),
        pytest.param("es", GIJON, "Gijón tenía 312.000 habitantes.", ["312.000"], id="es"),
        pytest.param("sv", ORESUND, "Öresundsbron invigdes den 1 juli 1996.", ["1996"], id="sv"),
        pytest.param(
            "fr",
            MILLAU,
            "Le viaduc de Millau a été conçu par Gustave Eiffel.",
            ["Gustave Eiffel"],
            id="fr",
        ),
        pytest.param(
            "it",
            VENICE,
            "Il Ponte della Costituzione è stato progettato da Renzo Piano.",
            ["Renzo Piano"],
            id="it",
        ),
        pytest.param("cs", PRAGUE, "Stavba byla zahájena roku 1412.", ["1412"], id="cs"),
        pytest.param("ca", BARCELONA, "El pont es va inaugurar el 1985.", ["1985"], id="ca"),
        pytest.param("eu", BISCAY, "Bizkaiko Zubia 1921 ireki zen.", ["1921"], id="eu"),
        pytest.param("ja", TOKYO, "東京タワーの高さは450メートルである。", ["450"], id="ja"),
        pytest.param("und", LIGHTHOUSE, "It is 58 metres tall.", ["58"], id="unknown-language"),
    ],
)
def test_what_is_wrong_is_marked(lang: str, passage: str, answer: str, wrong: list[str]) -> None:
    annotation = annotate(answer, passage, lang=lang)
    assert set(wrong) <= set(marked(annotation))
    assert decided(annotation, answer) == wrong


@pytest.mark.parametrize(
    ("lang", "passage", "answer"),
    [
        pytest.param("en", LIGHTHOUSE, "The lighthouse was opened in 1858.", id="en"),
        pytest.param("en", LIGHTHOUSE, LIGHTHOUSE, id="verbatim"),
        pytest.param("en", LIGHTHOUSE, LIGHTHOUSE.replace("[1][2]", ""), id="without-citations"),
        pytest.param("de", BRIDGE, "Die Fehmarnsundbrücke ist 963,4 Meter lang.", id="de-short"),
        pytest.param("de", BRIDGE, "Sie ist 963,4 Meter lang, offen seit 1963.", id="de-decimal"),
        pytest.param("de", BRIDGE, "Sie wurde am 30.04.1963 eröffnet.", id="de-date-in-digits"),
        pytest.param("zh", HANGZHOU, "杭州湾跨海大桥全长36公里，于2008年通车。", id="zh"),
        pytest.param("ar", KHALIFA, "افتتح برج خليفة في دبي في 4 يناير 2010.", id="ar-digits"),
        pytest.param(
            "fa", MILAD, "برج ميلاد با 435 متر ارتفاع در تهران قرار دارد.", id="fa-letters"
        ),
        pytest.param("hi", HOWRAH, "हावड़ा ब्रिज १९४३ को खोला गया।", id="hi-digits"),
        pytest.param("fi", CHURCH, "Temppeliaukion kirkko vihittiin vuonna 1969.", id="fi"),
        pytest.param("es", GIJON, "Gijón tenía 268 896 habitantes en 2022.", id="es-thousands"),
        pytest.param("sv", ORESUND, "Öresundsbron invigdes den 1 juli 2000.", id="sv"),
        pytest.param("ja", TOKYO, "東京タワーの高さは333メートルである。", id="ja"),
        pytest.param("en", "It is 330 m tall.", "It is 330 metres tall.", id="unit-in-full"),
        pytest.param("fr", "Il mesure 285 kilomètres.", "Il mesure 285 km.", id="unit-as-symbol"),
        pytest.param("de", "Es ist 12 km lang.", "Es ist 12 Kilometer lang.", id="unit-de"),
        pytest.param("es", "Pesa 5 kilogramos.", "Pesa 5 kg.", id="unit-es"),
    ],
)
def test_in_a_supported_answer_nothing_is_taken_for_hallucinated(
    lang: str, passage: str, answer: str
) -> None:
    annotation = annotate(answer, passage, lang=lang)
    assert annotation.status is Status.DONE
    assert annotation.hard == ()
    assert all(span.prob < 0.38 for span in annotation.spans)
    assert annotation.note is None


def test_a_sentence_that_a_passage_has_word_for_word_has_no_spans() -> None:
    assert annotate(LIGHTHOUSE, LIGHTHOUSE).spans == ()


def test_wrong_places_in_a_script_without_spaces_are_one_span() -> None:
    annotation = annotate("杭州湾跨海大桥连接北京和天津。", HANGZHOU, lang="zh")
    assert [span.text for span in annotation.spans] == ["北京和天津"]


def test_passages_about_something_else_make_little_difference() -> None:
    question = "When was the lighthouse of Skagen opened?"
    answer = "The Grey Lighthouse of Skagen was designed by Niels Sigfred Nebelong in 1858."
    cats = "The domestic cat is a small carnivorous mammal. It sleeps up to sixteen hours a day."
    beside, by_itself = (
        annotate(answer, *passages, question=question) for passages in ((cats,), ())
    )
    assert beside.hard == by_itself.hard
    assert probable(beside).prob == pytest.approx(probable(by_itself).prob, abs=0.15)


def test_a_copied_sentence_beside_other_passages_has_probabilities() -> None:
    """A word that the passages fully support, in an answer that they say little of."""
    answer = "Tiamat sank near Quimper in 1742, and Brieuc Kerlan wrote it down. The cat sleeps."
    spans = annotate(answer, "The cat sleeps.", question="Who wrote of Tiamat near Quimper?").spans
    assert all(0 < span.prob <= 1 for span in spans)


def test_repeated_word_maps_to_its_own_place() -> None:
    """Repeated text maps to its own occurrence."""
    answer = "Opened in 1871. The lighthouse of 1858 was opened in 1871."
    annotation = annotate(answer, LIGHTHOUSE)
    assert [(span.start, span.text) for span in annotation.spans] == [(10, "1871"), (53, "1871")]
    assert [(part.start, part.end) for part in annotation.hard or ()] == [(10, 14), (53, 57)]


def test_offsets_count_code_points_after_emoji_and_carriage_returns() -> None:
    """Offsets right after emoji and ZWJ sequences, and with CRLF."""
    answer = " 👩‍👩‍👧\r\nIt is 58 metres tall."
    assert marked(annotate(answer, LIGHTHOUSE)) == ["58"]


def test_a_contradicted_number_is_more_probable_than_an_unknown_name_than_a_word() -> None:
    passage = "The museum in Skagen opened in 1928 and shows paintings."

    def prob(answer: str) -> float:
        return max((span.prob for span in annotate(answer, passage).spans), default=0.0)

    number = prob("The museum in Skagen opened in 1935 and shows paintings.")
    name = prob("The museum in Berlin opened in 1928 and shows paintings.")
    word = prob("The museum in Skagen burned in 1928 and shows paintings.")
    assert number > name > 0.4 > word


def test_the_same_words_in_another_order_are_not_marked() -> None:
    answer = "In 1858 the Grey Lighthouse was opened, designed by Niels Sigfred Nebelong."
    assert decided(annotate(answer, LIGHTHOUSE), answer) == []


def test_citation_marks_support_no_number() -> None:
    cited = "The castle has towers.[4]\n4. Towers."
    assert "4" in probable(annotate("The castle has 4 towers.", cited)).text
    (span,) = annotate("The castle has 4 towers.", "1. A castle.[4]\n4. It has towers.[1-4]").spans
    assert span.text.startswith("4")


def test_a_span_quotes_the_citation_marks_in_it() -> None:
    answer = "It was opened in 1871 by Peter [2] Hansen."
    assert "Peter [2] Hansen" in " ".join(marked(annotate(answer, LIGHTHOUSE)))


def test_the_question_supports_too() -> None:
    answer = "Ada Berg was born in Oslo."
    assert "Berg" in " ".join(marked(annotate(answer, "She was born in Oslo.")))
    assert marked(annotate(answer, "She was born in Oslo.", question="Who is Ada Berg?")) == []
    asked = annotate(answer, "She was born in Oslo.", question="Where was Ada Berg born?")
    assert marked(asked) == []


def test_a_passage_that_comes_twice_says_no_more_than_once() -> None:
    answer = "The lighthouse near Esbjerg was opened in 1871."
    once, twice = annotate(answer, LIGHTHOUSE), annotate(answer, LIGHTHOUSE, LIGHTHOUSE)
    assert once == twice
    assert "1871" in marked(once)


@pytest.mark.parametrize(
    "passages",
    [pytest.param((), id="none"), pytest.param(("", " \n"), id="blank")],
)
def test_without_passages_it_says_so(passages: tuple[str, ...]) -> None:
    question = "Who painted the picture?"
    annotation = annotate("Anna Ancher painted it in 1891.", *passages, question=question)
    assert annotation.status is Status.DONE
    assert annotation.note is not None
    assert "no passages" in annotation.note
    assert "1891" in marked(annotation)
    assert all(span.note is None for span in annotation.spans)
    assert all(span.evidence == () for span in annotation.spans)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("", id="empty"),
        pytest.param(" \r\n\t", id="spaces"),
        pytest.param("… !!! ()", id="punctuation"),
        pytest.param("👩‍👩‍👧😀", id="emoji"),
        pytest.param("\u0301\u200d", id="marks-alone"),
    ],
)
@pytest.mark.parametrize("passages", [(), (LIGHTHOUSE,)], ids=["without", "with-passage"])
def test_an_answer_without_words_is_done_without_spans(
    answer: str, passages: tuple[str, ...]
) -> None:
    annotation = annotate(answer, *passages)
    assert annotation.status is Status.DONE
    assert annotation.spans == ()


def test_it_signs_as_a_detector() -> None:
    annotation = annotate("It opened in 1871.", LIGHTHOUSE)
    assert (annotation.annotator, annotation.kind) == ("offline", AnnotatorKind.DETECTOR)
