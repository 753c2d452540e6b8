"""Answers on their way from the host that paid for them to the one that takes its work up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from model_server import ModelServer
from sqlalchemy import text
from working_jobs import fill, request, wait_until

from spanlab import jobs
from spanlab.jobs import board, database
from spanlab.jobs.answers import Answers
from spanlab.lm.cache import AnswerCache, cache_in
from spanlab.settings import Settings


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


@pytest.fixture
def job_id(shared_settings: Settings, model: ModelServer) -> str:
    """A job that nobody has begun."""
    fill(shared_settings, 1)
    return jobs.submit_detection(request(model), shared_settings)


def copied(settings: Settings) -> set[str]:
    """Return the keys of the answers that are in the jobs' database."""
    with database.connection(settings) as connection:
        rows = connection.execute(text(f"SELECT key FROM {database.SCHEMA}.answers"))
        return {row.key for row in rows}


def take_up(host: Host, settings: Settings, job_id: str) -> None:
    where = board.of(settings)
    host.answers.take_up(where, job_id, where.part(job_id).attributes or {})


def test_who_takes_work_up_knows_what_was_answered_since_it_was_begun(
    shared_settings: Settings, hosts: tuple[Host, Host], job_id: str
) -> None:
    one, two = hosts
    one.models.put("before", {"said": 0}).result()
    wait_until(lambda: copied(shared_settings) == {"before"}, "the first answer")
    take_up(one, shared_settings, job_id)
    one.models.put("asked", {"said": "half an emoji \ud83d, and \x00"}).result()
    one.retrieval.put("searched", {"said": 2}).result()
    wait_until(lambda: len(copied(shared_settings)) == 3, "the other answers")
    assert two.models.get("asked") is None
    take_up(two, shared_settings, job_id)
    assert two.models.get("asked") == {"said": "half an emoji \ud83d, and \x00"}
    assert two.retrieval.get("searched") == {"said": 2}
    assert two.models.get("before") is None  # nobody at this job has asked it

    two.models.put("more", {"said": 3}).result()
    wait_until(lambda: "more" in copied(shared_settings), "the answer of the second one")
    take_up(two, shared_settings, job_id)  # after a pause: it knows its own
    take_up(one, shared_settings, job_id)
    assert one.models.get("more") == {"said": 3}


def test_an_answer_that_takes_the_place_of_a_forgotten_one_is_copied_too(
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
    wait_until(lambda: len(copied(shared_settings)) == 5, "the answers in their places")


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
