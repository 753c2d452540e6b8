"""The Detect page: what it asks, what it says a run will come to, and the job it starts."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tiny_encoders
from other_package import install
from streamlit.testing.v1 import AppTest

from spanlab.base.settings import Settings
from spanlab.detection import installed
from spanlab.detection.entry import GROUPS
from spanlab.detection.page import shorten
from spanlab.detection.request import RunRequest
from spanlab.jobs import Jobs, job_store
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Status
from spanlab.storage import Store
from spanlab.testing import ModelServer, fail, say

OpenPage = Callable[..., AppTest]
EXTRACT = "spanlab.detect.ucsc-extract"
OFFLINE = "spanlab.detect.offline"


@pytest.fixture
def reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names an endpoint; nothing is asked there."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-this-test")
    monkeypatch.setenv("SPANLAB_MODEL", "small-model")
    monkeypatch.delenv("SPANLAB_PRICE", raising=False)


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "SPANLAB_MODEL", "SPANLAB_PRICE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package that brings a detector called shouting, installed for one test."""
    site = str(install(tmp_path / "package"))
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", site)
    installed.cache_clear()
    yield
    installed.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "shouting"]:
        del sys.modules[name]


def records(*names: str) -> list[Record]:
    return [
        Record(item=Item(id=name, lang="en", question="Where?", answer=f"{name} is in Rome."))
        for name in names
    ]


def everything(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.error, *app.success, *app.warning, *app.info]
    return "\n".join(part.value for part in parts).replace("\\", "")


