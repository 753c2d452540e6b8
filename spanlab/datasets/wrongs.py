"""What is wrong with files, told together: a line for each kind, with one example."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from spanlab.datasets.read_options import ReadOptions, RejectedRecord
from spanlab.datasets.readers import read_placed
from spanlab.errors import InputError

_MOST: Final = 100_000  # records that are looked at
_KINDS: Final = 10  # that are told


class _Enough(Exception):  # noqa: N818 - no error: ends the reading
    """So many records were looked at as should be."""


def kinds_of(rejects: Iterable[RejectedRecord]) -> list[str]:
    """Return a line for each kind of what is wrong: the first of it, and how many there are."""
    first: dict[str, RejectedRecord] = {}
    counts: dict[str, int] = {}
    for reject in rejects:
        kind = reject.kind or reject.reason
        first.setdefault(kind, reject)
        counts[kind] = counts.get(kind, 0) + 1
    lines = [
        reject.reason + (f"; {counts[kind]:,} records like this" if counts[kind] > 1 else "")
        for kind, reject in first.items()
    ]
    n_more = len(lines) - _KINDS
    return lines[:_KINDS] + ([f"and {n_more:,} more kinds"] if n_more > 0 else [])


def told_together(error: InputError, files: Sequence[Path], options: ReadOptions) -> InputError:
    """Return the error that ended a strict read with what else is wrong in the files.

    Args:
        error: of one record; what is wrong with a file as a whole is returned as it is.
        files: all that are read.
        options: how; nothing is called that they have.
    """
    if error.line is None or error.file is None:
        return error
    rejects, n_read = _rejects_in(files, options)
    first = next((n for n, each in enumerate(rejects) if each.reason == str(error)), None)
    rest = [each for n, each in enumerate(rejects) if n != first]
    if not rest:
        return error
    same = [each for each in rest if each.kind == error.kind]
    others = [each for each in rest if each.kind != error.kind]
    n_wrong, n_all = 1 + len(rest), n_read + len(rejects) + (first is None)
    among = "all" if n_wrong == n_all else "the first" if n_all >= _MOST else "of"
    wrong = f"{n_wrong:,} {among} {n_all:,}" if n_wrong < n_all else f"all {n_all:,}"
    more = (*kinds_of(others), f"{wrong} records are wrong; --skip-bad leaves them out")
    return error.with_others(1 + len(same), more)


def _rejects_in(files: Sequence[Path], options: ReadOptions) -> tuple[list[RejectedRecord], int]:
    """Return what is wrong with the first records of files, and how many of them are right."""
    rejects: list[RejectedRecord] = []
    n_read = 0
    seen: set[str] = set()

    def reject(left_out: RejectedRecord) -> None:
        if left_out.kind:  # a call that failed is left out anyway
            rejects.append(RejectedRecord(*_told(left_out), raw="", kind=left_out.kind))
        if n_read + len(rejects) >= _MOST:
            raise _Enough

    callbacks = dict.fromkeys(("on_warning", "on_response", "on_questions", "on_fields"), _ignore)
    quiet = options.model_copy(update={**callbacks, "on_reject": reject})
    try:
        for file in files:
            with closing(read_placed(file, quiet)) as placed_records:
                for record, line, unit in placed_records:
                    name = record.item.id
                    is_taken = name in seen and not isinstance(record.item.meta.get("model"), str)
                    if is_taken and getattr(options, "same_ids", "") == "refuse":
                        twice = repeated(name).at(
                            file=quiet.name or str(file), line=line, unit=unit
                        )
                        reject(RejectedRecord(str(file), line, str(twice), "", twice.kind))
                    else:
                        seen.add(name)
                        n_read += 1
    except (_Enough, InputError):  # a file that breaks off is told of by what came before
        pass
    return rejects, n_read
