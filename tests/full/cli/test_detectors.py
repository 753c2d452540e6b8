"""`spanlab detectors` says what there is, and prints what can be changed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from detector_cases import TOWER
from reasoning_script import ReasoningScript

from spanlab.detection import EnsembleSpec, entries
from spanlab.formats import read, write
from spanlab.schema import CallsStep, Record
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_every_detector_is_listed_with_what_it_does_and_needs(spanlab: Run) -> None:
    done = spanlab("detectors")
    assert done.returncode == 0
    for entry in entries():
        assert f"{entry.name:<19}{entry.what}\n{'':<19}needs {entry.needs}\n" in done.stdout


def test_an_unknown_name_is_refused_with_the_closest(spanlab: Run) -> None:
    done = spanlab("detectors", "ucsk")
    assert done.returncode == 2
    assert "did you mean 'ucsc'" in done.stderr


def test_the_printed_ensemble_can_be_changed_and_used(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    printed = json.loads(spanlab("detectors", "ucsc").stdout)
    printed["members"] = [printed["members"][2], printed["members"][4]]
    for member in printed["members"]:
        member["model"] = {"model": "of my own"}
    EnsembleSpec.model_validate(printed)
    (tmp_path / "mine.json").write_text(json.dumps(printed), encoding="utf-8")
    write([Record(item=TOWER)], tmp_path / "tower.jsonl")
    revised = TOWER.answer.replace("1989", "1889")
    model_server.script(lambda ask: say_fields(reasoning="so", parts=["1989"], revised=revised))
    options = ["--detector", "ucsc", "--config", "mine.json", "-o", "found.jsonl"]
    done = spanlab("annotate", "tower.jsonl", *options)
    assert done.returncode == 0, done.stderr
    (record,) = read(tmp_path / "found.jsonl")
    names = [each.annotator for each in record.annotations]
    assert sorted(names) == ["ucsc", "ucsc-3-gpt4o-extract-overlap", "ucsc-5-gpt4o-mini-revise"]
    vote = record.by("ucsc")
    assert vote is not None
    assert [(span.text, span.prob) for span in vote.spans] == [("1989", 1.0)]


@pytest.mark.parametrize(
    ("options", "environment", "to_check"),
    [
        pytest.param((), {"SPANLAB_MODEL": "m"}, "SPANLAB_MODEL", id="general"),
        pytest.param((), {"SPANLAB_MODEL_UCSC_KG": "m"}, "SPANLAB_MODEL_UCSC_KG", id="detector"),
        pytest.param(("--model", "m"), {"SPANLAB_MODEL": "n"}, "the model's name", id="flag"),
    ],
)
def test_a_wrong_model_is_looked_for_where_it_was_named(
    options: tuple[str, ...],
    environment: dict[str, str],
    to_check: str,
    model_server: ModelServer,
    spanlab: Run,
    tmp_path: Path,
) -> None:
    write([Record(item=TOWER)], tmp_path / "tower.jsonl")
    spanlab("import", "tower.jsonl", "--dataset", "mine")
    model_server.script(lambda ask: fail(404, "no such model"))
    asking = {"OPENAI_BASE_URL": model_server.url, "OPENAI_API_KEY": "k", **environment}
    for source in ("tower.jsonl", "mine"):  # the latter by a job
        target = ("-o", "found.jsonl") if source == "tower.jsonl" else ()
        done = spanlab("annotate", source, "--detector", "ucsc-kg", *options, *target, **asking)
        assert f"; check {to_check} and OPENAI_BASE_URL" in done.stderr


def test_a_command_says_how_its_model_is_named(spanlab: Run, tmp_path: Path) -> None:
    write([Record(item=TOWER)], tmp_path / "tower.jsonl")
    done = spanlab("annotate", "tower.jsonl", "--detector", "ucsc-kg", "-o", "found.jsonl")
    assert done.returncode == 2
    assert "set SPANLAB_MODEL, for example to gpt-4o-mini, or pass --model NAME" in done.stderr


def test_what_is_to_go_is_said_in_one_line_and_still_works(spanlab: Run, tmp_path: Path) -> None:
    old: list[dict[str, object]] = [
        {"detector": "offline", "name": name, "mapper": {}} for name in ("one", "two")
    ]
    (tmp_path / "old.json").write_text(json.dumps({"name": "pair", "members": old}), "utf-8")
    write([Record(item=TOWER)], tmp_path / "tower.jsonl")
    options = ["--detector", "ucsc", "--config", "old.json", "-o", "found.jsonl"]
    done = spanlab("annotate", "tower.jsonl", *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("spanlab: the field `mapper` of a detector goes in 2.0") == 1


def test_how_models_are_asked_is_chosen_for_all_and_for_one_detector(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    write([Record(item=TOWER)], tmp_path / "tower.jsonl")
    model_server.script(lambda ask: say_fields(reasoning="so", parts=[], revised=TOWER.answer))
    options = "temperature=0.6 ucsc-revise.seed=none reasoning_effort=high ucsc-revise.thinking=on"
    done = spanlab(
        *("annotate", "tower.jsonl", "-o", "found.jsonl"),
        *("--detector", "ucsc-extract", "--detector", "ucsc-revise"),
        *(word for option in options.split() for word in ("--model-option", option)),
        SPANLAB_MODEL="small",
        SPANLAB_MODEL_OPTIONS="temperature=0.1,max_tokens=90",
    )
    assert done.returncode == 0, done.stderr
    asked = {
        "thinks" if "reasoning ##" in ask.text else "": ask.body for ask in model_server.requests
    }
    told = {"temperature": 0.6, "top_p": 0.7, "max_tokens": 90, "reasoning_effort": "high"}
    for body, seed in ((asked[""], 42), (asked["thinks"], None)):
        assert told.items() <= body.items()
        assert body.get("seed") == seed
    (record,) = read(tmp_path / "found.jsonl")
    revised = record.by("ucsc-revise")
    assert revised is not None
    (calls,) = (step for step in revised.trace if isinstance(step, CallsStep))
    assert calls.options == told | {"thinking": True}


def test_claims_are_verified_and_their_verdicts_scored(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    lines = [
        {"claim": "The tower was built in 1889.", "label": True},
        {"claim": "The tower was built in 1989.", "label": False},
        {"claim": "The tower is red.", "label": "not enough evidence"},
        {"claim": "The tower is in Paris.", "label": True},
    ]
    claims = tmp_path / "claims.jsonl"
    claims.write_text("".join(json.dumps(line) + "\n" for line in lines))
    passage = {"text": "The tower in Paris was built in 1889."}
    given = tmp_path / "passages.jsonl"
    given.write_text(
        "".join(json.dumps({"id": f"claim-{n}", "passages": [passage]}) + "\n" for n in (1, 2, 3))
    )
    assert spanlab("import", claims, "--dataset", "c", "--contexts", given).returncode == 0

    def answer(ask: ModelRequest) -> ScriptedReply:
        if "`[[ ## claims ## ]]`" in ask.text:
            return say_fields(claims=[])
        if "`[[ ## chosen ## ]]`" in ask.text:
            return say_fields(chosen=["1"], summary="It was built in 1889.")
        if "`[[ ## words ## ]]`" in ask.text:
            return say_fields(words=["1989"] if "1989" in ask.text else [])
        claim = ask.text.rpartition("[[ ## claim ## ]]")[2]
        verdict = "supported" if "in 1889" in claim else "not-supported"
        return say_fields(ruling={"reason": "so it says", "verdict": verdict})

    model_server.script(answer)
    found = spanlab(
        *("annotate", "c", "--detector", "veritrail", "--model", "scripted"),
        *("--option", "claims=answer"),
    )
    assert found.returncode == 0, found.stderr
    assert spanlab("export", "c", "-o", "all.jsonl").returncode == 0
    scored = spanlab("score", "all.jsonl", claims, "--claims", "--annotator", "veritrail")
    assert scored.returncode == 0, scored.stderr
    verdicts = [line.split() for line in scored.stdout.splitlines()]
    # Not supported: 2 of 2 found, 2 of 3 said rightly. Supported: 1 of 2, the other has no passage.
    assert ["not-supported", "2", "3", ".667", "1.000", ".800"] in verdicts
    assert ["supported", "2", "1", "1.000", ".500", ".667"] in verdicts
    assert ".750 [" in scored.stdout.splitlines()[2], "balanced accuracy"
    as_json = spanlab(
        *("score", "all.jsonl", claims, "--claims", "--annotator", "veritrail", "--json"),
        *("--against", "all.jsonl"),
    )
    assert json.loads(as_json.stdout)["against"]["difference"] == 0


@pytest.mark.system("papelo")
def test_without_a_search_there_is_no_evidence_and_the_run_says_so(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    write([Record(item=TOWER.model_copy(update={"passages": ()}))], tmp_path / "tower.jsonl")
    model_server.script(lambda ask: say_fields(claim_is="false"))
    command = ("annotate", "tower.jsonl", "--detector", "papelo", "--option", "claims=answer")
    asked = ("--model", "scripted", "-o", "found.jsonl")
    four = spanlab(*command, *asked, "--option", "classes=4")
    assert four.returncode == 0, four.stderr
    assert "papelo has no search: it judges by the passages" in four.stderr
    (record,) = read(tmp_path / "found.jsonl")
    (claim,) = record.annotations[0].claims
    assert claim.verdict == "not-enough-evidence"
    two = spanlab(*command, *asked, "--option", "classes=2")
    assert two.returncode == 1
    assert "there is nothing to search: no search was chosen" in two.stderr
    assert model_server.requests == []


@pytest.mark.system("safe")
def test_of_safe_a_step_that_states_a_fact_is_no_plan_however_it_begins(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    plan = "Let me find out who directed it."
    fact = "Let me note that Passage 2 says Ann Lee directed it."
    item = {
        "id": "film",
        "lang": "en",
        "question": "Who directed it?",
        "answer": f"Step 1: {plan}\nStep 2: {fact}",
        "passages": [{"text": "It is a film."}, {"text": "Ann Lee directed it."}],
    }
    (tmp_path / "film.jsonl").write_text(json.dumps(item))
    script = ReasoningScript({})
    model_server.script(script)
    done = spanlab(
        "annotate", "film.jsonl", "--detector", "safe", "--model", "m", "-o", "out.jsonl"
    )
    assert done.returncode == 0, done.stderr
    (record,) = read(tmp_path / "out.jsonl")
    spans = [(span.text, span.label) for span in record.annotations[0].spans]
    assert spans == [(plan, "Inefficiency")]
    assert script.verified == [f"Step 2: {fact}"], "a model is asked about what may be right"


def test_the_labels_of_the_dataset_are_those_of_its_settings(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    write([Record(item=TOWER)], tmp_path / "tower.jsonl")
    spanlab("import", "tower.jsonl", "--dataset", "mine")
    spanlab("datasets", "mine", "--labels", "RAGTruth")
    model_server.script(
        lambda ask: say_fields(
            parts=[{"text": "1989"}, {"text": "Ada Smith"}],
            chosen=["Evident Conflict", "Subtle Baseless Info"],
        )
    )
    options = ("--detector", "ucsc-extract", "--option", "labels=dataset")
    asking = {"OPENAI_BASE_URL": model_server.url, "SPANLAB_MODEL": "m", "OPENAI_API_KEY": "k"}
    done = spanlab("annotate", "mine", *options, **asking)
    assert done.returncode == 0, done.stderr
    spanlab("export", "mine", "-o", "out.jsonl")
    (record,) = read(tmp_path / "out.jsonl")
    spans = record.annotations[0].spans
    assert [span.label for span in spans] == ["Evident Conflict", "Subtle Baseless Info"]
    for wrong in ("labels=dataset", "labels=comon"):
        named = ("--detector", "ucsc-extract", "--option", wrong, "-o", "found.jsonl")
        refused = spanlab("annotate", "tower.jsonl", *named, **asking)
        assert refused.returncode == 2
        assert "names no labels: give a shipped set (spanlab, common," in refused.stderr
