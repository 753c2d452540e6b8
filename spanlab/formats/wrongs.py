"""What is wrong with files, told together: a line for each kind, with one example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from spanlab.base.errors import InputError
from spanlab.formats.files import InputFile
from spanlab.formats.read_options import ReadOptions, RejectedRecord
from spanlab.formats.readers import read_placed

_MOST: Final = 100_000  # records that are looked at
_KINDS: Final = 10  # that are told


class _EnoughError(Exception):
    """So many records were looked at as should be."""


class Kinds:
    """What is wrong with records, by kind: the first of each, and how many there are."""

    def __init__(self, rejects: Iterable[RejectedRecord] = ()) -> None:
        self._first: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        for reject in rejects:
            self.add(reject)

    def add(self, reject: RejectedRecord) -> None:
        """Count a record; one without a kind has its reason as kind."""
        kind = reject.kind or reject.reason
        self._first.setdefault(kind, reject.reason)
        self._counts[kind] += 1

    def lines(self) -> list[str]:
        """Return a line for each kind."""
        lines = [
            reason + (f"; {count:,} records like this" if count > 1 else "")
            for reason, count in zip(self._first.values(), self._counts.values(), strict=True)
        ]
        n_more = len(lines) - _KINDS
        return lines[:_KINDS] + ([f"and {n_more:,} more kinds"] if n_more > 0 else [])


class Wrongs:
    """Collects what is wrong with records while reading goes on, to raise it as one error."""

    def __init__(self) -> None:
        self._kinds = Kinds()
        self._first: InputError | None = None
        self._n = 0
        self._n_like_first = 0

    def add(self, error: InputError) -> None:
        """Collect the error of a record, with its place."""
        self._first = self._first or error
        self._n += 1
        self._n_like_first += error.kind == self._first.kind
        self._kinds.add(
            RejectedRecord(error.file or "", error.line or 0, str(error), "", error.kind)
        )

    def check(self) -> None:
        """Raise the first error with all others, a line for each kind; nothing if there is none."""
        if self._first is not None:
            more = (f"{self._n:,} records are wrong",) if self._n > 1 else ()
            others = self._kinds.lines()[1:]
            raise self._first.with_others(self._n_like_first, (*others, *more))


def repeated_id(name: str, expected: str) -> InputError:
    """Return the error of an id that a record has had already."""
    return InputError(
        "an item with this id already exists", field="id", found=name, expected=expected
    )


def told_together(
    error: InputError,
    files: Sequence[Path | InputFile],
    options: ReadOptions,
    taken: Callable[[str], InputError] | None = None,
) -> InputError:
    """Return the error that ended a strict read with what else is wrong in the files.

    Args:
        error: of one record; what is wrong with a file as a whole is returned as it is.
        files: all that are read.
        options: how; nothing that they have is called.
        taken: the error of an id that occurs twice; None if that is none.
    """
    if error.line is None:
        return error
    found = _Found(taken)
    with suppress(_EnoughError, InputError):  # a file that breaks off has told what it could
        for file in files:
            found.read(file, options)
    rest = [reject for reject in found.rejects if reject.reason != str(error)]
    if not rest:
        return error
    same = sum(reject.kind == error.kind for reject in rest)
    others = [reject for reject in rest if reject.kind != error.kind]
    n_wrong = 1 + len(rest)
    n_all = max(found.n_read + len(found.rejects), n_wrong)
    among = "the first " if n_all >= _MOST else ""
    more = f"{n_wrong:,} of {among}{n_all:,} records are wrong; --skip-bad leaves them out"
    return error.with_others(1 + same, (*Kinds(others).lines(), more))


class _Found:
    """What is wrong with the first records of files, and how many are right."""

    def __init__(self, taken: Callable[[str], InputError] | None) -> None:
        self.rejects: list[RejectedRecord] = []
        self.n_read = 0
        self._taken = taken
        self._seen: set[str] = set()

    def read(self, file: Path | InputFile, options: ReadOptions) -> None:
        names = ("on_warning", "on_response", "on_questions", "on_fields")
        callbacks = {**dict.fromkeys(names, lambda *_: None), "on_reject": self._reject}
        with closing(read_placed(file, options.model_copy(update=callbacks))) as placed:
            for record, line, unit in placed:
                item = record.item
                # Answers of several models to one question get the model's name behind the id.
                if self._taken and item.id in self._seen and "model" not in item.meta:
                    name = options.name or str(file)
                    twice = self._taken(item.id).at(file=name, line=line, unit=unit)
                    self._reject(RejectedRecord(name, line, str(twice), "", twice.kind))
                else:
                    self._seen.add(item.id)
                    self._count()
                    self.n_read += 1

    def _reject(self, reject: RejectedRecord) -> None:
        if reject.kind:  # a call that failed is no mistake of the file
            self.rejects.append(replace(reject, raw=""))
        self._count()

    def _count(self) -> None:
        if self.n_read + len(self.rejects) >= _MOST:
            raise _EnoughError
