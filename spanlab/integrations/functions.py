"""Functions as detectors: what they may return, and as what it counts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from spanlab.detection.base import DetectorResult
from spanlab.formats.cells import gold_in
from spanlab.output.figures import counted
from spanlab.schema import Annotation, AnnotatorKind, Item, Span

Found: TypeAlias = Iterable[Any] | Mapping[str, Any] | Span | str | None
SpanFunction: TypeAlias = Callable[[Item], Found] | Callable[[Item], Awaitable[Found]]


def marked_by(name: str, item: Item, found: Found) -> Annotation:
    """Return what a function found in an answer as an annotation.

    Args:
        name: the annotator.
        item: whose answer was looked at.
        found: spans, ``(start, end)``, ``(start, end, probability or label)``, dicts with ``start``
            and ``end`` or with a ``text``, or texts of the answer: several, or one; None for
            nothing. Numbers may be numpy's.

    Raises:
        InputError: it is something else, or not a part of the answer.
    """
    is_one = isinstance(found, str | Mapping | Span) or (
        isinstance(found, tuple) and bool(found) and not isinstance(found[0], _PARTS)
    )
    parts = [found] if is_one else [] if found is None else list(found)
    spans = tuple(part for part in parts if isinstance(part, Span))
    others = [_plain(part) for part in parts if not isinstance(part, Span)]
    marked = gold_in(others, name, item.answer)
    assert marked is not None  # as it is a list
    own = {"annotator": name, "kind": AnnotatorKind.DETECTOR, "spans": (*spans, *marked.spans)}
    if lost := len(marked.claims):
        where = "not in the answer, or more than once"
        own["note"] = f"{lost} of {counted(len(parts), 'text')} {where}: kept as claims"
    return Annotation.model_validate({**dict(marked), **own})


_PARTS = (str, Mapping, Span, list, tuple)


def _plain(part: Any) -> Any:
    """Return a part of what a function found as JSON has it."""
    if isinstance(part, Mapping):
        return {str(name): _plain(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_plain(value) for value in part]
    return part.tolist() if hasattr(part, "tolist") else part  # numpy's


@dataclass(frozen=True)
class FunctionDetector:
    """A function from an item to its hallucinated spans, as a detector of the function's name."""

    name: str
    function: Callable[[Item], Found]

    def annotate(self, item: Item) -> Annotation:
        """Return what the function finds; see ``marked_by``."""
        return marked_by(self.name, item, self.function(item))


@dataclass(frozen=True)
class AsyncFunctionDetector:
    """A coroutine function from an item to its hallucinated spans, as a detector of its name."""

    name: str
    function: Callable[[Item], Awaitable[Found]]

    async def detect(self, item: Item) -> DetectorResult:
        """Return what the function finds; see ``marked_by``."""
        return DetectorResult(marked_by(self.name, item, await self.function(item)), item)
