"""Answers are paid for once: by all processes of a machine, with PostgreSQL by all workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from working_jobs import SECONDS, fill, request, working

from spanlab.base.settings import Settings
from spanlab.jobs import Jobs, JobState
from spanlab.models import answer_cache
from spanlab.storage import Store
from spanlab.storage.engine import Database
from spanlab.testing import ModelServer

ODD: dict[str, object] = {"said": "an emoji \U0001f600, and \x00"}


@pytest.fixture
def database(shared_settings: Settings) -> Iterator[Database]:
    """The shared database."""
    opened = Database(shared_settings.database_url)
    yield opened
    opened.close()


def test_what_is_put_is_found_until_it_is_forgotten(where: Settings) -> None:
    models, retrieval = answer_cache(where, "models"), answer_cache(where, "retrieval")

    async def everything() -> None:
        assert await models.get("asked") is None
        await models.put("asked", ODD)
        assert await models.get("asked") == ODD
        assert await retrieval.get("asked") is None
        await models.put("asked", {"said": "something else"})
        assert await models.get("asked") == {"said": "something else"}
        await models.put("cut off", {"said": "half an emoji \ud83d"})
        assert await models.get("cut off") == {"said": "half an emoji \ufffd"}
        await models.forget("asked")
        await models.forget("never asked")
        assert await models.get("asked") is None

    asyncio.run(everything())


def test_what_a_cancelled_call_was_answered_is_kept(where: Settings) -> None:
    answers = answer_cache(where, "models")

    async def cancelled() -> None:
        calls = [asyncio.create_task(answers.put(f"{n}", {"said": n})) for n in range(200)]
        await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert any(isinstance(end, asyncio.CancelledError) for end in ended)
        await answers.put("last", {"said": "bye"})
        deadline = time.monotonic() + SECONDS
        while [n for n in range(200) if await answers.get(f"{n}") is None]:
            assert time.monotonic() < deadline, "an answer is missing"
            await asyncio.sleep(0.05)

    asyncio.run(cancelled())


def test_one_process_asks_one_cache(where: Settings) -> None:
    assert answer_cache(where, "models") is answer_cache(where, "models")
    assert answer_cache(where, "models") is not answer_cache(where, "retrieval")


def test_a_question_is_paid_for_once_by_all_hosts(
    shared_settings: Settings, model: ModelServer, tmp_path: Path
) -> None:
    """Whichever job asks it, also one that begins when the first is long over."""
    fill(shared_settings, 20)
    with Store.open(shared_settings) as store:
        store.import_records("e", list(store.records("d")))
    for dataset, calls in (("d", 20), ("e", 0)):
        home = tmp_path / dataset
        home.mkdir()
        settings = shared_settings.model_copy(update={"home": home})
        job_id = Jobs(settings).submit(request(model, dataset=dataset))
        before = model.count
        with working(settings, dataset):
            done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
        assert (done.state, done.progress.done) == (JobState.DONE, 20)
        assert (done.progress.usage.calls, done.progress.usage.from_cache) == (calls, 20 - calls)
        assert model.count - before == calls


def test_a_database_that_drops_its_connections_loses_no_answer(
    shared_settings: Settings, database: Database
) -> None:
    answers = answer_cache(shared_settings, "models")

    async def everything() -> None:
        await answers.put("before", {"said": 1})
        with database.writing() as connection:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
            connection.execute(text(others + "pg_backend_pid() AND datname = current_database()"))
        await answers.put("after", {"said": 2})
        assert await answers.get("before") == {"said": 1}
        assert await answers.get("after") == {"said": 2}

    asyncio.run(everything())


def test_answers_expire_after_thirty_days_unless_the_clock_alone_says_so(
    shared_settings: Settings, database: Database, tmp_path: Path
) -> None:
    first = answer_cache(shared_settings, "models")
    for key in ("old", "new"):
        asyncio.run(first.put(key, {"said": key}))

    def opened_later(worker: str, days: float, where: str) -> dict[str, object]:
        """Put the clock forward for some answers; return what another worker then finds."""
        with database.writing() as connection:
            connection.execute(text(f"UPDATE answers SET at = at - {days} * 86400 WHERE {where}"))
        another = shared_settings.model_copy(update={"home": tmp_path / worker})
        later = answer_cache(another, "models")
        return {key: asyncio.run(later.get(key)) for key in ("old", "new")}

    both = {key: {"said": key} for key in ("old", "new")}
    assert opened_later("far ahead", 400, "true") == both
    assert opened_later("right again", -400, "true") == both
    assert opened_later("a month on", 30.1, "key = 'old'") == {**both, "old": None}
