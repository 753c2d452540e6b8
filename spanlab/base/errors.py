"""Every error that spanlab raises on purpose.

    SpanlabError
    ├── InputError            a file, line or field is not what it should be   (exit status 1)
    ├── UsageError            a request that cannot be met as it was made      (exit status 2)
    │   ├── UnderWayError         a job under way does the same already
    │   ├── NotOfferedError       a detector or index that a service does not offer
    │   └── UnnamedModelError     no language model is named
    ├── ModelError            a language model gave no answer that can be used
    │   ├── ConfigurationError      key, address or model's name is wrong: ends the run
    │   │   ├── MissingKeyError         no key is set for the endpoint
    │   │   ├── WrongKeyError           the endpoint does not accept the key
    │   │   └── UnknownModelError       the endpoint has no such model, or is not at this address
    │   ├── ForbiddenError          the key may not do this
    │   ├── NoCreditError           the account behind the key has nothing left
    │   ├── RefusedError            the model or its provider declined to answer
    │   ├── ContextTooLongError     the prompt does not fit the model
    │   ├── UnparsableAnswerError   an answer came, but not in the form asked for
    │   ├── UnavailableError        no answer after all retries
    │   │   └── NoConnectionError       nothing listens at the address
    │   └── BudgetError             the run's own limit on calls, tokens or money is reached
    ├── PageError             a web page that cannot or may not be read
    │   └── RefusedPageError        it may not: its site forbids it, or it is too large or too new
    ├── SandboxError          what was being read takes too long or too much, or breaks its reader
    ├── NoEvidenceError       nothing was found to judge a claim by
    ├── ToolError             a tool that cannot be called, or failed
    └── StoreError            the annotation database
        ├── NotFoundError     a dataset, item or annotator that is not there   (exit status 1)
        ├── AccessError       whoever acts may not do this
        ├── UnderImportError  an import into the dataset is under way
        └── OperationError    a review operation that does not fit its annotation

A message names the bad value, where it is and what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Final

_VARYING = re.compile(r"\d+|'[^']*'|\"[^\"]*\"|“[^”]*”")


class SpanlabError(Exception):
    """Base of all errors that spanlab raises on purpose."""

    def reword(self, words: Callable[[str], str]) -> None:
        """Put what is said into other words, as those of another door."""
        self.args = tuple(words(part) if isinstance(part, str) else part for part in self.args)


WRONG: Final = "the value is wrong"  # says less than what would be right, and gives way to it


class InputError(SpanlabError):
    """Something in a file (or an upload) is wrong.

    Args:
        what: what is wrong, in one clause.
        file: path or upload name.
        line: 1-based number of the line, or of what ``unit`` says.
        field: dotted path of the field, for example ``annotations.0.spans.2.end``.
        found: the offending value; long values are shortened in the message.
        expected: what would be right.

    ``unit`` says what ``line`` counts: a "line", or a "row" or "record" of a file without lines.
    ``count`` is how many records are wrong like this one, ``others`` what else is wrong, in lines.
    """

    unit = "line"
    count = 1
    others: tuple[str, ...] = ()

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

    def at(self, *, file: str | Path, line: int | None = None, unit: str = "line") -> InputError:
        """Return the same error with its place filled in where it was missing."""
        placed = copy(self)
        placed.file = self.file or str(file)
        if self.line is None:
            placed.line, placed.unit = line, unit
        return placed

    def with_others(self, count: int, others: tuple[str, ...]) -> InputError:
        """Return the same error with how many are like it, and lines on what else is wrong."""
        together = copy(self)
        together.count, together.others = count, others
        return together

    def reword(self, words: Callable[[str], str]) -> None:
        """Put what is said into other words; what was found stays."""
        super().reword(words)
        self.what, self.others = words(self.what), tuple(map(words, self.others))
        self.expected = self.expected and words(self.expected)

    @property
    def kind(self) -> str:
        """What is wrong, without what differs from record to record: numbers and quoted texts."""
        return _VARYING.sub("…", f"{self.field}: {self.what}")

    def __str__(self) -> str:
        line = None if self.line is None else f"{self.unit} {self.line}"
        place = ", ".join(part for part in (self.file, line, self.field) if part is not None)
        right, _, hint = (self.expected or "").partition("; ")
        wrong = "" if self.found is None else f"found {_short(self.found)}"
        told = "" if self.what == WRONG and right else self.what
        compared = ", ".join(filter(None, (right and f"expected {right}", wrong)))
        parts = [part for part in (told, compared, hint) if part]
        if self.count > 1:
            parts.append(f"{self.count:,} records like this")
        first = "; ".join(parts)
        return "\n".join((f"{place}: {first}" if place else first, *self.others))


def unreadable(file: str | Path, error: Exception) -> InputError:
    """Return the error of a file that cannot be read; ``error`` says why."""
    why = (isinstance(error, OSError) and error.strerror) or error
    return InputError(f"cannot read this file: {why}", file=file)


class UsageError(SpanlabError):
    """A request that cannot be met as it was made, such as an unknown detector name."""


class UnnamedModelError(UsageError):
    """Nothing names the language model that something asks."""


class UnderWayError(UsageError):
    """A job under way does what is asked for already; ``job_id`` is its id."""

    def __init__(self, message: str, job_id: str) -> None:
        super().__init__(message)
        self.job_id = job_id


class NotOfferedError(UsageError):
    """A detector or an index that a service does not offer, as its start did not name it."""


def missing_package(what: str, package: str | None, extra: str) -> UsageError:
    """Return the error that ``what`` needs a package, which an extra of spanlab brings."""
    name = (package or "a package").partition(".")[0]  # of a package, not of a module in it
    return UsageError(f"{what} needs {name}: pip install 'spanlab[{extra}]'")


class ModelError(SpanlabError):
    """A language model gave no answer that can be used; the message says why and what to do.

    It is one item's failure, which can be retried alone. Two kinds end the run instead: a
    ``BudgetError`` ends it early, a ``ConfigurationError`` ends it as failed.
    """


class ConfigurationError(ModelError):
    """The key, the address or the name of the model is wrong, so every other call would fail alike.

    Or the processes that do the work end by themselves. No item is to blame: those that met it, and
    those not tried yet, stay as they were.
    """


class MissingKeyError(ConfigurationError, UsageError):
    """No key is set for an endpoint that needs one."""


class WrongKeyError(ConfigurationError):
    """The endpoint does not accept the key."""


class UnknownModelError(ConfigurationError):
    """The endpoint has no model of this name, or there is no endpoint at this address."""


class ForbiddenError(ModelError):
    """The endpoint accepts the key, but not for this call."""


class NoCreditError(ModelError):
    """The account behind the key has no credit or quota left."""


class RefusedError(ModelError):
    """The model, or its provider's filter, declined to answer this prompt."""


