"""A person's annotation as the result of an append-only log of operations.

The log is the truth; the annotation is what is left when it is replayed from its snapshot
(an imported annotation, or nothing). Undo and redo are operations like any other, so they
survive a reload. ``ui/span_editor/span_editor.js`` replays the same log in the browser; a
browser test holds the two to the same results.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from spanlab.errors import OperationError
from spanlab.schema import Annotation, Item, Kind, Name, Offset, Probability, Span, Status


class _Op(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Edit(_Op):
    """An operation that makes one state from another; undo and redo need the whole log."""

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        """Return the state after this edit.

        Raises:
            OperationError: it names a span that is not there or characters outside the answer.
        """
        raise NotImplementedError


class Mark(_Op):
    """A suggestion as an operation names it: whose it is and what it covers."""

    source: Name
    start: Offset
    end: Offset
    prob: Probability = 1.0
    label: Name | None = None


class Accept(_Edit):
    """Take over a suggestion as the reviewer's own span with the id ``span``."""

    kind: Literal["accept"] = "accept"
    span: Name
    mark: Mark

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        return _take(item, state, [(self.span, self.mark)])


class AcceptAll(_Edit):
    """Take over several suggestions at once; ``spans[i]`` is the id for ``marks[i]``."""

    kind: Literal["accept-all"] = "accept-all"
    spans: tuple[Name, ...]
    marks: tuple[Mark, ...]

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        if len(self.spans) != len(self.marks):
            raise OperationError(
                f"accept-all has {len(self.spans)} ids for {len(self.marks)} suggestions"
            )
        return _take(item, state, list(zip(self.spans, self.marks, strict=True)))


class Reject(_Edit):
    """Refuse a suggestion; if it had been accepted, the span taken from it goes."""

    kind: Literal["reject"] = "reject"
    mark: Mark

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        mark = self.mark
        refused = _quote(item, mark.start, mark.end).model_copy(
            update={"prob": mark.prob, "label": mark.label, "source": mark.source}
        )
        key = _key(refused)
        spans = {name: span for name, span in state.spans.items() if _key(span) != key}
        rejected = tuple(span for span in state.rejected if _key(span) != key)
        return state.model_copy(update={"spans": spans, "rejected": (*rejected, refused)})


class Add(_Edit):
    """Draw a new span."""

    kind: Literal["add"] = "add"
    span: Name
    start: Offset
    end: Offset
    label: Name | None = None

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        if self.span in state.spans:
            raise OperationError(f"span id {self.span!r} is already in use")
        span = _quote(item, self.start, self.end).model_copy(update={"label": self.label})
        return state.model_copy(update={"spans": {**state.spans, self.span: span}})


class Remove(_Edit):
    """Delete one of the reviewer's own spans."""

    kind: Literal["remove"] = "remove"
    span: Name

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        _own(state, self.span)
        spans = {name: span for name, span in state.spans.items() if name != self.span}
        return state.model_copy(update={"spans": spans})


class Resize(_Edit):
    """Move the edges of one of the reviewer's own spans."""

    kind: Literal["resize"] = "resize"
    span: Name
    start: Offset
    end: Offset

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        new = _quote(item, self.start, self.end)
        return _change(state, self.span, {"start": new.start, "end": new.end, "text": new.text})


class Relabel(_Edit):
    """Give one of the reviewer's own spans a label, or none."""

    kind: Literal["relabel"] = "relabel"
    span: Name
    label: Name | None = None

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        return _change(state, self.span, {"label": self.label})


class Note(_Edit):
    """Comment on one of the reviewer's own spans, or with ``span`` None on the whole item."""

    kind: Literal["note"] = "note"
    span: Name | None = None
    text: str = Field(max_length=10_000)

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        text = self.text or None
        if self.span is None:
            return state.model_copy(update={"note": text})
        return _change(state, self.span, {"note": text})


class SetStatus(_Edit):
    """Finish the item, skip it, or take that back."""

    kind: Literal["status"] = "status"
    status: Literal[Status.DONE, Status.SKIPPED, Status.NOT_ANNOTATED]

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        return state.model_copy(update={"status": self.status})


