"""Files into a dataset of the annotation database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from spanlab.datasets import ReadOptions, Reject, read
from spanlab.errors import InputError
from spanlab.schema import Record
from spanlab.storage import Store

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


def write_rejects(rejects: Sequence[Reject], target: Path) -> None:
    """Write rejected records as JSONL with the fields file, line, reason and raw.

    Raises:
        InputError: the target cannot be written.
    """
    lines = (
        json.dumps(
            {"file": str(r.file), "line": r.line, "reason": r.reason, "raw": r.raw},
            ensure_ascii=False,
        )
        for r in rejects
    )
    try:
        target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise InputError("the rejects cannot be written", file=target, found=str(error)) from error