class ContextTooLongError(ModelError):
    """The prompt is longer than the model takes."""


class UnparsableAnswerError(ModelError):
    """An answer came, but not in the form that was asked for: cut off, or broken JSON."""


class UnavailableError(ModelError):
    """No answer after all retries: rate limits, a failing server, a timeout, no connection."""


class NoConnectionError(UnavailableError):
    """Nothing listens at the endpoint's address, or no host has its name."""


class BudgetError(ModelError):
    """The run's own limit on calls, tokens or money is reached; no further call was started."""


class PageError(SpanlabError):
    """A web page that cannot be read, or may not: its address is not public, or it is no text."""


class RefusedPageError(PageError):
    """A web page that may not be read: its site forbids it, or it is too large or too new."""


class SandboxError(SpanlabError):
    """What comes from outside takes more time or memory than it may, or breaks what reads it."""


class NoEvidenceError(SpanlabError):
    """Nothing was found to judge a claim by, and no verdict that says so was asked for."""


class ToolError(SpanlabError):
    """A tool that does not exist, may not be called, was called wrongly, or failed."""


class StoreError(SpanlabError):
    """Something about the annotation database."""


class NotFoundError(StoreError):
    """A dataset, item or annotator that the database does not have."""


class AccessError(StoreError):
    """Whoever acts may not do this; a dataset that they may not see is said not to be there."""


class UnderImportError(StoreError):
    """An import into the dataset is under way; it may be tried again later."""


class OperationError(StoreError):
    """A review operation that does not fit the annotation it is applied to."""


def _short(value: object, limit: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class DeprecatedWarning(DeprecationWarning):
    """Something of spanlab's that a later version takes away; commands say it on standard error."""


class StoppedError(SpanlabError):
    """Somebody paused or cancelled the search."""
