"""The operations a reviewer can make, and what each does to the state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from spanlab.errors import OperationError
from spanlab.fields import Frozen
from spanlab.oplog._state import ReviewState
from spanlab.schema import Evidence, Item, Name, Offset, Probability, Span, Stance, Status

_Key: TypeAlias = tuple[str | None, int, int, str | None]  # what makes two suggestions the same


class _Edit(Frozen):
    """An operation that makes one state from another; undo and redo need the whole log."""

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        """Return the state after this edit.

        Raises:
            OperationError: it names a span that is not there or characters outside the answer.
        """
        raise NotImplementedError


class Cited(Frozen):
    """A part of a passage as an operation names it; the quoted text is looked up."""

    passage: Offset
    start: Offset
    end: Offset
    stance: Stance = "closest"
    note: str | None = None


class Mark(Frozen):
    """A suggestion as an operation names it: whose it is, what it covers and what speaks for it."""

    source: Name
    start: Offset
    end: Offset
    prob: Probability = 1.0
    label: Name | None = None
    evidence: tuple[Cited, ...] = ()


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
        return _take(item, state, _named(self.kind, self.spans, self.marks))


class Reject(_Edit):
    """Refuse a suggestion; if it had been accepted, the span taken from it goes.

    A comment on either stays, on the refused suggestion.
    """

    kind: Literal["reject"] = "reject"
    mark: Mark

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        return _refuse(item, state, (self.mark,))


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


class NoteSuggestion(_Edit):
    """Comment on a suggestion and decide nothing; one that is rejected stays rejected."""

    kind: Literal["note-suggestion"] = "note-suggestion"
    mark: Mark
    text: str = Field(max_length=10_000)

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        update = {"prob": self.mark.prob, "note": self.text or None}
        noted = _suggested(item, self.mark).model_copy(update=update)
        if any(_place(span) == _place(noted) for span in state.rejected):
            rejected = [
                span.model_copy(update={"note": noted.note})
                if _place(span) == _place(noted)
                else span
                for span in state.rejected
            ]
            return state.model_copy(update={"rejected": tuple(rejected)})
        kept = _without(state.noted, [noted])
        return state.model_copy(update={"noted": (*kept, noted) if noted.note else kept})


class SetStatus(_Edit):
    """Finish the item, skip it, or take that back."""

    kind: Literal["status"] = "status"
    status: Literal[Status.DONE, Status.SKIPPED, Status.NOT_ANNOTATED]

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        return state.model_copy(update={"status": self.status})


class Finish(_Edit):
    """Finish the item, and count the suggestions left undecided as accepted or rejected.

    ``spans[i]`` is the id for ``accepted[i]``. One operation: one undo takes all of it back.
    """

    kind: Literal["finish"] = "finish"
    spans: tuple[Name, ...] = ()
    accepted: tuple[Mark, ...] = ()
    rejected: tuple[Mark, ...] = ()

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        taken = _take(item, state, _named(self.kind, self.spans, self.accepted))
        decided = _refuse(item, taken, self.rejected)
        return decided.model_copy(update={"status": Status.DONE})


class Undo(Frozen):
    """Take back the last operation that is still in force; nothing to take back is no error."""

    kind: Literal["undo"] = "undo"


class Redo(Frozen):
    """Bring back what the last undo took; any other operation in between empties the redo."""

    kind: Literal["redo"] = "redo"


Edit = (
    Accept
    | AcceptAll
    | Reject
    | Add
    | Remove
    | Resize
    | Relabel
    | Note
    | NoteSuggestion
    | SetStatus
    | Finish
)
Operation = Annotated[Edit | Undo | Redo, Field(discriminator="kind")]
OPERATION: TypeAdapter[Operation] = TypeAdapter(Operation)


def _named(kind: str, names: tuple[str, ...], marks: tuple[Mark, ...]) -> list[tuple[str, Mark]]:
    if len(names) != len(marks):
        raise OperationError(f"{kind} has {len(names)} ids for {len(marks)} suggestions")
    return list(zip(names, marks, strict=True))


def _refuse(item: Item, state: ReviewState, marks: Iterable[Mark]) -> ReviewState:
    refused: dict[_Key, Span] = {}
    for mark in marks:
        span = _suggested(item, mark).model_copy(update={"prob": mark.prob})
        refused.pop(_key(span), None)  # named again, it stands last
        refused[_key(span)] = span
    going = [span for span in state.spans.values() if _key(span) in refused]
    comments = _comments((*going, *state.noted, *state.rejected))
    noted = [
        span.model_copy(update={"note": comments.get(_place(span))}) for span in refused.values()
    ]
    before = [span for span in state.rejected if _key(span) not in refused]
    return state.model_copy(
        update={
            "spans": {name: s for name, s in state.spans.items() if _key(s) not in refused},
            "rejected": (*before, *noted),
            "noted": _without(state.noted, noted),
        }
    )


def _take(item: Item, state: ReviewState, taken: list[tuple[str, Mark]]) -> ReviewState:
    spans: dict[str, Span] = {}
    comments = _comments((*state.noted, *state.rejected))
    for name, mark in taken:
        if name in state.spans or name in spans:
            raise OperationError(f"span id {name!r} is already in use")
        span = _suggested(item, mark)
        spans[name] = span.model_copy(update={"note": comments.get(_place(span))})
    keys = {_key(span) for span in spans.values()}
    return state.model_copy(
        update={
            "spans": {**state.spans, **spans},
            "rejected": tuple(span for span in state.rejected if _key(span) not in keys),
            "noted": _without(state.noted, spans.values()),
        }
    )


def _comments(spans: Sequence[Span]) -> dict[tuple[int, int], str]:
    """Return the first note on the characters of each span, whoever suggests them."""
    return {_place(span): span.note for span in reversed(spans) if span.note}


def _without(spans: Iterable[Span], decided: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans that do not cover exactly the characters of one of ``decided``."""
    places = {_place(span) for span in decided}
    return tuple(span for span in spans if _place(span) not in places)


def _place(span: Span) -> tuple[int, int]:
    return (span.start, span.end)


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


def _suggested(item: Item, mark: Mark) -> Span:
    return _quote(item, mark.start, mark.end).model_copy(
        update={
            "label": mark.label,
            "source": mark.source,
            "evidence": tuple(_cite(item, cited) for cited in mark.evidence),
        }
    )


def _cite(item: Item, cited: Cited) -> Evidence:
    whole = item.passages[cited.passage].text if cited.passage < len(item.passages) else ""
    if not cited.start < cited.end <= len(whole):
        raise OperationError(
            f"[{cited.start}, {cited.end}) is not a part of passage {cited.passage}, "
            f"which has {len(whole)} characters"
        )
    return Evidence(text=whole[cited.start : cited.end], **dict(cited))


def _key(span: Span) -> _Key:
    return (span.source, span.start, span.end, span.label)
