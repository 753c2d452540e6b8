"""What is known of a question and its reasoning: errors of steps, right answers, evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spanlab.detectors.safe.protocol import ErrorType, first_error
from spanlab.detectors.safe.reading import ReasoningStep, StepKind
from spanlab.schema import Item, Span

# They sign; the first is also where ``meta`` has the result.
BENCHMARK: Final = "benchmark-verification"
IDEAL: Final = "ideal-trajectory"
_TYPES: Final = {str(error): error for error in ErrorType}


def spans_on(step: ReasoningStep, spans: Sequence[Span]) -> list[Span]:
    """Return the spans that touch a step."""
    return [span for span in spans if span.start < step.end and step.start < span.end]


def error_marked(step: ReasoningStep, spans: Sequence[Span]) -> ErrorType | None:
    """Return the type of error that spans give a step.

    Args:
        step: the step; one of unknown kind counts as attribution.
        spans: an annotation's, whose labels are types of error; one without such a label says
            that the step is wrong and nothing more.

    Returns:
        The first in the order of the protocol; None for a step without a span.
    """
    found = {_TYPES.get(span.label or "", ErrorType.UNSUPPORTED) for span in spans_on(step, spans)}
    return first_error(step.kind or StepKind.ATTRIBUTION, found)


def right_answers(item: Item) -> tuple[str, ...]:
    """Return the right answers that an item's ``meta`` has as ``answers``; empty for none."""
    given = item.meta.get("answers")
    return tuple(map(str, given)) if isinstance(given, list | tuple) else ()


def supporting(item: Item) -> tuple[int, ...]:
    """Return the indices of the passages that support an item's answer; all if none is named."""
    named = item.meta.get("gold_titles")
    titles = set(map(str, named)) if isinstance(named, list | tuple) else set()
    found = tuple(at for at, each in enumerate(item.passages) if each.title in titles)
    return found or tuple(range(len(item.passages)))


def flag_of(item: Item) -> str | None:
    """Return why an item's question has been found unverifiable; None if it has not."""
    said = item.meta.get(BENCHMARK)
    flagged = isinstance(said, dict) and said.get("verified") is False
    return str(said.get("reason", "unverifiable")) if flagged and isinstance(said, dict) else None
