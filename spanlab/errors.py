"""Every error that spanlab raises on purpose.

    SpanlabError
    ├── InputError            a file, line or field is not what it should be   (exit status 1)
    ├── UsageError            a request that cannot be met as it was made      (exit status 2)
    └── StoreError            the annotation database
        ├── NotFoundError     a dataset, item or annotator that is not there   (exit status 1)
        ├── StaleWriteError   somebody else changed this annotation meanwhile
        └── OperationError    a review operation that does not fit its annotation

A message names the bad value, where it is and what would be right.
"""

from __future__ import annotations

from pathlib import Path


class SpanlabError(Exception):
    """Base of all errors that spanlab raises on purpose."""


class InputError(SpanlabError):
    """Something in a file (or an upload) is wrong.

    Args:
        what: what is wrong, in one clause.
        file: path or upload name.
        line: 1-based line, row or record number.
        field: dotted path of the field, for example ``annotations.0.spans.2.end``.
        found: the offending value; long values are shortened in the message.
        expected: what would be right.
    """

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
        found: object = None,
        expected: str | None = None,
    ) -> None:
        self.what = what
        self.file = None if file is None else str(file)
        self.line = line
        self.field = field
        self.found = found
        self.expected = expected
        super().__init__(what)

    def at(self, *, file: str | Path, line: int | None = None) -> InputError:
        """Return the same error with its place filled in where it was missing."""
        return InputError(
            self.what,
            file=self.file or file,
            line=self.line or line,
            field=self.field,
            found=self.found,
            expected=self.expected,
        )

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        parts = [f"{place}: {self.what}" if place else self.what]
        if self.field is not None:
            parts.append(f"field: {self.field}")
        if self.found is not None:
            parts.append(f"found: {_short(self.found)}")
        if self.expected is not None:
            parts.append(f"expected: {self.expected}")
        return "; ".join(parts)


class UsageError(SpanlabError):
    """A request that cannot be met as it was made, such as an unknown detector name."""


class StoreError(SpanlabError):
    """Something about the annotation database."""


class NotFoundError(StoreError):
    """A dataset, item or annotator that the database does not have."""


class StaleWriteError(StoreError):
    """The annotation was changed elsewhere since the writer last saw it."""


class OperationError(StoreError):
    """A review operation that does not fit the annotation it is applied to."""


def _short(value: object, limit: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
