"""What each detector says of the same replies, to the byte; written anew by running this file."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from detector_cases import ANSWER, TOWER
from prompts import prompt_of

from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec, build
from spanlab.formats import dumps
from spanlab.models import Meter, ModelChoice
from spanlab.schema import Annotation, Item, Passage, Record, Retrieval, Status
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail, say_fields

GOLDEN = Path(__file__).with_name("golden.jsonl")
LONG = "Many words stand here. " * 90 + "The tower was built in 1889 by Gustave Eiffel in Paris."
ITEMS = {
    "given": TOWER,
    "bare": TOWER.model_copy(update={"id": "bare", "passages": ()}),
    "long": TOWER.model_copy(
        update={"id": "long", "passages": (Passage(text="few words " * 90), Passage(text=LONG))}
    ),
    "retrieved": TOWER.model_copy(
        update={
            "id": "retrieved",
            "retrievals": (Retrieval(retriever="given", queries=("the tower",), passages=(1,)),),
        }
    ),
    "chinese": Item(
        id="chinese",
        lang="zh",
        question="塔是什么时候建的？",
        answer="这座塔建于1989年。它在巴黎。",
        passages=(Passage(text="这座塔建于1889年。"),),
    ),
    "empty": TOWER.model_copy(update={"id": "empty", "answer": " "}),
}
CASES = [
    (detector, name)
    for detector in ("ucsc-extract", "ucsc-kg", "ucsc-revise")
    for name in (*ITEMS, "failing")
]


def script(ask: ModelRequest) -> ScriptedReply:
    """Answer every prompt of the three detectors, always the same to the same."""
    prompt = prompt_of(ask)
    if "the failing one" in prompt:
        return fail(402, "no funds")
    if "塔" in prompt and "`[[ ## revised ## ]]`" in prompt:
        return say_fields(revised=ITEMS["chinese"].answer.replace("1989", "1889"))
    for field, reply in REPLIES.items():
        if f"`[[ ## {field} ## ]]`" in prompt:
            return say_fields(**{field: reply})
    if "1989" not in prompt.partition("[[ ## fact ## ]]")[2].partition("[[ ##")[0]:
        return say_fields(
            judgement={"verdict": "supported", "confidence": 0.7, "reason": "it says so"}
        )
    if "(nothing looked up yet)" in prompt:
        return say_fields(judgement={"look_up": ["Tower"], "verdict": "", "reason": ""})
    return say_fields(
        judgement={"verdict": "Refuted", "confidence": "80%", "reason": "it was 1889"}
    )


REPLIES: dict[str, Any] = {
    "parts": [
        {"text": "1989", "reason": "it was 1889", "probability": "90%"},
        {"text": "Ada Smith"},
        {"text": "on the Moon", "probability": 0.2},
    ],
    "revised": ANSWER.replace("1989", "1889").replace("Ada Smith", "Gustave Eiffel"),
    "relations": [
        {"subject": "Tower", "relation": "built in", "object": "1889"},
        {"head": "Tower", "predicate": "located in", "tail": "Paris"},
        {"subject": "nothing"},
    ],
    "facts": [
        {"fact": "The tower was built in 1989.", "sentence": ANSWER},
        {"fact": "The tower was built in 1989 again.", "sentence": "1989"},
        {"claim": "The tower is in Paris.", "source": "in Paris"},
        {"fact": ""},
    ],
    "words": ["1989"],
}


def said(detector: str, name: str, url: str, home: Path) -> bytes:
    """Return what a detector says of an item as one line; of a failure the first words alone."""
    choice = ModelChoice(model="scripted", base_url=url, retries=0)
    spec = DetectorSpec(detector=detector, model=choice, context=1000)
    settings = Settings(home=home, database_url="sqlite://", programs=home / "programs")
    built = build(spec, Meter(), settings)
    failing = TOWER.model_copy(update={"id": "failing", "question": "the failing one"})
    found = asyncio.run(built.detect(ITEMS.get(name, failing)))
    trace = tuple(step for step in found.annotation.trace if step.kind != "calls")
    update: dict[str, object] = {"trace": trace}
    if found.annotation.status is Status.FAILED:
        update["note"] = (found.annotation.note or "").partition(":")[0]
    annotation: Annotation = found.annotation.model_copy(update=update)
    return dumps(Record(item=found.item, annotations=(annotation,)))


@pytest.mark.parametrize(("detector", "name"), CASES)
def test_the_annotation_is_that_of_the_golden_file(
    detector: str, name: str, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script(script)
    golden = dict(zip(CASES, GOLDEN.read_bytes().splitlines(keepends=True), strict=True))
    assert said(detector, name, model_server.url, tmp_path) == golden[detector, name]


def test_the_golden_file_holds_spans_claims_evidence_and_failures() -> None:
    lines = [json.loads(line)["annotations"][0] for line in GOLDEN.read_text().splitlines()]
    assert {line["status"] for line in lines} == {"done", "failed"}
    assert any(line.get("claims") for line in lines)
    assert sum(bool(span.get("evidence")) for line in lines for span in line["spans"]) > 5


if __name__ == "__main__":
    with ModelServer(script) as server, tempfile.TemporaryDirectory() as place:
        GOLDEN.write_bytes(b"".join(said(*case, server.url, Path(place)) for case in CASES))
