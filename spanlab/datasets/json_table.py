"""JSON Lines, or one array, of records in nobody's format, with a mapping of their fields."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pydantic_core import from_json

from spanlab.datasets.files import Row
from spanlab.datasets.paths import paths
from spanlab.datasets.tabular import MappedReader
from spanlab.errors import InputError

_LOOKED_AT = 50  # records whose fields are offered
_MOST = 200  # fields that are offered


class JsonReader(MappedReader):
    """Reads JSON records; a column is a field, or the dotted path of one inside others."""

    def columns(self) -> tuple[str, ...]:
        """Return the paths of the fields of the first records."""
        found: dict[str, None] = {}
        for row in islice(self._file.rows(), _LOOKED_AT):
            try:
                record = from_json(row.raw)
            except (ValueError, InputError):
                continue  # which is said when its turn comes
            if isinstance(record, dict):
                found |= dict.fromkeys(paths(record))
        return tuple(islice(found, _MOST))

    def rows(self) -> Iterator[Row]:
        """Yield the records.

        Raises:
            InputError: it cannot be read on, or no field is the answer.
        """
        self._mapping = self._map(self.columns())
        for number, row in enumerate(self._file.rows(), start=1):
            yield row._replace(number=number)
