"""Which of their columns, or fields of their JSON, is which of our fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spanlab.datasets.paths import any_element
from spanlab.errors import InputError, UsageError

# Common names, the likeliest first. Names are compared without regard to case.
COMMON: dict[str, tuple[str, ...]] = {
    "id": ("id", "item_id", "example_id", "sample_id", "uid", "index", "idx"),
    "lang": ("lang", "language"),
    "question": ("question", "query", "prompt", "instruction", "model_input", "input"),
    "answer": (
        "answer",
        "response",
        "model_output_text",
        "output",
        "generated_text",
        "completion",
        "summary",
        "prediction",
        "text",
    ),
    "passages": ("passages", "passage", "contexts", "context", "documents", "source", "evidence"),
    "spans": ("spans", "soft_labels", "hallucinations", "labels"),
    "messages": ("messages", "conversations", "conversation", "chat"),
}
FIELDS = tuple(COMMON)


def map_columns(
    found: Sequence[str], wanted: Mapping[str, str] | None, *, needed: str | None = "answer"
) -> dict[str, str]:
    """Return our field → their column.

    Args:
        found: the columns that are there.
        wanted: what the user said; the remaining fields are found by common names.
        needed: the field that must be there, where a chat stands for the answer; None for none.

    Raises:
        UsageError: the user names a field that we do not have.
        InputError: a column that the user names, or that of ``needed``, is not there.
    """
    mapping: dict[str, str] = {}
    for field, column in (wanted or {}).items():
        if field not in COMMON:
            raise UsageError(
                f"no field {field!r} to map a column to; known are {', '.join(COMMON)}"
            )
        if column not in found and any_element(column) not in found:
            raise InputError(
                f"there is no column {column!r} for {field}",
                found=f"the columns {', '.join(map(repr, found))}",
                expected="one of these columns",
            )
        mapping[field] = column
    taken = set(mapping.values())
    free = {column.lower(): column for column in reversed(found) if column not in taken}
    for field, names in COMMON.items():
        for name in names:
            if field not in mapping and name in free:
                mapping[field] = free.pop(name)
    if needed is not None and needed not in mapping and "messages" not in mapping:
        raise InputError(
            f"no column for {needed}",
            found=f"the columns {', '.join(map(repr, found))}",
            expected=f"one named {' or '.join(COMMON[needed])}, or a mapping {needed}=COLUMN",
        )
    return mapping