class Undo(_Op):
    """Take back the last operation that is still in force; nothing to take back is no error."""

    kind: Literal["undo"] = "undo"


class Redo(_Op):
    """Bring back what the last undo took; any other operation in between empties the redo."""

    kind: Literal["redo"] = "redo"


Edit = Accept | AcceptAll | Reject | Add | Remove | Resize | Relabel | Note | SetStatus
Operation = Annotated[Edit | Undo | Redo, Field(discriminator="kind")]
OPERATION: TypeAdapter[Operation] = TypeAdapter(Operation)


class ReviewState(BaseModel):
    """A person's annotation with an id per span, in the order in which the spans were made."""

    model_config = ConfigDict(frozen=True)

    spans: dict[str, Span] = Field(default_factory=dict)
    rejected: tuple[Span, ...] = ()
    status: Status = Status.NOT_ANNOTATED
    note: str | None = None

    @classmethod
    def of(cls, annotation: Annotation | None) -> ReviewState:
        """Return the state an imported annotation starts from; ids count up from ``i0``."""
        if annotation is None:
            return cls()
        return cls(
            spans={f"i{index}": span for index, span in enumerate(annotation.spans)},
            rejected=annotation.rejected,
            status=annotation.status,
            note=annotation.note,
        )

    def annotation(self, annotator: str) -> Annotation:
        """Return what this state says as the annotation of ``annotator``, spans in text order."""
        return Annotation(
            annotator=annotator,
            kind=Kind.PERSON,
            status=self.status,
            spans=tuple(sorted(self.spans.values(), key=_place)),
            rejected=tuple(sorted(self.rejected, key=_place)),
            # A review may take the note of an imported failure, but a failure has a reason.
            note=self.note or ("no reason was given" if self.status is Status.FAILED else None),
        )


def replay(item: Item, snapshot: ReviewState, operations: Iterable[Operation]) -> ReviewState:
    """Return the state after ``operations`` on ``snapshot``.

    Raises:
        OperationError: an operation names a missing span or characters outside the answer.
    """
    state = snapshot
    for operation in in_force(operations):
        state = operation.apply(item, state)
    return state


def in_force(operations: Iterable[Operation]) -> list[Edit]:
    """Return the operations left in force once undo and redo have done their work."""
    stack: list[Edit] = []
    undone: list[Edit] = []
    for operation in operations:
        if isinstance(operation, Undo):
            if stack:
                undone.append(stack.pop())
        elif isinstance(operation, Redo):
            if undone:
                stack.append(undone.pop())
        else:
            stack.append(operation)
            undone.clear()
    return stack


def _take(item: Item, state: ReviewState, taken: list[tuple[str, Mark]]) -> ReviewState:
    spans = dict(state.spans)
    keys = set()
    for name, mark in taken:
        if name in spans:
            raise OperationError(f"span id {name!r} is already in use")
        span = _quote(item, mark.start, mark.end)
        spans[name] = span.model_copy(update={"label": mark.label, "source": mark.source})
        keys.add(_key(spans[name]))
    rejected = tuple(span for span in state.rejected if _key(span) not in keys)
    return state.model_copy(update={"spans": spans, "rejected": rejected})


def _change(state: ReviewState, name: str, update: dict[str, object]) -> ReviewState:
    span = _own(state, name).model_copy(update=update)
    return state.model_copy(update={"spans": {**state.spans, name: span}})


def _own(state: ReviewState, name: str) -> Span:
    try:
        return state.spans[name]
    except KeyError:
        raise OperationError(f"there is no span with the id {name!r}") from None


def _quote(item: Item, start: int, end: int) -> Span:
    if not 0 <= start < end <= len(item.answer):
        raise OperationError(
            f"[{start}, {end}) is not a part of the answer's {len(item.answer)} characters"
        )
    return Span.of(item.answer, start, end)


def _key(span: Span) -> tuple[str | None, int, int, str | None]:
    return (span.source, span.start, span.end, span.label)


def _place(span: Span) -> tuple[int, int, str]:
    return (span.start, span.end, span.label or "")
