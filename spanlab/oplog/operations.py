"""What a reviewer can do, what each operation does to the state, their log, writes of browsers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass as validated

from spanlab.base.errors import OperationError
from spanlab.base.fields import FrozenModel
from spanlab.oplog.answer_operations import (
    AcceptClaim,
    AddClaim,
    EditClaim,
    RejectClaim,
    RemoveClaim,
    ReplaceClaims,
    Respond,
)
from spanlab.oplog.state import (
    BaseEdit,
    Comment,
    ReviewState,
    SuggestionMark,
    change_span,
    named,
    own_span,
    place_of,
    quote,
    refuse,
    suggested,
    take,
    without,
)
from spanlab.schema import AnnotatorKind, Item, Name, Offset, Record, Status


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


class AcceptSpan(BaseEdit):
    """Take over a suggestion as the reviewer's own span with the id ``span``."""

    kind: Literal["accept"] = "accept"
    span: Name
    mark: SuggestionMark

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        return take(item, state, [(self.span, self.mark)])


class AcceptSpans(BaseEdit):
    """Take over several suggestions at once; ``spans[i]`` is the id for ``marks[i]``."""

    kind: Literal["accept-all"] = "accept-all"
    spans: tuple[Name, ...]
    marks: tuple[SuggestionMark, ...]

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        return take(item, state, named(self.kind, self.spans, self.marks))


class ReplaceSpans(BaseEdit):
    """Put suggestions in place of all the spans there are; ``spans[i]`` is the id for ``marks[i]``.

    An adjudicator takes one annotator's spans, the union or the majority in this way.
    """

    kind: Literal["replace"] = "replace"
    spans: tuple[Name, ...] = ()
    marks: tuple[SuggestionMark, ...] = ()

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        taken = named(self.kind, self.spans, self.marks)
        return take(item, state.model_copy(update={"spans": {}}), taken)


class RejectSpan(BaseEdit):
    """Refuse a suggestion; if it had been accepted, the span taken from it goes.

    A comment on either stays, on the refused suggestion.
    """

    kind: Literal["reject"] = "reject"
    mark: SuggestionMark

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        return refuse(item, state, (self.mark,))


class AddSpan(BaseEdit):
    """Draw a new span."""

    kind: Literal["add"] = "add"
    span: Name
    start: Offset
    end: Offset
    label: Name | None = None

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        if self.span in state.spans:
            raise OperationError(f"span id {self.span!r} is already in use")
        span = quote(item, self.start, self.end).model_copy(update={"label": self.label})
        return state.model_copy(update={"spans": {**state.spans, self.span: span}})


class RemoveSpan(BaseEdit):
    """Delete one of the reviewer's own spans."""

    kind: Literal["remove"] = "remove"
    span: Name

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        own_span(state, self.span)
        spans = {name: span for name, span in state.spans.items() if name != self.span}
        return state.model_copy(update={"spans": spans})


class ResizeSpan(BaseEdit):
    """Move the edges of one of the reviewer's own spans."""

    kind: Literal["resize"] = "resize"
    span: Name
    start: Offset
    end: Offset

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        new = quote(item, self.start, self.end)
        return change_span(state, self.span, {"start": new.start, "end": new.end, "text": new.text})


class RelabelSpan(BaseEdit):
    """Give one of the reviewer's own spans a label, or none."""

    kind: Literal["relabel"] = "relabel"
    span: Name
    label: Name | None = None

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        return change_span(state, self.span, {"label": self.label})


class CommentSpan(BaseEdit):
    """Comment on one of the reviewer's own spans, or with ``span`` None on the whole item."""

    kind: Literal["note"] = "note"
    span: Name | None = None
    text: Comment

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        text = self.text or None
        if self.span is None:
            return state.model_copy(update={"note": text})
        return change_span(state, self.span, {"note": text})


class NoteSuggestion(BaseEdit):
    """Comment on a suggestion and decide nothing; one that is rejected stays rejected."""

    kind: Literal["note-suggestion"] = "note-suggestion"
    mark: SuggestionMark
    text: Comment

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        update = {"prob": self.mark.prob, "note": self.text or None}
        noted = suggested(item, self.mark).model_copy(update=update)
        if any(place_of(span) == place_of(noted) for span in state.rejected):
            rejected = [
                span.model_copy(update={"note": noted.note})
                if place_of(span) == place_of(noted)
                else span
                for span in state.rejected
            ]
            return state.model_copy(update={"rejected": tuple(rejected)})
        kept = without(state.noted, [noted])
        return state.model_copy(update={"noted": (*kept, noted) if noted.note else kept})


