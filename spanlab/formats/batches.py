"""A batch's requests, which stand apart from its results and are joined to them by their ids.

The batches of OpenAI, Mistral, Anthropic and Google, whose results hold the replies alone, and
MT-bench, whose questions stand apart from the models' answers. A result gets its request under
``request``, so that all that was asked is read as from any other log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic_core import from_json, to_json

from spanlab.base.errors import InputError
from spanlab.formats.chats import alternating
from spanlab.formats.columns import BATCH_ID
from spanlab.formats.contexts import RecordIndex
from spanlab.formats.files import FileRow, InputFile
from spanlab.output.figures import counted, named_ids

_IDS: Final = (BATCH_ID, "key", "question_id")
_ASKED: Final = frozenset(("body", "params", "request"))  # where a request has what it asks
# … and a result what came of it.
_SAID: Final = frozenset(("response", "result", "error", "choices"))
_NAMED: Final = 5  # so many ids are named in a remark


def is_request(record: Mapping[str, Any]) -> bool:
    """Say whether a record is a request of a batch, without what came of it."""
    asks = record.keys() & _ASKED or alternating(record.get("turns"))
    return bool(record.keys() & set(_IDS) and asks and not record.keys() & _SAID)


class _Request(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str = Field(validation_alias=AliasChoices(*_IDS), coerce_numbers_to_str=True)


class BatchRequests:
    """Adds requests to results, and counts those without the other.

    Args:
        path: JSON Lines of requests.
        results: the file of the results.

    Raises:
        InputError: the file cannot be read, or a line of it is wrong or has no id.
    """

    def __init__(self, path: Path, results: InputFile) -> None:
        self._index = RecordIndex(InputFile(path, str(path)), _id_of)
        self._results = results
        self._found: set[str] = set()
        self._alone: list[str] = []  # ids of results without a request

    def join(self, rows: Iterator[FileRow]) -> Iterator[FileRow]:
        """Yield results with their requests, where they have one; each pass counts anew."""
        self._found, self._alone = set(), []
        for row in rows:
            yield self._joined(row)

    def finish(self) -> list[str]:
        """Return what to say of results without a request, and of requests without a result.

        Raises:
            InputError: there is no request of any result.
        """
        n_results = len(self._found) + len(self._alone)
        unused = [name for name in self._index.keys if name not in self._found]
        if self._alone and not self._found:
            raise InputError(
                f"none of these requests is of a result in {self._results.name}",
                file=self._index.name,
                field=BATCH_ID,
                found=f"{named_ids(unused, _NAMED)}; the results have "
                f"{named_ids(self._alone, _NAMED)}",
                expected="the requests of this batch",
            )
        name, results = self._index.name, self._results.name
        remarks = {
            f"no request for {len(self._alone):,} of {counted(n_results, 'result')}": self._alone,
            f"{counted(len(unused), 'request')} without a result in {results}": unused,
        }
        return [f"{name}: {what}: {named_ids(ids, _NAMED)}" for what, ids in remarks.items() if ids]

    def _joined(self, row: FileRow) -> FileRow:
        result = row.readable
        if not isinstance(result, dict):
            return row
        own = next((result[name] for name in _IDS if result.get(name) is not None), None)
        requests = list(self._index.rows(str(own)))
        if not requests:
            self._alone.append(str(own))
            return row
        self._found.add(str(own))
        if len(requests) > 1:
            twice = InputError("two requests have this id", field=BATCH_ID, found=own)
            return row._replace(refused=twice.at(file=self._index.name, line=requests[1].line))
        joined = to_json({**result, "request": from_json(requests[0].raw)})
        return self._results.row(row.line, joined, row.unit, row.number)


def _id_of(row: FileRow) -> str:
    return _Request.model_validate_json(row.raw).id
