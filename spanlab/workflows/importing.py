"""Files into a dataset of the annotation database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spanlab.datasets import FIELDS, FORMATS, ReadOptions, Reject, map_columns, read, table_columns
from spanlab.errors import InputError
from spanlab.schema import Record

if TYPE_CHECKING:
    from spanlab.storage import Store

__all__ = [
    "FIELDS",
    "FORMATS",
    "Imported",
    "ReadOptions",
    "Reject",
    "guess_columns",
    "import_files",
    "rejects_as_jsonl",
    "table_columns",
    "write_rejects",
]

Progress = Callable[[int], None]  # called with the number of items done so far


@dataclass(frozen=True)
class Imported:
    """What an import did: items stored, remarks of the reader, records that were left out."""

    items: int
    warnings: tuple[str, ...]
    rejects: tuple[Reject, ...]


@dataclass
class _Log:
    warnings: list[str] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)


def import_files(
    store: Store,
    files: Sequence[Path],
    dataset: str,
    options: ReadOptions | None = None,
    *,
    skip_bad: bool = False,
    on_progress: Progress | None = None,
) -> Imported:
    """Read files into a dataset, which is made if it does not exist.

    Args:
        store: the annotation database.
        files: at least one file, read in the order given.
        dataset: the dataset's name; items are added behind those it has.
        options: format, contexts and column mapping for the reader.
        skip_bad: leave out records that cannot be read instead of importing nothing at all.
        on_progress: called now and then with the number of items read.

    Returns:
        The count of stored items, the reader's remarks and the rejects (empty unless `skip_bad`).

    Raises:
        InputError: a record is wrong (strict), or an id stands twice; nothing was imported.
    """
    log = _Log()
    options = replace(
        options or ReadOptions(),
        on_warning=log.warnings.append,
        on_reject=log.rejects.append if skip_bad else None,
    )

    def records() -> Iterator[Record]:
        for file in files:
            yield from read(file, options)

    count = store.import_records(dataset, records(), on_progress)
    return Imported(count, tuple(log.warnings), tuple(log.rejects))


def guess_columns(columns: Sequence[str]) -> dict[str, str]:
    """Return which column an import takes for which field if nobody says: those of common names.

    Returns:
        Field → column for the fields that are found; empty if none is.
    """
    return map_columns(columns, None, needed=None)


def rejects_as_jsonl(rejects: Sequence[Reject]) -> str:
    """Return rejected records as JSONL with the fields file, line, reason and raw."""
    return "".join(
        json.dumps(
            {"file": str(r.file), "line": r.line, "reason": r.reason, "raw": r.raw},
            ensure_ascii=False,
        )
        + "\n"
        for r in rejects
    )


def write_rejects(rejects: Sequence[Reject], target: Path) -> None:
    """Write rejected records to a file, as ``rejects_as_jsonl`` gives them.

    Raises:
        InputError: the target cannot be written.
    """
    try:
        target.write_text(rejects_as_jsonl(rejects), encoding="utf-8")
    except OSError as error:
        raise InputError("the rejects cannot be written", file=target, found=str(error)) from error
