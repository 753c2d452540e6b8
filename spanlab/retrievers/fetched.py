"""What was fetched, in the cache of answers: a search that was paid for is not paid for again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence

from pydantic import JsonValue, TypeAdapter, ValidationError

from spanlab.lm.cache import AnswerCache
from spanlab.schema import Passage

_PASSAGES = TypeAdapter(tuple[Passage, ...])


class RetrievalCache:
    """Passages by what was asked.

    Args:
        cache: where they are kept; without one, nothing is.
    """

    def __init__(self, cache: AnswerCache | None) -> None:
        self._cache = cache

    async def passages(
        self, asked: Sequence[JsonValue], fetch: Callable[[], Awaitable[tuple[Passage, ...]]]
    ) -> tuple[Passage, ...]:
        """Return what ``asked`` has found before, or fetch it and keep it, also if it is nothing.

        Whoever asks the same at the same time waits for the one answer.

        Args:
            asked: all that the answer depends on, without any key.
            fetch: asks; if it raises, nothing is kept.
        """
        if self._cache is None:
            return await fetch()
        kept = self._cache
        place = "passages " + hashlib.sha256(json.dumps(asked).encode()).hexdigest()

        async def read_or_fetch() -> tuple[Passage, ...]:
            known = _read(await kept.get(place))
            if known is not None:
                return known
            found = await fetch()
            await kept.put(place, {"passages": _PASSAGES.dump_python(found, mode="json")})
            return found

        passages: tuple[Passage, ...] = await kept.single_flight.join(place, read_or_fetch)
        return passages


def _read(answer: dict[str, object] | None) -> tuple[Passage, ...] | None:
    try:
        return None if answer is None else _PASSAGES.validate_python(answer.get("passages"))
    except ValidationError:
        return None  # not what is written here: fetched anew and overwritten
