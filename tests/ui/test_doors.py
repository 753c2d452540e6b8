"""Command line, Detect page and Python give the same specification for the same choice."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from streamlit.testing.v1 import AppTest

from spanlab.base.errors import UsageError
from spanlab.cli.inputs import takes_options
from spanlab.detection import DetectorSpec, EnsembleSpec, Spec, spec_of
from spanlab.detection.request import RunRequest
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications
from spanlab.jobs import Jobs, job_store
from spanlab.models import ModelChoice, TokenPrice
from spanlab.schema import Item, Record
from spanlab.search.source import PassageSource
from spanlab.search.spec import AveritecSpec, Bm25Spec, SearchSpec
from spanlab.storage import Store

pytest.importorskip("spanlab.systems.ucsc")

OpenPage = Callable[..., AppTest]
Fill = Callable[[AppTest], object]
URL = "http://127.0.0.1:9/v1"
PAPER: dict[str, Any] = {"temperature": 0.2, "top_p": 0.7, "seed": 42, "structured": False}
SEARXNG = "http://127.0.0.1:9"
SMALL = ModelChoice(model="small", base_url=URL, **PAPER)
LARGE = ModelChoice(model="large", base_url=URL, **PAPER)


@pytest.fixture(autouse=True)
def endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names an endpoint and a model; nothing is asked there."""
    for name in os.environ:
        if name.startswith(("SPANLAB_MODEL", "SPANLAB_PRICE", "SPANLAB_SEARCH", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_BASE_URL", URL)
    monkeypatch.setenv("SPANLAB_MODEL", "small")


class Case(NamedTuple):
    """A choice through each door (None: this door does not offer it), and what it amounts to."""

    options: str
    page: Fill | None
    python: DetectorSelection
    spec: Spec


def members(
    model: ModelChoice | None = None, temperature: float | None = None, **changes: Any
) -> EnsembleSpec:
    """The shipped ensemble at the endpoint: with its own models, or all with one model."""
    shipped = spec_of("ucsc")
    assert isinstance(shipped, EnsembleSpec)

    def changed(member: DetectorSpec) -> DetectorSpec:
        own = member.model
        assert own is not None
        chosen = {} if temperature is None else {"temperature": temperature}
        general = {"base_url": URL, "base_url_env": None, "api_key_env": "OPENAI_API_KEY"}
        asked = own.model_copy(update={**general, **PAPER, **own.chosen, **chosen})
        if model is not None:
            asked = model.model_copy(update=own.chosen)
        return member.model_copy(update={"model": asked, **changes})

    return shipped.model_copy(update={"members": tuple(map(changed, shipped.members))})


def text(key: str, value: str) -> Fill:
    return lambda app: app.text_input(key=f"spanlab.detect.{key}").input(value).run()


def steps(*fills: Fill) -> Fill:
    def fill(app: AppTest) -> None:
        for each in fills:
            each(app)

    return fill


def nothing(app: AppTest) -> None:
    """Leave the page as it is."""


def index(app: AppTest) -> None:
    app.selectbox(key="spanlab.detect.search").set_value("bm25").run()
    app.text_input(key="spanlab.detect.corpus").input("wiki").run()


def searxng(app: AppTest) -> None:
    app.selectbox(key="spanlab.detect.search").set_value("searxng").run()
    app.text_input(key="spanlab.detect.search-url").input(SEARXNG).run()
    app.number_input(key="spanlab.detect.max-searches").set_value(7).run()


def averitec(app: AppTest) -> None:
    app.selectbox(key="spanlab.detect.search").set_value("averitec").run()
    app.text_input(key="spanlab.detect.corpus").input("dev").run()


def brave(app: AppTest) -> None:
    app.selectbox(key="spanlab.detect.search").set_value("brave").run()


def one_model(app: AppTest) -> None:
    app.checkbox(key="spanlab.detect.one-model.ucsc").check().run()


def floor(app: AppTest) -> None:
    app.number_input(key="spanlab.detect.ucsc-extract.floor").set_value(0.5).run()


def asked(owner: str, **values: Any) -> Fill:
    """Choose how the models of an owner are asked."""

    def fill(app: AppTest) -> None:
        app.selectbox(key="spanlab.detect.asked.for").set_value(owner).run()
        for name, value in values.items():
            key = f"spanlab.detect.asked.{owner}.{name}"
            kind = {bool: app.selectbox, str: app.text_input}.get(type(value), app.number_input)
            kind(key=key).set_value(value).run()

    return fill


def revised(app: AppTest) -> None:
    app.selectbox(key="spanlab.detect.ucsc-revise.refine").select("char").run()
    app.checkbox(key="spanlab.detect.ucsc-revise.insertions").check().run()
    app.number_input(key="spanlab.detect.ucsc-revise.prob").set_value(0.7).run()


EXTRACT = DetectorSpec(detector="ucsc-extract", model=SMALL)
WIKI = Bm25Spec(corpus=Path("wiki"))
PRICED = LARGE.model_copy(update={"price": TokenPrice(input=1, cached=0.5, output=2)})
CASES = {
    "offline": Case(
        "", nothing, DetectorSelection(detectors=("offline",)), DetectorSpec(detector="offline")
    ),
    "extract": Case("", nothing, DetectorSelection(detectors=("ucsc-extract",)), EXTRACT),
    "extract-model": Case(
        "--model large",
        text("model", "large"),
        DetectorSelection(detectors=("ucsc-extract",), model=ModelChoice(model="large")),
        EXTRACT.model_copy(update={"model": LARGE}),
    ),
    "extract-price": Case(
        "--model large --price 1,0.5,2",
        steps(text("model", "large"), text("price", "1,0.5,2")),
        DetectorSelection(detectors=("ucsc-extract",), model=PRICED),
        EXTRACT.model_copy(update={"model": PRICED}),
    ),
    "extract-retriever": Case(
        "--retriever bm25 --corpus wiki",
        index,
        DetectorSelection(detectors=("ucsc-extract",), retriever=WIKI),
        EXTRACT.model_copy(update={"retriever": WIKI}),
    ),
    "extract-searxng": Case(
        f"--search searxng --search-url {SEARXNG}",
        searxng,
        DetectorSelection(
            detectors=("ucsc-extract",), passages=PassageSource(kind="searxng", url=SEARXNG)
        ),
        EXTRACT.model_copy(update={"retriever": SearchSpec(provider="searxng", url=SEARXNG)}),
    ),
    "extract-averitec": Case(
        "--search averitec --corpus dev",
        averitec,
        DetectorSelection(detectors=("ucsc-extract",), retriever=AveritecSpec(corpus=Path("dev"))),
        EXTRACT.model_copy(update={"retriever": AveritecSpec(corpus=Path("dev"))}),
    ),
    "extract-brave": Case(
        "--search brave",
        brave,
        DetectorSelection(detectors=("ucsc-extract",), retriever=SearchSpec(provider="brave")),
        EXTRACT.model_copy(update={"retriever": SearchSpec(provider="brave")}),
    ),
    "extract-option": Case(
        "--option floor=0.5",
        floor,
        DetectorSelection(detectors=("ucsc-extract",), options={"floor": 0.5}),
        EXTRACT.model_copy(update={"options": {"floor": 0.5}}),
    ),
    "revise-options": Case(
        "--option refine=char --option ucsc-revise.insertions=true --option prob=0.7",
        revised,
        DetectorSelection(
            detectors=("ucsc-revise",), options={"refine": "char", "insertions": True, "prob": 0.7}
        ),
        DetectorSpec(
            detector="ucsc-revise",
            model=SMALL,
            options={"refine": "char", "insertions": True, "prob": 0.7},
        ),
    ),
    "extract-model-options": Case(
        "--model-option temperature=0.5 --model-option ucsc-extract.timeout=9 "
        "--model-option ucsc-extract.temperature=none --model-option reasoning_effort=high "
        "--model-option structured=true --model-option thinking=on",
        None,
        DetectorSelection(
            detectors=("ucsc-extract",),
            model=ModelChoice(model="small", structured=True),
            model_options={
                "temperature": None,
                "timeout": 9,
                "reasoning_effort": "high",
                "thinking": True,
            },
        ),
        EXTRACT.model_copy(
            update={
                "reasoning": True,
                "model": SMALL.model_copy(
                    update={
                        "temperature": None,
                        "timeout": 9.0,
                        "reasoning_effort": "high",
                        "structured": True,
                    }
                ),
            }
        ),
    ),
    "extract-model-options-on-the-page": Case(
        "--model-option top_p=0.9 --model-option ucsc-extract.max_tokens=50 "
        "--model-option ucsc-extract.thinking=true --model-option reasoning_effort=low",
        steps(
            asked("", top_p=0.9, reasoning_effort="low"),
            asked("ucsc-extract", max_tokens=50, thinking=True),
        ),
        DetectorSelection(
            detectors=("ucsc-extract",),
            model=ModelChoice(model="small", top_p=0.9),
            model_options={"reasoning_effort": "low", "max_tokens": 50, "thinking": True},
        ),
        EXTRACT.model_copy(
            update={
                "reasoning": True,
                "model": SMALL.model_copy(
                    update={"top_p": 0.9, "max_tokens": 50, "reasoning_effort": "low"}
                ),
            }
        ),
    ),
    "extract-program": Case(
        "--program short",
        None,
        DetectorSelection(detectors=("ucsc-extract",), program="short"),
        EXTRACT.model_copy(update={"program": "short"}),
    ),
    "ucsc": Case("", nothing, DetectorSelection(detectors=("ucsc",)), members()),
    "ucsc-model": Case(
        "--model large",
        steps(text("model", "large"), one_model),
        DetectorSelection(detectors=("ucsc",), model=ModelChoice(model="large")),
        members(LARGE),
    ),
    "ucsc-model-options": Case(
        "--model-option temperature=0.5 --model-option thinking=false",
        asked("", temperature=0.5, thinking=False),
        DetectorSelection(
            detectors=("ucsc",), model_options={"temperature": 0.5, "thinking": False}
        ),
        members(temperature=0.5, reasoning=False),
    ),
    "ucsc-retriever": Case(
        "--retriever bm25 --corpus wiki",
        index,
        DetectorSelection(detectors=("ucsc",), passages=PassageSource(kind="bm25", corpus="wiki")),
        members(retriever=WIKI),
    ),
}


def by_command(name: str, options: str) -> Spec:
    """What `spanlab annotate mine --detector NAME OPTIONS` is to run."""
    given: list[DetectorSelection] = []

    @takes_options
    def annotate(dataset: str, selection: DetectorSelection) -> None:
        given.append(selection)

    command = typer.Typer(pretty_exceptions_enable=False)
    command.command()(annotate)
    command(["mine", "--detector", name, *options.split()], standalone_mode=False)
    (spec,) = specifications(given[0])
    return spec


def by_page(name: str, fill: Fill, open_page: OpenPage) -> Spec:
    """What the job is to run that the Detect page starts."""
    app = open_page("detect").checkbox(key=f"spanlab.detect.{name}").check().run()
    fill(app)
    assert not app.exception
    app.button(key="start-run").click().run()
    (job,) = Jobs().list()
    asked = job_store.shared_job_store().row(job.id).input
    assert asked is not None
    (spec,) = RunRequest.model_validate(asked["args"][0]).detectors
    return spec


@pytest.mark.system("offline")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_all_doors_give_the_same_specification(
    case: Case, open_page: OpenPage, store: Store
) -> None:
    (name,) = case.python.detectors
    assert specifications(case.python) == (case.spec,)
    assert by_command(name, case.options) == case.spec
    if case.page is not None:
        store.import_records("mine", [Record(item=Item(id="a", answer="Rome."))])
        assert by_page(name, case.page, open_page) == case.spec


def test_a_configured_ensemble_keeps_what_its_members_name(tmp_path: Path) -> None:
    own = DetectorSpec(
        detector="ucsc-extract",
        name="one",
        model=ModelChoice(model="a", temperature=0.2, timeout=9, seed=3, max_tokens=50),
        retriever=WIKI,
        options={"floor": 0.7},
    )
    other = DetectorSpec(detector="ucsc-revise", name="two")
    path = tmp_path / "mine.json"
    written = EnsembleSpec(name="mine", members=(own, other))
    path.write_text(written.model_dump_json(exclude_unset=True))
    options = f"--config {path} --model large --retriever web --option refine=char"
    spec = by_command("ucsc", options)
    assert isinstance(spec, EnsembleSpec)
    first, second = spec.members
    assert spec.name == "mine"
    assert first.retriever == WIKI
    assert first.options == {"floor": 0.7}
    manner = {"timeout": 9.0, "seed": 3, "max_tokens": 50}
    assert first.model == LARGE.model_copy(update=manner)
    assert second.model == LARGE
    assert second.retriever is not None
    assert second.retriever.kind == "web"
    assert second.options == {"refine": "char"}


def test_defaults_give_way_to_the_environment_a_file_and_then_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two that say the same, the one that names more outweighs."""
    monkeypatch.setenv(
        "SPANLAB_MODEL_OPTIONS",
        "temperature=0.5, seed=1, ucsc-revise.seed=2, judge.top_p=0.5, two.top_p=0.4, top_p=1,"
        "two.thinking=true",
    )
    own = ModelChoice(model="a", seed=3)
    members = (
        DetectorSpec(detector="ucsc-extract", name="one", model=own),
        DetectorSpec(detector="ucsc-revise", name="two"),
    )
    path = tmp_path / "mine.json"
    written = EnsembleSpec(name="mine", members=members).model_dump_json(exclude_unset=True)
    path.write_text(written)
    spec = by_command("ucsc", f"--config {path} --model-option one.judge.temperature=0.6")
    assert isinstance(spec, EnsembleSpec)
    one, two = spec.members
    assert one.model is not None
    assert two.model is not None
    assert (one.model.temperature, one.model.top_p, one.model.seed) == (0.6, 0.5, 3)
    assert (two.model.temperature, two.model.top_p, two.model.seed) == (0.5, 0.4, 2)
    assert (one.reasoning, two.reasoning) == (False, True)
    again = EnsembleSpec.model_validate_json(spec.model_dump_json()).members
    assert [each.choice("judge") for each in again] == [one.model, two.model]


@pytest.mark.system("offline")
@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        pytest.param("ucsc-kg", "--model-option temperature", "NAME=VALUE", id="no-model-value"),
        pytest.param("ucsc-kg", "--model-option temprature=1", "'temperature'", id="misspelt"),
        pytest.param("ucsc-kg", "--model-option top_p=7", "top_p is '7'", id="model-value"),
        pytest.param(
            "ucsc-kg",
            "--model-option ucsc.top_p=1",
            "available: retrieval, search, judge, ucsc-kg, ucsc-kg.judge",
            id="no-owner",
        ),
        pytest.param("ucsc-kg", "--model-option judge.thinking=1", "in all its", id="role-thinks"),
        pytest.param("offline", "--model-option seed=1", "'offline' asks no", id="none-asked"),
        pytest.param("offline", "--model large", "'offline' asks no model", id="no-model"),
        pytest.param("ucsc-kg", "--config x.json", "is for an ensemble", id="no-ensemble"),
        pytest.param("ucsc-kg", "--claims", "--search", id="nothing-searched"),
        pytest.param("ucsc-kg", "--search averitec", "--corpus", id="no-folder"),
        pytest.param("ucsc-kg", "--retriever bm25", "spanlab index", id="no-index"),
        pytest.param("ucsc-kg", "--option floor", "NAME=VALUE", id="no-value"),
        pytest.param("ucsc-kg", "--option flor=1", "ucsc-kg.floor", id="unknown-option"),
        pytest.param("ucsc-kg", "--option ucsc-kg.flor=1", "did you mean 'floor'", id="its-own"),
        pytest.param("ucsc-kg", "--option floor=2", "'floor' of 'ucsc-kg' is '2'", id="value"),
        pytest.param("ucsc-kg", "--option ucsc.floor=1", "is not chosen", id="not-chosen"),
        pytest.param("ucsc-gk", "", "did you mean 'ucsc-kg'", id="no-detector"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(name: str, options: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        by_command(name, options)
