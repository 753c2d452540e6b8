"""A format as it is read: rows first, so that a wrong one can be told and left out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from pydantic import ValidationError

from spanlab.datasets.files import File, Row
from spanlab.datasets.options import ReadOptions
from spanlab.datasets.problems import input_error
from spanlab.errors import InputError
from spanlab.schema import Record


class Reader(ABC):
    """Reads one file of a format; by default a row is a line, and nothing is left out."""

    def __init__(self, file: File, options: ReadOptions) -> None:
        self._file = file
        self._options = options

    def rows(self) -> Iterator[Row]:
        """Yield what the file holds.

        Raises:
            InputError: it cannot be read on.
        """
        return self._file.rows()

    def record(self, row: Row) -> Record:
        """Return the record of a row.

        Raises:
            InputError: names the field, what was found and what would be right.
        """
        try:
            return self._record(row)
        except ValidationError as error:
            raise self._problem(error) from None

    def finish(self) -> None:  # noqa: B027 - most formats leave nothing out
        """Say what was read otherwise than it stands, once the file is read."""

    @abstractmethod
    def _record(self, row: Row) -> Record:
        """Return the record of a row; what the validator refuses is told by ``_problem``."""

    def _problem(self, error: ValidationError) -> InputError:
        return input_error(error)
