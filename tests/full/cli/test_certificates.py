"""Certificates through the commands: what they are bound to, and when they are stale."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.settings import Settings
from spanlab.measure.sample import measurement_queue
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import Annotation, Item, Record, Span, TunedPredictor, TunedProgram
from spanlab.storage import Store
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]
ANSWERS = [f"Tower {at} has {100 + at} steps." for at in range(40)]
DETECT = ("annotate", "d", "--detector", "ucsc-extract", "--again")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        home=tmp_path / "home", database_url=f"sqlite:///{tmp_path / 'home' / 'spanlab.db'}"
    )


@pytest.fixture
def measured(
    spanlab: Run, settings: Settings, model_server: ModelServer
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The commands, with a model that marks the number of every second answer whatever is asked."""
    model_server.script(reply)
    environ = {name: os.environ[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    with Store.open(settings) as store:
        store.import_records(
            "d",
            (
                Record(item=Item(id=f"i{at}", lang="en", question=f"q{at}", answer=answer))
                for at, answer in enumerate(ANSWERS)
            ),
        )

    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = spanlab(*words, **environ)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def reply(ask: ModelRequest) -> ScriptedReply:
    number = next(at for at, answer in enumerate(ANSWERS) if answer in ask.text)
    return say_fields(parts=[] if number % 2 else [{"text": str(100 + number), "probability": 0.9}])


def review(settings: Settings, n: int) -> None:
    with Store.open(settings) as store:
        for name in measurement_queue(store, "d")[:n]:
            at = int(name[1:])
            answer, number = ANSWERS[at], str(100 + at)
            start = answer.index(f"{number} ")
            spans = [Span.of(answer, start, start + 3)] if at % 4 == 0 else []
            said = [Annotation(annotator=w, kind="person", spans=spans) for w in ("anna", "ben")]
            store.save_annotations("d", [(name, one) for one in said])


def test_a_certificate_says_what_was_measured(
    measured: Run, settings: Settings, tmp_path: Path
) -> None:
    measured("check-model", "--model", "scripted", "--detector", "ucsc-extract", code=1)
    measured(*DETECT, "--model", "scripted", "--repeats", "3")
    measured("measure", "d", "--annotator", "ucsc-extract")
    review(settings, 30)
    measured("measure", "d", "--certificate", "c.json")
    content = json.loads((tmp_path / "c.json").read_bytes())
    assert content["reviewers"] == {"anna": 30, "ben": 30}
    assert content["agreement"] == {"pairs": 30, "answers": 1.0, "iou": 1.0}
    assert content["consistency"] == {"runs": 3, "pairs": 120, "answers": 1.0, "iou": 1.0}
    assert content["answers"]["sensitivity"]["mean"] == 1
    assert content["answers"]["sensitivity"]["low"] < 0.9
    assert content["answers"]["specificity"]["mean"] == pytest.approx(2 / 3, abs=0.1)
    assert content["characters"]["iou"]["mean"] == pytest.approx(0.5, abs=0.15)
    assert content["calibration"]["error"] < 0.1
    binding = content["binding"]
    assert list(binding["models"]) == ["ucsc-extract"]
    assert binding["models"]["ucsc-extract"][0]["model.model"] == "scripted"
    for name in ("prompts", "options"):
        assert len(binding[name]["ucsc-extract"][0]) == 64
    assert content["checks"][0]["model"] == "scripted"
    measured("measure", "d", "--certificate", "c.html")
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "scripted" in page
    assert "3 runs" in page
    assert "100.0 % of answers alike, IoU 1.000" in page


def new_model(run: Run, _: Settings) -> None:
    run(*DETECT, "--model", "another")


def new_option(run: Run, _: Settings) -> None:
    run(*DETECT, "--model", "scripted", "--option", "floor=0.71")


def new_prompt(run: Run, settings: Settings) -> None:
    use_program(run, settings)
    run(*DETECT, "--model", "scripted")


def use_program(run: Run, settings: Settings) -> None:
    program = TunedProgram(
        name="careful",
        detector="ucsc-extract",
        strategy="mipro",
        metric="iou",
        task_model="scripted",
        prompt_model="scripted",
        dataset="d",
        labels="gold",
        languages=("en",),
        items=1,
        fingerprint="0",
        created="2026-01-01T00:00:00+00:00",
        predictors={"extract": TunedPredictor(instruction="Quote what is wrong.")},
    )
    ProgramRegistry(settings.programs).save(program)
    run("programs", "use", "careful")


def new_definition(run: Run, _: Settings) -> None:
    run("measure", "d", "--annotator", "ucsc-extract", "--definition", "contradicts a passage")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (new_model, "the model changed"),
        (new_option, "the options changed"),
        (new_prompt, "the prompts changed"),
        (
            use_program,
            "the prompts or the training of ucsc-extract changed; annotate again (spanlab "
            "annotate d --detector ucsc-extract --again) and write another certificate",
        ),
        (new_definition, "the definition of hallucinated changed"),
    ],
    ids=["model", "option", "prompt", "default-prompt", "definition"],
)
def test_a_certificate_is_stale_though_the_marks_are_the_same(
    measured: Run, settings: Settings, change: Callable[[Any, Settings], None], why: str
) -> None:
    measured(*DETECT, "--model", "scripted")
    measured("measure", "d", "--annotator", "ucsc-extract")
    review(settings, 20)
    measured("measure", "d", "--certificate", "c.json")
    measured(*DETECT, "--model", "scripted")  # the same again
    assert measured("measure", "d", "--check", "c.json").stdout == "still valid\n"
    change(measured, settings)
    assert measured("measure", "d", "--check", "c.json", code=1).stdout == f"out of date: {why}\n"
