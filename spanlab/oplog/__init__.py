"""A person's annotation as the result of an append-only log of operations.

The log is the truth; the annotation is what is left when it is replayed from its snapshot
(an imported annotation, or nothing). Undo and redo are operations like any other, so they
survive a reload. ``ui/span_editor/js/operations.js`` replays the same log in the browser; a
browser test holds the two to the same results.
"""

from spanlab.oplog.claim_operations import (
    AcceptClaim,
    AddClaim,
    ClaimMark,
    EditClaim,
    RejectClaim,
    RemoveClaim,
    ReplaceClaims,
)
from spanlab.oplog.operations import (
    OPERATION,
    Accept,
    AcceptAll,
    Add,
    Edit,
    Finish,
    Note,
    NoteSuggestion,
    Operation,
    Redo,
    Reject,
    Relabel,
    Remove,
    Replace,
    Resize,
    SetStatus,
    Undo,
    in_force,
    replay,
)
from spanlab.oplog.state import Cited, Mark, ReviewState

__all__ = [
    "OPERATION",
    "Accept",
    "AcceptAll",
    "AcceptClaim",
    "Add",
    "AddClaim",
    "Cited",
    "ClaimMark",
    "Edit",
    "EditClaim",
    "Finish",
    "Mark",
    "Note",
    "NoteSuggestion",
    "Operation",
    "Redo",
    "Reject",
    "RejectClaim",
    "Relabel",
    "Remove",
    "RemoveClaim",
    "Replace",
    "ReplaceClaims",
    "Resize",
    "ReviewState",
    "SetStatus",
    "Undo",
    "in_force",
    "replay",
]