class SetStatus(BaseEdit):
    """Finish the item, skip it, or take that back.

    ``suggested`` says whether suggestions were shown beside the answer; None where it is not told,
    as in logs of earlier versions. ``hallucinated`` calls the answer so without a place; None says
    no more than the spans do.
    """

    kind: Literal["status"] = "status"
    status: Literal[Status.DONE, Status.SKIPPED, Status.NOT_ANNOTATED]
    suggested: bool | None = None
    hallucinated: Literal[True] | None = None

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        said = {"status": self.status, "answer_hallucinated": self.hallucinated}
        return state.model_copy(update=said)


class FinishItem(BaseEdit):
    """Finish the item, and count the suggestions left undecided as accepted or rejected.

    ``spans[i]`` is the id for ``accepted[i]``. One operation: one undo takes all of it back.
    ``suggested`` is that of ``SetStatus``.
    """

    kind: Literal["finish"] = "finish"
    spans: tuple[Name, ...] = ()
    accepted: tuple[SuggestionMark, ...] = ()
    rejected: tuple[SuggestionMark, ...] = ()
    suggested: bool | None = None

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        taken = take(item, state, named(self.kind, self.spans, self.accepted))
        decided = refuse(item, taken, self.rejected)
        said = {"status": Status.DONE, "answer_hallucinated": None}
        return decided.model_copy(update=said)


class Undo(FrozenModel):
    """Take back the last operation that is still in force; nothing to take back is no error."""

    kind: Literal["undo"] = "undo"


class Redo(FrozenModel):
    """Bring back what the last undo took; any other operation in between empties the redo."""

    kind: Literal["redo"] = "redo"


Edit = (
    AcceptSpan
    | AcceptSpans
    | ReplaceSpans
    | RejectSpan
    | AddSpan
    | RemoveSpan
    | ResizeSpan
    | RelabelSpan
    | CommentSpan
    | NoteSuggestion
    | Respond
    | SetStatus
    | FinishItem
    | AcceptClaim
    | RejectClaim
    | AddClaim
    | EditClaim
    | RemoveClaim
    | ReplaceClaims
)

_TAKEN_FROM_SUGGESTIONS = (
    AcceptSpan | AcceptSpans | ReplaceSpans | RejectSpan | AcceptClaim | RejectClaim | ReplaceClaims
)


def saw_suggestions(operations: Iterable[Operation]) -> bool | None:
    """Say whether the reviewer of a log was ever shown suggestions; None if it cannot tell."""
    said: set[bool | None] = set()
    for operation in operations:
        if isinstance(operation, _TAKEN_FROM_SUGGESTIONS):
            return True
        if isinstance(operation, SetStatus | FinishItem):
            said.add(operation.suggested)
            if isinstance(operation, FinishItem) and (operation.accepted or operation.rejected):
                return True
    return True if True in said else False if False in said else None


Operation = Annotated[Edit | Undo | Redo, Field(discriminator="kind")]
OPERATION: TypeAdapter[Operation] = TypeAdapter(Operation)


@validated(frozen=True)
class SentOperation:
    """One operation as a writer sends it.

    ``seq`` counts the writes of ``session`` from 1; ``base`` is the number of operations that
    the writer believes the log to have before this one. ``author`` is the person who adjudicates:
    gold labels' logs alone have one, and several people may write to the same. ``guidelines``
    is the version of the dataset's guidelines that the writer had, 0 for none. ``seconds`` is how
    long the item was worked on, in a write that ends this.
    """

    session: Name
    seq: Annotated[int, Field(ge=1)]
    base: Annotated[int, Field(ge=0)]
    operation: Operation
    author: Name | None = None
    guidelines: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0)] | None = None

    @property
    def kind(self) -> AnnotatorKind:
        """What sort of annotator's log it belongs to."""
        return AnnotatorKind.PERSON if self.author is None else AnnotatorKind.GOLD


@dataclass(frozen=True)
class RefusedOperation:
    """A write that was not stored; ``stale`` if somebody else changed the annotation meanwhile."""

    seq: int
    reason: str
    stale: bool


@dataclass(frozen=True)
class WriteReply:
    """The outcome of some writes.

    ``acknowledged`` is the highest ``seq`` of the session that is stored (0 if none is),
    ``version`` the number of operations that the log has now.
    """

    acknowledged: int
    version: int
    refused: tuple[RefusedOperation, ...] = ()


@dataclass(frozen=True)
class Review:
    """One person's review of one item; ``version`` is the length of the log.

    ``hidden`` is how many annotations were left out of the record, None where not even that is to
    be told.
    """

    record: Record
    snapshot: ReviewState
    operations: tuple[Operation, ...]
    version: int
    state: ReviewState
    hidden: int | None = 0
