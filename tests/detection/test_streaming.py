"""Detectors that ask models over records that are in no dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec, spec_of
from spanlab.detection.file_run import FileRun
from spanlab.detection.request import RunRequest
from spanlab.models import ModelChoice
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, RemarkStep, Status
from spanlab.testing import MODES, ModelRequest, ModelServer, ScriptedReply, fail, say, say_fields

pytestmark = pytest.mark.system("ucsc")

NOTHING = "[[ ## parts ## ]]\n[]\n\n[[ ## completed ## ]]"


def records(count: int) -> list[Record]:
    old = Annotation(
        annotator="ucsc-extract",
        kind=AnnotatorKind.DETECTOR,
        status=Status.FAILED,
        note="power cut",
    )
    other = Annotation(annotator="anna", kind=AnnotatorKind.PERSON)
    return [
        Record(
            item=Item(id=f"i{n}", lang="en", question="?", answer=f"Number {n} it is."),
            annotations=(old, other),
        )
        for n in range(count)
    ]


def stream(home: Path, **options: object) -> FileRun:
    request = RunRequest.of(dataset="files", detectors=[spec_of("ucsc-extract")], **options)
    return FileRun.of(request, Settings(home=home, database_url=f"sqlite:///{home}/none.db"))


def test_records_come_out_in_order_with_new_annotations_for_old(
    model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script(
        lambda ask: fail(400) if "Number 2 " in ask.text else say(NOTHING, delay=0.01)
    )
    made = stream(tmp_path, concurrency=4)
    done = list(made.annotate(records(12)))
    assert [record.item.id for record in done] == [f"i{n}" for n in range(12)]
    assert {tuple(a.annotator for a in record.annotations) for record in done} == {
        ("anna", "ucsc-extract")
    }
    states = [record.annotations[1].status for record in done]
    assert [n for n, status in enumerate(states) if status is not Status.DONE] == [2]
    assert model_server.busiest <= 4
    assert made.usage.calls == 11


def test_a_spent_budget_lets_the_rest_through_as_it_was(
    model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script(lambda ask: say(NOTHING))
    made = stream(tmp_path, concurrency=1, budget={"calls": 2})
    done = list(made.annotate(records(4)))
    notes = [record.by("ucsc-extract") for record in done]
    assert [said is not None and said.status is Status.DONE for said in notes] == [
        True,
        True,
        False,
        False,
    ]
    assert made.spent is not None
    assert model_server.count == 2


ENDS_THE_RUN = {"error-detail", "error-string"}  # no such model: every other call would fail alike
KINDS = sorted(MODES.keys() - ENDS_THE_RUN)


def test_items_end_done_or_failed_with_their_cause_whatever_each_call_meets(
    model_server: ModelServer, tmp_path: Path
) -> None:
    """Every kind of server at once, three items each."""

    def script(ask: ModelRequest) -> ScriptedReply:
        number = int(ask.text.rpartition("Number ")[2].split()[0])
        meant = say_fields(parts=[{"text": str(number), "reason": "so", "probability": 0.9}])
        return MODES[KINDS[number % len(KINDS)]].change(ask, meant)

    model_server.script(script)
    model = ModelChoice(model="m", base_url=model_server.url, retries=0, temperature=0.2)
    spec = DetectorSpec(detector="ucsc-extract", model=model)
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path}/none.db")
    made = FileRun.of(RunRequest.of(dataset="files", detectors=[spec], concurrency=64), settings)
    done = list(made.annotate(records(3 * len(KINDS))))
    for number, record in enumerate(done):
        said, words = record.annotations[1], MODES[KINDS[number % len(KINDS)]].fails_with
        if words:
            assert said.status is Status.FAILED
            assert words in (said.note or "")
        else:
            assert [span.text for span in said.spans] == [str(number)], KINDS[number % len(KINDS)]
    traces = (record.annotations[1].trace for record in done)
    remarks = {step.text for trace in traces for step in trace if isinstance(step, RemarkStep)}
    assert "the endpoint does not take temperature: left out" in remarks
    assert made.outcomes.failed == 3 * sum(bool(MODES[kind].fails_with) for kind in KINDS)
