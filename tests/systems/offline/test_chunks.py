"""Evidence in any passage counts, however many others say nothing."""

from __future__ import annotations

import pytest

from spanlab.detection import detector
from spanlab.schema import Annotation, Item, Passage

FACTS = (
    "The Eiffel Tower was built in 1889 by Gustave Eiffel's company.",
    "The Eiffel Tower is 330 metres tall.",
)
OTHERS = (
    "Trees are green and grow slowly in the northern forests of Sweden.",
    "The Golden Gate Bridge was opened in 1937 and spans two kilometres.",
    "Bananas contain potassium. They were first cultivated in 5000 BC.",
    "Zebras are striped animals of Africa and weigh up to 350 kilograms.",
)
RIGHT = "The Eiffel Tower was built in 1889 and is 330 metres tall."


def said_of(answer: str, texts: tuple[str, ...]) -> Annotation:
    passages = tuple(Passage(text=text) for text in texts)
    item = Item(id="a", lang="en", question="How tall, how old?", answer=answer, passages=passages)
    return detector("offline").annotate(item)


PLACES = {
    "first": (*FACTS, *OTHERS),
    "last": (*OTHERS, *FACTS),
    "apart": (FACTS[1], *OTHERS, FACTS[0]),
    "every": (" ".join(FACTS),) * 4,
    "alone": FACTS,
}


@pytest.mark.parametrize("texts", PLACES.values(), ids=PLACES.keys())
def test_what_any_chunk_supports_is_supported(texts: tuple[str, ...]) -> None:
    """Evidence aggregated over chunks; those without any outweigh none with it."""
    assert said_of(RIGHT, texts).hard == ()


@pytest.mark.parametrize("texts", PLACES.values(), ids=PLACES.keys())
@pytest.mark.parametrize(
    ("wrong", "number", "fact"),
    [
        pytest.param("The Eiffel Tower was built in 1989.", "1989", FACTS[0], id="year"),
        pytest.param("The Eiffel Tower is 230 metres tall.", "230", FACTS[1], id="height"),
    ],
)
def test_an_error_has_the_evidence_of_the_chunk_that_refutes_it(
    wrong: str, number: str, fact: str, texts: tuple[str, ...]
) -> None:
    """Evidence is aggregated over chunks."""
    (span,) = said_of(wrong, texts).spans
    assert span.text == number
    quote = span.evidence[0]
    assert (quote.text, quote.stance) == (fact, "refutes")
    assert quote.text in texts[quote.passage]


def test_without_evidence_in_any_chunk_nothing_is_supported() -> None:
    """Evidence is aggregated over chunks."""
    assert "1889" in " ".join(span.text for span in said_of(RIGHT, OTHERS).spans)
