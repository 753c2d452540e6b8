"""Each detector on a real model: its replies are read, and speak of the answer they are about."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec, build, entries
from spanlab.detection.models import check_models
from spanlab.detection.selection import DetectorSelection
from spanlab.models import Meter, ModelChoice
from spanlab.schema import Annotation, Item, Passage, Status

KEY = "any"
PASSAGES = (
    Passage(
        text="The Varnholm suspension bridge was opened in 1931. It is 412 metres long and crosses "
        "the river Ilse. Its engineer was Runa Dahlgren."
    ),
)
ITEMS = [
    Item(id=str(number), lang="en", question=question, answer=answer, passages=PASSAGES)
    for number, (question, answer) in enumerate(
        (
            ("How long is the bridge?", "The Varnholm bridge is 980 metres long."),
            ("Who built it?", "Its engineer was Tore Lind, and it was opened in 1931."),
            ("What does it cross?", "The bridge crosses the river Ilse."),
        )
    )
]
CITING = [  # the same with what each sentence cites
    item.model_copy(update={"answer": item.answer.replace(".", " [1].")}) for item in ITEMS
]
READING = [
    entry.name
    for entry in entries()
    # A span model has a prompt of its own training, and what searches has nothing to search here.
    if entry.group == "a model" and entry.create and entry.name != "span-model"
]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def found(request: pytest.FixtureRequest, model: ModelChoice, settings: Settings) -> FoundBy:
    """What a detector says of the items, and what its calls came to."""
    meter = Meter()
    if request.param.startswith("veritrail"):  # without a schema a model of 1.5 billion parameters
        model = model.model_copy(update={"structured": True})  # writes claims in forms of its own
    spec = DetectorSpec(detector=request.param, model=model)
    detector = build(spec, meter, settings)
    items = CITING if request.param == "citations-model" else ITEMS
    return [asyncio.run(detector.detect(item)).annotation for item in items], meter


FoundBy = tuple[list[Annotation], Meter]


@pytest.mark.parametrize("found", READING, indirect=True)
def test_replies_are_read_and_speak_of_the_answer(found: FoundBy) -> None:
    annotations, meter = found
    failures = [annotation.note for annotation in annotations if annotation.status is Status.FAILED]
    assert len(failures) <= 1, failures  # small models go astray now and then
    assert 2 * meter.usage.quotes_lost <= meter.usage.quotes
    # Whether it finds what is wrong is the model's part, which `spanlab check-model` tells of.
    assert meter.usage.calls >= len(ITEMS)


def test_the_check_says_what_the_server_can_do(
    model: ModelChoice, address: str, settings: Settings
) -> None:
    (check,) = check_models(DetectorSelection(detectors=("ucsc-extract",), model=model), settings)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    named = {"name": "a", "strict": True, "schema": schema}
    forms: dict[str, list[dict[str, Any]]] = {
        "JSON": [{"type": "json_object"}],
        # OpenAI's form, or the one that llama.cpp's server in Python reads.
        "structured": [
            {"type": "json_schema", "json_schema": named},
            {"type": "json_object", "schema": schema},
        ],
    }
    for kind, known in forms.items():
        replies = [_ask(address, model, form) for form in known]
        works = any(reply.is_success and _is_json(reply) for reply in replies)
        assert check.works(kind) == works, (kind, [reply.text for reply in replies])
    assert check.works("chat")
    assert [trial.kind for trial in check.trials][-1] == "ucsc-extract"


def _ask(address: str, model: ModelChoice, form: dict[str, Any]) -> httpx.Response:
    message = {"role": "user", "content": 'Say {"a": 1} and nothing else.'}
    body = {"model": model.model, "messages": [message], "response_format": form, "max_tokens": 50}
    headers = {"Authorization": f"Bearer {KEY}"}
    return httpx.post(f"{address}/chat/completions", json=body, headers=headers, timeout=600)


def _is_json(reply: httpx.Response) -> bool:
    try:
        return isinstance(json.loads(reply.json()["choices"][0]["message"]["content"]), dict)
    except ValueError:
        return False
