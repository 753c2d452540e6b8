"""An answer in pieces that are marked alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.output.marked_text import MarkedText, pieces
from spanlab.schema import Annotation, AnnotatorKind, Interval, Span
from spanlab.text.extents import Extent
from spanlab.text.labels import hard_of

ANSWER = "abcdefghij"


def says(*spans: Span, hard: tuple[Interval, ...] | None = None) -> Annotation:
    return Annotation(annotator="vote", kind=AnnotatorKind.VOTE, spans=spans, hard=hard)


def span(start: int, end: int, prob: float = 1.0, label: str | None = None) -> Span:
    return Span.of(ANSWER, start, end, prob=prob, label=label)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, [MarkedText(ANSWER)]),
        (says(), [MarkedText(ANSWER)]),
        (
            says(span(2, 4, 0.4)),
            [MarkedText("ab"), MarkedText("cd", 0.4), MarkedText("efghij")],
        ),
        (
            says(span(0, 4, 0.4, "name"), span(2, 6, 0.9, "date")),
            [
                MarkedText("ab", 0.4, False, ("name",)),
                MarkedText("cd", 0.9, True, ("date", "name")),
                MarkedText("ef", 0.9, True, ("date",)),
                MarkedText("ghij"),
            ],
        ),
        (says(span(0, 2), span(2, 4)), [MarkedText("abcd", 1.0, True), MarkedText("efghij")]),
        (
            says(span(0, 4, 0.4), hard=(Interval(start=2, end=6),)),
            [
                MarkedText("ab", 0.4),
                MarkedText("cd", 0.4, True),
                MarkedText("ef", 0.0, True),
                MarkedText("ghij"),
            ],
        ),
    ],
    ids=["no-annotation", "no-spans", "one", "overlapping", "touching", "hard-of-its-own"],
)
def test_an_answer_is_cut_where_its_marks_change(
    annotation: Annotation | None, expected: list[MarkedText]
) -> None:
    assert pieces(ANSWER, annotation) == expected


def test_an_empty_answer_has_no_pieces() -> None:
    assert pieces("", None) == []
    assert pieces("", says()) == []


spans = st.builds(
    lambda start, size, prob: span(start, min(start + size, 10), prob),
    st.integers(0, 9),
    st.integers(1, 10),
    st.floats(0.01, 1.0),
)


@given(st.lists(spans, max_size=6))
def test_pieces_say_what_naive_marking_says(marks: list[Span]) -> None:
    annotation = says(*marks)
    found = pieces(ANSWER, annotation)
    assert "".join(piece.text for piece in found) == ANSWER
    decided = {place for extent in hard_of(annotation) for place in range(*Extent(*extent))}
    place = 0
    for piece in found:
        for _ in piece.text:
            assert piece.prob == max((m.prob for m in marks if m.start <= place < m.end), default=0)
            assert piece.hard == (place in decided)
            place += 1
