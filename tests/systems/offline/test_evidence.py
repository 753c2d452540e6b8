"""What the offline detector shows beside a span: the sentence that refutes it or comes closest."""

from __future__ import annotations

import pytest
from offline_answers import LIGHTHOUSE, annotate, marked, probable

from spanlab.detection import detector
from spanlab.schema import Evidence, Item, Passage


def test_a_number_with_another_in_its_place_is_refuted_by_that_sentence() -> None:
    (span,) = annotate("The lighthouse was opened in 1871.", LIGHTHOUSE).spans
    assert span.text == "1871"
    assert span.note is None
    (quote,) = span.evidence
    assert quote == Evidence(
        passage=0,
        start=0,
        end=94,
        text=LIGHTHOUSE[:94],
        stance="refutes",
        note="says “1858”, not “1871”",
    )
    assert quote.text.endswith("opened in 1858.")


def test_a_name_with_another_in_its_place_is_refuted() -> None:
    span = probable(annotate("The lighthouse north of Esbjerg opened in 1858.", LIGHTHOUSE))
    assert span.text == "Esbjerg"
    assert [(quote.stance, quote.note) for quote in span.evidence] == [
        ("refutes", "says “Skagen”, not “Esbjerg”")
    ]


def stances(answer: str, passage: str) -> list[str]:
    """What is said of the passage's sentence by each quote of the answer's spans."""
    return [quote.stance for span in annotate(answer, passage).spans for quote in span.evidence]


@pytest.mark.parametrize(
    ("passage", "answer", "stance"),
    [
        ("The tower has 292,000 bricks.", "The tower has 95,000 bricks.", "refutes"),
        ("The tower has 292,000 bricks.", "The tower has over 100,000 bricks.", "closest"),
        ("The tower has 292 bricks.", "The tower has over 500 bricks.", "refutes"),
        ("The tower has 77,984 bricks.", "The tower has nearly 78,000 bricks.", "closest"),
        ("The tower has 77,984 bricks.", "The tower has 78,000 bricks.", "closest"),
        ("The tower was built in 1963.", "The tower was built in the 1960s.", "closest"),
        ("The tower was built in 1963.", "The tower was built in 1950.", "refutes"),
        ("The owner of the tower is German.", "The owner of the Times met Bo Li.", "closest"),
        ("They met in the city of Bergen.", "They met in the city of Tromsø.", "refutes"),
        ("They met in the city of Bergen.", "They met in the valley of Tromsø.", "closest"),
        ("They met in Oslo, Bergen and Moss.", "They met in Oslo, Tromsø and Moss.", "closest"),
        ("They met in the United States.", "They met in the US.", "closest"),
    ],
)
def test_what_refutes_is_of_the_same_kind(passage: str, answer: str, stance: str) -> None:
    """A number that cannot be both, a name of which the same is said; otherwise it is closest."""
    assert set(stances(answer, passage)) == {stance}


def test_an_unknown_name_gets_the_closest_sentence() -> None:
    other = "Skagen is the northernmost town of Denmark."
    (span,) = annotate("Skagen's lighthouse was designed by Bo Li.", other, LIGHTHOUSE).spans
    (quote,) = span.evidence
    assert span.text == "Bo Li"
    assert quote.passage == 1
    assert quote.text.startswith("The Grey Lighthouse")


@pytest.mark.parametrize(
    ("answer", "passage", "quoted"),
    [
        (
            "The tower was finished in 1968 and is 330 metres tall.",
            "It was finished in 1958 by a company. It is 330 metres tall.",
            "It was finished in 1958 by a company.",
        ),
        (
            "The bridge was built by Ito and 12 others, and opened in 1931.",
            "It was opened in 1933. It was built by Ito and 12 others.",
            "It was opened in 1933.",
        ),
        (
            "東京タワーは1968年に完成し、高さは333メートルです。",
            "東京タワーは東京にある。1958年に完成した。高さは333メートルです。",
            "1958年に完成した。",
        ),
    ],
)
def test_beside_a_number_stands_the_sentence_with_a_number_of_its_kind(
    answer: str, passage: str, quoted: str
) -> None:
    """Not the one with most words in common: the reader looks for what the number should be."""
    (span,) = annotate(answer, passage).spans
    assert [quote.text for quote in span.evidence] == [quoted]


def test_what_the_passages_do_not_speak_of_gets_the_closest_sentence() -> None:
    other = "Skagen is the northernmost town of Denmark."
    answer = "The Grey Lighthouse of Skagen is haunted by pirates."
    span = probable(annotate(answer, other, LIGHTHOUSE))
    assert "pirates" in span.text
    assert span.note is not None
    assert "“pirates”" in span.note
    (quote,) = span.evidence
    assert (quote.passage, quote.stance, quote.note) == (1, "closest", None)
    assert quote.text.startswith("The Grey Lighthouse")


def test_a_number_is_not_refuted_by_one_that_the_answer_gives_as_well() -> None:
    passage = "He was envoy in Saint Petersburg from 1812 to 1818."
    (span,) = annotate("He was envoy in Saint Petersburg from 1812 to 1826.", passage).spans
    assert [quote.note for quote in span.evidence] == ["says “1818”, not “1826”"]


def test_very_long_sentences_are_quoted_in_part() -> None:
    passage = f"{'word ' * 400}the tower opened in 1858 {'word ' * 400}"
    (span,) = annotate("The tower opened in 1871.", passage, question="A word on it?").spans
    (quote,) = span.evidence
    assert "tower opened in 1858" in quote.text
    assert len(quote.text) <= 400


def test_the_title_of_a_passage_supports_but_is_not_quoted() -> None:
    passage = Passage(title="Ada Berg", text="She was born in Oslo.")
    item = Item(id="x", lang="en", answer="Ada Berg was born in Rome.", passages=(passage,))
    annotation = detector("offline").annotate(item)
    annotation.check(item)
    assert marked(annotation) == ["Rome"]


@pytest.mark.parametrize(
    ("lang", "answer", "label"),
    [
        pytest.param("en", "The lighthouse was opened in 1871.", "wrong date", id="year"),
        pytest.param("en", "It opened on 3 March 1871.", "wrong date", id="date"),
        pytest.param("en", "It is 58 metres tall.", "wrong number", id="number"),
        pytest.param("en", "It was designed by Peter Hansen.", "wrong name", id="name"),
        pytest.param("en", "The lighthouse near Skagen burned down.", "other", id="other"),
        pytest.param("de", "Der Turm ist ein Kirchenbau.", "other", id="german-noun"),
    ],
)
def test_a_span_has_the_label_of_what_it_states(lang: str, answer: str, label: str) -> None:
    assert probable(annotate(answer, LIGHTHOUSE, lang=lang)).label == label


def test_without_passages_nothing_says_what_a_number_is_instead() -> None:
    annotation = detector("offline").annotate(
        Item(id="x", lang="en", answer="Paris has 3 million inhabitants, as of 1850.")
    )
    assert annotation.spans
    assert {span.label for span in annotation.spans} == {None}


def test_passages_in_another_language_are_told() -> None:
    answer = (
        "Der Leuchtturm wurde im Jahr 1858 nördlich von Skagen eröffnet und ist heute der höchste "
        "des ganzen Landes, weil er so weit ins Meer leuchten muss."
    )
    note = annotate(answer, LIGHTHOUSE).note
    assert note == "the passages seem to be in another language: what they say may be marked, too"
    assert annotate("The lighthouse was opened in 1871.", LIGHTHOUSE).note is None
    told = annotate("The lighthouse was opened in 1871, because sailors asked.", "").note or ""
    assert told.startswith("no passages were given")
