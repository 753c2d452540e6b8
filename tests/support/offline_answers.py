"""Answers that the offline detector annotates, as tests look at them."""

from __future__ import annotations

from spanlab.detection import detector
from spanlab.schema import Annotation, Item, Passage, Span

LIGHTHOUSE = (
    "The Grey Lighthouse north of Skagen was designed by Niels Sigfred Nebelong "
    "and opened in 1858.[1][2] It is 46 metres tall."
)


def annotate(answer: str, *passages: str, question: str = "", lang: str = "en") -> Annotation:
    """Annotate an item made of these texts, and check that the annotation fits it."""
    given_passages = tuple(Passage(text=text) for text in passages)
    item = Item(id="x", lang=lang, question=question, answer=answer, passages=given_passages)
    annotation = detector("offline").annotate(item)
    annotation.check(item)
    return annotation


def marked(annotation: Annotation) -> list[str]:
    return [span.text for span in annotation.spans]


def probable(annotation: Annotation) -> Span:
    """The most probable span."""
    return max(annotation.spans, key=lambda span: span.prob)
