"""A short answer, and what annotators mark in it."""

from __future__ import annotations

from spanlab.schema import Annotation, AnnotatorKind, Item, Span, Status

TEXT = "Paris is big, and Paris is old."
#       0         1         2         3
#       0123456789012345678901234567890


def by(
    annotator: str,
    *spans: tuple[int, int],
    kind: AnnotatorKind = AnnotatorKind.PERSON,
    prob: float = 1.0,
) -> Annotation:
    marked = tuple(Span.of(TEXT, start, end, prob=prob) for start, end in spans)
    return Annotation(annotator=annotator, kind=kind, spans=marked)


def unfinished(annotator: str, status: Status) -> Annotation:
    spans = (Span.of(TEXT, 0, 5),)
    note = "the model gave no answer"
    return Annotation(
        annotator=annotator, kind=AnnotatorKind.PERSON, status=status, spans=spans, note=note
    )


ITEM = Item(id="val-en-1", lang="en", answer=TEXT)
