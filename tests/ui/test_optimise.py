"""The Optimise page: what it asks, what it estimates, what it says when something is missing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import run_here
from streamlit.testing.v1 import AppTest
from tuned_programs import tuned_program

from spanlab.detection import entries
from spanlab.formats import read
from spanlab.jobs import Jobs, job_store
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import Annotation, AnnotatorKind, Claim
from spanlab.storage import Store
from spanlab.testing import ModelServer

pytestmark = pytest.mark.system("ucsc")

OpenPage = Callable[..., AppTest]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProgramRegistry:
    """The registry that the page shows."""
    monkeypatch.setenv("SPANLAB_PROGRAMS", str(tmp_path / "programs"))
    return ProgramRegistry(tmp_path / "programs")


def everything(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.error, *app.success, *app.warning, *app.info]
    return "\n".join(part.value for part in parts).replace("\\", "")


def test_without_data_and_programs_it_says_where_they_come_from(
    open_page: OpenPage, programs: ProgramRegistry
) -> None:
    app = open_page("optimise")
    assert not app.exception
    assert "There is nothing to learn from yet" in everything(app)
    assert "No tuned prompts yet" in everything(app)


def test_without_a_model_it_says_what_to_set(
    open_page: OpenPage,
    programs: ProgramRegistry,
    store: Store,
    samples: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SPANLAB_MODEL"):
        monkeypatch.delenv(name, raising=False)
    store.import_records("mine", read(samples))
    app = open_page("optimise", dataset="mine")
    assert not app.exception
    assert "an endpoint or an API key for this session below" in everything(app)
    assert "Choose a model above to see the cost" in everything(app)
    assert app.button(key="start-search").disabled


def test_a_search_is_estimated_and_started(
    open_page: OpenPage,
    programs: ProgramRegistry,
    store: Store,
    samples: Path,
    model_server: ModelServer,
) -> None:
    store.import_records("mine", read(samples))
    app = open_page("optimise", dataset="mine")
    assert not app.exception
    assert {metric.label: metric.value for metric in app.metric}["Labelled items"] == "67"
    app.multiselect(key="spanlab.optimise.languages").set_value(["en", "de"]).run()
    figures = {metric.label: metric.value for metric in app.metric}
    assert figures["Labelled items"] == "15"
    assert figures["Cost at most"] == "unknown"
    app.text_input(key="spanlab.optimise.price").set_value("1,0.5,2").run()
    assert {m.label: m.value for m in app.metric}["Cost at most"].startswith("\\$")
    app.number_input(key="spanlab.optimise.rate").set_value(90.0).run()
    app.number_input(key="spanlab.optimise.max-searches").set_value(7).run()
    folds = app.selectbox(key="spanlab.optimise.folds")
    assert folds.options[:3] == ["none", "2 folds", "3 folds"], "one fold holds nothing out"
    folds.select(3).run()
    app.button(key="start-search").click().run()
    assert not app.exception
    (job,) = Jobs().list()
    asked = job_store.shared_job_store().row(job.id).input
    assert asked is not None
    request = asked["args"][0]
    assert (request["rate"], request["budget"]["searches"]) == (90, 7)
    assert (request["search"]["folds"], request["search"]["threads"]) == (3, 8)
    assert (job.kind, job.title) == ("optimise", "ucsc-extract for iou on mine")
    assert "ucsc-extract for iou on mine" in everything(app)
    assert model_server.requests == []


def test_a_second_start_shows_the_search_under_way_and_asks(
    open_page: OpenPage,
    programs: ProgramRegistry,
    store: Store,
    samples: Path,
    model_server: ModelServer,
) -> None:
    store.import_records("mine", read(samples))
    app = open_page("optimise", dataset="mine")
    for _ in range(2):
        app.button(key="start-search").click().run()
        assert not app.exception
    assert len(Jobs().list()) == 1
    assert "ucsc-extract for iou on mine is under way with the same settings" in everything(app)
    app.button(key="start-again").click().run()
    assert not app.exception
    assert len(Jobs().list()) == 2
    app.selectbox(key="spanlab.optimise.auto").set_value("medium").run()
    app.button(key="start-search").click().run()
    assert len(Jobs().list()) == 3, "another search"
    words = ["optimize", "mine", "--detector", "ucsc-extract", "--queue"]
    refused = run_here(words, Path.cwd(), os.environ)
    assert refused.returncode == 2, refused.stderr
    assert "is already doing this" in refused.stderr
    assert "--again starts it once more" in refused.stderr


def test_what_a_search_costs_at_most_is_the_same_on_the_page_and_on_the_command_line(
    open_page: OpenPage,
    programs: ProgramRegistry,
    store: Store,
    samples: Path,
    tmp_path: Path,
    model_server: ModelServer,
) -> None:
    store.import_records("mine", read(samples))
    app = open_page("optimise", dataset="mine")
    app.selectbox(key="spanlab.optimise.detector").select("ucsc-kg").run()
    app.text_input(key="spanlab.optimise.price").set_value("1,0.5,2").run()
    shown = {metric.label: metric.value.replace("\\", "") for metric in app.metric}
    options = ("--detector", "ucsc-kg", "--price", "1,0.5,2", "--dry-run")
    said = run_here(["optimize", "mine", *options], tmp_path, os.environ).stdout
    assert f"at most {shown['Evaluations']} evaluations, {shown['Calls at most']} calls" in said
    assert f", {shown['Cost at most']}\n" in said
    # every item takes the graph, its facts, and up to 5 calls for each fact
    assert int(shown["Calls at most"].replace(",", "")) > 7 * 843


def test_only_what_can_be_tuned_is_offered(
    open_page: OpenPage,
    programs: ProgramRegistry,
    store: Store,
    samples: Path,
    model_server: ModelServer,
) -> None:
    store.import_records("mine", read(samples))
    offered = open_page("optimise", dataset="mine").selectbox(key="spanlab.optimise.detector")
    of = {entry.name: entry for entry in entries() if entry.prompts}
    listed = [name for name in offered.options if name in of]
    assert {*listed} == {*of}
    assert listed[:3] == ["ucsc-extract", "ucsc-kg", "ucsc-revise"]
    members = offered.options[len(listed) :]
    assert {name.partition("-")[0] for name in members} == {"ucsc"}
    app = offered.select("ucsc-4-gpt4o-extract-any").run()
    assert not app.exception
    app.button(key="start-search").click().run()
    (job,) = Jobs().list()
    assert job.title == "ucsc-4-gpt4o-extract-any for max-iou on mine"
    asked = job_store.shared_job_store().row(job.id).input
    assert asked is not None
    search = asked["args"][0]["search"]
    assert search["detector"]["model"]["model"] == "gpt-4o"


@pytest.mark.system("safe", "veritrail")
def test_a_detector_is_made_better_for_what_it_is_tuned_on(
    open_page: OpenPage,
    programs: ProgramRegistry,
    store: Store,
    samples: Path,
    model_server: ModelServer,
) -> None:
    claims = (Claim(text="It is so.", verdict="supported"), Claim(text="Not.", verdict="refuted"))
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, claims=claims)
    records = [record.model_copy(update={"annotations": (gold,)}) for record in read(samples)]
    store.import_records("mine", records)
    app = open_page("optimise", dataset="mine")
    spans = app.selectbox(key="spanlab.optimise.metric").options
    assert (len(spans), "macro F1 of verdicts on claims" in spans) == (11, False)
    app.selectbox(key="spanlab.optimise.detector").select("veritrail").run()
    assert not app.exception
    metric = app.selectbox(key="spanlab.optimise.verdict-f1.metric")
    assert metric.options == ["macro F1 of verdicts on claims"]
    figures = {figure.label: figure.value for figure in app.metric}
    assert figures["Labelled claims"] == str(2 * len(records))
    app.button(key="start-search").click().run()
    (job,) = Jobs().list()
    assert job.title == "veritrail for verdict-f1 on mine"
    app.selectbox(key="spanlab.optimise.detector").select("safe").run()
    types, *_, answers = app.selectbox(key="spanlab.optimise.type-f1.metric").options
    assert (types, answers) == (
        "macro F1 of types of errors in steps",
        "F1 of the generator's answers to questions",
    )
    app.selectbox(key="spanlab.optimise.detector").select("ucsc-kg").run()
    assert app.selectbox(key="spanlab.optimise.metric").options == spans


def test_labels_that_nobody_made_are_said_to_be_missing(
    open_page: OpenPage,
    programs: ProgramRegistry,
    store: Store,
    samples: Path,
    model_server: ModelServer,
) -> None:
    store.import_records(
        "mine", (record.model_copy(update={"annotations": ()}) for record in read(samples))
    )
    app = open_page("optimise", dataset="mine")
    assert not app.exception
    assert "No item has finished gold labels" in everything(app)
    assert app.button(key="start-search").disabled


def test_a_program_is_compared_used_and_removed(
    open_page: OpenPage, programs: ProgramRegistry, store: Store
) -> None:
    programs.save(tuned_program("maybe", "Quote it.\nBe quick.", -0.02))
    programs.save(tuned_program("sure", "Quote it.\nBe short.", 0.02))
    app = open_page("optimise")
    assert not app.exception
    assert "iou .400 → .500, not significant" in everything(app)
    assert any("+Be short." in code.value for code in app.code)
    app.button(key="use-sure").click().run()
    assert programs.default("ucsc-extract") == "sure"
    app.button(key="unuse-sure").click().run()
    assert programs.default("ucsc-extract") is None
    app.button(key="remove-sure").click().run()
    assert [each.name for each in programs] == ["maybe"]


def test_a_damaged_registry_is_said_and_ends_nothing(
    open_page: OpenPage, programs: ProgramRegistry, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "evil.json").write_text("[]")
    app = open_page("optimise")
    assert not app.exception
    assert "Not a tuned prompt of spanlab" in everything(app)
