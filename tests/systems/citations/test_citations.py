"""The detector ``citations``, through the function and the command."""

from __future__ import annotations

import pytest

import spanlab
from spanlab.detection import detector
from spanlab.schema import Annotation, Citation, Item, Passage, Status

pytestmark = pytest.mark.system("offline")

TOWER = "The tower was built in 1889 by Gustave Eiffel's company. It is 330 metres tall."
BRIDGE = "The bridge was opened in 1932. “It took eight years to build,” said the mayor."


def said_of(answer: str, *texts: str, citations: tuple[Citation, ...] = ()) -> Annotation:
    item = Item(
        id="a",
        lang="en",
        answer=answer,
        passages=[Passage(text=text) for text in (texts or (TOWER, BRIDGE))],
        citations=citations,
    )
    annotation = detector("citations").annotate(item)
    annotation.check(item)
    return annotation


def labels_of(annotation: Annotation) -> list[tuple[str, str]]:
    return [(str(span.label), span.text) for span in annotation.spans]


def test_a_cited_sentence_that_holds_is_a_claim_with_evidence_and_no_mark() -> None:
    said = said_of("The tower was built in 1889 [1].")

    assert said.spans == ()
    (claim,) = said.claims
    assert (claim.verdict, claim.text) == ("supported", "The tower was built in 1889")
    assert [(quote.passage, quote.stance) for quote in claim.evidence] == [(0, "supports")]


def test_what_the_cited_source_does_not_say_is_marked_with_its_closest_sentence() -> None:
    said = said_of("The tower is 512 metres tall [1].")

    assert labels_of(said) == [("not in the cited source", "512")]
    assert said.spans[0].evidence[0].text == "It is 330 metres tall."
    assert [claim.verdict for claim in said.claims] == ["not-supported"]


def test_another_source_that_says_so_is_named() -> None:
    said = said_of("The tower is 330 metres tall [2].")

    assert labels_of(said) == [("supported by another source", "The tower is 330 metres tall")]
    assert said.spans[0].note == "passage 1 says so, which is not cited for it"
    assert (said.spans[0].evidence[0].passage, said.spans[0].evidence[0].stance) == (0, "supports")


def test_a_source_that_is_not_there() -> None:
    assert labels_of(said_of("The tower was built in 1889 [1][9].")) == [("no such source", "[9]")]


QUOTATIONS = {
    "right": ("The mayor said “It took eight years to build” [2].", []),
    "misattributed": (
        "The mayor said “It took eight years to build” [1].",
        [("misattributed quotation", "It took eight years to build")],
    ),
    "fabricated": (
        "The mayor said “Nobody believed that we would ever finish it” [2].",
        [("fabricated quotation", "Nobody believed that we would ever finish it")],
    ),
    "changed": (
        "The mayor said “It took nine years to build” [2].",
        [("changed quotation", "nine")],
    ),
    "uncited": ("The mayor said “It took eight years to build”.", []),
}


@pytest.mark.parametrize(("answer", "expected"), QUOTATIONS.values(), ids=QUOTATIONS)
def test_quotations_are_found_or_called_by_name(
    answer: str, expected: list[tuple[str, str]]
) -> None:
    assert labels_of(said_of(answer)) == expected


def test_of_two_sources_one_that_adds_nothing_is_no_evidence() -> None:
    (claim,) = said_of("The tower was built in 1889 [1][2].").claims

    assert claim.verdict == "supported"
    assert [quote.passage for quote in claim.evidence] == [0]


def test_what_an_api_cites_by_offsets_is_judged() -> None:
    said = said_of("It is 330 metres tall.", citations=(Citation(start=0, end=21, passages=(1,)),))

    assert [label for label, _ in labels_of(said)] == ["supported by another source"]


@pytest.mark.parametrize(
    ("answer", "texts", "note", "status"),
    [
        ("It is so [1].", ("",), "no passages were given: no citation can be looked up", "skipped"),
        ("It is so.", (TOWER,), "nothing is cited; only quotations were looked up", "done"),
    ],
    ids=["no passages", "no citations"],
)
def test_a_note_says_what_was_not_judged(
    answer: str, texts: tuple[str, ...], note: str, status: str
) -> None:
    said = said_of(answer, *texts)

    assert (said.note, said.spans, said.status) == (note, (), status)


def test_what_cites_a_passage_without_text_is_not_judged() -> None:
    said = said_of(
        "It is 512 metres tall [2]. The mayor said “Nobody has ever seen such a thing” [1].",
        BRIDGE,
        " ",
    )

    assert (said.spans, said.claims[0].text.split()[0]) == ((), "The")
    assert said.note == "not judged, as the text of their sources is not given: 2"


def test_passages_of_another_language_judge_nothing() -> None:
    said = said_of(
        "El puente se inauguró en 1932, cuando la ciudad todavía no tenía otro camino para cruzar "
        "el río [2]. El alcalde dijo: «Tardaron ocho años en construirlo» [2]."
    )

    assert (said.spans, said.status) == ((), Status.SKIPPED)  # no support, and no clean answer
    assert said.note == "the passages seem to be in another language: nothing was judged"


def test_what_was_not_judged_does_not_print_as_a_clean_answer() -> None:
    printed = str(spanlab.detect("It is so [1].", passages=[""], detector="citations"))

    assert printed == "citations skipped: no passages were given: no citation can be looked up"


def test_a_quotation_that_shares_no_word_with_passages_of_its_language_is_looked_up() -> None:
    said = said_of(
        "She wrote “nobody will ever see this sentence again here”.",
        "The report says that profits fell by ten percent in 2020.",
    )

    assert [label for label, _ in labels_of(said)] == ["fabricated quotation"]
