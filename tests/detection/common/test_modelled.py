"""What a detector of another package builds on: models by role, searches, partial results."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prompts import prompt_of
from pydantic import ValidationError

from spanlab.base.settings import Settings
from spanlab.detection import DetectorResult, DetectorSpec, build, installed
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications
from spanlab.formats import dumps
from spanlab.formats.known.jsonl import loads
from spanlab.models import Meter, ModelChoice, ModelLayers
from spanlab.schema import CallsStep, Item, QueryStep, Record, RemarkStep, Status
from spanlab.search.spec import SearchSpec
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail, say_fields

ITEM = Item(id="a", question="Who built it?", answer="Ada Smith did.")
PACKAGE = '''
import dspy

from spanlab.models.meter import keep, together
from spanlab.detection.common.model_detector import ModelDetector
from spanlab.detection.entry import DetectorEntry
from spanlab.search.base import SearchQuery
from spanlab.schema.trace import QueryStep, RemarkStep
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications


class Program(dspy.Module):
    def __init__(self):
        super().__init__()
        self.extract = dspy.Predict("answer, number -> query")
        self.judge = dspy.Predict("answer -> verdict")


class Hopping(ModelDetector):
    """Looks two claims up at once, each in two rounds, and judges the answer."""

    async def steps(self, case):
        await together(self.claim(case, 0), self.claim(case, 1))
        said = await self.ask(self.program.judge, role="judge", answer=case.item.answer)
        return self.annotation(note=said.verdict)

    async def claim(self, case, number):
        retriever = self.kit.retriever
        for turn in (1, 2):
            about = {"answer": case.item.answer, "number": f"{number}.{turn}"}
            said = await self.ask(self.program.extract, role="extractor", **about)
            found = await case.retrieve(retriever, SearchQuery(said.query))
            where = {"claim": number, "round": turn, "tool": "search"}
            case.trace.append(
                QueryStep(text=said.query, retriever=retriever.name, passages=found, **where)
            )
        keep(f"claim {number} is looked up")

    def partial_steps(self, case):
        return [RemarkStep(text=text) for text in case.partial]


def create(kit):
    return Hopping(kit, Program(), guided="judge")


ENTRY = DetectorEntry(
    name="hopping", what="hops", needs="models", create=create, roles=("judge", "extractor")
)
'''


@pytest.fixture
def hopping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that brings a detector, installed as pip would."""
    site = tmp_path / "site"
    about = site / "hopping_spans-1.dist-info"
    about.mkdir(parents=True)
    (site / "hopping_spans.py").write_text(PACKAGE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hopping-spans\nVersion: 1\n")
    points = "[spanlab.detectors]\nhopping = hopping_spans:ENTRY\n"
    (about / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(site))
    installed.cache_clear()
    yield
    installed.cache_clear()


class World:
    """A search API and a model in one; the model asks for what it is told to look up."""

    def __init__(self) -> None:
        self.verdict: ScriptedReply = say_fields(verdict="false")
        self.asked: dict[str, tuple[str, Any]] = {}

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        if ask.method == "GET":
            sought = ask.path.partition("q=")[2]
            return ScriptedReply(
                body={"results": [{"text": f"on {sought}"}, {"text": "on all"}]}, delay=0.05
            )
        role = "extractor" if "`[[ ## query ## ]]`" in ask.text else "judge"
        self.asked[role] = (ask.body["model"], ask.body.get("temperature"))
        if role == "judge":
            return self.verdict
        number = prompt_of(ask).partition("[[ ## number ## ]]\n")[2][:3]
        return say_fields(query=number)


def detect(server: ModelServer, home: Path, **more: Any) -> DetectorResult:
    spec = DetectorSpec(
        detector="hopping", retriever=SearchSpec(url=f"{server.url}/s?q={{query}}"), **more
    )
    built = build(spec, Meter(), Settings(home=home, database_url="sqlite://"))
    return asyncio.run(built.detect(ITEM))


@pytest.mark.usefixtures("hopping")
def test_every_role_has_its_own_model_and_temperature_and_the_rest_is_the_detectors(
    model_server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    model_server.script(world)
    large = ModelChoice(model="large", temperature=0.7)
    for named, expected in (
        ({}, {"judge": ("scripted-model", None), "extractor": ("scripted-model", None)}),
        (
            {"model": ModelChoice(model="small", temperature=0.1), "models": {"judge": large}},
            {"judge": ("large", 0.7), "extractor": ("small", 0.1)},
        ),
    ):
        assert detect(model_server, tmp_path / str(len(named)), **named).annotation.note == "false"
        assert world.asked == expected
    monkeypatch.setenv("SPANLAB_MODEL_EXTRACTOR", "tiny")
    monkeypatch.setenv("SPANLAB_MODEL_HOPPING", "detectors")
    detect(model_server, tmp_path / "environment")
    assert world.asked == {"judge": ("detectors", None), "extractor": ("tiny", None)}


@pytest.mark.usefixtures("hopping")
def test_a_role_is_asked_with_its_own_options_and_the_trace_says_which(
    model_server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    model_server.script(world)
    options = "top_p=0.9,judge.seed=7,hopping.judge.max_tokens=90,judge.timeout=9"
    monkeypatch.setenv("SPANLAB_MODEL_OPTIONS", options)
    *_, calls = detect(model_server, tmp_path).annotation.trace
    assert isinstance(calls, CallsStep)
    own = {"judge.seed": 7, "judge.max_tokens": 90, "judge.timeout": 9.0}
    assert calls.options == {"top_p": 0.9} | own
    asked = [
        tuple(ask.body.get(name) for name in ("top_p", "seed", "max_tokens"))
        for ask in model_server.requests
        if "messages" in ask.body
    ]
    assert set(asked) == {(0.9, None, None), (0.9, 7, 90)}


@pytest.mark.system("ucsc")
@pytest.mark.usefixtures("hopping")
def test_a_run_is_asked_for_with_the_models_that_the_environment_names_by_role() -> None:
    environment = {"SPANLAB_MODEL": "small", "SPANLAB_MODEL_EXTRACTOR": "tiny"}
    (spec,) = specifications(DetectorSelection(detectors=("hopping",)), environment)
    assert isinstance(spec, DetectorSpec)
    asked = {role: spec.choice(role, ModelLayers({})).model for role in ("judge", "extractor")}
    assert asked == {"judge": "small", "extractor": "tiny"}
    (named,) = specifications(DetectorSelection(detectors=("hopping",), model="large"), environment)
    assert isinstance(named, DetectorSpec)
    assert (named.choice("judge", ModelLayers({})).model, named.models) == ("large", {})
    (judge,) = specifications(
        DetectorSelection(detectors=("ucsc-kg",)), {"SPANLAB_MODEL_JUDGE": "large"}
    )
    assert isinstance(judge, DetectorSpec)
    assert judge.choice("judge", ModelLayers({})).model == "large"


@pytest.mark.usefixtures("hopping")
def test_searches_at_once_are_all_noted_and_the_trace_says_for_which_claim(
    model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script(World())
    found = detect(model_server, tmp_path)
    texts = [passage.text for passage in found.item.passages]
    assert sorted(texts) == ["on 0.1", "on 0.2", "on 1.1", "on 1.2", "on all"]
    steps = [step for step in found.annotation.trace if isinstance(step, QueryStep)]
    assert {(step.text, step.claim, step.round, step.tool) for step in steps} == {
        (f"{claim}.{turn}", claim, turn, "search") for claim in (0, 1) for turn in (1, 2)
    }
    for step in steps:
        assert [texts[index] for index in step.passages] == [f"on {step.text}", "on all"]
    assert sorted(each.query or "" for each in found.item.retrievals) == [
        "0.1",
        "0.2",
        "1.1",
        "1.2",
    ]
    record = Record(item=found.item, annotations=found.annotations)
    assert loads(dumps(record)) == record


@pytest.mark.usefixtures("hopping")
def test_what_was_found_before_a_call_fails_is_in_the_trace_once(
    model_server: ModelServer, tmp_path: Path
) -> None:
    world = World()
    world.verdict = fail(402, "no funds")
    model_server.script(world)
    for _ in range(2):
        said = detect(model_server, tmp_path).annotation
        assert said.status is Status.FAILED
        remarks = sorted(step.text for step in said.trace if isinstance(step, RemarkStep))
        assert remarks == ["claim 0 is looked up", "claim 1 is looked up"]


@pytest.mark.usefixtures("hopping")
def test_a_role_that_the_detector_does_not_have_is_refused() -> None:
    with pytest.raises(
        ValidationError, match=r"'hopping' has no role 'jugde' \(it has judge, extr"
    ):
        DetectorSpec(detector="hopping", models={"jugde": ModelChoice(model="large")})
