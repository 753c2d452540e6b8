"""What a detector says of an answer, as programs for tests have it: a score and a reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from spanlab.base.errors import SpanlabError
from spanlab.base.inbound import one_line
from spanlab.base.redaction import visible
from spanlab.integrations.notebook import AnyDetector, AnyPassage, MarkedAnnotation, detect
from spanlab.output.figures import percent
from spanlab.output.notices import spans_of
from spanlab.schema import Span, Status
from spanlab.text.extents import length
from spanlab.text.labels import hard_of

AT_LEAST: Final = 0.9  # of an answer that passes, as `assert_grounded` has it
_QUOTED: Final = 300  # characters of a text in a reason


@dataclass(frozen=True)
class Verdict:
    """How much of an answer is not marked, in [0, 1], why not all, and the spans as JSON."""

    score: float
    reason: str
    spans: list[dict[str, Any]]


def judge(
    answer: str,
    passages: AnyPassage | Iterable[AnyPassage] | None,
    question: str = "",
    detector: AnyDetector = "offline",
    **options: Any,
) -> Verdict:
    """Return what a detector says of an answer.

    Args:
        answer: the text to check.
        passages: the evidence, as for ``spanlab.detect``; None for none.
        question: what was asked.
        detector: as for ``spanlab.detect``.
        **options: as for ``spanlab.detect``.

    Raises:
        SpanlabError: the detector failed, or could not be used.
    """
    annotation = detect(
        answer, question=question, passages=passages or (), detector=detector, **options
    )
    if annotation.status is not Status.DONE:
        raise SpanlabError(f"{annotation.annotator} could not check it: {annotation.note}")
    share = length(hard_of(annotation)) / max(len(annotation.answer), 1)
    return Verdict(1 - share, _reason(annotation, share), spans_of(annotation))


def _reason(annotation: MarkedAnnotation, share: float) -> str:
    """Return the likeliest span, what is said of it, and what the passages have instead."""
    if not share:
        return f"{annotation.annotator} marks nothing"
    marked = [Span.of(annotation.answer, part.start, part.end) for part in hard_of(annotation)]
    worst = max(annotation.spans or marked, key=lambda span: (span.prob, span.end - span.start))
    words = [
        f"{annotation.annotator} marks {percent(share)} of the answer, most likely “{worst.text}”"
    ]
    words += [f": {one_line(worst.note, _QUOTED)}"] if worst.note else []
    words += [f"; closest: “{one_line(quote.text, _QUOTED)}”" for quote in worst.evidence[:1]]
    return visible("".join(words))
