"""Records annotated by models: in order, many at once, from scripts and from notebooks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from detector_cases import TOWER

import spanlab
from spanlab.base.errors import BudgetError, UsageError
from spanlab.detection import DetectorSpec
from spanlab.detection.file_run import FileRun
from spanlab.detection.request import RunRequest
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Status
from spanlab.schema.usage import Budget
from spanlab.search.spec import GivenSpec
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail, say_fields

pytestmark = pytest.mark.system("ucsc")


@pytest.fixture(autouse=True)
def _own_home(model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path))
    model_server.script(lambda ask: say_fields(parts=[{"text": "1989", "probability": 0.8}]))


def towers(count: int) -> list[Record]:
    before = Annotation(annotator="anna", kind=AnnotatorKind.PERSON)
    old = Annotation(
        annotator="ucsc-extract", kind=AnnotatorKind.DETECTOR, status=Status.FAILED, note="x"
    )
    items = [
        TOWER.model_copy(update={"id": f"tower {number}", "question": f"Tower {number}?"})
        for number in range(count)
    ]
    return [Record(item=item, annotations=(before, old)) for item in items]


def test_records_come_back_in_order_with_the_new_annotation(model_server: ModelServer) -> None:
    done = spanlab.annotate(towers(20), "ucsc-extract", model="some-model", concurrency=6)
    assert [record.item.id for record in done] == [f"tower {number}" for number in range(20)]
    for record in done:
        assert [each.annotator for each in record.annotations] == ["anna", "ucsc-extract"]
        assert [span.text for span in record.annotations[1].spans] == ["1989"]
    assert {ask.body["model"] for ask in model_server.requests} == {"some-model"}
    assert model_server.busiest <= 6


def test_a_batch_is_under_way_at_once_and_not_one_after_the_other(
    model_server: ModelServer,
) -> None:
    """Users ask for real batching."""
    model_server.latency = 0.2
    done = spanlab.annotate(towers(32), "ucsc-extract", concurrency=16)
    assert all(record.annotations[1].status is Status.DONE for record in done)
    assert model_server.busiest == 16


def test_it_works_where_an_event_loop_already_runs() -> None:
    async def cell_of_a_notebook() -> list[Record]:
        return spanlab.annotate(towers(2), "ucsc-extract")

    done = asyncio.run(cell_of_a_notebook())
    assert [record.annotations[1].status for record in done] == [Status.DONE] * 2


def test_a_second_run_is_answered_from_the_cache(model_server: ModelServer) -> None:
    spanlab.annotate(towers(3), "ucsc-extract")
    spanlab.annotate(towers(3), "ucsc-extract")
    assert model_server.count == 3


def test_one_item_s_failure_is_one_item_s_failure(model_server: ModelServer) -> None:
    def script(ask: ModelRequest) -> ScriptedReply:
        return fail(402, "nothing left") if "Tower 1?" in ask.text else say_fields(parts=[])

    model_server.script(script)
    with pytest.warns(UserWarning, match="1 of 3 records failed"):
        done = spanlab.annotate(towers(3), "ucsc-extract")
    assert [record.annotations[1].status for record in done] == [
        Status.DONE,
        Status.FAILED,
        Status.DONE,
    ]
    note = done[1].annotations[1].note
    assert note is not None
    assert note.startswith("credits exhausted")


def test_an_ensemble_leaves_its_members_annotations_and_the_vote(
    model_server: ModelServer,
) -> None:
    model_server.script(
        lambda ask: say_fields(
            reasoning="so", parts=["1989"], revised=TOWER.answer.replace("1989", "X")
        )
    )
    (record,) = spanlab.annotate(towers(1), "ucsc", model="all-the-same")
    names = [each.annotator for each in record.annotations if each.annotator.startswith("ucsc-")]
    vote = record.by("ucsc")
    assert vote is not None
    assert list(vote.voters) == names[1:] == [name for name in names if name != "ucsc-extract"]
    assert [(span.text, span.prob) for span in vote.spans] == [("1989", 1.0)]


def test_a_spent_budget_ends_the_run(model_server: ModelServer) -> None:
    with pytest.raises(BudgetError, match="2 calls"):
        spanlab.annotate(towers(9), "ucsc-extract", concurrency=1, budget=Budget(calls=2))
    assert model_server.count == 2


def test_only_a_few_records_are_held_at_once() -> None:
    read = 0

    def source() -> Iterator[Record]:
        nonlocal read
        for record in towers(60):
            read += 1
            yield record

    request = RunRequest.of(
        dataset="records", detectors=[DetectorSpec(detector="ucsc-extract")], concurrency=2
    )
    stream = FileRun.of(request)
    done = stream.annotate(source())
    next(done)
    assert read <= 10
    assert len(list(done)) == 59
    assert stream.usage.calls == 60


def test_a_detector_of_one_s_own_is_asked_too() -> None:
    class Own:
        name = "own"

        def annotate(self, item: Item) -> Annotation:
            return Annotation(annotator="own", kind=AnnotatorKind.DETECTOR, note=item.id)

    done = spanlab.annotate(towers(2), Own())
    assert [record.annotations[-1].note for record in done] == ["tower 0", "tower 1"]


@pytest.mark.system("offline")
def test_what_a_detector_has_no_use_for_is_refused() -> None:
    with pytest.raises(UsageError, match="asks no model"):
        spanlab.annotate(towers(1), "offline", model="m")
    with pytest.raises(UsageError, match="into its specification"):
        spanlab.annotate(towers(1), DetectorSpec(detector="ucsc-extract"), model="m")
    with pytest.raises(UsageError, match="'nonsense'"):
        spanlab.annotate(towers(1), "nonsense", retriever=GivenSpec())
