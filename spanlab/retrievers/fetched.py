"""What was fetched, on disk: a search that was paid for is not paid for again.

Answers are kept for good, since a second run shall see what the first one saw; to ask anew, move
the directory away.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from spanlab.lm.cache import AnswerCache, cache_in
from spanlab.schema import Passage

_PASSAGES = TypeAdapter(tuple[Passage, ...])


class Fetched:
    """Passages by what was asked, in one directory; without one, nothing is kept.

    Args:
        folder: where; any number of processes may share it.

    Raises:
        StoreError: it cannot be written, or something else lies there.
    """

    def __init__(self, folder: Path | None) -> None:
        self._cache: AnswerCache | None = cache_in(folder) if folder else None

    async def passages(
        self, asked: Sequence[JsonValue], fetch: Callable[[], Awaitable[tuple[Passage, ...]]]
    ) -> tuple[Passage, ...]:
        """Return what ``asked`` has found before, or fetch it and keep it, also if it is nothing.

        Args:
            asked: all that the answer depends on, without any key.
            fetch: asks; if it raises, nothing is kept.
        """
        if self._cache is None:
            return await fetch()
        place = "passages " + hashlib.sha256(json.dumps(asked).encode()).hexdigest()
        known = _read(self._cache.get(place))
        if known is not None:
            return known
        seeking = self._cache.seek(place)
        found = None if seeking is None else _read(await asyncio.wrap_future(seeking))
        if found is None:
            found = await fetch()
        kept = self._cache.put(place, {"passages": _PASSAGES.dump_python(found, mode="json")})
        await asyncio.wrap_future(kept)
        return found


def _read(answer: dict[str, object] | None) -> tuple[Passage, ...] | None:
    try:
        return None if answer is None else _PASSAGES.validate_python(answer.get("passages"))
    except ValidationError:
        return None  # not what is written here: fetched anew and overwritten
