"""What a reader is told, and what it says of a record that it had to leave out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

TURNS = ("last", "all")  # answers of a chat


@dataclass(frozen=True)
class RejectedRecord:
    """A record that could not be read.

    ``line`` is the 1-based line (JSON Lines, CSV) or record number (other formats); ``reason`` is
    the whole message of the error that a strict read would have raised; ``raw`` is the record as
    text.
    """

    file: str
    line: int
    reason: str
    raw: str


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=2)


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file.

    Args:
        format: one of ``FORMATS``, or ``auto`` to look at the content.
        contexts: passages for the items: a directory of ``<id>.context.txt`` files, a directory
            of such directories, or a JSON Lines file.
        columns: for tables: our field → their column.
        turns: for tables of chats, which answers are items: one of ``TURNS``.
        records: for a file that is one JSON object: the path of the list with the records; None
            finds it.
        on_warning: called with each remark on something that was read otherwise than it stands.
        on_reject: called with each record that is wrong, and reading goes on; None is strict, the
            first wrong record raises ``InputError``.
        sources: RAGTruth's ``source_info.jsonl``; by default the one beside the file.
        asked: for GraphRAG's output: a question and its answer, in place of ``queries.jsonl``.
        name: what to call the file in messages, such as the name of an upload.
    """

    format: str = "auto"
    contexts: Path | None = None
    columns: Mapping[str, str] | None = None
    turns: str = "last"
    records: str | None = None
    on_warning: Callable[[str], None] = _warn
    on_reject: Callable[[RejectedRecord], None] | None = None
    sources: Path | None = None
    asked: tuple[str, str] | None = None
    name: str | None = None
