"""What was fetched is kept on disk, and what lies there broken is fetched anew."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from spanlab.base.errors import StoreError, UnavailableError
from spanlab.models.cache import answer_file
from spanlab.schema import Passage
from spanlab.search.search import RetrievalCache

PASSAGES = (Passage(text="北京", title="T", url="u", date="2024"), Passage(text="x"))


class Fetching:
    """Fetches, and counts."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> tuple[Passage, ...]:
        self.count += 1
        return PASSAGES


def test_the_same_question_is_fetched_once(tmp_path: Path) -> None:
    fetch = Fetching()
    for number in (1, 1, 2):
        assert (
            asyncio.run(RetrievalCache(answer_file(tmp_path)).passages(["a", number], fetch))
            == PASSAGES
        )
    assert fetch.count == 2


def test_without_a_directory_nothing_is_kept() -> None:
    fetch = Fetching()
    for _ in range(2):
        asyncio.run(RetrievalCache(None).passages(["a"], fetch))
    assert fetch.count == 2


def test_what_failed_is_not_kept(tmp_path: Path) -> None:
    async def fail() -> tuple[Passage, ...]:
        raise UnavailableError("down")

    fetch = Fetching()
    with pytest.raises(UnavailableError):
        asyncio.run(RetrievalCache(answer_file(tmp_path)).passages(["a"], fail))
    asyncio.run(RetrievalCache(answer_file(tmp_path)).passages(["a"], fetch))
    assert fetch.count == 1


def test_the_cache_of_answers_takes_whatever_a_model_sends(tmp_path: Path) -> None:
    """Half an emoji stopped its writer for good, and with it every run in the process."""
    cache = answer_file(tmp_path)

    async def kept(key: str, text: str) -> dict[str, object] | None:
        await cache.put(key, {"text": text})
        return await cache.get(key)

    assert asyncio.run(kept("k", "half \ud83d")) == {"text": "half \ufffd"}
    assert asyncio.run(kept("l", "北京")) == {"text": "北京"}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        answer_file(tmp_path / "file")
