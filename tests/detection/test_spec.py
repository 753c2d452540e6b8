"""A detector is chosen by data: written as JSON, read back, and built with what it names."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from detector_cases import ANSWER, TOWER, detect
from pydantic import ValidationError
from tuned_programs import tuned_program

from spanlab import doors
from spanlab.base.errors import DeprecatedWarning, InputError, MissingKeyError, UsageError
from spanlab.base.settings import Settings
from spanlab.detection import (
    DetectorSpec,
    EnsembleSpec,
    Tunable,
    build,
    detector,
    entries,
    entry_of,
    spec_of,
)
from spanlab.detection.common.claim_detector import ClaimDetector
from spanlab.models import Meter, ModelChoice
from spanlab.models.programs import ProgramRegistry, apply_program, program_state
from spanlab.schema import QueryStep, TunedPredictor, TunedProgram
from spanlab.search.spec import Bm25Spec, GivenSpec, RetrieverSpec, SearchSpec, WebSpec
from spanlab.testing import ModelServer, say_fields

pytestmark = pytest.mark.system("ucsc")

DEMO = {
    "passages": "[1] The bridge opened in 1901.",
    "question": "When did the bridge open?",
    "answer": "In 1910.",
    "parts": [{"text": "1910", "reason": "1901", "probability": 1.0}],
    "augmented": True,
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, database_url="sqlite://")


def tuned(name: str, detector: str = "ucsc-extract") -> TunedProgram:
    return tuned_program(name, "Spot the lies.", detector=detector, demo=DEMO)


def test_a_specification_survives_json() -> None:
    spec = DetectorSpec(
        detector="ucsc-extract",
        name="mine",
        model=ModelChoice(model="m", base_url="http://localhost:1/v1", temperature=0.2),
        retriever=Bm25Spec(corpus=Path("wiki"), queries="claims"),
        program="short-quotes",
        reasoning=True,
    )
    assert DetectorSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.signs == "mine"


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param({}, GivenSpec(), id="given"),
        pytest.param({"kind": "bm25", "corpus": "wiki"}, Bm25Spec(corpus=Path("wiki")), id="bm25"),
        pytest.param(
            {"kind": "web", "queries": "claims", "corpus": "wiki", "writer": {"model": "w"}},
            WebSpec(queries="claims", writer=ModelChoice(model="w")),
            id="web",
        ),
        pytest.param(
            {"kind": "search", "url": "http://a", "k": 3},
            SearchSpec(url="http://a", k=3),
            id="search",
        ),
    ],
)
def test_a_retriever_that_was_stored_with_all_fields_of_all_kinds_is_read(
    stored: dict[str, object], expected: RetrieverSpec
) -> None:
    flat = {"kind": "given", "queries": "question", "translate": False, "k": 5}
    flat |= dict.fromkeys(("corpus", "model", "url", "shape", "writer"))
    spec = DetectorSpec.model_validate({"detector": "ucsc-kg", "retriever": flat | stored})
    assert spec.retriever == expected
    short = DetectorSpec(detector="ucsc-kg", retriever=expected).model_dump_json(exclude_unset=True)
    assert DetectorSpec.model_validate_json(short) == spec


def test_a_field_that_no_retriever_has_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"retriever\.web\.corpsu"):
        DetectorSpec.model_validate(
            {"detector": "ucsc-kg", "retriever": {"kind": "web", "corpsu": "wiki"}}
        )


VERITRAIL = ("veritrail", "veritrail-rag", "veritrail-source", "veritrail-vt-rag")


def test_every_detector_is_listed_with_what_it_needs() -> None:
    names = [entry.name for entry in entries()]
    ours = [
        "offline",
        "mermaid",
        "papelo",
        "safe",
        "span-model",
        "ucsc-extract",
        "ucsc-kg",
        "ucsc-revise",
        *VERITRAIL,
        "encoder",
        "encoder-nli",
        "encoder-nli-claims",
        "ucsc",
    ]
    assert [name for name in names if name in ours] == [name for name in ours if name in names]
    assert all(entry.what and entry.needs for entry in entries())
    assert [spec_of(name).signs for name in names] == names


@pytest.mark.parametrize("name", ["ucsc-extract", "ucsc-kg", "ucsc-revise"])
def test_every_model_detector_is_built_signs_and_can_be_tuned(
    name: str, model_server: ModelServer, settings: Settings
) -> None:
    built = build(DetectorSpec(detector=name, name="signature"), Meter(), settings)
    assert isinstance(built, Tunable)
    assert built.name == "signature"
    assert tuple(program_state(built.program)) == entry_of(name).prompts


@pytest.mark.parametrize(
    "name", [each for each in (*VERITRAIL, "papelo") if each in doors.names("detectors")]
)
def test_the_verdict_s_prompt_of_every_claim_detector_can_be_tuned(
    name: str, model_server: ModelServer, settings: Settings
) -> None:
    built = build(DetectorSpec(detector=name), Meter(), settings)
    assert isinstance(built, ClaimDetector)
    assert entry_of(name).tuned_on == "claims"
    assert entry_of(name).prompts == ("judge",)
    assert "judge" in program_state(built.program)


def test_without_a_model_the_environment_names_it(
    model_server: ModelServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_MODEL_UCSC_EXTRACT", "special")
    model_server.script(lambda ask: say_fields(parts=[]))
    for spec in (
        DetectorSpec(detector="ucsc-extract"),
        DetectorSpec(detector="ucsc-extract", model=ModelChoice(model="named")),
    ):
        built = build(spec, Meter(), settings)
        detect(built)
    assert [ask.body["model"] for ask in model_server.requests] == ["special", "named"]


@pytest.mark.system("offline")
def test_what_is_missing_is_said_before_anything_is_asked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SPANLAB_MODEL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="no language model is named"):
        build(DetectorSpec(detector="ucsc-extract"), Meter(), settings)
    with pytest.raises(MissingKeyError):
        build(
            DetectorSpec(detector="ucsc-extract", model=ModelChoice(model="m")), Meter(), settings
        )
    with pytest.raises(UsageError, match="did you mean 'ucsc-extract'"):
        build(DetectorSpec(detector="ucsc-extrakt"), Meter(), settings)
    with pytest.raises(UsageError, match="signs with its own name"):
        detector(DetectorSpec(detector="offline", name="mine"))


def test_a_program_s_prompts_are_used_and_come_back_the_same(
    model_server: ModelServer, settings: Settings
) -> None:
    ProgramRegistry(settings.programs).save(tuned("liar"))
    model_server.script(lambda ask: say_fields(parts=[]))
    built = build(DetectorSpec(detector="ucsc-extract", program="liar"), Meter(), settings)
    assert isinstance(built, Tunable)
    detect(built)
    prompt = model_server.requests[0].text
    order = ["Spot the lies.", "# Reply", "In 1910.", '"1910"', ANSWER]
    assert sorted(order, key=prompt.index) == order
    state = program_state(built.program)
    assert state == tuned("liar").predictors
    assert json.loads(json.dumps({name: each.model_dump() for name, each in state.items()}))


def test_the_program_chosen_as_default_is_used_until_told_otherwise(
    model_server: ModelServer, settings: Settings
) -> None:
    programs = ProgramRegistry(settings.programs)
    programs.save(tuned("liar"))
    programs.choose("ucsc-extract", "liar")
    used = {}
    for chosen in (None, "none"):
        built = build(DetectorSpec(detector="ucsc-extract", program=chosen), Meter(), settings)
        assert isinstance(built, Tunable)
        used[chosen] = program_state(built.program)["extract"].instruction
    assert used[None] == "Spot the lies."
    assert used["none"].startswith("Find the wrong words of an answer")


def test_a_program_serves_the_detector_that_reasons_too(
    model_server: ModelServer, settings: Settings
) -> None:
    ProgramRegistry(settings.programs).save(tuned("liar"))
    spec = DetectorSpec(detector="ucsc-extract", program="liar", reasoning=True)
    built = build(spec, Meter(), settings)
    assert isinstance(built, Tunable)
    assert program_state(built.program)["extract"].instruction == "Spot the lies."


def test_a_program_of_another_detector_is_refused(
    model_server: ModelServer, settings: Settings
) -> None:
    ProgramRegistry(settings.programs).save(tuned("liar", "ucsc-revise"))
    with pytest.raises(
        UsageError, match="'liar' is a tuned prompt of 'ucsc-revise', not 'ucsc-extract'"
    ):
        build(DetectorSpec(detector="ucsc-extract", program="liar"), Meter(), settings)
    ProgramRegistry(settings.programs).save(tuned("disguised", "ucsc-kg"))
    with pytest.raises(InputError, match="another detector"):
        build(DetectorSpec(detector="ucsc-kg", program="disguised"), Meter(), settings)


def test_applying_prompts_leaves_other_predictors_alone(
    model_server: ModelServer, settings: Settings
) -> None:
    built = build(DetectorSpec(detector="ucsc-kg"), Meter(), settings)
    assert isinstance(built, Tunable)
    before = program_state(built.program)
    apply_program(built.program, {"facts": TunedPredictor(instruction="List facts.")})
    after = program_state(built.program)
    assert list(after) == ["graph", "facts", "check", "words"]
    assert after.pop("facts").instruction == "List facts."
    before.pop("facts")
    assert after == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({"flor": 0.5}, r"no option 'flor'; did you mean 'floor'\?", id="unknown"),
        pytest.param(
            {"floor": "high"}, "'floor' of 'ucsc-extract' is 'high': it should", id="text"
        ),
        pytest.param({"floor": 2}, "is 2: it should be less than or equal to 1", id="bounds"),
    ],
)
def test_an_option_that_is_not_the_detector_s_names_option_and_value(
    options: dict[str, object], says: str
) -> None:
    with pytest.raises(ValidationError, match=says):
        DetectorSpec.model_validate({"detector": "ucsc-extract", "options": options})


def test_options_are_read_by_the_detector_s_own_model_and_survive_json() -> None:
    spec = DetectorSpec(detector="ucsc-extract", options={"floor": "0.5"})
    assert spec.options == {"floor": 0.5}
    assert DetectorSpec.model_validate_json(spec.model_dump_json()) == spec


def test_what_was_written_when_mapping_had_a_field_of_its_own_still_loads() -> None:
    mapper = {"floor": 0.7, "refine": "char", "insertions": False, "prob": None}
    old = {"detector": "ucsc-extract", "mapper": mapper}
    with pytest.warns(DeprecatedWarning, match="goes in 2.0"):
        assert DetectorSpec.model_validate(old).options == {"floor": 0.7}


def test_two_members_cannot_sign_alike() -> None:
    member = DetectorSpec(detector="ucsc-extract")
    with pytest.raises(ValidationError, match="already exists"):
        EnsembleSpec(name="both", members=(member, member))
    with pytest.raises(ValidationError, match="already exists"):
        EnsembleSpec(name="ucsc-extract", members=(member,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "Invalid JSON", id="not-json"),
        pytest.param("[]", "not an ensemble", id="no-object"),
        pytest.param('{"name": "x", "members": []}', "members: ", id="nobody"),
        pytest.param(
            '{"name": "x", "members": [{"detector": "ucsc-kg", "modell": {}}]}',
            "members.0.modell: ",
            id="unknown-field",
        ),
    ],
)
def test_a_damaged_configuration_names_file_and_field(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        EnsembleSpec.read(path)
    assert "mine.json" in str(caught.value)


def test_many_items_share_one_detector_at_once(
    model_server: ModelServer, settings: Settings
) -> None:
    model_server.script(lambda ask: say_fields(parts=[{"text": "1989"}]))
    built = build(DetectorSpec(detector="ucsc-extract"), Meter(), settings)
    items = [TOWER.model_copy(update={"question": f"Question {number}?"}) for number in range(40)]

    async def all_at_once() -> list[tuple[str, str]]:
        findings = await asyncio.gather(*(built.detect(item) for item in items))
        return [
            (first.text, each.annotation.spans[0].text)
            for each in findings
            if isinstance(first := each.annotation.trace[0], QueryStep)
        ]

    assert asyncio.run(all_at_once()) == [(item.question, "1989") for item in items]
    assert model_server.count == 40
