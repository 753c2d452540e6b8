"""Detectors that ask models over records that are in no dataset."""

from __future__ import annotations

from pathlib import Path

from spanlab.detectors import spec_of
from spanlab.schema import Annotation, Item, Kind, Record, Status
from spanlab.settings import Settings
from spanlab.testing import ModelServer, fail, say
from spanlab.workflows.requesting import request_of
from spanlab.workflows.streaming import Stream

NOTHING = "[[ ## parts ## ]]\n[]\n\n[[ ## completed ## ]]"


def records(count: int) -> list[Record]:
    old = Annotation(
        annotator="ucsc-extract", kind=Kind.DETECTOR, status=Status.FAILED, note="power cut"
    )
    other = Annotation(annotator="anna", kind=Kind.PERSON)
    return [
        Record(
            item=Item(id=f"i{n}", lang="en", question="?", answer=f"Number {n} it is."),
            annotations=(old, other),
        )
        for n in range(count)
    ]


def stream(home: Path, **options: object) -> Stream:
    request = request_of("files", [spec_of("ucsc-extract")], **options)
    return Stream.of(request, Settings(home=home, database_url=f"sqlite:///{home}/none.db"))


def test_records_come_out_in_order_with_new_annotations_for_old(
    model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script(
        lambda ask: fail(400) if "Number 2 " in ask.text else say(NOTHING, delay=0.01)
    )
    made = stream(tmp_path, concurrency=4)
    done = list(made.annotated(records(12)))
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
    done = list(made.annotated(records(4)))
    notes = [record.by("ucsc-extract") for record in done]
    assert [said is not None and said.status is Status.DONE for said in notes] == [
        True,
        True,
        False,
        False,
    ]
    assert made.spent is not None
    assert model_server.count == 2
