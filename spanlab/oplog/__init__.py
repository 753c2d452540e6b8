"""A person's annotation as the result of an append-only log of operations.

The log is the truth; the annotation is what is left when it is replayed from its snapshot
(an imported annotation, or nothing). Undo and redo are operations like any other, so they
survive a reload. ``review/span_editor/js/operations.js`` replays the same log in the browser; a
browser test holds the two to the same results.
"""

from spanlab.oplog.answer_operations import (
    AcceptClaim,
    AddClaim,
    ClaimMark,
    EditClaim,
    RejectClaim,
    RemoveClaim,
    ReplaceClaims,
    Respond,
)
from spanlab.oplog.operations import (
    OPERATION,
    AcceptSpan,
    AcceptSpans,
    AddSpan,
    CommentSpan,
    Edit,
    FinishItem,
    NoteSuggestion,
    Operation,
    Redo,
    RejectSpan,
    RelabelSpan,
    RemoveSpan,
    ReplaceSpans,
    ResizeSpan,
    SetStatus,
    Undo,
    in_force,
    replay,
    saw_suggestions,
)
from spanlab.oplog.state import CitedQuote, ReviewState, SuggestionMark

__all__ = [
    "OPERATION",
    "AcceptClaim",
    "AcceptSpan",
    "AcceptSpans",
    "AddClaim",
    "AddSpan",
    "CitedQuote",
    "ClaimMark",
    "CommentSpan",
    "Edit",
    "EditClaim",
    "FinishItem",
    "NoteSuggestion",
    "Operation",
    "Redo",
    "RejectClaim",
    "RejectSpan",
    "RelabelSpan",
    "RemoveClaim",
    "RemoveSpan",
    "ReplaceClaims",
    "ReplaceSpans",
    "ResizeSpan",
    "Respond",
    "ReviewState",
    "SetStatus",
    "SuggestionMark",
    "Undo",
    "in_force",
    "replay",
    "saw_suggestions",
]
