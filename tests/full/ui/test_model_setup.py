"""A model set up in the browser: its key is used, and found nowhere afterwards."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from spanlab.base.errors import MissingKeyError
from spanlab.base.redaction import redact
from spanlab.detection.models import LOCAL_SERVERS
from spanlab.formats import read
from spanlab.jobs import Jobs, JobState, job_store
from spanlab.models import ModelChoice, key_of
from spanlab.schema import Item, Record
from spanlab.storage import Store
from spanlab.testing import ModelServer, caller_with, fail, say

OpenPage = Callable[..., AppTest]
KEY = "sk-typed-in-the-browser-0123456789"
OTHER = "sk-of-the-environment-0123456789"
NOTHING = "[[ ## parts ## ]]\n[]\n\n[[ ## completed ## ]]"
GONE = "given in the browser is gone"


@pytest.fixture
def mine(store: Store, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Five items; the environment names another endpoint, and its key."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    monkeypatch.setenv("SPANLAB_MODEL", "small-model")
    model_server.script(lambda ask: say(NOTHING))
    names = "abcde"
    store.import_records(
        "mine", [Record(item=Item(id=name, question="?", answer=f"{name} is.")) for name in names]
    )
    return store


def set_up(app: AppTest, endpoint: str, key: str = "") -> AppTest:
    app.checkbox(key="spanlab.detect.ucsc-extract").check().run()
    app.text_input(key="spanlab.model.endpoint").input(endpoint).run()
    if key:
        app.text_input(key="spanlab.model.key-typed").input(key)
        app.button(key="use-key").click().run()
    assert not app.exception
    return app


def everything(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.error, *app.success, *app.warning, *app.info]
    inputs = [f"{box.value} {box.placeholder}" for box in app.text_input]
    return "\n".join([*(part.value for part in parts), *inputs])


def test_a_key_of_the_session_is_used_and_stored_nowhere(
    open_page: OpenPage,
    mine: Store,
    model_server: ModelServer,
    working: None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        app = set_up(open_page("detect"), model_server.url, KEY)
        assert "given for this session" in everything(app)
        app.button(key="test-model").click().run()
        app.button(key="try-run").click().run()
        assert not app.exception
        (view,) = Jobs().list()
        done = Jobs().store.wait(view.id, timeout=120)
        app.run()
    assert (done.state, done.progress.done) == (JobState.DONE, 3)
    assert {ask.caller for ask in model_server.requests} == {caller_with(KEY)}
    assert KEY not in everything(app)
    assert KEY not in caplog.text
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix in {".sqlite", ".db", ".sqlite3"} for path in files), files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert redact(f"it was {KEY}") == "it was [key]"


def test_when_the_key_is_gone_a_job_says_what_to_do(
    open_page: OpenPage, mine: Store, model_server: ModelServer, working: None
) -> None:
    app = set_up(open_page("detect"), model_server.url, KEY)
    app.button(key="start-run").click().run()
    (view,) = Jobs().list()
    Jobs().store.wait(view.id, timeout=120)
    model_server.script(lambda ask: say("no"))
    app.run()
    (forget,) = (button for button in app.button if button.label == "Forget the API key")
    forget.click().run()
    with pytest.raises(Exception, match=GONE):
        Jobs().retry(view.id)
    app.checkbox(key="spanlab.detect.ucsc-extract").check().run()
    assert "API key: none" in everything(app)


def test_a_key_of_the_environment_is_never_sent_to_an_endpoint_that_was_typed(
    open_page: OpenPage, mine: Store, model_server: ModelServer, working: None
) -> None:
    app = set_up(open_page("detect"), model_server.url)
    app.button(key="start-run").click().run()
    (view,) = Jobs().list()
    assert Jobs().store.wait(view.id, timeout=120).progress.done == 5
    assert caller_with(OTHER) not in {ask.caller for ask in model_server.requests}
    app.text_input(key="spanlab.model.endpoint").input("not an address").run()
    assert "not an address" in app.error[0].value
    assert "start-run" not in [button.key for button in app.button]


def test_the_models_of_an_endpoint_are_listed_when_asked_for(
    open_page: OpenPage, mine: Store, model_server: ModelServer
) -> None:
    model_server.windows = {"tiny": 512, "huge": 9000}
    app = set_up(open_page("detect"), model_server.url, KEY)
    assert not model_server.requests, "nothing is asked before somebody clicks"
    app.button(key="list-models").click().run()
    assert not app.exception
    box = app.selectbox(key="spanlab.detect.model")
    assert box.options == ["small-model", "huge", "tiny"], "the environment's stays chosen"
    assert "It answered: 2 models" in everything(app)
    assert {ask.caller for ask in model_server.requests} == {caller_with(KEY)}
    box.set_value("tiny").run()
    assert "no price is known for tiny" in everything(app)
    app.text_input(key="spanlab.model.endpoint").input("http://127.0.0.1:9/v1").run()
    app.button(key="list-models").click().run()
    assert "lists no models" in app.error[0].value


def test_servers_of_this_machine_are_found_on_a_click(
    open_page: OpenPage, mine: Store, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in LOCAL_SERVERS:
        monkeypatch.setitem(LOCAL_SERVERS, name, "http://127.0.0.1:9/v1")
    app = set_up(open_page("detect"), "")
    app.button(key="find-servers").click().run()
    assert "No server answers on the usual ports of Ollama" in everything(app)
    monkeypatch.setitem(LOCAL_SERVERS, "vLLM", model_server.url)
    model_server.windows = {"tiny": 512}
    app.button(key="find-servers").click().run()
    (use,) = (button for button in app.button if button.label == "Use vLLM: 1 model")
    use.click().run()
    assert app.text_input(key="spanlab.model.endpoint").value == model_server.url
    assert app.selectbox(key="spanlab.detect.model").options == ["small-model", "tiny"]
    assert OTHER not in str([ask.headers for ask in model_server.requests])


def test_the_page_says_which_variable_names_the_endpoint(open_page: OpenPage, mine: Store) -> None:
    app = set_up(open_page("detect"), "")
    assert "`http://127.0.0.1:9/v1` from OPENAI_BASE_URL · " in everything(app)
    app.text_input(key="spanlab.model.endpoint").input("http://127.0.0.1:8/v1").run()
    assert "`http://127.0.0.1:8/v1` · " in everything(app)


def test_without_a_model_name_the_page_asks_for_one(
    open_page: OpenPage, mine: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPANLAB_MODEL")
    app = open_page("detect").checkbox(key="spanlab.detect.ucsc-extract").check().run()
    assert [error.value for error in app.error] == ["Enter a model name."]


def test_a_search_has_the_models_of_the_session_that_detectors_have(
    open_page: OpenPage,
    mine: Store,
    model_server: ModelServer,
    samples: Path,
    monkeypatch: pytest.MonkeyPatch,
    working: None,
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name)
    mine.import_records("labelled", read(samples))
    app = open_page("optimise", dataset="labelled")
    assert "Give an endpoint or an API key for this session below" in everything(app)
    app.text_input(key="spanlab.model.endpoint").input(model_server.url).run()
    app.text_input(key="spanlab.model.key-typed").input(KEY)
    app.button(key="use-key").click().run()
    app.text_input(key="spanlab.optimise.prompt-model").input("large-model").run()
    assert "given for this session" in everything(app)
    model_server.script(lambda ask: fail(402, "no funds", code="insufficient_quota"))
    app.button(key="start-search").click().run()
    assert not app.exception
    (view,) = Jobs().list()
    assert Jobs().store.wait(view.id, timeout=120).state is JobState.FAILED
    asked = job_store.shared_job_store().row(view.id).input
    assert asked is not None
    search = asked["args"][0]["search"]
    assert KEY not in str(asked)
    for model in (search["detector"]["model"], search["prompt_model"]):
        assert model["base_url"] == model_server.url
        assert model["api_key_env"].startswith("key-of-a-browser-session-")
    assert {ask.caller for ask in model_server.requests} == {caller_with(KEY)}
    app.selectbox(key="spanlab.optimise.detector").select("ucsc-4-gpt4o-extract-any").run()
    app.button(key="start-search").click().run()
    second = Jobs().list()[0].id
    member = job_store.shared_job_store().row(second).input
    assert member is not None
    model = member["args"][0]["search"]["detector"]["model"]
    assert (model["model"], model["base_url"]) == ("gpt-4o", model_server.url)
    # A worker that stops while it takes a job up leaves DBOS a coroutine that nobody awaits.
    assert Jobs().store.wait(second, timeout=120).state is JobState.FAILED


def test_a_process_without_the_key_says_where_to_give_it_again() -> None:
    """As after a restart of the app, or by a worker that was given the job of a dead one."""
    name = "key-of-a-browser-session-0123456789abcdef"
    with pytest.raises(MissingKeyError, match=f"{GONE}.*give it again on the page where"):
        key_of(ModelChoice(model="m", base_url="http://127.0.0.1:9/v1", api_key_env=name))
