"""Answers on their way from the host that paid for them to those that ask the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import text
from working_jobs import SECONDS, fill, request, wait_until, working

from spanlab import jobs
from spanlab.jobs import JobState, board, database
from spanlab.jobs.answers import Answers
from spanlab.lm.cache import AnswerCache, cache_in
from spanlab.settings import Settings
from spanlab.storage import Store
from spanlab.testing import ModelServer


class Host:
    """A host with its own caches."""

    def __init__(self, home: Path, shared: Settings) -> None:
        self.answers = Answers(shared.model_copy(update={"home": home}))
        self.models: AnswerCache = cache_in(home / "cache" / "models")
        self.retrieval: AnswerCache = cache_in(home / "cache" / "retrieval")


@pytest.fixture
def hosts(shared_settings: Settings, tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts whose answers are copied to one database."""
    pair = Host(tmp_path / "one", shared_settings), Host(tmp_path / "two", shared_settings)
    board.of(shared_settings).queues()  # makes the tables of the jobs
    with ExitStack() as stack:
        for host in pair:
            host.answers.start()
            stack.callback(host.answers.stop)
        yield pair


def copied(settings: Settings) -> set[str]:
    """Return the keys of the answers that are in the jobs' database."""
    with database.connection(settings) as connection:
        rows = connection.execute(text(f"SELECT key FROM {database.SCHEMA}.answers"))
        return {row.key for row in rows}


def found(cache: AnswerCache, key: str) -> dict[str, object] | None:
    """Return what a host finds in the other's answers."""
    seeking = cache.seek(key)
    assert seeking is not None
    return seeking.result(timeout=60)


def test_what_one_host_was_answered_the_other_finds(
    shared_settings: Settings, hosts: tuple[Host, Host]
) -> None:
    one, two = hosts
    one.models.put("asked", {"said": "half an emoji \ud83d, and \x00"}).result()
    one.retrieval.put("searched", {"said": 2}).result()
    wait_until(lambda: len(copied(shared_settings)) == 2, "both answers")
    assert two.models.get("asked") is None
    assert found(two.models, "asked") == {"said": "half an emoji \ud83d, and \x00"}
    assert found(two.retrieval, "searched") == {"said": 2}
    assert found(two.models, "searched") is None  # of another kind
    assert found(two.models, "never asked") is None


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
        job_id = jobs.submit_detection(request(model, dataset=dataset), settings)
        before = model.count
        with working(settings, dataset):
            done = jobs.wait(job_id, timeout=SECONDS, settings=settings)
        assert (done.state, done.progress.done) == (JobState.DONE, 20)
        assert (done.progress.usage.calls, done.progress.usage.from_cache) == (calls, 20 - calls)
        assert model.count - before == calls


def test_a_database_that_is_away_finds_nothing_and_is_asked_again(
    shared_settings: Settings, hosts: tuple[Host, Host]
) -> None:
    one, two = hosts
    one.models.put("asked", {"said": 1}).result()
    wait_until(lambda: len(copied(shared_settings)) == 1, "the answer")
    assert found(two.models, "asked") == {"said": 1}
    with database.connection(shared_settings) as connection:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
        connection.execute(text(others + "pg_backend_pid() AND datname = current_database()"))
    assert found(two.models, "asked") is None
    assert found(two.models, "asked") == {"said": 1}
    two.answers.stop()
    assert two.models.seek("asked") is None


def test_an_answer_that_could_not_be_read_is_no_hosts_answer(
    shared_settings: Settings, hosts: tuple[Host, Host]
) -> None:
    one, two = hosts
    one.models.put("asked", {"said": "unreadable"}).result()
    wait_until(lambda: len(copied(shared_settings)) == 1, "the answer")
    assert found(two.models, "asked") == {"said": "unreadable"}
    two.models.forget("asked").result()
    assert found(two.models, "asked") is None
    two.models.put("asked", {"said": "readable"}).result()
    wait_until(lambda: found(two.models, "asked") == {"said": "readable"}, "the new answer")


def test_an_answer_that_takes_the_place_of_a_forgotten_one_is_copied(
    shared_settings: Settings, hosts: tuple[Host, Host]
) -> None:
    one, _ = hosts
    for number in range(3):
        one.models.put(f"unreadable {number}", {"said": number}).result()
    wait_until(lambda: len(copied(shared_settings)) == 3, "the first answers")
    for number in range(3):
        one.models.forget(f"unreadable {number}").result()
    for number in range(2):
        one.models.put(f"readable {number}", {"said": number}).result()
    left = {"readable 0", "readable 1"}
    wait_until(lambda: copied(shared_settings) == left, "the answers in their places")


def test_what_came_last_is_copied_before_a_worker_ends(
    shared_settings: Settings, tmp_path: Path
) -> None:
    board.of(shared_settings).queues()
    host = Host(tmp_path / "one", shared_settings)
    host.answers.start()
    for number in range(1200):
        host.models.put(f"answer {number}", {"said": number})
    host.models.put("last", {"said": "bye"}).result()
    host.answers.stop()
    assert len(copied(shared_settings)) == 1201
