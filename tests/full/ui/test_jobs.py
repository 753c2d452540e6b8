"""The Jobs page: all jobs, what can be done with each, and how fast the list comes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from ports import free_port
from streamlit.testing.v1 import AppTest

from spanlab.detection import DetectorSpec
from spanlab.detection.request import RunRequest
from spanlab.jobs import Jobs
from spanlab.models import ModelChoice
from spanlab.schema import Item, Record
from spanlab.storage import Store
from spanlab.testing import ModelServer, fail, say_fields

OpenPage = Callable[..., AppTest]


def submit(store: Store, dataset: str, count: int = 1) -> list[str]:
    if dataset not in {summary.name for summary in store.datasets()}:
        store.import_records(dataset, [Record(item=Item(id="a", answer="one"))])
    request = RunRequest(dataset=dataset, detectors=(DetectorSpec(detector="offline"),))
    return [Jobs().submit(request, again=True) for _ in range(count)]


def everything(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.error, *app.success, *app.warning, *app.info]
    return "\n".join(part.value for part in parts).replace("\\", "")


def test_without_jobs_it_says_where_they_come_from(open_page: OpenPage) -> None:
    app = open_page("jobs")
    assert not app.exception
    assert "No job has been started yet" in everything(app)


def test_a_job_shows_its_state_and_what_can_be_done(open_page: OpenPage, store: Store) -> None:
    (job,) = submit(store, "mine")
    app = open_page("jobs")
    assert "offline on mine" in everything(app)
    assert [each.value for each in app.caption][1:] == ["Status", "Job", "Created"]
    assert f"{Jobs().find(job).created.astimezone():%Y-%m-%d %H:%M}" in everything(app)
    app.button(key=f"details-{job}").click().run()
    for button, state in (("Pause", "paused"), ("Resume", "queued"), ("Cancel", "cancelled")):
        app.button(key=f"jobs-{button}-{job}").click().run()
        assert not app.exception
        assert Jobs().find(job).state == state


def test_an_action_that_comes_too_late_is_said(open_page: OpenPage, store: Store) -> None:
    (job,) = submit(store, "mine")
    app = open_page("jobs", job=job)
    Jobs().cancel(job)
    app.button(key=f"jobs-Pause-{job}").click().run()
    assert not app.exception
    assert "nothing to pause" in "\n".join(error.value for error in app.error)


@pytest.mark.parametrize(
    "case",
    [
        ("answer", ":red-badge[:material/error: Failed on all 3 items]", "3 (100 %)"),
        ("answer 1", ":orange-badge[:material/warning: Done, 1 failed]", "1 (33 %)"),
    ],
)
def test_what_failed_is_amber_and_all_that_failed_is_red(
    open_page: OpenPage,
    store: Store,
    working: None,
    model_server: ModelServer,
    case: tuple[str, str, str],
) -> None:
    broken, badge, share = case
    items = [Item(id=str(at), answer=f"This is answer {at}.") for at in range(3)]
    store.import_records("mine", [Record(item=item) for item in items])
    model_server.script(
        lambda ask: fail(400, "no") if broken in str(ask.body) else say_fields(parts=[])
    )
    request = RunRequest(
        dataset="mine",
        detectors=(DetectorSpec(detector="ucsc-extract", model=ModelChoice(model="small-model")),),
    )
    Jobs().store.wait(Jobs().submit(request), timeout=60)
    shown = everything(open_page("jobs"))
    assert badge in shown
    assert share in shown
    assert "small-model" in shown


def test_a_wrong_key_ends_the_job_as_failed_with_the_reason(
    open_page: OpenPage, store: Store, working: None, model_server: ModelServer
) -> None:
    store.import_records("mine", [Record(item=Item(id=name, answer=name)) for name in "abc"])
    model_server.script(lambda ask: fail(401, "no"))
    request = RunRequest(dataset="mine", detectors=(DetectorSpec(detector="ucsc-extract"),))
    Jobs().store.wait(Jobs().submit(request), timeout=60)
    shown = everything(open_page("jobs"))
    assert ":red-badge[:material/error: Failed]" in shown
    assert "does not accept the key in OPENAI_API_KEY" in shown


def test_an_endpoint_that_is_not_there_is_told_in_a_sentence(
    open_page: OpenPage, store: Store, working: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.05)  # seconds before each try
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{free_port()}/v1")
    monkeypatch.setenv("SPANLAB_MODEL", "m")
    store.import_records("mine", [Record(item=Item(id="a", answer="a"))])
    request = RunRequest(dataset="mine", detectors=(DetectorSpec(detector="ucsc-extract"),))
    job = Jobs().submit(request)
    Jobs().store.wait(job, timeout=60)
    for query in ({}, {"job": job}):  # the row, and its details
        shown = everything(open_page("jobs", **query))
        assert re.search(r"No connection to 127.0.0.1:\d+: “Connection refused”; check", shown)


def test_details_open_and_close(open_page: OpenPage, store: Store) -> None:
    (job,) = submit(store, "mine")
    Jobs().pause(job)
    app = open_page("jobs")
    app.button(key=f"details-{job}").click().run()
    assert "job" in app.query_params
    assert "paused" in "\n".join(code.value for code in app.code)
    app.button(key=f"details-{job}").click().run()
    assert "job" not in app.query_params
    assert not app.code


def test_many_jobs_come_page_by_page_the_newest_first(open_page: OpenPage, store: Store) -> None:
    submit(store, "mine", 40)
    listed = Jobs().list(limit=100)
    assert len(listed) == 40
    app = open_page("jobs")
    seen = []
    for _ in range(2):
        assert not app.exception
        seen += [box.key for box in app.button if str(box.key).startswith("details-")]
        app.button(key="jobs-next").click().run()
    assert seen == [f"details-{view.id}" for view in listed]
    assert "There are no older jobs" in everything(app)
    assert app.button(key="jobs-next").disabled
