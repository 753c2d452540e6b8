"""Jobs are JSON: whoever can write to their database cannot have code run by who reads a row."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from commands import run_here
from dbos import DBOSClient, DBOSPortableJSONSerializer
from sqlalchemy import text
from streamlit.testing.v1 import AppTest
from working_jobs import SECONDS, environment, fill

from spanlab.base.errors import SpanlabError
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.detection.request import RunRequest
from spanlab.jobs import Jobs, JobState, database, job_store

Start = Callable[..., subprocess.Popen[bytes]]

REFUSED = "this job is stored as a Python pickle"


class Opened:
    """A value whose pickle makes a file when somebody opens it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.file,)


@pytest.fixture
def writer(where: Settings) -> Iterator[DBOSClient]:
    """Who writes pickles, as DBOS does by default and earlier versions of spanlab did."""
    database.prepare(where)
    client = DBOSClient(
        system_database_url=database.url_of(where),
        dbos_system_schema=database.SCHEMA,
        application_name=database.APPLICATION,
    )
    yield client
    client.destroy()


def enqueue(writer: DBOSClient, job_id: str, asked: object) -> None:
    writer.enqueue(
        {
            "workflow_name": "spanlab.detect",
            "queue_name": job_store.JOBS,
            "workflow_id": job_id,
            "app_version": database.VERSION,
            "attributes": {"title": f"job {job_id}"},
        },
        asked,
    )


def execute(where: Settings, statement: str, **values: object) -> None:
    """Write to a table of DBOS's; ``@`` stands for the tables' schema."""
    schema = "" if database.is_sqlite(where) else f"{database.SCHEMA}."
    with database.connection(where) as connection:
        connection.execute(text(statement.replace("@", schema)), values)


def test_a_pickle_is_refused_by_name_and_never_opened(
    where: Settings,
    writer: DBOSClient,
    worker: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "opened"
    bomb = writer._serializer.serialize(Opened(file))
    fill(where, 2)
    request = RunRequest(dataset="d", detectors=(DetectorSpec(detector="offline"),))
    for job_id in ("queued", "begun", "over", "broken"):
        enqueue(writer, job_id, Opened(file))
    status = "UPDATE @workflow_status SET status = :status, executor_id = 'w' WHERE workflow_uuid "
    execute(where, f"{status} = 'begun'", status="PENDING")
    execute(where, f"{status} = 'over'", status="SUCCESS")
    execute(where, f"{status} = 'broken'", status="ERROR")
    execute(where, "UPDATE @workflow_status SET output = :it, error = :it", it=bomb)
    good = Jobs(where).submit(request)
    replayed = Jobs(where).submit(request, again=True)
    execute(
        where,
        "INSERT INTO @operation_outputs (workflow_uuid, function_id, function_name, output, "
        "serialization, retention_timestamp) VALUES (:id, 1, 'spanlab.detect.plan', :it, "
        "'py_pickle', 0)",
        id=replayed,
        it=bomb,
    )

    def shown(*words: str) -> str:
        done = run_here(["jobs", *words], tmp_path, environment(where))
        assert done.returncode == 0, done.stderr
        return done.stdout

    for each in ("queued", "begun", "over", "broken"):
        assert REFUSED in shown("show", each)
    assert shown("list").count(REFUSED) == 4
    for name, value in environment(where).items():
        monkeypatch.setenv(name, value)
    page = AppTest.from_string(
        "from spanlab.jobs import page\npage.page()", default_timeout=30
    ).run()
    assert not page.exception
    assert sum(REFUSED[1:] in caption.value for caption in page.caption) == 4  # as a sentence
    st.cache_resource.clear()
    with pytest.raises(SpanlabError, match=REFUSED):
        Jobs(where).retry("broken")
    writer.create_schedule(
        schedule_name="s",
        workflow_name="spanlab.detect",
        schedule="* * * * * *",
        context=Opened(file),
    )
    job_store.shared_job_store(where).client.list_schedules()
    writer.delete_schedule("s")
    assert not file.exists()

    worker(where)
    assert Jobs(where).store.wait(good, timeout=SECONDS).state is JobState.DONE
    for each in ("queued", "begun", replayed):
        view = Jobs(where).store.wait(each, timeout=SECONDS)
        assert (view.state, REFUSED in str(view.error)) == (JobState.FAILED, True)
    assert not file.exists()


def test_what_is_written_is_json(where: Settings, worker: Start) -> None:
    fill(where, 2)
    request = RunRequest(dataset="d", detectors=(DetectorSpec(detector="offline"),))
    worker(where)
    Jobs(where).store.wait(Jobs(where).submit(request), timeout=SECONDS)
    schema = "" if database.is_sqlite(where) else f"{database.SCHEMA}."
    with database.connection(where) as connection:
        kinds = connection.execute(
            text(
                f"SELECT serialization FROM {schema}workflow_status UNION "
                f"SELECT serialization FROM {schema}operation_outputs "
                "WHERE output IS NOT NULL"
            )
        )
        assert set(kinds.scalars()) == {DBOSPortableJSONSerializer().name()}