def figures(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def start(app: AppTest) -> AppTest:
    return app.button(key="start-run").click().run()


def test_without_a_dataset_the_page_leads_to_one(open_page: OpenPage) -> None:
    assert "nothing to run detectors on" in everything(open_page("detect"))


def test_each_detector_says_what_it_does_and_needs(
    open_page: OpenPage, store: Store, unreachable: None
) -> None:
    store.import_records("mine", records("a"))
    app = open_page("detect")
    assert not app.exception
    labels = [box.label for box in app.checkbox]
    assert labels[0] == "Compares words `offline`"
    assert "Quotes what is wrong `ucsc-extract`" in labels
    assert not {"encoder", "veritrail-rag"} & {
        label.split("`")[1] for label in labels if "`" in label
    }
    shown = everything(app)
    assert "Needs a model, one call an item" in shown
    assert r"Cost per answer: up to 1 model call, 2,000 tokens" in shown
    assert app.button(key="start-run").disabled
    assert not app.header  # a heading comes with what is under it
    app.toggle(key="spanlab.detect.rare").set_value(True).run()
    groups = [each.value for each in app.markdown if each.value.startswith("**Needs ")]
    assert groups == [f"**Needs {group}**" for group in GROUPS]
    labels = [box.label for box in app.checkbox]
    assert {"encoder", "veritrail-rag"} <= {label.split("`")[1] for label in labels if "`" in label}


def test_a_preset_chooses_its_detector_and_another_choice_is_none_of_them(
    open_page: OpenPage, store: Store, reachable: None
) -> None:
    store.import_records("mine", records("a"))
    app = open_page("detect")
    presets = app.radio(key="spanlab.detect.preset")
    assert presets.value is None
    presets.set_value("Quick and offline").run()
    assert [box.label for box in app.checkbox if box.value] == ["Compares words `offline`"]
    assert not app.button(key="start-run").disabled
    app.radio(key="spanlab.detect.preset").set_value("Thorough: an ensemble").run()
    assert figures(app)["Calls at most"] == "5"
    assert app.checkbox(key="spanlab.detect.one-model.ucsc").value
    app.checkbox(key=OFFLINE).check().run()
    assert app.radio(key="spanlab.detect.preset").value is None


@pytest.mark.parametrize(
    ("number", "shown"),
    [(9_999, "9,999"), (12_301, "12.4 k"), (123_001, "124 k"), (1_200_001, "1.3 M")],
)
def test_an_upper_bound_is_rounded_up(number: int, shown: str) -> None:
    assert shorten(number) == shown


def test_without_a_model_it_says_what_to_set(
    open_page: OpenPage, store: Store, unreachable: None
) -> None:
    store.import_records("mine", records("a"))
    app = open_page("detect").checkbox(key=EXTRACT).check().run()
    assert {"Unsupported", "Quote similarity"} <= {
        each.label for each in (*app.selectbox, *app.number_input)
    }
    shown = everything(app)
    assert "an endpoint or an API key for this session below" in shown
    assert "set OPENAI_BASE_URL or OPENAI_API_KEY" in shown
    assert app.button(key="start-run").disabled


def test_the_endpoint_is_shown_and_of_the_key_only_that_it_is_set(
    open_page: OpenPage, store: Store, reachable: None
) -> None:
    store.import_records("mine", records("a"))
    app = open_page("detect").checkbox(key=EXTRACT).check().run()
    shown = everything(app)
    assert "http://127.0.0.1:9/v1" in shown
    assert "OPENAI_API_KEY is set" in shown
    assert "secret" not in shown
    assert app.text_input(key="spanlab.detect.model").value == "small-model"


def test_calls_tokens_and_cost_are_estimated_before_the_start(
    open_page: OpenPage, store: Store, reachable: None
) -> None:
    store.import_records("mine", records("a", "b"))
    app = open_page("detect").checkbox(key=EXTRACT).check().run()
    assert (figures(app)["Items to do"], figures(app)["Calls at most"]) == ("2", "2")
    assert figures(app)["Cost at most"] == "—"
    assert "no price is known for small-model" in everything(app)
    app.text_input(key="spanlab.detect.price").input("100,50,100").run()
    assert figures(app)["Cost at most"].startswith("\\$0.")
    app.number_input(key="spanlab.detect.limit").set_value(1).run()
    assert figures(app)["Items to do"] == "1"
    assert "has no search" not in everything(app)


@pytest.mark.system("papelo")
def test_a_detector_that_searches_says_that_it_has_no_search(
    open_page: OpenPage, store: Store, reachable: None
) -> None:
    store.import_records("mine", records("a"))
    app = open_page("detect")
    app.checkbox(key=EXTRACT.replace("ucsc-extract", "papelo")).check().run()
    assert "papelo has no search: it judges by the passages that items have" in everything(app)


def test_what_is_wrong_in_the_form_is_said_and_starts_nothing(
    open_page: OpenPage, store: Store, reachable: None
) -> None:
    store.import_records("mine", records("a"))
    app = open_page("detect").checkbox(key=EXTRACT).check().run()
    app.text_input(key="spanlab.detect.price").input("cheap").run()
    assert "three amounts of US dollars" in everything(app)
    assert app.button(key="start-run").disabled
    app.text_input(key="spanlab.detect.price").input("").run()
    app.selectbox(key="spanlab.detect.search").set_value("bm25").run()
    assert "name the index" in everything(app).lower()
    assert app.button(key="start-run").disabled


def test_only_failed_items_are_taken_up_on_request(
    open_page: OpenPage, store: Store, reachable: None
) -> None:
    """A failed judgement is a state, and can be repeated alone."""
    failed = Annotation(
        annotator="ucsc-extract",
        kind=AnnotatorKind.DETECTOR,
        status=Status.FAILED,
        note="no answer",
    )
    first, second = records("a", "b")
    store.import_records("mine", [first, Record(item=second.item, annotations=(failed,))])
    app = open_page("detect").checkbox(key=EXTRACT).check().run()
    assert figures(app)["Items to do"] == "2"
    app.checkbox(key="spanlab.detect.only-failed").check().run()
    assert figures(app)["Items to do"] == "1"


def test_a_limit_on_calls_a_minute_goes_with_the_job(
    open_page: OpenPage, store: Store, reachable: None
) -> None:
    store.import_records("mine", records("a"))
    app = open_page("detect").checkbox(key=EXTRACT).check().run()
    app.number_input(key="spanlab.detect.rate").set_value(90.0).run()
    start(app)
    (view,) = Jobs().list()
    asked = job_store.shared_job_store().row(view.id).input
    assert asked is not None
    assert asked["args"][0]["rate"] == 90
    assert asked["args"][0]["concurrency"] == 32, "as many as the command has under way"


def test_a_started_job_is_found_again_and_can_be_paused_resumed_and_stopped(
    open_page: OpenPage, store: Store
) -> None:
    store.import_records("mine", records("a"))
    start(open_page("detect").checkbox(key=OFFLINE).check().run())
    (view,) = Jobs().list()
    app = open_page("detect")  # somebody comes back
    assert "offline on mine" in everything(app)
    for button, state in (
        ("Pause", "paused"),
        ("Resume", "queued"),
        ("Cancel", "cancelled"),
    ):
        app.button(key=f"detect-{button}-{view.id}").click().run()
        assert not app.exception
        assert Jobs().find(view.id).state == state


def test_a_local_encoder_is_chosen_by_its_folder(
    open_page: OpenPage,
    store: Store,
    tmp_path: Path,
    working: None,
    unreachable: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It needs no language model; where others reach the app, its files cannot be named."""
    folder = tiny_encoders.write(tmp_path / "tiny")
    item = Item(id="a", lang="en", answer="the tower of 1984")
    store.import_records("mine", [Record(item=item)])
    app = open_page("detect").toggle(key="spanlab.detect.rare").set_value(True).run()
    app.checkbox(key="spanlab.detect.encoder").check().run()
    assert not app.header  # of a model, or of passages to find
    assert app.button(key="start-run").disabled
    assert "'encoder' needs the option 'model'" in everything(app)
    app.text_input(key="spanlab.detect.encoder.model").input(str(folder)).run()
    assert not app.exception
    start(app)
    (view,) = Jobs().list()
    Jobs().store.wait(view.id, timeout=120)
    record = store.record("mine", "a")
    assert [span.text for span in record.annotations[0].spans] == ["1984"]

    monkeypatch.setenv("SPANLAB_ALLOWED_HOSTS", "review.example.org")
    app.run()
    assert "Other machines reach this app" in everything(app)


def test_a_second_start_shows_the_job_under_way_and_asks(open_page: OpenPage, store: Store) -> None:
    store.import_records("mine", records("a"))
    app = start(open_page("detect").checkbox(key=OFFLINE).check().run())
    (view,) = Jobs().list()
    for button in ("start-run", "try-run"):
        app.button(key=button).click().run()
        assert not app.exception
        assert [each.id for each in Jobs().list()] == [view.id]
        assert "offline on mine is under way with the same settings" in everything(app)
        assert f"job {view.id}" in everything(app)
    app.number_input(key="spanlab.detect.limit").set_value(1).run()
    assert "under way with the same settings" not in everything(app)
    start(app)
    app.button(key="start-again").click().run()
    assert not app.exception
    assert len(Jobs().list()) == 2
    assert "under way with the same settings" not in everything(app)


def test_what_is_done_is_done_anew_where_other_options_are_asked_for(
    open_page: OpenPage, store: Store, model_server: ModelServer, working: None
) -> None:
    model_server.script(lambda ask: say("[[ ## parts ## ]]\n[]\n\n[[ ## completed ## ]]"))
    store.import_records("mine", records("a", "b"))
    app = start(open_page("detect").checkbox(key=EXTRACT).check().run())
    (view,) = Jobs().list()
    Jobs().store.wait(view.id, timeout=120)
    app.run()
    assert "Nothing is left to do" in everything(app)
    assert "other settings" not in everything(app)
    app.text_input(key="spanlab.detect.model").input("larger").run()
    assert f"now model.model larger (it was scripted-model) (job {view.id}" in everything(app)
    assert app.button(key="start-run").disabled
    app.checkbox(key="anew-mine-1").check().run()
    assert figures(app)["Items to do"] == "2"
    start(app)
    again = Jobs().store.wait(Jobs().list()[0].id, timeout=120)
    assert (again.progress.done, again.models) == (2, ("larger",))
    app.run()
    assert "other settings" not in everything(app)
    assert app.button(key="start-run").disabled, "another time has to be asked for"


def test_a_link_from_review_runs_its_item_alone_also_where_it_is_finished(
    open_page: OpenPage, store: Store
) -> None:
    said = Annotation(annotator="offline", kind=AnnotatorKind.DETECTOR)
    finished = [Record(item=each.item, annotations=(said,)) for each in records("a", "b")]
    store.import_records("mine", finished)
    app = start(open_page("detect", dataset="mine", item="b").checkbox(key=OFFLINE).check().run())
    assert not app.exception
    (job,) = Jobs().list()
    asked = job_store.shared_job_store().row(job.id).input
    assert asked is not None
    request = RunRequest.model_validate(asked["args"][0])
    assert request.items == ("b",)


def test_another_dataset_has_its_own_latest_job(open_page: OpenPage, store: Store) -> None:
    for name in ("mine", "yours"):
        store.import_records(name, records("a"))
    start(open_page("detect", dataset="mine").checkbox(key=OFFLINE).check().run())
    assert "offline on mine" in everything(open_page("detect", dataset="mine"))
    assert "offline on mine" not in everything(open_page("detect", dataset="yours"))


def test_a_failure_is_shown_with_its_reason_and_tried_again(
    open_page: OpenPage, store: Store, model_server: ModelServer, working: None
) -> None:
    """A failed judgement is a state with a reason."""
    model_server.script(lambda ask: fail(402, "no funds", code="insufficient_quota"))
    store.import_records("mine", records("a"))
    app = start(open_page("detect").checkbox(key=EXTRACT).check().run())
    assert not app.exception
    (view,) = Jobs().list()
    Jobs().store.wait(view.id, timeout=120)
    app.run()
    shown = everything(app)
    assert "credits exhausted" in shown
    assert "red-badge[:material/error: Failed on all 1 item]" in shown
    model_server.script(lambda ask: say("[[ ## parts ## ]]\n[]\n\n[[ ## completed ## ]]"))
    app.button(key=f"detect-Retry-{view.id}").click().run()
    again = next(each for each in Jobs().list() if each.id != view.id)
    assert Jobs().store.wait(again.id, timeout=120).progress.failed == 0
    app.run()
    assert "credits exhausted" not in everything(app)


def test_a_detector_of_an_installed_package_is_offered_with_its_options_and_runs(
    other_package: None, open_page: OpenPage, store: Store, working: None, unreachable: None
) -> None:
    item = Item(id="a", answer="The NASA and the EU said NO.")
    store.import_records("mine", [Record(item=item)])
    app = open_page("detect").toggle(key="spanlab.detect.rare").set_value(True).run()
    assert "marks words in capital letters. needs nothing." in everything(app).lower()
    assert "no module named" in everything(app).lower()
    app.checkbox(key="spanlab.detect.shouting").check().run()
    assert app.selectbox(key="spanlab.detect.shouting.mark").options == ["word", "answer"]
    letters = app.number_input(key="spanlab.detect.shouting.letters")
    assert (letters.value, letters.min, letters.step) == (3, 1, 1)
    letters.set_value(2).run()
    start(app)
    assert not app.exception
    (job,) = Jobs().list()
    assert Jobs().store.wait(job.id).progress.done == 1
    said = store.record("mine", "a").by("shouting")
    assert said is not None
    assert [span.text for span in said.spans] == ["NASA", "EU", "NO"]


def test_tool_servers_are_tested_with_a_click(open_page: OpenPage, store: Store) -> None:
    server = Path(__file__).parents[2] / "tools" / "strange_server.py"
    listed = {"strange": {"command": [sys.executable, str(server)], "tools": ["look_up"]}}
    home = Settings.read().home
    home.mkdir(exist_ok=True)
    (home / "tools.json").write_text(json.dumps({"servers": listed}), "utf-8")
    store.import_records("mine", records("a"))
    app = open_page("detect").checkbox(key="spanlab.detect.mermaid").check().run()
    (servers,) = (each for each in app.multiselect if each.label == "Tool servers")
    servers.select("strange").run()
    next(each for each in app.button if each.label == "Test the tool servers").click().run()
    assert not app.exception
    assert "strange: answers" in everything(app)
    assert "strange.look_up: Look a tower up." in everything(app)


def test_a_model_is_tested_with_a_click_and_what_was_found_stays(
    open_page: OpenPage, store: Store, model_server: ModelServer
) -> None:
    model_server.mode = "no-system-role"
    model_server.script(lambda ask: say("Paris"))
    store.import_records("mine", records("a"))
    app = open_page("detect").checkbox(key=EXTRACT).check().run()
    assert "system role" not in everything(app)
    app.button(key="test-model").click().run()
    assert not app.exception
    again = open_page("detect").checkbox(key=EXTRACT).check().run()
    for page in (app, again):
        shown = everything(page)
        assert ":material/check_circle: chat" in shown
        assert ":material/cancel: system role: " in shown
        assert "tokens a second; this check:" in shown
    model_server.mode = "over-quota"
    app.button(key="test-model").click().run()
    assert ":material/cancel: chat: " in everything(app)
    assert "credits exhausted" in everything(app)


@pytest.mark.parametrize(("of", "since", "n_jobs"), [("d", 1, 1), ("d", 11, 0), ("other", 1, 0)])
def test_a_press_that_another_run_took_counts_in_the_next_for_this_dataset_and_ten_seconds(
    store: Store, open_page: OpenPage, of: str, since: float, n_jobs: int
) -> None:
    store.import_records("d", records("a"))
    app = open_page("detect", dataset="d")
    app.radio(key="spanlab.detect.preset").set_value("Quick and offline").run()
    app.session_state["spanlab.pressed.start-run"] = (of, time.monotonic() - since)
    app.run()
    assert len(Jobs().list(5)) == n_jobs
